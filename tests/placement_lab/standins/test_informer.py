"""The informer follows a server with scripted responses; the stand-in's queue merges keys."""

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
    FIRST_BACKOFF_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    HubInformer,
    Key,
    StandIn,
    backoff,
)
from tests.support.kubeconfigs import one_context

DEADLINE_SECONDS = 5.0
HANG = object()
"""In the script of a watch: stay open without further events."""


def secret(name: str, version: str, *, uid: str = "", **more: Any) -> dict[str, Any]:
    identity = {"uid": uid} if uid else {}
    return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": version} | identity, **more}


def event(kind: str, item: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": item}) + b"\n"


class Script:
    """A server of Secrets with scripted LISTs and WATCHes; the last LIST repeats, later WATCHes hang."""

    def __init__(self, lists: list[Any], watches: Iterable[list[Any]] = ()) -> None:
        self.lists = lists
        self.watches = list(watches)
        self.asked: list[str] = []
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
            self.asked.append("list")
            now = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
            if isinstance(now, int):
                return web.Response(status=now)
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": now})
        self.asked.append(f"watch {request.query['resourceVersion']}")
        return await self.watch(request, self.watches.pop(0) if self.watches else [HANG])

    async def watch(self, request: web.Request, lines: list[Any]) -> web.StreamResponse:
        if lines and isinstance(lines[0], int):
            return web.Response(status=lines[0])
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            if line is HANG:
                await asyncio.sleep(DEADLINE_SECONDS)
            else:
                await response.write(line)
        return response


async def login_to(server: TestServer, folder: Path) -> Login:
    path = folder / "kubeconfig"
    config = one_context({"server": str(server.make_url("/")).rstrip("/")}, {"token": "t"})
    await asyncio.to_thread(path.write_bytes, orjson.dumps(config))
    return Login(path)


@asynccontextmanager
async def serving(script: Script, folder: Path) -> AsyncIterator[Login]:
    async with TestServer(script.app()) as server:
        yield await login_to(server, folder)


async def until(reached: Any) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not reached():  # noqa: ASYNC110  # what is waited for is plain state, nobody sets an Event
            await asyncio.sleep(0.005)


async def follow(script: Script, folder: Path, names: set[str]) -> list[str]:
    """Follow the script until exactly `names` exist; return the names in the order of their changes."""
    changes: list[str] = []
    async with serving(script, folder) as login, Client(login) as client:
        informer = HubInformer(client, [SECRET], lambda _kind, _namespace, name: changes.append(name))
        running = asyncio.create_task(informer.run())
        await until(lambda: {name for _, name in informer.objects[SECRET]} == names and not script.watches)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return changes


def run(script: Script, folder: Path, *names: str) -> list[str]:
    return asyncio.run(follow(script, folder, set(names)))


def test_the_informer_lists_and_then_watches(tmp_path: Path) -> None:
    script = Script(
        [[secret("a", "1"), secret("b", "2")]],
        [[event("ADDED", secret("c", "101")), event("DELETED", secret("a", "102")), HANG]],
    )
    assert sorted(run(script, tmp_path, "b", "c")[:2]) == ["a", "b"]
    assert script.asked == ["list", "watch 100"]


def test_a_watch_continues_from_the_last_bookmark(tmp_path: Path) -> None:
    bookmark = {"metadata": {"resourceVersion": "250"}}
    script = Script(
        [[secret("a", "1")]], [[event("BOOKMARK", bookmark)], [], [event("ADDED", secret("b", "300")), HANG]]
    )
    assert run(script, tmp_path, "a", "b") == ["a", "b"]
    assert script.asked == ["list", "watch 100", "watch 250", "watch 250"]


def test_objects_of_any_size_are_received(tmp_path: Path) -> None:
    line = event("ADDED", secret("big", "101", data={"a": "x" * 500_000}))
    script = Script([[]], [[line[:1000], line[1000:], HANG]])
    assert run(script, tmp_path, "big") == ["big"]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([410], id="410 as the answer"),
        pytest.param([event("ERROR", {"code": 410, "message": "too old"})], id="410 as an event"),
        pytest.param([event("ERROR", {"code": 500, "message": "etcd"})], id="500 as an event"),
        pytest.param([event("ERROR", {})], id="an error that says nothing"),
        pytest.param([503], id="503 as the answer"),
        pytest.param([404], id="404 as the answer"),
        pytest.param([b"this is no JSON\n"], id="garbage"),
        pytest.param([b'{"type": "ADDED"}\n'], id="an event without object"),
    ],
)
def test_deletions_during_a_broken_watch_are_reported(tmp_path: Path, broken: list[Any]) -> None:
    script = Script([[secret("a", "1"), secret("b", "2")], [secret("b", "2")]], [broken])
    assert "a" in run(script, tmp_path, "b")[2:]
    assert script.asked[:3] == ["list", "watch 100", "list"]


def test_unchanged_objects_are_not_reported_after_a_gap(tmp_path: Path) -> None:
    script = Script([[secret("a", "1")], [secret("a", "1"), secret("b", "2")]], [[410]])
    assert run(script, tmp_path, "a", "b") == ["a", "b"]


def test_writes_during_a_gap_are_reported_with_the_next_list(tmp_path: Path) -> None:
    """The watch would have reported the write; the list alone shows no difference."""
    script = Script([[secret("a", "1")], [secret("a", "5"), secret("b", "2")]], [[410]])
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


def test_an_incomplete_line_is_ignored(tmp_path: Path) -> None:
    script = Script([[]], [[event("ADDED", secret("a", "101"))[:-20]], [event("ADDED", secret("a", "101"))]])
    assert run(script, tmp_path, "a") == ["a"]


def test_a_failed_list_is_retried(tmp_path: Path) -> None:
    assert run(Script([500, 403, [secret("a", "1")]]), tmp_path, "a") == ["a"]


def test_an_unreachable_server_is_retried(tmp_path: Path) -> None:
    async def story() -> None:
        async with TestServer(web.Application()) as server:
            login = await login_to(server, tmp_path)
            port = server.port
        async with Client(login) as client:
            failed = asyncio.Event()
            informer = HubInformer(client, [SECRET], lambda *_: None, on_error=lambda *_: failed.set())
            running = asyncio.create_task(informer.run())
            await asyncio.wait_for(failed.wait(), DEADLINE_SECONDS)
            async with TestServer(Script([[secret("a", "1")]]).app(), port=port):
                await until(lambda: ("ns", "a") in informer.objects[SECRET])
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


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


def test_the_backoff_grows_and_is_capped() -> None:
    seconds = backoff()
    first = [next(seconds) for _ in range(40)]
    assert first == sorted(first)
    assert (first[0], first[-1]) == (FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS)


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


def test_a_key_enqueued_several_times_is_reconciled_once(tmp_path: Path) -> None:
    def asked(stand_in: Counting) -> bool:
        if not stand_in.done:
            return False
        if len(stand_in.done) == 1:
            for _ in range(5):
                stand_in.enqueue(("Secret", "ns", "late"), after=0.01)
                stand_in.enqueue(("Secret", "ns", "soon"))
        return len(stand_in.done) >= 3

    stand_in = asyncio.run(play(Script([[secret("a", "1")]]), tmp_path, asked))
    assert [name for _, _, name in stand_in.done[:3]] == ["a", "soon", "late"]


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
