"""Who is asked at once: the lane of those that answer, and the lane of those that did not."""

import asyncio

import pytest

from placement_ac.workers.connector import WorkerError, WorkerTimeout
from placement_ac.workers.limiter import MAX_SLOW, ProbeLimiter


async def settle() -> None:
    """Let everything go on that can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Questions:
    """Questions that last until `end` is set; `begun` names those that have a place."""

    def __init__(self, limiter: ProbeLimiter) -> None:
        self.limiter = limiter
        self.begun: list[str] = []
        self.end = asyncio.Event()

    async def ask(self, who: str, ends_with: Exception | None = None) -> None:
        async with self.limiter.slot(who):
            self.begun.append(who)
            await self.end.wait()
            if ends_with:
                raise ends_with


async def test_so_many_at_once_and_the_slow_ones_beside_them() -> None:
    questions = Questions(ProbeLimiter(2))
    questions.limiter.slow |= {f"slow-{n}" for n in range(9)}
    names = [f"slow-{n}" for n in range(9)] + ["a", "b", "c"]
    tasks = [asyncio.create_task(questions.ask(name)) for name in names]
    await settle()
    assert questions.begun == [f"slow-{n}" for n in range(MAX_SLOW)] + ["a", "b"]
    questions.end.set()
    await asyncio.gather(*tasks)
    assert sorted(questions.begun) == sorted(names)
    assert questions.limiter.slow == set()


@pytest.mark.parametrize(
    ("error", "slow"),
    [
        pytest.param(WorkerTimeout("late"), {"a"}, id="too slow"),
        pytest.param(WorkerError("no"), set(), id="an answer"),
        pytest.param(AttributeError("x"), set(), id="garbage"),
    ],
)
async def test_who_counts_as_slow(error: Exception, slow: set[str]) -> None:
    for before in (set[str](), {"a"}):
        questions = Questions(ProbeLimiter(1))
        questions.limiter.slow |= before
        questions.end.set()
        with pytest.raises(type(error)):
            await questions.ask("a", error)
        assert questions.limiter.slow == slow


async def test_with_patience_a_place_is_free_before_the_end_and_only_once() -> None:
    limiter = ProbeLimiter(1, slot_seconds=0.01)
    hangs, quick, held = Questions(limiter), Questions(limiter), Questions(limiter)
    first = asyncio.create_task(hangs.ask("hangs"))
    await settle()
    quick.end.set()
    await quick.ask("a")  # without patience it would wait for ever
    assert not first.done()
    hangs.end.set()
    await first
    limiter.slot_seconds = None
    tasks = [asyncio.create_task(held.ask(name)) for name in ("b", "c")]
    await settle()
    assert held.begun == ["b"]
    held.end.set()
    await asyncio.gather(*tasks)


async def test_whoever_is_cancelled_leaves_its_place() -> None:
    questions = Questions(ProbeLimiter(1))
    task = asyncio.create_task(questions.ask("a"))
    await settle()
    task.cancel()
    await asyncio.wait([task])
    questions.end.set()
    await questions.ask("b")
    assert questions.begun == ["a", "b"]
