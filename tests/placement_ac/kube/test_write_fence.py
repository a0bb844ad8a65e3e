"""The gate of writes: it is asked when nothing is left to wait for, and what it refuses is not sent."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.api.errors import NotFound, NotLeading, Unavailable
from placement_ac.kube import login
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.stage import shorten

CONFIG = MULTIKUEUE_CONFIG.at("v1beta2")
Write = Callable[[Client], Awaitable[object]]
WRITES: dict[str, Write] = {
    "apply": lambda client: client.apply(CONFIG, {"metadata": {"name": "x"}, "spec": {"clusters": ["a"]}}),
    "create": lambda client: client.create(CONFIG, {"metadata": {"name": "x"}}),
    "merge": lambda client: client.merge(CONFIG, "x", {}),
    "put": lambda client: client.put(CONFIG, {"metadata": {"name": "x", "resourceVersion": "1"}}),
    "delete": lambda client: client.delete(CONFIG, "x"),
    "delete that very one": lambda client: client.delete(CONFIG, "x", uid="u"),
}


class Gate:
    """Open for so many seconds, or (None) closed."""

    def __init__(self, left: float | None = 30.0) -> None:
        self.left = left

    def __call__(self) -> float:
        if self.left is None:
            raise NotLeading("closed")
        return self.left


@pytest.fixture
def hub_login(hub: Hub, tmp_path: Path) -> Login:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return Login(tmp_path / "kubeconfig")


def written(hub: Hub) -> list[str]:
    return [request.method for request in hub.journal if request.method != "GET"]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_closed_gate_lets_nothing_out(hub: Hub, hub_login: Login, write: Write) -> None:
    async with Client(hub_login, write_fence=Gate(None)) as client:
        await client.list(CONFIG)
        with pytest.raises(NotLeading):
            await write(client)
    assert written(hub) == []


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_that_waits_for_a_connection_is_asked_when_it_has_one(
    hub: Hub, hub_login: Login, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, MAX_CONNECTIONS=1)
    hub.faults.add("GET", "multikueueconfigs", delay=0.3)
    gate = Gate()
    async with Client(hub_login, write_fence=gate) as client:
        reading = asyncio.create_task(client.list(CONFIG))
        await asyncio.sleep(0.1)
        writing = asyncio.ensure_future(write(client))
        await asyncio.sleep(0)
        gate.left = None
        await reading
        with pytest.raises(NotLeading):
            await writing
        gate.left = 30.0
        with pytest.raises(NotFound):
            await client.merge(CONFIG, "x", {})  # the client is still of use
    assert written(hub) == ["PATCH"]


async def test_a_write_that_waits_for_its_login_is_asked_afterwards(
    hub: Hub, hub_login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    to_thread = asyncio.to_thread

    async def lose_it(renew: Callable[..., object], *arguments: object) -> object:
        gate.left = None
        return await to_thread(renew, *arguments)

    monkeypatch.setattr(login.asyncio, "to_thread", lose_it)
    async with Client(hub_login, write_fence=gate) as client:
        with pytest.raises(NotLeading):
            await WRITES["apply"](client)
    assert written(hub) == []


@pytest.mark.parametrize("write", [WRITES["apply"], WRITES["merge"]], ids=["apply", "merge"])
async def test_the_body_is_the_last_to_be_asked(hub: Hub, hub_login: Login, write: Write) -> None:
    """aiohttp sends it in a task of its own, a turn of the loop after `send`."""
    asked = 0

    def gate() -> float:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise NotLeading("closed")
        return 30.0

    async with Client(hub_login, write_fence=gate) as client:
        with pytest.raises(NotLeading):
            await write(client)
    assert (written(hub), asked) == ([], 3)


async def test_nobody_waits_for_an_answer_past_the_end_of_the_lease(hub: Hub, hub_login: Login) -> None:
    hub.faults.add("PATCH", "multikueueconfigs", delay=30)
    async with asyncio.timeout(10), Client(hub_login, write_fence=Gate(0.2)) as client:
        with pytest.raises(Unavailable, match="no answer in time"):
            await WRITES["merge"](client)


async def test_reading_asks_nobody(hub_login: Login) -> None:
    async with Client(hub_login, write_fence=Gate(None)) as client:
        assert (await client.list(CONFIG)).items == ()
