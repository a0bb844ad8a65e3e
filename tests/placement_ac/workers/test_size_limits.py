"""Answers of workers that are too large, too many or too slow: what is read of them, and what is said."""

import asyncio
import gzip
import json
import threading
import time
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from placement_ac.workers.connector import MAX_ANSWER_BYTES, MAX_PAGE_BYTES
from placement_ac.workers.copies import CopyReader, WorkerCopies
from tests.support.driver import Driver
from tests.support.exec_plugins import TOKEN
from tests.support.http_servers import answering, http_server
from tests.support.kubeconfigs import one_context
from tests.support.worker_copies import ORIGIN, WORKLOADS, ask, beyond, copy_of, problem, with_reader
from tests.support.workers import Raw, by_secret, put_kubeconfig, put_secret


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
    put_secret(admin, worker)
    body = {"kind": "WorkloadList"} | body
    worker.hub.faults.add("GET", f"{path}$", status=200, body=body, times=100)

    async def twice(workers: CopyReader) -> list[str]:
        return [(await workers.read(by_secret())).problem for _ in range(2)]

    assert with_reader(admin, twice) == [beyond(sent).problem] * 2
    limits = [r.query.get("limit", "") for r in worker.hub.journal if r.path.endswith(path)]
    assert limits == asked, "the second time nothing is sent"


def put_plain_kubeconfig(admin: Driver, address: str, name: str = "s") -> None:
    """A Secret with a kubeconfig for a server without TLS."""
    put_kubeconfig(admin, one_context({"server": address}, {"token": TOKEN}), name)


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
        put_plain_kubeconfig(admin, address)
        assert ask(admin, timeout=20.0 if pause else 50.0) == beyond(sent)
    assert len(read) <= pages


def test_a_worker_that_holds_a_slot_for_large_answers_loses_it(
    admin: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight workers send the beginning of a page, and no more; a ninth sends a whole one."""
    monkeypatch.setattr("placement_ac.kube.budget.SLOT_SECONDS", 0.3)
    ended = threading.Event()

    def stall(request: BaseHTTPRequestHandler) -> None:
        text = answers[request.path.partition("?")[0]]
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
        stalls = request.path.startswith(COPIES)
        request.wfile.write(text[: len(text) - stalls])
        request.wfile.flush()
        if stalls:
            ended.wait(30)

    answers = workload_list(annotations=b'{"note":"%s"}' % (b"x" * 100_000))
    with answering(answers) as honest, http_server(stall) as stalling:
        put_plain_kubeconfig(admin, honest)
        for number in range(8):
            put_plain_kubeconfig(admin, f"http://{stalling}", f"s{number}")

        async def all_at_once(workers: CopyReader) -> list[WorkerCopies]:
            stalled = [workers.read(by_secret(f"s{number}", f"p{number}")) for number in range(8)]
            return await asyncio.gather(*stalled, workers.read(by_secret()))

        *stalled, whole = with_reader(admin, all_at_once, parallel=9, timeout=20.0)
        ended.set()
    assert whole == WorkerCopies({("ns", "runs"): True})
    assert {one.problem.partition(" sends ")[2] for one in stalled} == {
        "an answer that is not whole after 0.3 s: it is asked again after 5 min"
    }


def test_a_copy_that_is_nested_too_deeply_is_not_absent(admin: Driver) -> None:
    """Absent, it would let its cluster be unlisted while the job runs there."""
    with answering(workload_list(deep=b'{"a":' * 2_000 + b"1" + b"}" * 2_000)) as address:
        put_plain_kubeconfig(admin, address)
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
        put_plain_kubeconfig(admin, address)
        assert ask(admin) == WorkerCopies({("ns", "runs"): True})


def test_many_large_copies_are_read_in_smaller_pages(
    admin: Driver, worker: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.workers.connector.MAX_PAGE_BYTES", 100_000)
    monkeypatch.setattr("placement_ac.kube.client.PAGE_BYTES", 100_000)
    put_secret(admin, worker)
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

    def bomb(request: BaseHTTPRequestHandler) -> None:
        requests.append(request.headers["Accept-Encoding"])
        request.wfile.write(head.encode() + packed)

    with http_server(bomb) as address:
        put_plain_kubeconfig(admin, f"http://{address}")
        tracemalloc.start()
        answer = ask(admin)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert answer == problem("what the worker answered is no JSON object")
    assert (requests, most < 20_000_000) == (["identity"], True)
