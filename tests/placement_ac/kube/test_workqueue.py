"""One worker per key, duplicates merged, failures tried again; in a loop whose clock jumps ahead."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from itertools import pairwise

import pytest

from placement_ac.kube.workqueue import BACKOFF_SECONDS, JITTER, Requeue, Workqueue
from placement_ac.observability.metric_definitions import QueueLoad
from tests.support.async_tests import loop_time

pytestmark = pytest.mark.virtual_time


class Worker:
    """Notes when it worked on what; `acts` says what it does on each turn (the last one stays)."""

    def __init__(
        self, *acts: Callable[[], Awaitable[None]] | BaseException | None, takes: float = 0.0
    ) -> None:
        self.acts = list(acts) or [None]
        self.takes = takes
        self.turns: list[tuple[str, float]] = []
        self.busy = 0
        self.most_busy = 0

    async def __call__(self, key: str) -> None:
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        self.turns.append((key, round(loop_time(), 3)))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(self.takes)
            if isinstance(act, BaseException):
                raise act
        finally:
            self.busy -= 1

    @property
    def times(self) -> list[float]:
        return [when for _, when in self.turns]


async def test_duplicates_are_merged_and_keys_run_side_by_side() -> None:
    worker = Worker(takes=1.0)
    queue = Workqueue(worker)
    queue.add("a", "b", "a")
    queue.add("b")
    await asyncio.sleep(0.5)
    assert worker.turns == [("a", 0.0), ("b", 0.0)]
    queue.add("b", "b")
    queue.add("b")
    await asyncio.sleep(5)
    assert worker.turns == [("a", 0.0), ("b", 0.0), ("b", 1.0)]


async def test_a_key_is_never_worked_on_twice_at_once() -> None:
    worker = Worker(takes=1.0)
    queue = Workqueue(worker)
    for _ in range(30):
        queue.add("a")
        await asyncio.sleep(0.1)
    await asyncio.sleep(5)
    assert (worker.most_busy, worker.times) == (1, [0.0, 1.0, 2.0, 3.0])


async def test_only_so_many_run_at_once_and_one_that_has_not_begun_is_not_doubled() -> None:
    worker = Worker(takes=1.0)
    queue = Workqueue(worker, parallel=2)
    queue.add("a", "b", "c")
    await asyncio.sleep(0.5)
    queue.add("c")
    await asyncio.sleep(5)
    assert (worker.most_busy, worker.turns) == (2, [("a", 0.0), ("b", 0.0), ("c", 1.0)])


@pytest.mark.parametrize("failure", [Requeue(), OSError("unexpected")], ids=["Requeue", "unexpected"])
async def test_failures_wait_longer_each_time_up_to_a_cap_and_never_in_step(failure: Exception) -> None:
    worker = Worker(failure)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(300)
    pauses = [later - earlier for earlier, later in pairwise(worker.times)]
    assert len(pauses) > 12
    for tries, pause in enumerate(pauses):
        plain = min(BACKOFF_SECONDS[1], BACKOFF_SECONDS[0] * 2**tries)
        assert plain * (1 - JITTER) - 0.01 <= pause <= plain * (1 + JITTER) + 0.01
    assert len({round(pause, 2) for pause in pauses[-4:]}) > 1


async def test_success_makes_the_next_wait_short_again() -> None:
    worker = Worker(*[Requeue()] * 8, None, Requeue(), None)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(100)
    queue.add("a")
    await asyncio.sleep(100)
    assert (len(worker.times), worker.times[9]) == (11, 100.0)
    assert worker.times[10] - worker.times[9] < 0.2


async def test_a_change_is_looked_at_although_a_failure_waits() -> None:
    worker = Worker(*[Requeue()] * 8, None)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(8)
    turns = len(worker.times)
    queue.add("a")
    await asyncio.sleep(0.001)
    assert worker.times[turns:] == [8.0]


async def test_failed_keys_are_tried_at_once_when_the_cause_may_be_over() -> None:
    """Also what has to wait longer, and only that."""
    worker = Worker(*[Requeue()] * 8, Requeue(60.0), None)
    queue = Workqueue(worker)
    queue.add("a")
    queue.add_after("b", 200)
    await asyncio.sleep(50)
    turns = len(worker.times)
    queue.retry_failed()
    await asyncio.sleep(100)
    assert worker.times[turns:] == [50.0]
    queue.retry_failed()
    await asyncio.sleep(1)
    assert len(worker.times) == turns + 1


async def test_changes_that_never_end_do_not_drive_what_fails_all_the_time() -> None:
    """A rival writes every 10 ms to what we write to: ours is always a conflict."""
    worker = Worker(Requeue())
    queue = Workqueue(worker)
    for _ in range(1000):
        queue.add("a")
        await asyncio.sleep(0.01)
    assert 20 <= len(worker.times) <= 28
    assert worker.times[:3] == [0.0, 0.01, 0.02], "the first tries are prompt"


@pytest.mark.parametrize("appointment", [None, 1.0, 100.0], ids=["none", "an earlier one", "a later one"])
async def test_retry_after_is_kept_whatever_comes(appointment: float | None) -> None:
    worker = Worker(Requeue(60), None)
    queue = Workqueue(worker)
    if appointment:
        queue.add_after("a", appointment)
    queue.add("a")
    for _ in range(50):
        await asyncio.sleep(1)
        queue.add("a", "b")
        queue.add_after("a", 0.1)
    assert [turn for turn in worker.turns if turn[0] == "a"] == [("a", 0.0)]
    await asyncio.sleep(100)
    assert [when for key, when in worker.turns if key == "a"] == [0.0, 60.0]


async def test_a_key_added_during_a_failure_with_retry_after_waits_as_well() -> None:
    worker = Worker(Requeue(60), None, takes=1.0)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(0.5)
    queue.add("a")
    await asyncio.sleep(200)
    assert worker.times == [0.0, 61.0]


async def test_a_retry_after_of_nothing_is_an_ordinary_failure() -> None:
    worker = Worker(Requeue(0.0), None)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(1)
    assert len(worker.times) == 2


@pytest.mark.parametrize(
    ("appointments", "turns"),
    [
        pytest.param([5.0], [5.0], id="one"),
        pytest.param([5.0, 9.0], [5.0], id="the earlier stands"),
        pytest.param([9.0, 5.0], [5.0], id="the earlier replaces"),
    ],
)
async def test_appointments(appointments: list[float], turns: list[float]) -> None:
    worker = Worker()
    queue = Workqueue(worker)
    for seconds in appointments:
        queue.add_after("a", seconds)
    await asyncio.sleep(50)
    assert worker.times == turns


async def test_without_a_delay_it_starts_at_once_and_a_later_timer_stays() -> None:
    worker = Worker()
    queue = Workqueue(worker)
    queue.add_after("a", 5)
    queue.add_after("a", 0)
    await asyncio.sleep(50)
    assert worker.times == [0.0, 5.0]


async def test_another_backoff() -> None:
    worker = Worker(Requeue())
    Workqueue(worker, backoff=(1.0, 4.0)).add("a")
    await asyncio.sleep(100)
    pauses = [later - earlier for earlier, later in pairwise(worker.times[:5])]
    shares = [pause / plain for pause, plain in zip(pauses, (1.0, 2.0, 4.0, 4.0), strict=True)]
    assert all(1 - JITTER <= share <= 1 + JITTER for share in shares)


async def test_closing_lets_work_end_and_takes_nothing_more() -> None:
    worker = Worker(Requeue(), takes=1.0)
    queue = Workqueue(worker, parallel=1)
    queue.add("a", "waits")
    queue.add_after("later", 0.5)
    await asyncio.sleep(0.1)
    queue.add("a")
    await queue.close()
    assert loop_time() == pytest.approx(1.0)
    queue.add("a", "b")
    queue.add_after("c", 0.1)
    await asyncio.sleep(50)
    assert (worker.busy, worker.turns) == (0, [("a", 0.0)])


async def test_a_key_whose_work_was_cancelled_can_come_again() -> None:
    worker = Worker(asyncio.CancelledError(), None)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(1)
    queue.add("a")
    await asyncio.sleep(1)
    assert worker.times == [0.0, 1.0]


async def test_the_load_counts_waiting_running_and_failed_keys() -> None:
    worker = Worker(takes=2.0)
    queue = Workqueue(worker, parallel=1)
    assert queue.load() == QueueLoad()
    queue.add("a", "b")
    await asyncio.sleep(1)
    assert queue.load() == QueueLoad(waiting=1, oldest=1.0, longest=1.0)
    queue.add("a")  # once more, when it is done
    await asyncio.sleep(2)
    assert queue.load() == QueueLoad(waiting=1, oldest=2.0, longest=1.0)
    await asyncio.sleep(10)
    assert queue.load() == QueueLoad()


async def test_a_key_that_asked_to_wait_is_to_be_tried_again_and_waits_for_no_turn() -> None:
    worker = Worker(Requeue(60), None, takes=1.0)
    queue = Workqueue(worker)
    queue.add("a")
    await asyncio.sleep(0.5)
    queue.add("a")
    await asyncio.sleep(1)
    assert queue.load() == QueueLoad(retrying=1)
    await asyncio.sleep(70)
    assert queue.load() == QueueLoad()


async def test_work_is_done_in_no_context_of_who_adds() -> None:
    """The task that opens a connection leaves its context to it, with everything in that."""
    kept = ContextVar("kept", default="nothing")
    seen: list[str] = []

    async def look(key: str) -> None:
        seen.append(kept.get())
        if len(seen) == 1:
            raise Requeue(1.0)

    kept.set("a session")
    queue = Workqueue(look)
    queue.add("a")
    await asyncio.sleep(5)
    assert seen == ["nothing", "nothing"]


async def test_a_closed_queue_has_no_load() -> None:
    queue = Workqueue(Worker(takes=1.0), parallel=1)
    queue.add("a", "b")
    await asyncio.sleep(0.5)
    await queue.close()
    assert queue.load() == QueueLoad()


async def test_a_queue_that_is_dropped_ends_what_is_under_way_and_works_on_what_comes_afterwards() -> None:
    worker = Worker(Requeue(1), None, takes=10.0)
    queue = Workqueue(worker, parallel=2)
    queue.add("a")
    await asyncio.sleep(10.5)  # it is to be tried again
    queue.add("b", "c", "d")
    queue.add_after("e", 5)
    await asyncio.sleep(0.1)
    queue.add("b")  # once more
    queue.clear()
    await asyncio.sleep(100)
    assert (worker.turns, worker.busy, queue.load()) == (
        [("a", 0.0), ("b", 10.5), ("c", 10.5)],
        0,
        QueueLoad(),
    )
    queue.add("a", "b")
    await asyncio.sleep(1)
    assert worker.turns[3:] == [("a", 110.6), ("b", 110.6)]
    await queue.close()
