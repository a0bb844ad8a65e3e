"""Reconciles one Placement, or a check without one: inputs → plan → diff → writes → events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from placement_ac.cache.store import Cache
from placement_ac.controller.background_queries import BackgroundQueries
from placement_ac.controller.error_log import ErrorLog
from placement_ac.controller.key_memory import KeyMemories
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.workqueue import Retry
from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import APPLY_FAILED, MULTIKUEUE_CONFIG, RETRY
from placement_ac.core.api.errors import ApiError, Refused, WorkloadTrouble
from placement_ac.core.inputs.state import Key, Plan, Snapshot
from placement_ac.core.plan.conditions import refuse
from placement_ac.core.plan.diff import (
    Action,
    Phase,
    SetCheckStates,
    conditions,
    phases_after_config,
    phases_through_config,
    repairs,
)
from placement_ac.core.plan.event_intents import postable_events
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from placement_ac.observability.metrics import Metrics, ReconcileRun


@dataclass(slots=True)
class WriteResult:
    """The actions of a plan that were carried out."""

    done: list[Action] = field(default_factory=list)
    error: ApiError | None = None

    @property
    def wrote_config(self) -> bool:
        return any(action.kind is MULTIKUEUE_CONFIG for action in self.done)

    @property
    def retried(self) -> set[str]:
        """The uids of Workloads whose check was set to Retry."""
        return {
            action.workload.meta.uid
            for action in self.done
            if isinstance(action, SetCheckStates) and any(entry["state"] == RETRY for entry in action.entries)
        }


class PlacementReconciler:
    """Carries out the plan of a Placement. `clock` returns the time of day (UTC)."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        memories: KeyMemories,
        worker_queries: BackgroundQueries,
        errors: ErrorLog,
        *,
        clock: Callable[[], datetime],
        add_after: Callable[[Key, float], None],
        metrics: Metrics,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._recorder = recorder
        self._memories = memories
        self._worker_queries = worker_queries
        self._errors = errors
        self._clock = clock
        self._add_after = add_after
        self._metrics = metrics

    async def reconcile(self, key: Key, run: ReconcileRun) -> None:
        """Reconcile the objects, conditions and Workloads of a Placement. Raises Retry."""
        memory, now = self._memories.of(key), self._memories.now()
        seen = self._cache.snapshot(
            key, self._clock(), memory.timer_ages(now), memory.worker_copies(now), memory.probe_results(now)
        )
        wanted = plan(seen)
        config = seen.objects.config
        memory.keep_answers(config.listed if config else (), seen.credentials.selected)
        self._memories.keep(key, wanted.timers)
        self._worker_queries.start(key, seen, wanted)
        result = WriteResult()
        await self._write(phases_through_config(seen, wanted), result)
        await self._write(
            repairs(seen, wanted) if result.error else phases_after_config(seen, wanted), result
        )
        self._metrics.record_stats(key, placement_stats(seen, wanted))
        self._post(seen, wanted, result)
        if result.error:
            await self._report(key, seen, wanted, result.error)
            raise Retry(result.error.retry_after) from result.error
        self._errors.succeeded(key)
        if result.done:
            run.applied()
        if wanted.recheck_after is not None:
            self._add_after(key, wanted.recheck_after)

    async def _write(self, phases: Iterable[Phase], result: WriteResult) -> None:
        """Add the actions that were carried out to `result`, and the first error."""
        try:
            await self._writer.execute(phases, result.done)
        except ApiError as error:
            result.error = result.error or error

    def _post(self, seen: Snapshot, wanted: Plan, result: WriteResult) -> None:
        intents = (*wanted.events, *(wanted.list_events() if result.wrote_config else ()))
        events = postable_events(
            intents,
            listed=result.wrote_config,
            answered=result.retried,
            succeeded=result.error is None or isinstance(result.error, WorkloadTrouble),
        )
        self._recorder.post(events, seen.checks.ours)

    async def _report(self, key: Key, seen: Snapshot, wanted: Plan, error: ApiError) -> None:
        """Report a failure in the log and, if the API server refused a write, in the condition."""
        self._errors.failed(key, error)
        if not isinstance(error, Refused):
            return
        verdicts = dict.fromkeys(wanted.verdicts, refuse(APPLY_FAILED, error.message))
        try:
            await self._writer.execute((conditions(seen, verdicts),))
        except ApiError as failure:
            self._errors.condition_failed(key, failure)
