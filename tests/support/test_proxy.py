"""The proxy in front of an API server, here an embedded hub: faults, outages, watches, users, TLS, CRDs.

`tests/placement_lab/hub/test_server.py` and `test_watch.py` test the same of the hub itself, and with
`--envtest-stand-in` of the proxy.
"""

import base64
import gzip
import http.client
import random
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest
import requests
import trustme

from placement_lab.hub import Hub
from tests.support.crds import plain_crd, strict_crds
from tests.support.driver import eventually
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


# -- one fault each


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_status(proxy: Hub, client: Client, status: int) -> None:
    proxy.faults.add("POST", "configmaps$", status=status, headers={"Retry-After": "7"})
    answer = client.ask("POST", CONFIGMAPS, configmap("a"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (status, "7")
    assert answer.json()["code"] == status
    assert client.names(CONFIGMAPS) == []


def test_garbage(proxy: Hub, client: Client) -> None:
    proxy.faults.add("GET", "configmaps$", status=200, body="{garbage")
    assert client.ask("GET", CONFIGMAPS).text == "{garbage"


def test_a_reset(proxy: Hub, client: Client) -> None:
    proxy.faults.add("POST", hang_up=True)
    with pytest.raises(requests.ConnectionError):
        client.ask("POST", CONFIGMAPS, configmap("a"))
    assert [r.status for r in proxy.journal] == [0]
    assert client.names(CONFIGMAPS) == []


def test_a_write_whose_answer_is_lost(proxy: Hub, client: Client) -> None:
    proxy.faults.add("POST", hang_up=True, after=True)
    with pytest.raises(requests.ConnectionError):
        client.ask("POST", CONFIGMAPS, configmap("a"))
    proxy.faults.add("POST", status=500, after=True)
    assert client.ask("POST", CONFIGMAPS, configmap("b")).status_code == 500
    assert client.names(CONFIGMAPS) == ["a", "b"]


def test_a_delay(proxy: Hub, client: Client) -> None:
    proxy.faults.add("GET", delay=0.3)
    began = time.monotonic()
    assert client.names(CONFIGMAPS) == []
    assert time.monotonic() - began >= 0.3


def test_a_slow_body(proxy: Hub, client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a", {"k": "v" * 1000}))
    proxy.faults.add("GET", slow_body=2.0)
    began = time.monotonic()
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=5)
    connection.request("GET", CONFIGMAPS, headers={"Authorization": f"Bearer {proxy.token}"})
    answer = connection.getresponse()
    pieces = [(time.monotonic() - began, answer.read1(200)) for _ in range(5)]
    rest = answer.read()
    assert pieces[0][0] < 1.5 < time.monotonic() - began
    assert b'"name":"a"' in b"".join(piece for _, piece in pieces) + rest


def test_a_fault_for_the_nth_request_of_one_client(proxy: Hub, client: Client) -> None:
    proxy.faults.add("GET", "configmaps", agent="ours/", status=500, skip=1, times=2)
    statuses = [
        client.ask("GET", CONFIGMAPS, User_Agent=agent).status_code
        for agent in ("ours/1", "theirs/1", "ours/1", "ours/1", "ours/1")
    ]
    assert statuses == [200, 200, 500, 500, 200]
    assert proxy.faults.all_met


def test_an_api_server_that_is_gone_closes_the_connection() -> None:
    with Hub(crds=[]) as server, Proxy(Upstream(server.url, server.token)) as proxy:
        client = Client(cast("Hub", proxy))
        assert client.names(CONFIGMAPS) == []
        with server.outage(), pytest.raises(requests.ConnectionError):
            client.names(CONFIGMAPS)
        assert client.names(CONFIGMAPS) == []


# -- watches


def test_a_watch_goes_on_line_by_line(proxy: Hub, client: Client) -> None:
    with Watching(client, CONFIGS) as seen:
        for name in ("a", "b"):
            client.create(CONFIGS, config(name))
            eventually(lambda name=name: ("ADDED", name) in seen.events)
        assert proxy.watchers("multikueueconfigs") == 1
        [((_, plural), sent)] = proxy.watched.items()
        assert (plural, sent > 200) == ("multikueueconfigs", True)
    eventually(lambda: proxy.watchers("multikueueconfigs"), 0)


@pytest.mark.parametrize(
    ("how", "codes_seen", "broken"),
    [
        ("close", [], ""),
        ("garbage", [], "JSONDecodeError"),
        ("error-410", [410], ""),
        ("error-500", [500], ""),
    ],
)
def test_watches_of_one_kind_are_dropped(
    proxy: Hub, client: Client, how: str, codes_seen: list[int], broken: str
) -> None:
    with Watching(client, CONFIGS) as seen, Watching(client, CONFIGMAPS) as other:
        eventually(lambda: proxy.watchers("configmaps") + proxy.watchers("multikueueconfigs"), 2)
        proxy.drop_watches(how, "multikueueconfigs")  # type: ignore[arg-type]  # from the table
        assert seen.ended()
        assert ([one["object"]["code"] for one in seen.seen], seen.broken) == (codes_seen, broken)
        client.create(CONFIGMAPS, configmap("a"))
        other.until(("ADDED", "a"))


def test_a_watch_hangs_until_its_timeout(proxy: Hub, client: Client) -> None:
    with Watching(client, CONFIGS, timeoutSeconds="2") as seen:
        eventually(lambda: proxy.watchers("multikueueconfigs"), 1)
        proxy.drop_watches("hang")
        client.create(CONFIGS, config("a"))
        assert seen.ended()
    assert seen.seen == []


def test_old_events_are_sent_again(proxy: Hub, client: Client) -> None:
    with Watching(client, CONFIGS, resourceVersion=client.version(CONFIGS)) as seen:
        client.create(CONFIGS, config("a"))
        client.delete(f"{CONFIGS}/a")
        seen.until(("ADDED", "a"), ("DELETED", "a"))
    with Watching(client, CONFIGS, resourceVersion=client.version(CONFIGS)) as later:
        eventually(lambda: proxy.watchers("multikueueconfigs"))
        proxy.repeat_history(random.Random(1), agent="nobody")
        proxy.repeat_history(random.Random(1))
        eventually(lambda: sorted(later.events), [("ADDED", "a")] * 2 + [("DELETED", "a")] * 2)


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


# -- outages and certificates


def test_an_outage_closes_connections_and_keeps_the_port(proxy: Hub, client: Client) -> None:
    client.create(CONFIGMAPS, configmap("a"))
    port = proxy.port
    with Watching(client, CONFIGS) as seen, proxy.outage():
        assert seen.ended()
        with pytest.raises(requests.ConnectionError):
            client.names(CONFIGMAPS)
    assert (proxy.port, client.names(CONFIGMAPS)) == (port, ["a"])


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


def test_an_expired_token_is_rejected_by_the_api_server(proxy: Hub) -> None:
    token = proxy.add_user("bob")
    assert Client(proxy, token).ask("GET", CONFIGS).status_code == 200
    proxy.expire_token(token)
    assert Client(proxy, token).ask("GET", CONFIGS).status_code == 401
    assert requests.get(proxy.url + CONFIGS, timeout=5).status_code == 403
    assert [r.user for r in proxy.journal] == ["bob", "", "system:anonymous"]


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


def test_a_watch_of_another_test_counts_no_more() -> None:
    with stand_in() as server, RealHub(server, [plain_crd("example.com", "Thing")]) as hub:
        for _ in range(3):
            with hub.cleared() as one:
                client = Client(one)
                watching = Watching(client, CONFIGMAPS)
                eventually(lambda one=one: one.watchers("configmaps"), 1)
                client.create(CONFIGMAPS, configmap("a"))
                watching.until(("ADDED", "a"))
        with hub.cleared() as one:
            assert (one.watched, one.watchers("configmaps")) == ({}, 0)


def test_a_second_hub_at_the_same_time_is_an_error() -> None:
    with (
        stand_in() as server,
        RealHub(server, []) as hub,
        hub.cleared(),
        pytest.raises(AssertionError, match="make a second hub"),
        hub.cleared(),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"history": 5}, "keeps its history for minutes"),
        ({"shortest_token_seconds": 1}, "issues no token for less than 10 minutes"),
    ],
)
def test_options_that_an_api_server_does_not_have_are_skipped(options: dict[str, int], reason: str) -> None:
    with stand_in() as server, RealHub(server, []) as hub:
        with pytest.raises(pytest.skip.Exception, match=reason), hub.cleared(**options):
            pass
        with pytest.raises(pytest.skip.Exception, match=r"has no Hub\.access"):
            _ = hub.access
