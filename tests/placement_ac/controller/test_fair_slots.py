"""Slots for writes: what runs at once, and what hangs of whom."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from placement_ac.controller import fair_slots
from placement_ac.controller.fair_slots import QUICK_SECONDS, FairSlots, Flow
from placement_ac.core.api.errors import Postponed
from tests.support.async_tests import loop_time

pytestmark = pytest.mark.virtual_time

HANG: Final = 100.0
P_A, P_B, Q_A, Q_C = Flow("p", "a"), Flow("p", "b"), Flow("q", "a"), Flow("q", "c")


class Writers:
    """Writes that hold a slot for a while."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.began: Counter[Flow] = Counter()
        self.postponed: Counter[Flow] = Counter()
        self.tasks: set[asyncio.Task[None]] = set()

    async def write(self, flow: Flow, seconds: float) -> None:
        try:
            async with self.slots.hold(flow):
                self.began[flow] += 1
                await asyncio.sleep(seconds)
        except Postponed:
            self.postponed[flow] += 1

    def start(self, flow: Flow, seconds: float, times: int = 1) -> None:
        self.tasks |= {
            asyncio.get_running_loop().create_task(self.write(flow, seconds)) for _ in range(times)
        }

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
def writers(runner: asyncio.Runner) -> Iterator[Writers]:
    writers = Writers(FairSlots())
    yield writers
    runner.run(writers.end())


async def test_a_burst_runs_in_turns_that_flows_share(writers: Writers) -> None:
    writers.start(P_A, 0.1, 100)
    await asyncio.sleep(0)
    writers.start(Q_C, 0.1, 4)
    await asyncio.sleep(0.05)
    assert writers.began == {P_A: 16, Q_C: 4}
    await asyncio.sleep(0.7)
    assert writers.began == {P_A: 100, Q_C: 4}


async def test_of_what_hangs_each_flow_has_a_share(writers: Writers) -> None:
    writers.start(P_A, HANG, 100)
    await asyncio.sleep(QUICK_SECONDS + 0.1)
    assert (writers.began[P_A], writers.postponed[P_A]) == (23, 77)
    for other in (P_B, Q_A, Q_C):
        await writers.write(other, 0.0)
    assert [writers.began[other] for other in (P_B, Q_A, Q_C)] == [1, 1, 1]
    await asyncio.sleep(HANG)
    await writers.write(P_A, 0.0)
    assert writers.began[P_A] == 24, "as before, when none hangs any more"


async def test_of_all_that_hangs_there_is_a_limit(writers: Writers) -> None:
    for n in range(30):
        writers.start(Flow(str(n), str(n)), HANG, 8)
    await asyncio.sleep(10 * QUICK_SECONDS)
    most = fair_slots.HANGING_SLOTS
    assert most <= writers.began.total() < most + fair_slots.QUICK_SLOTS
    await writers.write(P_A, 0.0)
    assert writers.postponed[P_A] == 1


async def test_who_is_cancelled_while_it_waits_leaves_nothing(writers: Writers) -> None:
    writers.start(P_A, 0.1, 16)
    await asyncio.sleep(0)
    waiting = asyncio.create_task(writers.write(P_A, 0.1))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.sleep(1)
    writers.start(P_A, 0.1, 16)
    await asyncio.sleep(0.05)
    assert (writers.began[P_A], loop_time() > 0) == (32, True)


class Looked:
    """A Placement whose waiting writes count how often they are looked at."""

    times = 0

    def __hash__(self) -> int:
        Looked.times += 1
        return id(self)


async def test_a_write_does_not_look_at_all_that_wait(writers: Writers) -> None:
    """A thousand Placements write at a start: looking at each for each would stop the event loop."""
    for _ in range(500):
        writers.start(Flow(Looked()), 0.1)
    await asyncio.sleep(0)
    Looked.times = 0
    for _ in range(10):
        writers.start(Flow(Looked()), 0.1)
    await asyncio.sleep(0)
    assert Looked.times < 500
    await asyncio.sleep(2.0)
    assert writers.began.total() == 510
