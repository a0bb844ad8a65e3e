"""An apply whose answer and echo are not read before a pause is over: it goes out, and nothing is lost."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, Resource
from placement_ac.core.api.errors import Conflict, Unavailable
from placement_ac.core.kubeconfig.access import Access
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.lab.hub import Hub
from tests.kube.test_write_fence import Gate, written

pytestmark = pytest.mark.embedded("it reads the journal, and orders faults")

CONFIG = MULTIKUEUE_CONFIG.at("v1beta2")
CHECK = ADMISSION_CHECK.at("v1beta2")
BODY: Object = {"metadata": {"name": "x"}, "spec": {"clusters": ["a"]}}


def named(name: str) -> Object:
    return BODY | {"metadata": {"name": name}}


Story = Callable[[Client, "Pause"], Coroutine[Any, Any, None]]


class Pause:
    """Lasts until it is ended; tells whether it was begun, and cut."""

    def __init__(self) -> None:
        self.begun, self.over, self.cut = asyncio.Event(), asyncio.Event(), False

    def __call__(self) -> Awaitable[None]:
        return self._wait()

    def end_soon(self) -> "Pause":
        """Let the answer come before it is over."""
        asyncio.get_running_loop().call_later(0.1, self.over.set)
        return self

    async def _wait(self) -> None:
        self.begun.set()
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cut = True
            raise


@pytest.fixture(params=[False, True], ids=["open", "fenced"])
def play(request: pytest.FixtureRequest, hub: Hub, tmp_path: Path) -> Callable[[Story], None]:
    """Play a story with a client of the hub."""
    hub.write_kubeconfig(tmp_path / "kubeconfig")

    async def whole(story: Story) -> None:
        gate = Gate() if request.param else None
        async with Client(Login(tmp_path / "kubeconfig"), gate=gate, timeout=4) as client:
            await asyncio.wait_for(story(client, Pause()), 10)

    return lambda story: asyncio.run(whole(story))


async def applied(hub: Hub, times: int = 1) -> None:
    for _ in range(400):
        if len(written(hub)) >= times:
            return
        await asyncio.sleep(0.01)
    pytest.fail("it has not been sent")


def test_it_is_sent_before_and_read_after(hub: Hub, play: Callable[[Story], None]) -> None:
    async def story(client: Client, pause: Pause) -> None:
        applying = asyncio.create_task(client.apply(CONFIG, BODY, pause=pause))
        await applied(hub)
        assert pause.begun.is_set()
        assert len((await client.list(CONFIG)).items) == 1, "others are read meanwhile"
        await asyncio.sleep(0.1)
        assert not applying.done()
        pause.over.set()
        assert (await applying)["spec"] == BODY["spec"]
        assert not pause.cut

    play(story)


def test_the_connection_serves_the_next_request(play: Callable[[Story], None]) -> None:
    async def story(client: Client, _: Pause) -> None:
        for number in range(4):
            pause = Pause().end_soon()
            found = await client.apply(CONFIG, named(f"x{number}"), pause=pause)
            assert (found["metadata"]["name"], pause.cut) == (f"x{number}", False)
            assert (await client.get(CONFIG, f"x{number}"))["spec"] == BODY["spec"]
        assert client._session
        connector = client._session.connector
        assert connector
        assert sum(map(len, connector._conns.values())) == 1

    play(story)


def test_where_there_is_no_pause_the_answer_is_read_at_once(play: Callable[[Story], None]) -> None:
    async def story(client: Client, _: Pause) -> None:
        assert (await client.apply(CONFIG, BODY, pause=lambda: None))["spec"] == BODY["spec"]

    play(story)


def test_what_the_hub_has_against_it_is_told(play: Callable[[Story], None]) -> None:
    async def story(client: Client, pause: Pause) -> None:
        await client.apply(CONFIG, BODY)
        body = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": BODY["spec"]}
        with pytest.raises(Conflict):
            await client.apply(CONFIG, body, pause=pause.end_soon())

    play(story)


def test_a_connection_that_is_cut_meanwhile(hub: Hub, play: Callable[[Story], None]) -> None:
    hub.faults.add("PATCH", hang_up=True)

    async def story(client: Client, pause: Pause) -> None:
        applying = asyncio.create_task(client.apply(CONFIG, BODY, pause=pause))
        await pause.begun.wait()
        await asyncio.sleep(0.1)
        pause.over.set()
        with pytest.raises(Unavailable):
            await applying

    play(story)


class Watching:
    """Follows a resource from its beginning; `told` has the names of what came, `opened` is set before."""

    def __init__(self, client: Client, resource: Resource) -> None:
        self._client, self._resource = client, resource
        self.told: list[str] = []
        self.opened = asyncio.Event()

    async def run(self) -> None:
        async for _, item in self._client.watch(self._resource, "", opened=self.opened.set):
            self.told.append(item["metadata"]["name"])

    async def until(self, *names: str) -> None:
        for _ in range(200):
            if self.told == list(names):
                return
            await asyncio.sleep(0.01)
        assert self.told == list(names)


def test_the_echo_is_read_after_it_too_and_nothing_else_waits(play: Callable[[Story], None]) -> None:
    async def story(client: Client, pause: Pause) -> None:
        configs, checks = Watching(client, CONFIG), Watching(client, CHECK)
        watching = [asyncio.create_task(one.run()) for one in (configs, checks)]
        await asyncio.gather(configs.opened.wait(), checks.opened.wait())
        await client.apply(CONFIG, BODY)
        await configs.until("x")
        applying = asyncio.create_task(client.apply(CONFIG, named("y"), pause=pause))
        await pause.begun.wait()
        await client.apply(CONFIG, named("z"))
        check = {"metadata": {"name": "c"}, "spec": {"controllerName": "example.com/c"}}
        await client.apply(CHECK, check)
        await checks.until("c")
        assert configs.told == ["x"]
        pause.over.set()
        await applying
        await configs.until("x", "y", "z")
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await asyncio.sleep(0)
        assert not any(client._watched.values())

    play(story)


@pytest.mark.parametrize("by", ["its task", "its time"])
def test_a_request_that_ends_meanwhile_ends_the_pause(
    hub: Hub, play: Callable[[Story], None], by: str
) -> None:
    async def story(client: Client, pause: Pause) -> None:
        configs = Watching(client, CONFIG)
        watching = asyncio.create_task(configs.run())
        await configs.opened.wait()
        if by == "its time":
            client._timeout = 0.3
        applying = asyncio.create_task(client.apply(CONFIG, BODY, pause=pause))
        await applied(hub)
        if by == "its task":
            applying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await applying
        else:
            with pytest.raises(Unavailable, match="no answer in time"):
                await applying
        client._timeout = 4
        await configs.until("x")
        assert pause.cut
        assert (await client.apply(CONFIG, named("y")))["spec"] == BODY["spec"]
        await configs.until("x", "y")
        watching.cancel()

    play(story)


def test_a_watch_that_ends_meanwhile_is_read_to_its_end(hub: Hub, play: Callable[[Story], None]) -> None:
    async def story(client: Client, pause: Pause) -> None:
        configs = Watching(client, CONFIG)
        watching = asyncio.create_task(configs.run())
        await configs.opened.wait()
        applying = asyncio.create_task(client.apply(CONFIG, BODY, pause=pause))
        await pause.begun.wait()
        await applied(hub)
        hub.drop_watches(resource="multikueueconfigs")
        await asyncio.sleep(0.1)
        pause.over.set()
        await applying
        await watching
        assert configs.told == ["x"]

    play(story)


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\nConnection: close\r\n\r\n{"spec":"taken"}'


@asynccontextmanager
async def says_goodbye(tls: ssl.SSLContext | None, authority: trustme.CA) -> AsyncIterator[Client]:
    """A client of a server that answers, and ends its side of the connection at once, as Go's do."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}}")
        writer.write(ANSWER)
        writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        address = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        access = Access(address, authority=authority.cert_pem.bytes().decode() if tls else "")
        async with Client(Login(access=access)) as client:
            yield client


@pytest.mark.parametrize("encrypted", [True, False], ids=["TLS", "plain"])
def test_an_answer_is_read_though_its_connection_was_closed_meanwhile(encrypted: bool) -> None:
    async def story() -> None:
        authority, pause = trustme.CA(), Pause()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if encrypted else None
        if tls:
            authority.issue_cert("127.0.0.1").configure_cert(tls)
        async with says_goodbye(tls, authority) as client:
            applying = asyncio.create_task(client.apply(CONFIG, BODY, pause=pause))
            await pause.begun.wait()
            await asyncio.sleep(0.1)
            pause.over.set()
            assert await asyncio.wait_for(applying, 5) == {"spec": "taken"}

    asyncio.run(story())
