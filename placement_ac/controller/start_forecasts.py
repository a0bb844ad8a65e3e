"""
Says of each job that waits when it will start, and counts how often that held.

Apart from the dispatcher: at most once a minute, in slices of a few milliseconds, for so long at most in each
minute. A forecast is never written anywhere: it is kept in memory until its job has started.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog

from placement_ac.cache.store import Cache
from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.expected_start.forecast import forecast
from placement_ac.core.expected_start.model import ExpectedStart
from placement_ac.core.expected_start.outcomes import Forecasts
from placement_ac.core.expected_start.world import HubQueues, PlacementInputs
from placement_ac.core.inputs.queue_facts import worker_facts
from placement_ac.core.inputs.state import Key, Snapshot
from placement_ac.core.plan.targets import select_targets
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metrics import Metrics

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 60.0
"""How often it looks at the jobs that wait."""
SLICE_SECONDS: Final = 0.01
"""For so long at a time it keeps the event loop from others."""
PAUSE_SECONDS: Final = 0.04
BUSY_SECONDS: Final = 3.0
"""For so long at most in one look: then nothing is said of the jobs that came since the last one."""


class StartForecaster:
    """`snapshot` returns the inputs of a Placement, `busy` the seconds that this process has worked."""

    def __init__(
        self,
        cache: Cache,
        snapshot: Callable[[Key], Snapshot],
        metrics: Metrics,
        clock: Callable[[], datetime],
        *,
        busy: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cache, self._snapshot, self._metrics = cache, snapshot, metrics
        self._clock, self._busy = clock, busy
        self._forecasts = Forecasts()

    async def keep_looking(self, leads: Callable[[], bool]) -> None:
        """Look once a minute while this process leads. Whatever goes wrong, the controller goes on."""
        logged = LogDeduplicator()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if leads():
                    await self.look()
            except Exception as error:  # it is no reason to stop the dispatcher
                level = logged.level("look", error_place(error))
                log.log(level, "it cannot be said when jobs start", error=error_place(error))

    def reset(self) -> None:
        """Forget all forecasts, as after a restart."""
        self._forecasts = Forecasts()

    async def look(self) -> None:
        """Count the forecasts of jobs that have started, and give one to each job that has none."""
        if not self._cache.has_synced or self._cache.runs is None:
            return
        keys = (key for key in self._cache.keys() if key.kind == "placement")  # noqa: SIM118  # no mapping
        placements = [
            PlacementInputs(snapshot, select_targets(snapshot))
            for snapshot in map(self._snapshot, sorted(keys))
            if snapshot.policy.dispatcher and snapshot.checks.ours  # no check is left of some
        ]
        workloads = {one.meta.uid: one for of in placements for one in of.snapshot.workloads}
        waiting = self._count(workloads.values())
        new = {uid for uid in waiting if not self._forecasts.known(uid)}
        now = self._clock()
        if new and (found := await self._forecast(placements, now, new)):
            self._forecasts.give(found, now)

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
    ) -> Mapping[str, ExpectedStart] | None:
        """Return uid → when each of these jobs starts; None: it took too long."""
        work = forecast(placements, list(self._cache.runs or ()), self._hub_queues(), now, wanted)
        spent = 0.0
        while spent < BUSY_SECONDS:
            began = self._busy()
            while (used := self._busy() - began) < SLICE_SECONDS:
                try:
                    next(work)
                except StopIteration as end:
                    found: Mapping[str, ExpectedStart] = end.value
                    return found
            spent += used
            await asyncio.sleep(PAUSE_SECONDS)
        log.warning("too many jobs wait to say of each when it starts", seconds=BUSY_SECONDS)
        return None

    def _hub_queues(self) -> HubQueues | None:
        """Return the hub's queues, where they are watched; None: they are not."""
        objects = self._cache.hub_queues()
        return worker_facts(*objects).known if objects else None
