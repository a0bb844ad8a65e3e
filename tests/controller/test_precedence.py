"""Who goes first: what is left of a work gives way, and the answer to a write may wait."""

import asyncio

import pytest

from placement_ac.controller.precedence import MOMENT_SECONDS
from placement_ac.controller.workqueue import ASIDE_SECONDS, PAUSE_SECONDS, Workqueue
from tests.controller.test_workqueue import now, run


async def play(queue: Workqueue[str], *steps: str | float) -> None:
    """Add a key, or wait so many seconds, one step after the other."""
    for step in steps:
        if isinstance(step, str):
            queue.add(step)
        else:
            await asyncio.sleep(step)


class TwoHalves:
    """Work whose second half gives way; each half takes a second, but for keys that are slow."""

    def __init__(self, parallel: int = 32, slow: float = 1.0) -> None:
        self.queue: Workqueue[str] = Workqueue(self.work, parallel=parallel)
        self.slow = slow
        self.halves: list[tuple[str, float]] = []

    async def work(self, key: str) -> None:
        self.halves.append((f"{key} begins", round(now(), 3)))
        await asyncio.sleep(self.slow if key == "slow" else 1.0)
        if turn := self.queue.give_way(key):
            await turn
        self.halves.append((f"{key} goes on", round(now(), 3)))
        await asyncio.sleep(1.0)


def test_what_is_left_of_a_work_gives_way_and_so_does_its_slot() -> None:
    async def test() -> None:
        work = TwoHalves(parallel=1)
        await play(work.queue, "a", "b", 10)
        begun, gone_on = work.halves[:2], work.halves[2:]
        assert begun == [("a begins", 0), ("b begins", 1)]
        assert gone_on == [("a goes on", 1 + ASIDE_SECONDS), ("b goes on", 3)]

    run(test())


class Pausing:
    """Work that pauses after a second."""

    def __init__(self) -> None:
        self.queue: Workqueue[str] = Workqueue(self.work)
        self.pauses: list[tuple[str, float, float | None]] = []
        """Of which key, from when, and until when (None: there was no pause)."""

    async def work(self, key: str) -> None:
        await asyncio.sleep(1.0)
        began, turn = now(), self.queue.pause(key)
        if turn:
            await turn
        self.pauses.append((key, round(began, 3), round(now(), 3) if turn else None))
        await asyncio.sleep(1.0)


def test_a_pause_is_short_and_for_one_key_alone() -> None:
    async def test() -> None:
        work = Pausing()
        await play(work.queue, "a", 10, "b", PAUSE_SECONDS / 2, "c", 10)
        assert work.pauses == [
            ("a", 1, 1 + PAUSE_SECONDS),
            ("b", 11, None),
            ("c", round(11 + PAUSE_SECONDS / 2, 3), None),
        ]

    run(test())


def test_who_comes_before_the_end_of_the_work_has_no_pause() -> None:
    async def test() -> None:
        work = Pausing()
        await play(work.queue, "a", 1 + PAUSE_SECONDS / 2, "b")
        assert work.queue.pause("b") is None, "one is in its pause"
        await play(work.queue, 10, "c", 10)
        assert [key for key, _, until in work.pauses if until] == ["a", "c"]

    run(test())


def test_a_key_that_changes_ends_its_pause() -> None:
    async def test() -> None:
        work = Pausing()
        await play(work.queue, "a", 1 + PAUSE_SECONDS / 2, "a", 0.5)
        assert work.pauses == [("a", 1, round(1 + PAUSE_SECONDS / 2, 3))]

    run(test())


def test_there_is_no_pause_for_a_key_that_has_changed_nor_at_the_end() -> None:
    async def test() -> None:
        work = Pausing()
        await play(work.queue, "a", 0.5, "a", 1.6)
        assert work.pauses == [("a", 1, None)]
        await asyncio.gather(work.queue.close())
        assert work.pauses[1:] == [("a", 3, None)]

    run(test())


def test_it_gives_way_for_no_more_than_a_moment_when_nobody_is_behind() -> None:
    async def test() -> None:
        work = TwoHalves()
        await play(work.queue, "a", 1.5, "b", 10)
        a, b = 1 + MOMENT_SECONDS, 2.5 + MOMENT_SECONDS
        assert work.halves == [("a begins", 0), ("a goes on", a), ("b begins", 1.5), ("b goes on", b)]

    run(test())


def test_who_comes_in_that_moment_goes_first() -> None:
    async def test() -> None:
        work = TwoHalves()
        await play(work.queue, "a", 1 + MOMENT_SECONDS / 2, "b", 10)
        begun = 1 + MOMENT_SECONDS / 2
        assert work.halves[1] == ("b begins", round(begun, 3))
        assert ("a goes on", 1 + ASIDE_SECONDS) in work.halves

    run(test())


def test_all_go_on_together_a_moment_after_the_last_was_ahead() -> None:
    async def test() -> None:
        work = TwoHalves(slow=0.5)
        await play(work.queue, "a", 0.502, "slow", 10)
        assert ("slow goes on", 1.007) in work.halves
        assert ("a goes on", 1.007) in work.halves

    run(test())


def test_nobody_gives_way_for_long() -> None:
    async def test() -> None:
        work = TwoHalves(slow=60.0)
        await play(work.queue, "slow", "a", 100)
        assert ("a goes on", 1 + ASIDE_SECONDS) in work.halves

    run(test())


def test_a_key_that_changes_again_gives_way_no_more() -> None:
    async def test() -> None:
        work = TwoHalves(slow=60.0)
        await play(work.queue, "slow", "a", "b", 0.5, "b", 1.0, "a", 100)
        assert work.halves[3:5] == [("b goes on", 1), ("a goes on", 1.5)]

    run(test())


@pytest.mark.parametrize("echo", [0.5, 0.97])
def test_the_echo_of_its_own_write_does_not_end_that(echo: float) -> None:
    async def test() -> None:
        work = TwoHalves(slow=1.5)
        await play(work.queue, "slow", "a", echo)
        work.queue.add_echo("a")
        await asyncio.sleep(10)
        calm = 1.5 + MOMENT_SECONDS
        assert work.halves[2:4] == [("a goes on", calm), ("slow goes on", calm)]
        assert [half for half, _ in work.halves[4:]] == ["a begins", "a goes on"]

    run(test())


def test_at_the_end_nobody_gives_way() -> None:
    async def test() -> None:
        work = TwoHalves(slow=1.5)
        await play(work.queue, "slow", "a", 1.2)
        await work.queue.close()
        assert (now(), work.halves[2:]) == (2.5, [("a goes on", 1.2), ("slow goes on", 1.5)])

    run(test())


@pytest.mark.parametrize("until", [1.5, 3.5], ids=["it stands aside", "it waits for a slot"])
def test_one_that_is_dropped_while_it_gives_way_leaves_no_slot_too_many(until: float) -> None:
    async def test() -> None:
        worker = TwoHalves(parallel=1, slow=3.0)
        await play(worker.queue, "a", "slow", until)
        worker.queue.drop()
        await asyncio.sleep(1.0)
        worker.halves.clear()
        began = now()
        await play(worker.queue, "a", "b", 10)
        assert worker.halves[:2] == [("a begins", began), ("b begins", began + 1)]
        await worker.queue.close()

    run(test())
