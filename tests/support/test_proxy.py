"""
The proxy in front of an API server, here an embedded hub.

The hub's own tests run here once more with the proxy; the others are of what the hub does not have.
"""

import base64
import gzip
import http.client
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest
import requests
import trustme

from placement_lab.hub import Hub
from tests.support.crds import plain_crd, strict_crds
from tests.support.documents import ROOT
from tests.support.envtest import admin_session
from tests.support.hub_client import CONFIGMAPS, CONFIGS, CRDS, Client, Watching, config, configmap
from tests.support.proxy import Proxy, Upstream
from tests.support.real_hub import RealHub
from tests.support.rights import CLUSTER_BINDINGS, CLUSTER_ROLES, SSAR, WHO, bound_to, codes, rule
from tests.support.stand_in import stand_in

pytestmark = pytest.mark.long

SCORES = "addonplacementscores.cluster.open-cluster-management.io"


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    """The API server behind the proxy; its own journal and faults are not used."""
    with Hub() as hub:
        yield hub


@pytest.fixture
def proxy(server: Hub) -> Iterator[Hub]:
    with Proxy(Upstream(server.url, server.token)) as proxy:
        yield cast("Hub", proxy)


@pytest.fixture
def client(proxy: Hub) -> Iterator[Client]:
    client = Client(proxy)
    yield client
    proxy.faults.clear()
    client.delete(CONFIGMAPS)
    client.delete(CONFIGS)


OF_THE_HUB = ("test_server.py", "test_watch.py", "rbac/test_tokens.py", "rbac/test_impersonation.py")
"""Tests of faults, outages, watches, the journal, and users."""


@pytest.mark.timeout(300)
def test_the_tests_of_the_hub_pass_with_the_proxy() -> None:
    files = [f"tests/placement_lab/hub/{name}" for name in OF_THE_HUB]
    command = [sys.executable, "-m", "pytest", "--envtest-stand-in", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", last)[0]) > 30, last


def test_an_api_server_that_is_gone_closes_the_connection() -> None:
    with Hub(crds=[]) as server, Proxy(Upstream(server.url, server.token)) as proxy:
        client = Client(cast("Hub", proxy))
        assert client.names(CONFIGMAPS) == []
        with server.outage(), pytest.raises(requests.ConnectionError):
            client.names(CONFIGMAPS)
        assert client.names(CONFIGMAPS) == []


# -- watches


def test_a_forgotten_history_answers_410_once(proxy: Hub, client: Client) -> None:
    for name in ("a", "b"):
        client.create(CONFIGMAPS, configmap(name))
    page = client.get(f"{CONFIGMAPS}?limit=1")["metadata"]
    assert client.names(f"{CONFIGMAPS}?limit=1&continue={page['continue']}") == ["b"]
    proxy.forget_history()
    with Watching(client, CONFIGMAPS, resourceVersion=page["resourceVersion"]) as seen:
        assert seen.ended()
    assert [one["object"]["code"] for one in seen.seen] == [410]
    assert client.ask("GET", f"{CONFIGMAPS}?limit=1&continue={page['continue']}").status_code == 410
    with Watching(client, CONFIGMAPS, resourceVersion=client.version(CONFIGMAPS)) as seen:
        client.create(CONFIGMAPS, configmap("c"))
        seen.until(("ADDED", "c"))


# -- certificates


def version_with(proxy: Hub, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection("127.0.0.1", proxy.port, context=context, timeout=5)
    connection.request("GET", "/version")
    return connection.getresponse().status


def test_the_ca_changes(proxy: Hub) -> None:
    def trusted() -> ssl.SSLContext:
        authority = proxy.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"]
        return ssl.create_default_context(cadata=base64.b64decode(authority).decode())

    before = trusted()
    assert version_with(proxy, before) == 200
    proxy.rotate_ca()
    with pytest.raises(ssl.SSLError):
        version_with(proxy, before)
    assert version_with(proxy, trusted()) == 200


def test_a_client_certificate_is_required(proxy: Hub) -> None:
    ca = trustme.CA()
    context = ssl.create_default_context(cadata=proxy.ca_certificate.decode())
    proxy.require_client_certificates(ca)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        version_with(proxy, context)
    ca.issue_cert("me@example.com").configure_cert(context)
    assert version_with(proxy, context) == 200


# -- users


def test_the_api_server_decides_what_an_impersonated_user_may_do(proxy: Hub, client: Client) -> None:
    client.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": [rule("list", "", "configmaps")]})
    client.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r", kind="Group", name="readers"))
    every, reader, nobody = (
        Client(proxy, proxy.add_user("bob", groups=groups)) for groups in (None, ["readers"], [])
    )
    asked = (("GET", CONFIGMAPS), ("GET", CONFIGS))
    found = [codes(one, *asked) for one in (every, reader, nobody)]
    assert found == [[200, 200], [200, 403], [403, 403]]
    denied = reader.ask("GET", CONFIGS).json()["message"]
    assert 'User "bob" cannot list resource "multikueueconfigs"' in denied
    who = [one.create(WHO, {})["status"]["userInfo"] for one in (reader, nobody)]
    assert [(one["username"], one["groups"]) for one in who] == [
        ("bob", ["readers", "system:authenticated"]),
        ("bob", ["system:authenticated"]),
    ]
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "secrets"}}}
    assert reader.create(SSAR, review)["status"]["allowed"] is False
    assert {r.user for r in proxy.journal} == {"kubernetes-admin", "bob"}


# -- what passes unchanged


class Echo(BaseHTTPRequestHandler):
    """Answers with compressed JSON and the headers that an API server sends."""

    seen: list[tuple[str, dict[str, str], bytes]]

    def do_PUT(self) -> None:  # http.server's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body))
        content = gzip.compress(b'{"kind":"Echo"}')
        self.send_response(299)
        for name, value in (
            ("Content-Type", "application/json;as=Table"),
            ("Content-Encoding", "gzip"),
            ("Warning", '299 - "one"'),
            ("Warning", '299 - "two"'),
            ("Audit-Id", "x"),
            ("Content-Length", str(len(content))),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_headers_bodies_and_paths_pass_unchanged() -> None:
    Echo.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Proxy(Upstream(f"http://127.0.0.1:{server.server_port}", "upstream")) as proxy:
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5)
            sent = {
                "Authorization": f"Bearer {proxy.token}",
                "Content-Type": "application/apply-patch+yaml",
                "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                "Accept-Encoding": "gzip",
                "User-Agent": "kubectl/1",
            }
            connection.request("PUT", "/a%2Fb?x=%3D&y=a+b", body=b"\x00\xff", headers=sent)
            answer = connection.getresponse()
            content = answer.read()
        server.shutdown()
    [(path, headers, body)] = Echo.seen
    assert (path, body) == ("/a%2Fb?x=%3D&y=a+b", b"\x00\xff")
    assert {name: headers[name] for name in sent} == sent | {"Authorization": "Bearer upstream"}
    assert (answer.status, gzip.decompress(content)) == (299, b'{"kind":"Echo"}')
    assert answer.headers.get_all("Warning") == ['299 - "one"', '299 - "two"']
    assert (answer.headers["Content-Type"], answer.headers["Audit-Id"]) == ("application/json;as=Table", "x")


# -- between tests


def test_each_test_finds_the_first_state() -> None:
    thing = plain_crd("example.com", "Thing")
    with stand_in() as server, RealHub(server, strict_crds()) as hub:
        direct = admin_session(server.token)
        with hub.cleared(token="given") as one:
            client = Client(one)
            first = client.names(CRDS)
            client.delete(f"{CRDS}/{SCORES}")
            client.patch(f"{CRDS}/multikueueconfigs.kueue.x-k8s.io", {"spec": {"names": {"shortNames": []}}})
            client.create(CRDS, thing)
            client.create(CONFIGMAPS, configmap("a", finalizers=["example.com/stays"]))
            client.create(CONFIGS, config("a"))
            one.faults.add(status=500, times=9)
            bob = one.add_user("bob")
            assert (one.token, len(one.journal) > 4) == ("given", True)
        with hub.cleared() as two:
            client = Client(two)
            assert (two.journal, two.faults.all_met) == ([], True)
            assert client.names(CRDS) == first
            scores = "/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores"
            assert direct.get(f"{server.url}{scores}", timeout=5).json()["items"] == []
            shown = client.get(f"{CRDS}/multikueueconfigs.kueue.x-k8s.io")["spec"]["names"]
            assert shown == next(
                crd["spec"]["names"]
                for crd in strict_crds()
                if crd["metadata"]["name"] == "multikueueconfigs.kueue.x-k8s.io"
            )
            assert client.names(CONFIGMAPS) == client.names(CONFIGS) == []
            assert Client(two, bob).ask("GET", CONFIGS).status_code == 401
        with hub.cleared(crds=[thing]) as three:
            assert Client(three).names(CRDS) == ["things.example.com"]
        direct.close()
