"""
Says of each job that waits when it will start, and counts how often that held.

Apart from the dispatcher: in a thread that works for a few milliseconds at a time. It looks once a minute,
and less often the more that costs, so that it takes no more than CORE_SHARE of a core. A forecast is never
written anywhere: it is kept in memory until its job has started.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import structlog

from placement_ac.cache.store import Cache
from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.expected_start.estimate import SIMULATION_SECONDS, TOO_SLOW
from placement_ac.core.expected_start.forecast import forecast
from placement_ac.core.expected_start.model import ExpectedStart, Unknown
from placement_ac.core.expected_start.outcomes import Forecasts
from placement_ac.core.expected_start.world import HubQueues, PlacementInputs
from placement_ac.core.inputs.queue_facts import worker_facts
from placement_ac.core.inputs.state import Key, Snapshot
from placement_ac.core.plan.targets import select_targets
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metrics import Metrics

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 60.0
"""It looks at the jobs that wait so often, if that costs little."""
CORE_SHARE: Final = 0.02
"""The share of a core that it takes at most: after a look that cost more, it waits for longer."""
SLICE_SECONDS: Final = 0.005
"""For so long at a time its thread keeps the event loop from working."""
PAUSE_SECONDS: Final = 0.045

_Found = Mapping[str, ExpectedStart]
InThread = Callable[[Callable[[], _Found | None]], Awaitable[_Found | None]]


class StartForecaster:
    """`snapshot` returns the inputs of a Placement, `busy` the seconds that the thread has worked.

    `in_thread` runs the simulations, and rests for `pause` seconds after each slice.
    """

    def __init__(
        self,
        cache: Cache,
        snapshot: Callable[[Key], Snapshot],
        metrics: Metrics,
        clock: Callable[[], datetime],
        *,
        busy: Callable[[], float] = time.thread_time,
        in_thread: InThread = asyncio.to_thread,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._cache, self._snapshot, self._metrics = cache, snapshot, metrics
        self._clock, self._busy, self._in_thread, self._pause = clock, busy, in_thread, pause
        self._forecasts = Forecasts()
        self._stop = threading.Event()
        """Set: nobody wants what the thread works on."""
        self._logged = LogDeduplicator()
        self.cost_seconds = 0.0
        """How many seconds of a core the last look has taken."""

    @property
    def expected(self) -> _Found:
        """The first forecast of each job that waits, by uid."""
        return self._forecasts.expected

    @property
    def rest_seconds(self) -> float:
        """How long to wait until the next look."""
        return max(LOOK_SECONDS, self.cost_seconds / CORE_SHARE)

    async def keep_looking(self, leads: Callable[[], bool]) -> None:
        """Look again and again while this process leads. Whatever goes wrong, the controller goes on."""
        while True:
            await asyncio.sleep(self.rest_seconds)
            try:
                if leads():
                    await self.look()
            except Exception as error:  # it is no reason to stop the dispatcher
                level = self._logged.level("look", error_place(error))
                log.log(level, "it cannot be said when jobs start", error=error_place(error))

    def reset(self) -> None:
        """Forget all forecasts, as after a restart; what is being computed is dropped."""
        self._forecasts = Forecasts()
        self._stop.set()

    async def look(self) -> None:
        """Count the forecasts of jobs that have started, and give one to each job that has none."""
        forecasts, cache = self._forecasts, self._cache
        self.cost_seconds = 0.0
        if (
            not cache.has_synced
            or cache.runs is None
            or not (forecasts.are_open or cache.capacity.jobs_wait())
        ):
            return
        placements = await self._placements()
        if forecasts is not self._forecasts:
            return
        with self._measured():
            workloads = {one.meta.uid: one for of in placements for one in of.snapshot.workloads}
            waiting = self._count(workloads.values())
            new = {uid for uid in waiting if not forecasts.known(uid)}
        now = self._clock()
        if new and (found := await self._forecast(placements, now, new)) and forecasts is self._forecasts:
            forecasts.give(found, now)

    async def _placements(self) -> list[PlacementInputs]:
        """Return the inputs of the Placements whose jobs we dispatch; others have their turn in between."""
        found = []
        for key in sorted(key for key in self._cache.keys() if key.kind == "placement"):  # noqa: SIM118  # no mapping
            with self._measured():
                snapshot = self._snapshot(key)
                if snapshot.policy.dispatcher and snapshot.checks.ours:  # no check is left of some
                    found.append(PlacementInputs(snapshot, select_targets(snapshot)))
            await asyncio.sleep(0)
        return found

    @contextmanager
    def _measured(self) -> Iterator[None]:
        """Add what is done inside, without waiting, to the cost of this look."""
        began = self._busy()
        try:
            yield
        finally:
            self.cost_seconds += self._busy() - began

    def _count(self, workloads: Iterable[Workload]) -> list[str]:
        """Take in which jobs have started since the last look; return the uids of those that wait."""
        began = {run.uid: run.began for run in self._cache.runs or ()}
        waiting = []
        for workload in workloads:
            if workload.placed_since is not None:
                began[workload.meta.uid] = workload.placed_since
            elif not workload.cluster:
                waiting.append(workload.meta.uid)
        self._metrics.jobs_started(self._forecasts.take_results(waiting, began))
        return waiting

    async def _forecast(
        self, placements: list[PlacementInputs], now: datetime, wanted: set[str]
    ) -> _Found | None:
        """Return uid → when each of these jobs starts; None: nobody wants to know any more."""
        stop = self._stop = threading.Event()
        work = _Work(stop, self._busy, self._pause)
        steps = forecast(
            placements,
            list(self._cache.runs or ()),
            self._hub_queues(),
            now,
            wanted,
            spent=lambda: work.spent / SIMULATION_SECONDS,
        )
        try:
            found = await self._in_thread(lambda: work.do(steps))
        finally:
            stop.set()
            self.cost_seconds += work.spent
        if found and Unknown(TOO_SLOW) in found.values():
            level = self._logged.level("busy", "", logging.INFO)
            log.log(
                level, "it is unknown when the last jobs of a long queue start", seconds=SIMULATION_SECONDS
            )
        elif found:
            self._logged.ended("busy")
        return found

    def _hub_queues(self) -> HubQueues | None:
        """Return the hub's queues, where they are watched; None: they are not."""
        objects = self._cache.hub_queues()
        return worker_facts(*objects).known if objects else None


class _Work:
    """The work of a thread, in slices, until it is stopped."""

    def __init__(self, stop: threading.Event, busy: Callable[[], float], pause: float) -> None:
        self._stop, self._busy, self._pause = stop, busy, pause
        self.spent = 0.0
        """For so many seconds it has worked."""

    def do(self, steps: Generator[None, None, _Found]) -> _Found | None:
        """Return the result of these steps; None: it was stopped."""
        before, used = self._busy(), 0.0
        while not self._stop.is_set():
            try:
                next(steps)
            except StopIteration as end:
                found: _Found = end.value
                return found
            before, last = self._busy(), before
            self.spent += before - last
            used += before - last
            if used >= SLICE_SECONDS:
                used = 0.0
                self._stop.wait(self._pause)
        return None
