"""A server that stalls, at whatever point: nobody waits for it for longer than was meant."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.api.errors import Unavailable
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube import client
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login

CONFIGS = MULTIKUEUE_CONFIG.at("v1beta2")
BEGUN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n{"
HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items":'
Ask = Callable[[Client], Awaitable[object]]


@asynccontextmanager
async def says(words: bytes) -> AsyncIterator[Client]:
    """A client of a server that says this to each request, and nothing after it."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(words)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Client(Login(access=ClusterAccess(f"http://127.0.0.1:{port}")), timeout=0.2) as client:
            yield client


async def follow(client: Client) -> None:
    async for _ in client.watch(CONFIGS, "1"):
        pass


def given_up(words: bytes, ask: Ask) -> str:
    async def story() -> str:
        async with says(words) as client:
            with pytest.raises(Unavailable) as error:
                await asyncio.wait_for(ask(client), 5)
            return error.value.message

    return asyncio.run(story())


@pytest.mark.parametrize("words", [b"", REFUSED], ids=["no head", "an error's body"])
def test_a_watch_that_does_not_begin(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WATCH_IDLE_SECONDS", 0.2)
    assert given_up(words, follow).endswith("no answer in time")


@pytest.mark.parametrize("words", [BEGUN, BEGUN + b'5\r\n{"typ\r\n'], ids=["nothing", "half a line"])
def test_a_watch_on_which_nothing_comes(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WATCH_IDLE_SECONDS", 0.2)
    assert given_up(words, follow).endswith("no answer in time")


@pytest.mark.parametrize("words", [b"", REFUSED, HALF], ids=["no head", "an error's body", "half a list"])
def test_a_request(words: bytes) -> None:
    seen_texts = given_up(words, lambda client: client.list(CONFIGS))
    assert seen_texts.endswith("no answer in time")


async def test_a_request_under_way_ends_when_the_client_is_closed() -> None:
    async with says(b"") as client:
        asking = asyncio.create_task(client.list(CONFIGS))
        await asyncio.sleep(0.05)
        await client.__aexit__()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(asking, 5)
