"""Asking workers for the copies that they hold: the ways in, what is refused, and who does not answer."""

import asyncio
import base64
import gzip
import json
import socket
import stat
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from placement_ac.core.api import decode
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability import logs
from placement_ac.workers.connector import MAX_ANSWER_BYTES, MAX_PAGE_BYTES, WorkerConnector
from placement_ac.workers.copies import CopyReader, WorkerCopies
from placement_ac.workers.exec_plugins import AccessProviders
from placement_lab.hub import Hub
from tests.support.driver import CORE, NS, Driver
from tests.support.shared import published_crds

Raw = dict[str, Any]
TOKEN = "SeCrEt-42"
V1 = "client.authentication.k8s.io/v1"
POD_SET = {"name": "main", "count": 1, "template": {"spec": {"containers": []}}}
ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
SECRETS = SECRET.at("v1")
PROFILES = CLUSTER_PROFILE.at("v1alpha1")
WORKLOADS = "/apis/kueue.x-k8s.io/{}/namespaces/{}/workloads"
Asking = Callable[[CopyReader], Awaitable[Any]]


@contextmanager
def serving(**options: Any) -> Iterator[Driver]:
    with Hub(token=TOKEN, **options) as hub, Driver(hub) as driver:
        yield driver


@pytest.fixture
def worker() -> Iterator[Driver]:
    with serving(crds=[workload_crd()]) as driver:
        yield driver


def workload_crd(*served: str) -> Raw:
    """The CRD of Workloads, in all versions or only those."""
    crd = next(crd for crd in published_crds() if crd["spec"]["names"]["kind"] == "Workload")
    versions = [v for v in crd["spec"]["versions"] if v["name"] in (served or [v["name"]])]
    versions[-1] = versions[-1] | {"storage": True}
    return crd | {"spec": crd["spec"] | {"versions": versions}}


def copy_of(
    worker: Driver, name: str, *said: str, namespace: str = "ns", version: str = "v1beta2", **labels: str
) -> None:
    """A Workload on a worker, with conditions: a copy unless it has labels of its own."""
    path = WORKLOADS.format(version, namespace)
    worker.namespace(namespace)
    body = {"metadata": {"name": name, "labels": labels or ORIGIN}, "spec": {"podSets": [POD_SET]}}
    worker.ask("POST", path, {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "Workload"} | body)
    rest = {
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    conditions = [{"type": kind} | rest for kind in said]
    worker.ask("PATCH", f"{path}/{name}/status", {"status": {"conditions": conditions}}, "merge")


def put_secret(admin: Driver, name: str, content: object) -> None:
    """A Secret with that kubeconfig, new or changed."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path = f"{CORE}/namespaces/{NS}/secrets"
    data = {"kubeconfig": base64.b64encode(text).decode()}
    if admin.get(f"{path}/{name}"):
        admin.ask("PATCH", f"{path}/{name}", {"data": data}, "merge")
    else:
        admin.secret(name, value=data["kubeconfig"])


def kubeconfig(worker: Driver, user: Raw | None = None, **cluster: Any) -> Raw:
    content = worker.hub.kubeconfig()
    content["users"][0]["user"] = user or {"token": TOKEN}
    content["clusters"][0]["cluster"] |= cluster
    return content


def by_secret(name: str = "s", cluster: str = "p-w") -> KueueObject:
    source = {"kubeConfig": {"location": name, "locationType": "Secret"}}
    return decode.kueue_object({"metadata": {"name": cluster}, "spec": {"clusterSource": source}})


def by_profile(name: str = "w") -> KueueObject:
    source = {"clusterProfileRef": {"name": name}}
    return decode.kueue_object({"metadata": {"name": "p-w"}, "spec": {"clusterSource": source}})


def with_workers(admin: Driver, asking: Asking, parallel: int = 8, **options: Any) -> Any:
    """Return what `asking` returns, given a CopyReader on the admin's hub. `options`: of its connector."""

    async def run() -> Any:
        cluster = admin.hub.kubeconfig()["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        access = ClusterAccess(admin.hub.url, authority=authority, token=admin.hub.token)
        async with Client(Login(access=access)) as client:
            connector = WorkerConnector(client, SECRETS, NS, **options)
            return await asking(CopyReader(connector, parallel=parallel))

    return asyncio.run(run())


def ask(admin: Driver, cluster: KueueObject | None = None, **options: Any) -> WorkerCopies:
    answer = with_workers(admin, lambda workers: workers.read(cluster or by_secret()), **options)
    assert TOKEN not in repr(answer)
    return answer


def problem(why: str) -> WorkerCopies:
    return WorkerCopies(problem=f"MultiKueueCluster p-w: {why}")


def beyond(sent: str) -> WorkerCopies:
    """The problem of a worker whose answer is beyond its budget."""
    return problem(f"the worker of Secret {NS}/s sends {sent}: it is asked again after 5 min")


# -- what is asked


def test_the_copies_of_all_namespaces_and_which_hold_quota(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    copy_of(worker, "waits")
    copy_of(worker, "runs", "QuotaReserved", "Admitted")
    copy_of(worker, "runs", "QuotaReserved", namespace="other")
    copy_of(worker, "done", "QuotaReserved", "Admitted", "Finished")
    copy_of(worker, "of-its-own", "QuotaReserved", mine="yes")
    copies = {("ns", "waits"): False, ("ns", "runs"): True, ("other", "runs"): True, ("ns", "done"): False}
    assert ask(admin) == WorkerCopies(copies)


def test_a_condition_that_is_false_is_no_quota(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    copy_of(worker, "evicted", "QuotaReserved")
    path = f"{WORKLOADS.format('v1beta2', 'ns')}/evicted/status"
    worker.ask(
        "PATCH", path, [{"op": "replace", "path": "/status/conditions/0/status", "value": "False"}], "json"
    )
    assert ask(admin) == WorkerCopies({("ns", "evicted"): False})


def test_page_by_page_and_again_when_a_page_has_expired(
    admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.workers.reader.PAGE_SIZE", 2)
    put_secret(admin, "s", kubeconfig(worker))
    for number in range(5):
        copy_of(worker, f"w{number}")
    gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    worker.hub.faults.add("GET", "v1beta2/workloads", delay=0)
    worker.hub.faults.add("GET", "v1beta2/workloads", status=410, body=gone)
    assert ask(admin) == WorkerCopies({("ns", f"w{number}"): False for number in range(5)})
    lists = [r.query for r in worker.hub.journal if r.path.endswith("v1beta2/workloads")]
    assert [("continue" in query) for query in lists] == [False, True, False, True, True]
    assert {query["labelSelector"] for query in lists} == {"kueue.x-k8s.io/multikueue-origin"}


@pytest.mark.parametrize(
    ("path", "body", "asked", "sent"),
    [
        pytest.param(
            "v1beta2/workloads",
            {"items": [], "padding": "x" * MAX_PAGE_BYTES},
            ["20", "5", "1"],
            "more than 2,000,000 bytes",
            id="list",
        ),
        pytest.param(
            "v1beta2/workloads",
            {"items": [{}] * 21},
            ["20"],
            "more than 20 objects in a page",
            id="more objects than asked for",
        ),
        pytest.param(
            "v1beta2/workloads",
            {"items": [], "metadata": {"continue": "again"}},
            ["20", "20"],
            "the same page of a list again",
            id="a token that repeats",
        ),
        pytest.param(
            "v1beta2",
            {"resources": [], "padding": "x" * MAX_ANSWER_BYTES},
            [""],
            "more than 200,000 bytes",
            id="kinds",
        ),
    ],
)
def test_a_worker_with_a_large_answer_is_not_asked_again_for_a_while(
    admin: Driver, worker: Driver, path: str, body: Raw, asked: list[str], sent: str
) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    body = {"kind": "WorkloadList"} | body
    worker.hub.faults.add("GET", f"{path}$", status=200, body=body, times=100)

    async def twice(workers: CopyReader) -> list[str]:
        return [(await workers.read(by_secret())).problem for _ in range(2)]

    assert with_workers(admin, twice) == [beyond(sent).problem] * 2
    limits = [r.query.get("limit", "") for r in worker.hub.journal if r.path.endswith(path)]
    assert limits == asked, "the second time nothing is sent"


def plain_kubeconfig(address: str) -> Raw:
    """A kubeconfig for a server without TLS."""
    cluster = {"name": "w", "cluster": {"server": address}}
    user = {"name": "w", "user": {"token": TOKEN}}
    context = {"name": "w", "context": {"cluster": "w", "user": "w"}}
    content = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "w"}
    return {"apiVersion": "v1", "kind": "Config"} | content


@contextmanager
def answering(answers: Mapping[str, bytes | Callable[[], bytes]]) -> Iterator[str]:
    """The address of a server that gives these answers, by path: bytes that no hub would write."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers[self.path.partition("?")[0]]
            text = answer if isinstance(answer, bytes) else answer()
            self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def workload_list(**metadata: bytes) -> dict[str, bytes]:
    """The answers of a worker with one copy that runs, with this JSON in its metadata."""
    condition = b'{"type":"QuotaReserved","status":"True"}'
    more = b"".join(b',"%s":%s' % (key.encode(), text) for key, text in metadata.items())
    copy = b'{"metadata":{"name":"runs","namespace":"ns"%s},"status":{"conditions":[%s]}}' % (more, condition)
    group = "/apis/kueue.x-k8s.io"
    return {
        group: b'{"versions":[{"version":"v1beta2"}]}',
        f"{group}/v1beta2": b'{"resources":[{"name":"workloads"}]}',
        f"{group}/v1beta2/workloads": b'{"kind":"WorkloadList","items":[%s]}' % copy,
    }


COPIES = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@pytest.mark.parametrize(
    ("item", "pause", "pages", "sent"),
    [
        pytest.param(lambda _: {}, 0.0, 200, "a list of more than 200 pages", id="pages"),
        pytest.param(lambda _: {"x": "y" * 400_000}, 0.0, 13, "more than 5,000,000 bytes in all", id="bytes"),
        pytest.param(lambda _: {}, 0.2, 6, "a list for more than 1 s", id="seconds"),
        pytest.param(
            lambda page: {"metadata": {"name": str(page)}}, 0.0, 31, "more than 30 copies", id="copies"
        ),
        pytest.param(
            lambda page: {"metadata": {"name": f"{page:0500}"}},
            0.0,
            7,
            "more than 30 copies",
            id="long names",
        ),
    ],
)
def test_pages_without_end_are_read_within_a_budget(
    admin: Driver,
    monkeypatch: pytest.MonkeyPatch,
    item: Callable[[int], Raw],
    pause: float,
    pages: int,
    sent: str,
) -> None:
    monkeypatch.setattr("placement_ac.workers.copies.CopyReader.total_bytes", 5_000_000)
    monkeypatch.setattr("placement_ac.workers.copies.MAX_COPIES", 30)
    if pause:
        monkeypatch.setattr("placement_ac.workers.connector.LIST_FRACTION", 1 / 20)
    read: list[None] = []

    def page() -> bytes:
        read.append(None)
        time.sleep(pause)  # a worker whose every page takes that long: the time for all of them runs out
        more = {"continue": str(len(read))}
        return json.dumps({"kind": "WorkloadList", "items": [item(len(read))], "metadata": more}).encode()

    with answering(workload_list() | {COPIES: page}) as address:
        put_secret(admin, "s", plain_kubeconfig(address))
        assert ask(admin, timeout=20.0 if pause else 50.0) == beyond(sent)
    assert len(read) <= pages


def test_a_worker_that_holds_a_slot_for_large_answers_loses_it(
    admin: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight workers send the beginning of a page, and no more; a ninth sends a whole one."""
    monkeypatch.setattr("placement_ac.kube.budget.SLOT_SECONDS", 0.3)
    ended = threading.Event()

    class Stalling(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = answers[self.path.partition("?")[0]]
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
            stalls = self.path.startswith(COPIES)
            self.wfile.write(text[: len(text) - stalls])
            self.wfile.flush()
            if stalls:
                ended.wait(30)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    answers = workload_list(annotations=b'{"note":"%s"}' % (b"x" * 100_000))
    with answering(answers) as honest, ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as stalling:
        threading.Thread(target=stalling.serve_forever, daemon=True).start()
        put_secret(admin, "s", plain_kubeconfig(honest))
        for number in range(8):
            put_secret(admin, f"s{number}", plain_kubeconfig(f"http://127.0.0.1:{stalling.server_port}"))

        async def all_at_once(workers: CopyReader) -> list[WorkerCopies]:
            stalled = [workers.read(by_secret(f"s{number}", f"p{number}")) for number in range(8)]
            return await asyncio.gather(*stalled, workers.read(by_secret()))

        *stalled, whole = with_workers(admin, all_at_once, parallel=9, timeout=20.0)
        ended.set()
        stalling.shutdown()
    assert whole == WorkerCopies({("ns", "runs"): True})
    assert {one.problem.partition(" sends ")[2] for one in stalled} == {
        "an answer that is not whole after 0.3 s: it is asked again after 5 min"
    }


def test_a_copy_that_is_nested_too_deeply_is_not_absent(admin: Driver) -> None:
    """Absent, it would let its cluster be unlisted while the job runs there."""
    with answering(workload_list(deep=b'{"a":' * 2_000 + b"1" + b"}" * 2_000)) as address:
        put_secret(admin, "s", plain_kubeconfig(address))
        answer = ask(admin)
    fix = (
        "look for the Workload there that the log names, and remove what is nested more than 500 levels deep"
    )
    assert answer == problem(f"{fix}: it cannot be read, so it is unknown whether it runs")


def test_a_field_of_a_list_that_no_api_server_has_changes_nothing(admin: Driver) -> None:
    answers = workload_list()
    path = max(answers, key=len)
    answers[path] = answers[path].replace(b"{", b'{"skipped":5,', 1)
    with answering(answers) as address:
        put_secret(admin, "s", plain_kubeconfig(address))
        assert ask(admin) == WorkerCopies({("ns", "runs"): True})


def test_many_large_copies_are_read_in_smaller_pages(
    admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.workers.connector.MAX_PAGE_BYTES", 100_000)
    monkeypatch.setattr("placement_ac.kube.client.PAGE_BYTES", 100_000)
    put_secret(admin, "s", kubeconfig(worker))
    for number in range(9):
        copy_of(worker, f"w{number}", **(ORIGIN | {"note": "x"}))
        patch = {"metadata": {"annotations": {"note": "x" * 20_000}}}
        worker.ask("PATCH", f"{WORKLOADS.format('v1beta2', 'ns')}/w{number}", patch, "merge")
    assert ask(admin) == WorkerCopies({("ns", f"w{number}"): False for number in range(9)})
    limits = [r.query["limit"] for r in worker.hub.journal if r.path.endswith("v1beta2/workloads")]
    assert limits[:3] == ["20", "5", "1"]


def test_an_answer_is_not_unpacked(admin: Driver) -> None:
    """150 MB of blanks are 150 KB on the wire."""
    packed = gzip.compress(b" " * 150_000_000, 9)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    requests = []

    class Bomb(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.headers["Accept-Encoding"])
            self.wfile.write(head.encode() + packed)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Bomb) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        put_secret(admin, "s", plain_kubeconfig(f"http://127.0.0.1:{server.server_port}"))
        tracemalloc.start()
        answer = ask(admin)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        server.shutdown()
    assert answer == problem("what the worker answered is no JSON object")
    assert (requests, most < 20_000_000) == (["identity"], True)


@pytest.mark.parametrize("name", ["../../default/secrets/other", "s?watch=true", "..", "S", ""])
def test_a_location_that_is_no_name_reads_nothing(admin: Driver, name: str) -> None:
    since = len(admin.hub.journal)
    answer = ask(admin, by_secret(name))
    why = f"correct its kubeConfig.location: {name!r} is not the name of a Secret"
    assert answer == problem(why if name else "it names neither a Secret nor a ClusterProfile")
    assert admin.hub.journal[since:] == []


def test_an_older_kueue_on_the_worker(admin: Driver) -> None:
    with serving(crds=[workload_crd("v1beta1")]) as worker:
        put_secret(admin, "s", kubeconfig(worker))
        copy_of(worker, "runs", "QuotaReserved", version="v1beta1")
        assert ask(admin) == WorkerCopies({("ns", "runs"): True})


def test_a_worker_without_kueue(admin: Driver) -> None:
    with serving(crds=[]) as worker:
        put_secret(admin, "s", kubeconfig(worker))
        assert ask(admin) == problem("the worker serves no Workloads: is Kueue installed there?")


def test_a_workers_api_versions_are_looked_up_once_until_one_is_not_found(
    admin: Driver, worker: Driver
) -> None:
    put_secret(admin, "s", kubeconfig(worker))

    async def four_times(workers: CopyReader) -> list[str]:
        first = [(await workers.read(by_secret())).problem for _ in range(2)]
        worker.hub.faults.add("GET", "v1beta2/workloads", status=404)
        return first + [(await workers.read(by_secret())).problem for _ in range(2)]

    not_found = problem("the worker answered with HTTP 404").problem
    assert with_workers(admin, four_times) == ["", "", not_found, ""]
    looked_up = [r for r in worker.hub.journal if r.path == "/apis/kueue.x-k8s.io"]
    assert len(looked_up) == 2


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"kubeConfig": {"location": "s", "locationType": "Secret"}}, id="v1beta1"),
        pytest.param({"kubeConfig": {"location": "s"}, "clusterProfileRef": None}, id="v1alpha1"),
        pytest.param({"clusterSource": {"kubeConfig": {"location": "s"}}}, id="v1beta2"),
    ],
)
def test_every_version_of_a_multikueuecluster(admin: Driver, worker: Driver, spec: Raw) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    assert ask(admin, decode.kueue_object({"metadata": {"name": "p-w"}, "spec": spec})) == WorkerCopies()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"clusterSource": {"kubeConfig": {"location": "/etc/kubeconfig", "locationType": "Path"}}},
            "its kubeconfig is a file in Kueue's container, out of reach from here",
            id="a path",
        ),
        pytest.param({}, "it names neither a Secret nor a ClusterProfile", id="nothing"),
        pytest.param({"clusterSource": {}}, "it names neither a Secret nor a ClusterProfile", id="no source"),
    ],
)
def test_a_multikueuecluster_that_leads_nowhere(admin: Driver, spec: Raw, why: str) -> None:
    assert ask(admin, decode.kueue_object({"metadata": {"name": "p-w"}, "spec": spec})) == problem(why)


# -- the Secret


def test_a_secret_that_is_not_there_or_has_no_kubeconfig(admin: Driver) -> None:
    assert ask(admin) == problem(f"Secret {NS}/s does not exist")
    admin.secret("s", key="value")
    assert ask(admin) == problem(f"Secret {NS}/s has no key 'kubeconfig' with a kubeconfig in it")
    admin.secret("t", value="")
    assert ask(admin, by_secret("t")) == problem(
        f"Secret {NS}/t has no key 'kubeconfig' with a kubeconfig in it"
    )
    garbage = {"metadata": {"name": "u"}, "data": {"kubeconfig": "%%%"}}
    admin.hub.faults.add("GET", "secrets/u", status=200, body=garbage)
    assert ask(admin, by_secret("u")) == problem(
        f"Secret {NS}/u has no key 'kubeconfig' with a kubeconfig in it"
    )


def test_a_hub_that_does_not_give_the_secret(admin: Driver) -> None:
    admin.hub.faults.add("GET", "secrets/s", status=403, body={"kind": "Status", "message": "not you"})
    assert ask(admin) == problem(f"Secret {NS}/s cannot be read: not you")
    admin.hub.faults.add("GET", "secrets/s", delay=1)
    assert ask(admin, timeout=0.2) == problem(f"Secret {NS}/s: the hub did not give it within 0.2 s")


def test_a_renewed_secret_is_used_at_once(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker, {"token": "of-yesterday"}))

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        first = await workers.read(by_secret())
        put_secret(admin, "s", kubeconfig(worker))
        return [first, await workers.read(by_secret())]

    refused = problem(f"the worker does not accept the credentials of Secret {NS}/s")
    assert with_workers(admin, twice) == [refused, WorkerCopies()]


def test_a_kubeconfig_that_is_refused_is_used_for_nothing(
    admin: Driver, worker: Driver, tmp_path: Path
) -> None:
    plugin = make_plugin(tmp_path, f"touch {tmp_path}/ran")
    (tmp_path / "token").write_text(TOKEN)
    exec_ = {"apiVersion": V1, "command": plugin, "interactiveMode": "Never"}
    refused = {
        Refusal.EXEC: kubeconfig(worker, {"exec": exec_}),
        Refusal.TOKEN_FILE: kubeconfig(worker, {"tokenFile": str(tmp_path / "token")}),
        Refusal.AUTHORITY_FILE: kubeconfig(worker, **{"certificate-authority": str(tmp_path / "token")}),
        NotSupportedHere.FILES: kubeconfig(worker, {"token": TOKEN, "client-key": str(tmp_path / "token")}),
        Refusal.INSECURE: kubeconfig(worker, **{"insecure-skip-tls-verify": True}),
        Refusal.AUTH_PROVIDER: kubeconfig(
            worker, {"auth-provider": {"name": "gcp", "config": {"cmd-path": plugin, "expiry": "2020-01-01"}}}
        ),
        NotSupportedHere.USER_INFO: kubeconfig(
            worker, server=f"https://user:{TOKEN}@127.0.0.1:{worker.hub.port}"
        ),
        Refusal.NOT_YAML: f"}}{{ {TOKEN}".encode(),
    }
    for what, content in refused.items():
        put_secret(admin, "s", content)
        answer = ask(admin)
        assert answer.copies == {}
        assert answer.problem.startswith(f"MultiKueueCluster p-w: in Secret {NS}/s, ")
        assert what in answer.problem
    assert worker.hub.journal == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("user", "cluster", "why"),
    [
        pytest.param(
            None,
            {"certificate-authority-data": "QUJD"},
            Refusal.AUTHORITY,
            id="authority",
        ),
        pytest.param(
            {"client-certificate-data": "QUJD", "client-key-data": "QUJD"},
            {},
            Refusal.NO_PAIR,
            id="client",
        ),
    ],
)
def test_a_certificate_that_is_none(
    admin: Driver, worker: Driver, user: Raw | None, cluster: Raw, why: str
) -> None:
    put_secret(admin, "s", kubeconfig(worker, user, **cluster))
    assert ask(admin) == problem(f"in Secret {NS}/s, {why}")


# -- the worker


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(
            {"status": 401}, f"the worker does not accept the credentials of Secret {NS}/s", id="401"
        ),
        pytest.param(
            {"status": 403},
            f"the worker does not let the account of Secret {NS}/s"
            " list workloads.kueue.x-k8s.io in all namespaces",
            id="403",
        ),
        pytest.param({"status": 500}, "the worker answered with HTTP 500", id="500"),
        pytest.param(
            {"status": 200, "body": [TOKEN]}, "what the worker answered is no JSON object", id="no object"
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "Welcome"}},
            "what the worker answered is no list of Workloads",
            id="another server",
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "WorkloadList", "items": [TOKEN]}},
            "unexpected AttributeError",
            id="no Workload",
        ),
        pytest.param(
            {"hang_up": True},
            f"the worker of Secret {NS}/s cannot be reached: ServerDisconnectedError",
            id="hangs up",
        ),
        pytest.param({"delay": 2.0}, "the worker did not answer within 0.5 s", id="late"),
    ],
)
def test_an_error_of_a_worker_is_reported(
    admin: Driver, worker: Driver, capfd: pytest.CaptureFixture[str], fault: Raw, why: str
) -> None:
    logs.configure("json", "debug")
    put_secret(admin, "s", kubeconfig(worker))
    echo = {"kind": "Status", "message": f"who is {TOKEN}?", "reason": TOKEN}
    fault = {"body": echo} | fault if fault.get("status", 0) >= 400 else fault
    worker.hub.faults.add("GET", "v1beta2/workloads", times=2, **fault)
    assert ask(admin, timeout=0.5 if "delay" in fault else 10) == problem(why)
    assert TOKEN not in "".join(capfd.readouterr())


def test_a_worker_that_is_away(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    with worker.hub.outage():
        refused = problem(f"the worker of Secret {NS}/s cannot be reached: Connection refused")
        assert ask(admin) == refused
    assert ask(admin) == WorkerCopies()


def test_a_worker_that_is_not_the_one_that_is_meant(admin: Driver, worker: Driver) -> None:
    stranger = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    put_secret(admin, "s", kubeconfig(worker, **{"certificate-authority-data": stranger}))
    expected_text = f"the worker of Secret {NS}/s cannot be reached: its certificate is not trusted ("
    assert ask(admin).problem.startswith(problem(expected_text).problem)
    assert worker.hub.journal == []


def test_the_name_in_the_certificate_may_be_another(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker, **{"tls-server-name": "localhost"}))
    assert ask(admin) == WorkerCopies()
    put_secret(admin, "s", kubeconfig(worker, **{"tls-server-name": "elsewhere"}))
    assert "its certificate is not trusted (Hostname mismatch" in ask(admin).problem


@pytest.mark.parametrize(
    ("server", "why"),
    [
        pytest.param("https://worker.invalid:6443", "its host name is not known", id="no such name"),
        pytest.param("http://127.0.0.1:1", "Connection refused", id="no such port"),
    ],
)
def test_a_server_that_is_not_there(admin: Driver, worker: Driver, server: str, why: str) -> None:
    put_secret(admin, "s", kubeconfig(worker, server=server))
    assert ask(admin) == problem(f"the worker of Secret {NS}/s cannot be reached: {why}")


def test_a_proxy_that_is_not_there(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker, **{"proxy-url": f"http://user:{TOKEN}@127.0.0.1:1"}))
    assert ask(admin) == problem(
        f"the worker of Secret {NS}/s cannot be reached: its proxy cannot be reached"
    )


def test_a_token_goes_to_its_own_server_only(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    with serving(crds=[]) as thief:
        away = {"Location": f"{thief.hub.url}/apis/kueue.x-k8s.io/v1beta2/workloads"}
        worker.hub.faults.add("GET", "v1beta2/workloads", status=307, body={}, headers=away)
        answer = ask(admin)
        assert answer == problem(f"the worker of Secret {NS}/s cannot be reached: ClientConnectionError")
        assert thief.hub.journal == []


# -- client certificates


def test_a_client_certificate_is_shown_and_leaves_no_file(
    admin: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    authority = trustme.CA()
    leaf = authority.issue_cert("client@example.com")
    certificate = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    key = leaf.private_key_pem.bytes().decode()
    login = Login(access=ClusterAccess("https://w", certificate=certificate, key=key))
    assert login.ssl.verify_mode.name == "CERT_REQUIRED"
    assert list(tmp_path.iterdir()) == []
    other = trustme.CA().issue_cert("x@example.com").private_key_pem.bytes().decode()
    with pytest.raises(LoginFailed, match="do not match"):
        Login(access=ClusterAccess("https://w", certificate=certificate, key=other))
    assert list(tmp_path.iterdir()) == []


# -- many workers


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_never_answers(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, "s", kubeconfig(worker, server=silent))
    began = time.monotonic()
    assert ask(admin, timeout=1.5) == problem("the worker did not answer within 1.5 s")
    assert time.monotonic() - began < 10


def test_those_that_never_answer_keep_no_other_waiting(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, "dead", kubeconfig(worker, server=silent))
    put_secret(admin, "s", kubeconfig(worker))
    copy_of(worker, "runs", "QuotaReserved")
    dead = [by_secret("dead", f"dead-{number}") for number in range(6)]

    async def story(workers: CopyReader) -> tuple[WorkerCopies, bool]:
        await asyncio.gather(*map(workers.read, dead))  # now they are known
        again = [asyncio.create_task(workers.read(cluster)) for cluster in dead]
        await asyncio.sleep(
            0.05
        )  # their questions are sent before ours; an address that is silent notes none
        answer = await workers.read(by_secret())
        waited = any(task.done() for task in again)
        await asyncio.gather(*again)
        return answer, waited

    answer, waited = with_workers(admin, story, timeout=1.5, parallel=3)
    assert answer == WorkerCopies({("ns", "runs"): True})
    assert not waited


def test_one_that_answers_again_is_asked_like_the_others(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, "s", kubeconfig(worker, server=silent))

    async def story(workers: CopyReader) -> list[set[str]]:
        await workers.read(by_secret())
        slow = [set(workers.limiter.slow)]
        put_secret(admin, "s", kubeconfig(worker))
        await workers.read(by_secret())
        return [*slow, set(workers.limiter.slow)]

    assert with_workers(admin, story, timeout=2) == [{"p-w"}, set()]


def test_no_more_than_so_many_are_asked_at_once(admin: Driver, worker: Driver) -> None:
    put_secret(admin, "s", kubeconfig(worker))
    worker.hub.faults.add("GET", "v1beta2/workloads", delay=0.1, times=100)

    async def six(workers: CopyReader) -> float:
        began = time.monotonic()
        answers = await asyncio.gather(*(workers.read(by_secret(cluster=f"c{n}")) for n in range(6)))
        assert set(map(repr, answers)) == {repr(WorkerCopies())}
        return time.monotonic() - began

    assert with_workers(admin, six, parallel=2) >= 0.3


def test_being_cancelled_is_no_answer(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, "s", kubeconfig(worker, server=silent))

    async def cancelled(workers: CopyReader) -> bool:
        asking = asyncio.create_task(workers.read(by_secret()))
        await asyncio.sleep(0.2)  # the question is under way; an address that is silent notes none
        asking.cancel()
        (result,) = await asyncio.gather(asking, return_exceptions=True)
        return isinstance(result, asyncio.CancelledError)

    assert with_workers(admin, cancelled)


# -- ClusterProfiles


def make_plugin(folder: Path, script: str) -> str:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def gives(**status: str) -> str:
    credential = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": TOKEN} | status}
    return f"echo '{json.dumps(credential)}'"


def providers(command: str, **fields: Any) -> AccessProviders:
    exec_ = {"apiVersion": V1, "command": command, "provideClusterInfo": True}
    return AccessProviders.model_validate({"providers": [{"name": "ocm", "execConfig": exec_} | fields]})


def offer(worker: Driver, name: str = "ocm", **cluster: Any) -> Raw:
    content = worker.hub.kubeconfig()["clusters"][0]["cluster"]
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "w"}}
    return {"name": name, "cluster": content | {"extensions": [extension]} | cluster}


def ask_by_profile(admin: Driver, command: str, **options: Any) -> WorkerCopies:
    return ask(admin, by_profile(), providers=providers(command), profile_resource=PROFILES, **options)


@pytest.mark.parametrize("field", ["accessProviders", "credentialProviders"])
def test_a_clusterprofile_with_a_plugin(admin: Driver, worker: Driver, tmp_path: Path, field: str) -> None:
    admin.profile("w", **{field: [offer(worker, "other"), offer(worker)]})
    copy_of(worker, "runs", "QuotaReserved")
    plugin = make_plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {gives()}')
    assert ask_by_profile(admin, plugin) == WorkerCopies({("ns", "runs"): True})
    expected_text = json.loads((tmp_path / "info").read_text())["spec"]["cluster"]
    assert (expected_text["server"], expected_text["config"]) == (worker.hub.secure_url, {"clusterName": "w"})


@pytest.mark.parametrize(
    ("expires", "runs"),
    [
        pytest.param({}, 1, id="no expiry"),
        pytest.param({"expirationTimestamp": "2999-01-01T00:00:00Z"}, 1, id="later"),
        pytest.param({"expirationTimestamp": "2020-01-01T00:00:00Z"}, 2, id="expired"),
    ],
)
def test_credentials_are_used_until_they_expire(
    admin: Driver, worker: Driver, tmp_path: Path, expires: dict[str, str], runs: int
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    plugin = make_plugin(tmp_path, f"echo x >> {tmp_path}/runs; {gives(**expires)}")

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        return [await workers.read(by_profile()) for _ in range(2)]

    options = {"providers": providers(plugin), "profile_resource": PROFILES}
    assert with_workers(admin, twice, **options) == [WorkerCopies(), WorkerCopies()]
    assert (tmp_path / "runs").read_text().count("x") == runs


def test_credentials_that_are_not_accepted_are_asked_for_again(
    admin: Driver, worker: Driver, tmp_path: Path
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    old = gives(token="of-yesterday")
    plugin = make_plugin(tmp_path, f"test -f {tmp_path}/ran && {gives()} || {old}; touch {tmp_path}/ran")

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        return [await workers.read(by_profile()) for _ in range(2)]

    options = {"providers": providers(plugin), "profile_resource": PROFILES}
    expected_text = f"the worker does not accept the credentials of ClusterProfile {NS}/w with provider ocm"
    assert with_workers(admin, twice, **options) == [problem(expected_text), WorkerCopies()]


def test_a_clusterprofile_that_cannot_be_used(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    expected_text = f"ClusterProfile {NS}/w"
    plugin = make_plugin(tmp_path, gives())
    none = problem(f"{expected_text} needs an access provider, and none is configured")
    assert ask(admin, by_profile(), profile_resource=PROFILES) == none
    no_kind = problem(f"{expected_text} cannot be read: the hub has no ClusterProfiles")
    assert ask(admin, by_profile(), providers=providers(plugin)) == no_kind
    assert ask_by_profile(admin, plugin) == problem(f"{expected_text} does not exist")
    admin.profile("w", accessProviders=[offer(worker, "other")])
    assert ask_by_profile(admin, plugin) == problem(
        f"{expected_text} has none of the access providers that are configured"
    )


def test_a_clusterprofile_of_another_shape(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    profile = {"metadata": {"name": "w"}, "status": {"accessProviders": 7}}
    admin.hub.faults.add("GET", "clusterprofiles/w", status=200, body=profile)
    expected_text = (
        f"ClusterProfile {NS}/w cannot be read: status.accessProviders: Input should be a valid list"
    )
    assert ask_by_profile(admin, make_plugin(tmp_path, gives())) == problem(expected_text)


def test_a_clusterprofile_whose_server_is_none(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    admin.profile("w", accessProviders=[offer(worker, server="nowhere")])
    expected_text = f"in ClusterProfile {NS}/w with provider ocm, {Refusal.ADDRESS}"
    assert ask_by_profile(admin, make_plugin(tmp_path, gives())) == problem(expected_text)


@pytest.mark.parametrize(
    ("cluster", "suffixes", "field"),
    [
        pytest.param({}, ["localhost", "127.0.0.1"], "", id="allowed"),
        pytest.param({}, [".example.com"], "server", id="another server"),
        pytest.param(
            {"proxy-url": "http://proxy.test"}, ["localhost", "127.0.0.1"], "proxy-url", id="a proxy"
        ),
        pytest.param({"server": 7}, [".example.com"], "server", id="a number"),
    ],
)
def test_a_plugin_runs_for_allowed_servers_only(
    admin: Driver, worker: Driver, tmp_path: Path, cluster: Raw, suffixes: list[str], field: str
) -> None:
    profile = {"metadata": {"name": "w"}, "status": {"accessProviders": [offer(worker, **cluster)]}}
    admin.hub.faults.add("GET", "clusterprofiles/w", status=200, body=profile)
    plugin = make_plugin(tmp_path, f"touch {tmp_path}/ran; {gives()}")
    options = {"providers": providers(plugin, allowedServerSuffixes=suffixes), "profile_resource": PROFILES}
    answer = ask(admin, by_profile(), **options)
    if not field:
        assert answer == WorkerCopies()
        return
    assert not (tmp_path / "ran").exists()
    assert answer == problem(
        f"in ClusterProfile {NS}/w, correct the {field} of access provider ocm, or add its host to "
        "allowedServerSuffixes in the file --access-providers: it is not allowed there"
    )


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param(f"echo {TOKEN} >&2; exit 1", "ended with code 1: run it by hand to see why", id="fails"),
        pytest.param(f"echo {TOKEN}", "gave no JSON", id="garbage"),
        pytest.param("sleep 30", "gave no credentials within 0.5 s", id="hangs"),
    ],
)
def test_a_plugin_that_gives_nothing(
    admin: Driver, worker: Driver, tmp_path: Path, script: str, why: str
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    plugin = make_plugin(tmp_path, script)
    answer = ask_by_profile(admin, plugin, timeout=0.5 if "sleep" in script else 10)
    assert answer == problem(f"plugin {plugin} {why}")
