"""A worker whose admin is not the caller's cannot fill the caller's memory: what is read of it is bounded."""

import asyncio
import gzip
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from kubectl_placement.access.open import BUDGET, OBJECT_BYTES
from placement_ac.core.api.errors import Malformed
from placement_ac.kube.budget import BudgetedReader, ReadSlots
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from tests.kubectl_placement.access.stage import JobStage, Object
from tests.support.http_servers import http_server
from tests.support.kubeconfigs import one_context


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            {"items": [], "padding": "x" * OBJECT_BYTES}, "more than 2,000,000 bytes", id="a large page"
        ),
        pytest.param(
            {"items": [], "metadata": {"continue": "again"}},
            "the same page of a list again",
            id="no last page",
        ),
        pytest.param({"items": [{}] * 21}, "more than 20 objects in a page", id="more than asked for"),
    ],
)
def test_pods_are_read_within_a_budget(stage: JobStage, body: Object, problem: str) -> None:
    stage.job()
    stage.fleet.hubs["a"].faults.add("GET", "/pods$", status=200, body={"kind": "PodList"} | body, times=100)
    done = stage.run("logs", "train", "--all-pods")
    assert done.exit_code == 1
    assert problem in done.stderr


def test_a_log_that_is_compressed_unasked_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """Its bytes are counted as they come; unpacked, they may be a thousand times as many."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        text = gzip.compress(b"line\n" * 100)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(text)}\r\n\r\n"
        request.wfile.write(head.encode() + text)

    async def read(login: Login) -> bytes:
        reader = BudgetedReader(BUDGET, ReadSlots(1))
        async with Client(login, reader=reader) as client:
            return b"".join([part async for part in client.stream("/log", {})])

    with http_server(answer) as address:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(one_context({"server": f"http://{address}"}, {})))
        with pytest.raises(Malformed, match="compressed"):
            asyncio.run(read(Login(kubeconfig)))
