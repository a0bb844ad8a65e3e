"""Asking workers whether they are fit: how long an answer is kept, and who keeps nobody waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.workers.probe import Probe
from tests.support.driver import NS, Driver
from tests.support.probing import (
    FIT,
    NEEDS,
    QUEUES,
    REVIEWS,
    SOURCE,
    Queues,
    local_queue,
    requests_to,
    unfit,
    with_probe,
)
from tests.support.workers import LIMITED, put_secret


def test_an_answer_is_kept_for_the_same_secret_and_the_same_question(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    local_queue(worker, "team", "q")

    async def story(probe: Probe) -> list[list[str]]:
        asked: list[list[str]] = []

        async def expected_result(queues: Queues, warnings: int) -> None:
            before = requests_to(worker)
            assert len((await probe.ask(SOURCE, queues)).warnings) == warnings
            asked.append([r.path.rpartition("/")[2] for r in worker.hub.journal[before:]])

        await expected_result({}, 0)
        await expected_result({}, 0)
        await expected_result({"team": frozenset({"q"})}, 0)
        await expected_result({"team": frozenset({"q"})}, 0)
        await expected_result(QUEUES, 1)
        await expected_result({}, 0)
        put_secret(admin, worker, user={"token": LIMITED})
        await probe.ask(SOURCE, {})
        asked.append([r.path.rpartition("/")[2] for r in worker.hub.journal[-1:]])
        return asked

    first, again, places, *others = with_probe(admin, story)
    assert REVIEWS in first
    assert again == []
    assert "localqueues" in places
    assert REVIEWS not in places
    assert others == [[], places, [], others[3]]
    assert others[3] != []


def test_a_bad_answer_is_kept_as_well_until_the_secret_changes(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, user={"token": "of-yesterday"})

    async def story(probe: Probe) -> list[int]:
        counts = []
        for _ in range(2):
            assert (await probe.ask(SOURCE, {})).problems
            counts.append(requests_to(worker))
        put_secret(admin, worker)
        assert not (await probe.ask(SOURCE, {})).problems
        return counts

    first, second = with_probe(admin, story)
    assert first == second


def test_a_secret_that_comes_is_used_at_once(admin: Driver, worker: Driver) -> None:
    async def story(probe: Probe) -> list[Fitness]:
        missing = await probe.ask(SOURCE, {})
        put_secret(admin, worker)
        return [missing, await probe.ask(SOURCE, {})]

    assert with_probe(admin, story) == [unfit(f"Secret {NS}/s does not exist"), FIT]


def test_requests_for_the_same_at_once_get_the_same_answer(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)

    async def story(probe: Probe) -> int:
        answers = await asyncio.gather(*(probe.ask(SOURCE, {}) for _ in range(5)))
        assert answers == [FIT] * 5
        return sum(request.path.endswith(REVIEWS) for request in worker.hub.journal)

    assert with_probe(admin, story) == len(NEEDS.rights)


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The address of a server that never says anything; the event tells that somebody has come."""
    came = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", came


def test_who_never_answers_keeps_nobody_waiting(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, "dead", server="https://127.0.0.1:1")
    put_secret(admin, worker)

    async def story(probe: Probe) -> tuple[list[Fitness], bool]:
        async with hanging() as (address, came):
            put_secret(admin, worker, "hangs", server=address)
            hangs = asyncio.create_task(probe.ask(CredentialSource("Secret", "hangs"), {}))
            await came.wait()  # so it has the only place
            others = await asyncio.gather(
                probe.ask(CredentialSource("Secret", "dead"), {}), probe.ask(SOURCE, {})
            )
            waits = not hangs.done()
            hangs.cancel()
            await asyncio.wait([hangs])
            return others, waits

    dead = unfit(f"the worker of Secret {NS}/dead cannot be reached: Connection refused")
    assert with_probe(admin, story, parallel=1) == ([dead, FIT], True)


def test_being_cancelled_is_no_answer(admin: Driver, worker: Driver) -> None:
    async def cancelled(probe: Probe) -> list[Any]:
        async with hanging() as (address, came):
            put_secret(admin, worker, server=address)
            asking = asyncio.create_task(probe.ask(SOURCE, {}))
            await came.wait()
            asking.cancel()
            ended = await asyncio.gather(asking, return_exceptions=True)
        put_secret(admin, worker)
        return [type(*ended), await probe.ask(SOURCE, {})]

    assert with_probe(admin, cancelled, parallel=1) == [asyncio.CancelledError, FIT]
