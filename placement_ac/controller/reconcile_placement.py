"""Reconciles one Placement, or a check without one: inputs → plan → diff → writes → events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from placement_ac.cache.store import Cache
from placement_ac.controller.error_log import ErrorLog
from placement_ac.controller.key_memory import KeyMemories
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.worker_queries import WorkerQueries
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
    first_phases,
    last_phases,
    repairs,
)
from placement_ac.core.plan.event_intents import postable_events
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from placement_ac.observability.metrics import Metrics, ReconcileRun


@dataclass(slots=True)
class WriteResult:
    """What has been written of a plan."""

    anything: bool = False
    listed: bool = False
    """Whether the MultiKueueConfig was."""
    answered: set[str] = field(default_factory=set)
    """The uids of Workloads that were sent back."""

    def add(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.anything = True
            self.listed |= action.kind is MULTIKUEUE_CONFIG
            if isinstance(action, SetCheckStates) and any(
                entry["state"] == RETRY for entry in action.entries
            ):
                self.answered.add(action.workload.meta.uid)


class PlacementReconciler:
    """Makes the hub what the plan of a Placement wants. `clock` gives the time of day (UTC)."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        memories: KeyMemories,
        worker_queries: WorkerQueries,
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
        """Bring the objects, conditions and Workloads of a Placement in order. Raises Retry."""
        seen = self._inputs(key)
        wanted = plan(seen)
        self._remember(key, seen, wanted)
        self._worker_queries.ask(key, seen, wanted)
        done = WriteResult()
        trouble = await self._act(first_phases(seen, wanted), done)
        rest = repairs(seen, wanted) if trouble else last_phases(seen, wanted)
        late = await self._act(rest, done)
        trouble = trouble or late
        self._metrics.record_stats(key, placement_stats(seen, wanted))
        self._post(seen, wanted, done, succeeded=trouble is None or isinstance(trouble, WorkloadTrouble))
        if trouble:
            await self._report(key, seen, wanted, trouble)
            raise Retry(trouble.retry_after) from trouble
        self._errors.succeeded(key)
        if done.anything:
            run.applied()
        if wanted.recheck_after is not None:
            self._add_after(key, wanted.recheck_after)

    def _inputs(self, key: Key) -> Snapshot:
        memory, now = self._memories.of(key), self._memories.now()
        return self._cache.snapshot(
            key, self._clock(), memory.timer_ages(now), memory.worker_copies(now), memory.probe_results(now)
        )

    def _remember(self, key: Key, seen: Snapshot, wanted: Plan) -> None:
        self._memories.of(key).keep_answers(
            seen.objects.config.listed if seen.objects.config else (), seen.credentials.selected
        )
        self._memories.keep(key, wanted.timers)

    async def _act(self, phases: Iterable[Phase], done: WriteResult) -> ApiError | None:
        """Do it all, or return what kept it from being done."""
        actions: list[Action] = []
        try:
            await self._writer.execute(phases, actions)
        except ApiError as error:
            return error
        finally:
            done.add(actions)
        return None

    def _post(self, seen: Snapshot, wanted: Plan, done: WriteResult, *, succeeded: bool) -> None:
        notices = (*wanted.events, *(wanted.list_events() if done.listed else ()))
        self._recorder.post(
            postable_events(notices, listed=done.listed, answered=done.answered, succeeded=succeeded),
            seen.checks.ours,
        )

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
