"""Asking many workers: one that never answers keeps no other waiting."""

import asyncio
import time

from placement_ac.workers.copies import CopyReader, WorkerCopies
from tests.support.driver import Driver
from tests.support.worker_copies import ask, copy_of, problem, with_reader
from tests.support.workers import by_secret, put_secret


def test_a_server_that_never_answers(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, server=silent)
    began = time.monotonic()
    assert ask(admin, timeout=1.5) == problem("the worker did not answer within 1.5 s")
    assert time.monotonic() - began < 10


def test_those_that_never_answer_keep_no_other_waiting(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, "dead", server=silent)
    put_secret(admin, worker)
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

    answer, waited = with_reader(admin, story, timeout=1.5, parallel=3)
    assert answer == WorkerCopies({("ns", "runs"): True})
    assert not waited


def test_one_that_answers_again_is_asked_like_the_others(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, server=silent)

    async def story(workers: CopyReader) -> list[set[str]]:
        await workers.read(by_secret())
        slow = [set(workers.limiter.slow)]
        put_secret(admin, worker)
        await workers.read(by_secret())
        return [*slow, set(workers.limiter.slow)]

    assert with_reader(admin, story, timeout=2) == [{"p-w"}, set()]


def test_no_more_than_so_many_are_asked_at_once(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    worker.hub.faults.add("GET", "v1beta2/workloads", delay=0.1, times=100)

    async def six(workers: CopyReader) -> float:
        began = time.monotonic()
        answers = await asyncio.gather(*(workers.read(by_secret(cluster=f"c{n}")) for n in range(6)))
        assert set(map(repr, answers)) == {repr(WorkerCopies())}
        return time.monotonic() - began

    assert with_reader(admin, six, parallel=2) >= 0.3


def test_being_cancelled_is_no_answer(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, server=silent)

    async def cancelled(workers: CopyReader) -> bool:
        asking = asyncio.create_task(workers.read(by_secret()))
        await asyncio.sleep(0.2)  # the question is under way; an address that is silent notes none
        asking.cancel()
        (result,) = await asyncio.gather(asking, return_exceptions=True)
        return isinstance(result, asyncio.CancelledError)

    assert with_reader(admin, cancelled)
