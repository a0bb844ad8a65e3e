"""
The informer of the stand-ins follows a server with scripted responses.

The client's watches, on which it is built, are tested in `tests/placement_ac/kube`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from placement_ac.core.api.constants import CLUSTER_PROFILE, PLACEMENT, SECRET, Kind
from placement_ac.core.api.errors import Unavailable
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.standins.informer import (
    HubInformer,
    Key,
    StandIn,
)
from tests.support.kubeconfigs import one_context

DEADLINE_SECONDS = 5.0
HANG, EXPIRED = object(), object()
"""In the script of a watch: stay open without further events; answer 410."""


def secret(name: str, version: str, **more: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": version, **more}}


def event(kind: str, item: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": item}) + b"\n"


class Script:
    """A server of Secrets with scripted LISTs and WATCHes; the last LIST repeats, later WATCHes hang."""

    def __init__(self, lists: list[Any], watches: Iterable[list[Any]] = ()) -> None:
        self.lists = lists
        self.watches = list(watches)
        self.served = True

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1", self.discover)
        app.router.add_get("/api/v1/secrets", self.answer)
        return app

    async def discover(self, _: web.Request) -> web.Response:
        return web.json_response({"resources": [{"name": "secrets"}] if self.served else []})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            now = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": now})
        lines = self.watches.pop(0) if self.watches else [HANG]
        if lines == [EXPIRED]:
            return web.Response(status=410)
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            if line is HANG:
                await asyncio.sleep(DEADLINE_SECONDS)
            else:
                await response.write(line)
        return response


@asynccontextmanager
async def serving(script: Script, folder: Path) -> AsyncIterator[Login]:
    async with TestServer(script.app()) as server:
        path = folder / "kubeconfig"
        config = one_context({"server": str(server.make_url("/")).rstrip("/")}, {"token": "t"})
        await asyncio.to_thread(path.write_bytes, orjson.dumps(config))
        yield Login(path)


async def until(reached: Any) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not reached():  # noqa: ASYNC110  # what is waited for is plain state, nobody sets an Event
            await asyncio.sleep(0.005)


def test_writes_during_a_gap_are_reported_with_the_next_list(tmp_path: Path) -> None:
    """The watch would have reported the write; the list alone shows no difference."""
    script = Script([[secret("a", "1")], [secret("a", "5"), secret("b", "2")]], [[EXPIRED]])
    changes: list[str] = []

    async def write_at_once() -> None:
        async with serving(script, tmp_path) as login, Client(login) as client:

            def changed(kind: Kind, _: str, name: str) -> None:
                if not changes:
                    informer.remember(kind, secret(name, "5"))
                changes.append(name)

            informer = HubInformer(client, [SECRET], changed)
            running = asyncio.create_task(informer.run())
            await until(lambda: "b" in changes)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(write_at_once())
    assert sorted(changes) == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("since", "known"),
    [
        pytest.param("MODIFIED", {"a": "102"}, id="it was changed"),
        pytest.param("DELETED", {}, id="it was deleted"),
    ],
)
def test_the_response_of_a_write_does_not_replace_newer_events(
    tmp_path: Path, since: str, known: dict[str, str]
) -> None:
    """The watch may be faster than the response of the write."""
    created, later = (secret("a", version, uid="1") for version in ("101", "102"))
    script = Script([[]], [[event("ADDED", created), event(since, later), HANG]])
    changes: list[str] = []

    async def answer_late() -> dict[str, str]:
        async with serving(script, tmp_path) as login, Client(login) as client:
            informer = HubInformer(client, [SECRET], lambda *_: changes.append("a"))
            running = asyncio.create_task(informer.run())
            await until(lambda: len(changes) == 2)
            informer.remember(SECRET, created)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return {
                n: item["metadata"]["resourceVersion"] for (_, n), item in informer.objects[SECRET].items()
            }

    assert asyncio.run(answer_late()) == known


def test_a_kind_that_is_served_later_is_waited_for_and_an_optional_one_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        script = Script([[secret("a", "1")]])
        script.served = False
        async with serving(script, tmp_path) as login, Client(login) as client:
            informer = HubInformer(client, [SECRET], lambda *_: None, optional=[CLUSTER_PROFILE])
            running = asyncio.create_task(informer.run())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(informer.synced(), 0.1)
            script.served = True
            await asyncio.wait_for(informer.synced(), DEADLINE_SECONDS)
            assert informer.objects == {SECRET: {("ns", "a"): secret("a", "1")}, CLUSTER_PROFILE: {}}
            assert informer.resources == {SECRET: SECRET.at("v1")}
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


class Counting(StandIn):
    """Reconciles Secrets; the first tries of the Secret "stubborn" fail."""

    name = "counting"
    kinds = (SECRET,)

    def __init__(self, login: Login) -> None:
        super().__init__(login)
        self.done: list[Key] = []
        self.refusals = 3

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        yield kind.kind, namespace, name

    async def reconcile(self, key: Key) -> None:
        if key[2] == "stubborn" and self.refusals:
            self.refusals -= 1
            raise Unavailable("not yet")
        self.done.append(key)


async def play(script: Script, folder: Path, until_done: Any) -> Counting:
    async with serving(script, folder) as login:
        stand_in = Counting(login)
        running = asyncio.create_task(stand_in.run())
        await until(lambda: until_done(stand_in))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return stand_in


def test_a_failing_key_is_retried_and_blocks_no_other(tmp_path: Path) -> None:
    script = Script([[secret("stubborn", "1"), secret("b", "2")]])
    stand_in = asyncio.run(play(script, tmp_path, lambda it: len(it.done) == 2))
    assert stand_in.done == [("Secret", "ns", "b"), ("Secret", "ns", "stubborn")]
    assert stand_in.refusals == 0


def test_nothing_is_reconciled_before_every_kind_was_listed(tmp_path: Path) -> None:
    class Waiting(Counting):
        kinds = (SECRET, PLACEMENT)

    async def story() -> list[Key]:
        async with serving(Script([[secret("a", "1")]]), tmp_path) as login:
            stand_in = Waiting(login)
            running = asyncio.create_task(stand_in.run())
            await until(lambda: ("ns", "a") in stand_in.objects(SECRET))
            await asyncio.sleep(0.05)  # no event to wait for: nothing may happen
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return stand_in.done

    assert asyncio.run(story()) == []
