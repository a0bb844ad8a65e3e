"""
Reconciles a key: a Placement, a check that names none, what is made for a cluster, or its scores.

Inputs → plan → diff → writes → events. Errors become retries here. An error is logged once while it stays the
same, and once more when it is over.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog
from cachetools import LRUCache

from placement_ac.cache.store import Cache
from placement_ac.controller.background_queries import (
    AskWorker,
    BackgroundQueries,
    ProbeCluster,
    ReadCopies,
    ReadQueues,
)
from placement_ac.controller.fair_slots import POSTPONED_SECONDS, Flow
from placement_ac.controller.key_state import KeyStates, with_ages
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.score_reporter import ScoreReporter
from placement_ac.controller.source_queries import Ask, SourceQueries
from placement_ac.controller.workload_writes import HANGS
from placement_ac.controller.writer import WriteContext, Writer
from placement_ac.core.api.constants import APPLY_FAILED, MULTIKUEUE_CONFIG, READY, RETRY
from placement_ac.core.api.errors import (
    ApiError,
    Conflict,
    HeldBack,
    NotFound,
    NotLeading,
    Postponed,
    Refused,
    WorkloadWritesFailed,
    error_place,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.state import Key, KueueObjects, Plan, Snapshot
from placement_ac.core.inputs.unknown_copies import UnknownCopies
from placement_ac.core.plan import diff
from placement_ac.core.plan.conditions import refuse
from placement_ac.core.plan.event_intents import (
    deleted_events,
    dispatch_events,
    postable_events,
    reverted_events,
    undone_event,
)
from placement_ac.core.plan.list_writes import list_writes
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from placement_ac.core.worker_setup.planning import plan_worker_setup
from placement_ac.kube.workqueue import Requeue
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metrics import Metrics, ReconcileRun

log = structlog.get_logger(__name__)

DELETED_REMEMBERED: Final = 1_000
"""So many of the objects that it has deleted are known by their uids: no event blames others for those."""
ASIDE_AGAIN_SECONDS: Final = 30.0
"""The wait after a write that concerns no check has failed."""


@dataclass(slots=True)
class WriteResult:
    """The actions of a plan that were carried out."""

    done: list[diff.Action] = field(default_factory=list)
    error: ApiError | None = None
    undone: HeldBack | None = None
    """A write that is held back because somebody undoes it."""
    postponed: Postponed | None = None
    """A write that hangs, or that waits for others that do."""

    @property
    def wrote_config(self) -> bool:
        return any(action.kind is MULTIKUEUE_CONFIG for action in self.done)

    @property
    def sent_back(self) -> set[str]:
        """The uids of Workloads whose check was set to Retry."""
        return {workload.meta.uid for workload in self._set_to(RETRY)}

    @property
    def made_ready(self) -> set[str]:
        """The uids of Workloads that no cluster has yet, and whose check became Ready."""
        return {w.meta.uid for w in self._set_to(READY) if not w.cluster and not w.nominated}

    def _set_to(self, state: str) -> list[Workload]:
        answers = (action for action in self.done if isinstance(action, diff.SetCheckStates))
        return [
            answer.workload for answer in answers if any(entry["state"] == state for entry in answer.entries)
        ]


class Reconciler:
    """Carries out the plan of each key.

    `clock` returns the time of day (UTC) for conditions, `monotonic` seconds of a monotonic clock.
    `add_after(key, seconds)` requeues a key; `read_copies` reads a cluster's copies, `read_queues` its queues
    (None: nobody asks for them), which `ask_worker` gets as well; `probe` probes a cluster (None: no cluster
    is probed), `read_identity` reads what tells a worker from others, `count_unknown_copies` counts copies
    there that the hub does not have (None: nobody asks), `scores` reports those of clusters.
    """

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        recorder: Recorder,
        *,
        read_copies: ReadCopies,
        read_queues: ReadQueues | None = None,
        ask_worker: AskWorker | None = None,
        probe: ProbeCluster | None = None,
        read_identity: Ask[WorkerIdentity] | None = None,
        count_unknown_copies: Ask[UnknownCopies] | None = None,
        scores: ScoreReporter | None = None,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        add_after: Callable[[Key, float], None],
        metrics: Metrics | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._add_after = add_after
        self._metrics = metrics or Metrics()
        self._states = KeyStates(monotonic)
        self._queries = BackgroundQueries(
            self._states, read_copies, read_queues, probe, add_after, ask_worker
        )
        self._identities = SourceQueries(read_identity, clock, add_after)
        self._unknown_copies = SourceQueries(count_unknown_copies, clock, add_after)
        self._scores = scores
        self._on_close = on_close
        self._logged = LogDeduplicator()
        self._seen: dict[Key, KueueObjects] = {}
        """The generated objects that the last plan of a Placement saw."""
        self._deleted: LRUCache[str, bool] = LRUCache(DELETED_REMEMBERED)
        """The uids of objects that this process has deleted, or tried to."""

    async def reconcile(self, key: Key) -> bool:
        """Reconcile one key; nothing happens until the cache is complete. Raises Requeue.

        Returns False if there is no verdict on its checks yet: workers are asked before their clusters are
        listed.
        """
        if not self._cache.has_synced:
            return False
        with self._metrics.measure_reconcile(key, key.kind) as run:
            if key.kind == "cluster":
                await self._reconcile_cluster(key, run)
            elif key.kind == "score":
                await self._reconcile_scores(key, run)
            else:
                return await self._reconcile_placement(key, run)
            return True

    def reset(self) -> None:
        """Forget everything, as after a restart, and cancel the queries and the writes that hang."""
        self._queries.cancel()
        self._identities.cancel()
        self._unknown_copies.cancel()
        if self._scores:
            self._scores.cancel()
        self._writer.workload_writes.cancel()
        self._states.clear()
        self._seen.clear()
        self._deleted.clear()

    async def close(self) -> None:
        """Stop posting events and querying workers."""
        await self._recorder.close()
        tasks = [*self._queries.cancel(), *self._identities.cancel(), *self._unknown_copies.cancel()]
        tasks += self._writer.workload_writes.cancel()
        tasks += self._scores.cancel() if self._scores else []
        self._states.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._on_close()

    # -- a Placement, or a check without one

    def _snapshot(self, key: Key) -> Snapshot:
        """Return all that a Placement, or a check without one, depends on now."""
        state, now = self._states.of(key), self._states.now()
        return self._cache.snapshot(
            key,
            self._clock(),
            state.ages(now),
            with_ages(state.copies, now),
            with_ages(state.probes, now),
            with_ages(state.queues, now),
            self._identities.answers,
            self._unknown_copies.answers,
        )

    async def _reconcile_placement(self, key: Key, run: ReconcileRun) -> bool:
        """Return whether there is a verdict on its checks."""
        state, now = self._states.of(key), self._states.now()
        snapshot = self._snapshot(key)
        wanted = plan(snapshot)
        for cluster in self._cache.set_provisioned(snapshot.name, wanted.to_provision):
            self._add_after(cluster, 0.0)
        for seconds in state.take_placed(snapshot, now):
            self._metrics.workload_placed(seconds)
        config = snapshot.objects.config
        state.forget_stale_results(config.listed if config else (), snapshot.credentials.selected)
        self._states.keep(key, wanted.lasting)
        self._queries.start(key, snapshot, wanted)
        self._identities.start(key, wanted.ask_for_identity)
        self._unknown_copies.start(key, wanted.ask_for_unknown_copies)
        result = WriteResult()
        context = self._context(key, snapshot, wanted)
        through_config = diff.phases_through_config(snapshot, wanted)
        if self._writer.workload_writes.hang(key) and diff.unlists(snapshot, through_config):
            # A write that hangs was decided while the cluster was listed: it could bring a job there.
            through_config, result.postponed = (), HANGS
        await self._write(through_config, result, context)
        is_blocked = bool(result.error or result.undone or result.postponed)
        after_config = diff.repairs if is_blocked else diff.phases_after_config
        await self._write(after_config(snapshot, wanted), result, context, pass_over_undone=True)
        writes_capacity = not is_blocked and await self._write_capacities(
            key, diff.capacities(wanted), context
        )
        self._states.made_ready(key, result.made_ready)
        self._measure(key, snapshot, wanted, result)
        self._post(snapshot, wanted, result)
        self._post_deleted(key, snapshot, result)
        if result.error:
            await self._report(key, wanted, result.error)
            raise Requeue(result.error.retry_after) from result.error
        if result.undone:
            self._recorder.post([undone_event(result.undone.message)], snapshot.checks.ours)
            waits = (result.undone.retry_after, None if is_blocked else wanted.requeue_after)
            self._add_after(key, min(wait for wait in waits if wait is not None))
            return False
        if result.postponed:
            self._add_after(key, POSTPONED_SECONDS)
            if is_blocked:
                return False
        wrote = bool(result.done) or writes_capacity
        self._finish(key, run, wrote=wrote, requeue_after=wanted.requeue_after)
        return bool(wanted.verdicts) or not snapshot.checks.ours

    def _context(self, key: Key, snapshot: Snapshot, wanted: Plan) -> WriteContext:
        placement = snapshot.decisions.placement

        def late_end(action: diff.Action, error: BaseException | None) -> None:
            if error is None:
                result = WriteResult([action])
                self._states.made_ready(key, result.made_ready)
                self._post(snapshot, wanted, result, is_late=True)
            elif isinstance(error, ApiError):
                self._log_failure(key, error)
            else:
                log.error("a write that hung failed unexpectedly", key=key.name, error=error_place(error))
            self._add_after(key, POSTPONED_SECONDS if error else 0.0)

        return WriteContext(Flow(key, placement.namespace if placement else ""), late_end)

    async def _write_capacities(self, key: Key, phases: Iterable[diff.Phase], context: WriteContext) -> bool:
        """Write what concerns no check, even if it fails; return whether something was written."""
        done: list[diff.Action] = []
        try:
            await self._writer.execute(phases, done, context=context)
        except ApiError as error:
            level = self._logged.level((key, "capacity"), error.message)
            log.log(level, "a write that concerns no check failed", key=key.name, error=error.message)
            self._add_after(key, error.retry_after or ASIDE_AGAIN_SECONDS)
        else:
            self._logged.ended((key, "capacity"))
        return bool(done)

    async def _write(
        self,
        phases: Iterable[diff.Phase],
        result: WriteResult,
        context: WriteContext,
        *,
        pass_over_undone: bool = False,
    ) -> None:
        """Add the actions that were carried out to `result`, and the first error."""
        phases = tuple(phases)
        own = (action.uid for phase in phases for action in phase if isinstance(action, diff.Delete))
        self._deleted.update(dict.fromkeys(own, True))
        try:
            await self._writer.execute(
                phases, result.done, pass_over_undone=pass_over_undone, context=context
            )
        except HeldBack as undone:
            result.undone = result.undone or undone
        except Postponed as postponed:
            result.postponed = result.postponed or postponed
        except ApiError as error:
            result.error = result.error or error

    def _measure(self, key: Key, snapshot: Snapshot, wanted: Plan, result: WriteResult) -> None:
        self._metrics.record_stats(key, placement_stats(snapshot, wanted))
        for requests in list_writes(snapshot, result.done):
            self._metrics.list_written(key, requests)

    def _post(self, snapshot: Snapshot, wanted: Plan, result: WriteResult, *, is_late: bool = False) -> None:
        """Post the events of what was done; of a late write, none about the state of then."""
        intents = (*wanted.events, *(wanted.config_events() if result.wrote_config else ()))
        events = postable_events(
            intents,
            listed=result.wrote_config,
            answered=result.sent_back,
            succeeded=not is_late
            and (result.error is None or isinstance(result.error, WorkloadWritesFailed)),
        )
        reverted, dispatched = reverted_events(snapshot, result.done), dispatch_events(wanted, result.done)
        self._recorder.post((*events, *reverted, *dispatched), snapshot.checks.ours)

    def _post_deleted(self, key: Key, snapshot: Snapshot, result: WriteResult) -> None:
        """Post the events about objects that others have deleted, once they are made again."""
        if before := self._seen.get(key):
            events = deleted_events(snapshot, before, result.done, self._deleted)
            self._recorder.post(events, snapshot.checks.ours)
        if result.error or result.undone:
            return  # what could not be made again is reported then
        self._seen.pop(key, None)
        if snapshot.objects.config or snapshot.objects.clusters:
            self._seen[key] = snapshot.objects

    async def _report(self, key: Key, wanted: Plan, error: ApiError) -> None:
        """Report a failure in the log and, if the API server refused a write, in the condition."""
        self._log_failure(key, error)
        if not isinstance(error, Refused):
            return
        verdicts = dict.fromkeys(wanted.verdicts, refuse(APPLY_FAILED, error.message))
        now = self._snapshot(key)  # a condition may have been written before the write that was refused
        try:
            await self._writer.execute((diff.conditions(now, verdicts),))
        except ApiError as failure:
            level = self._logged.level((key, "condition"), failure.message)
            log.log(level, "the condition could not be set", key=key.name, error=failure.message)

    # -- the credentials of a cluster, and the set-up of its worker

    async def _reconcile_cluster(self, key: Key, run: ReconcileRun) -> None:
        """Carry out both plans: a write that fails for one delays nothing of the other. Raises Requeue."""
        ages = self._states.of(key).ages(self._states.now())
        credentials = plan_provisioning(self._cache.provisioning_inputs(key.name, self._clock(), ages))
        setup = plan_worker_setup(self._cache.setup_inputs(key.name, self._clock(), ages))
        self._states.keep(key, credentials.lasting | setup.lasting)
        context = WriteContext(Flow(key, key.name))
        errors = [
            await self._write_for_cluster(
                key, credentials.phases, context, self._cache.set_provisioning_error
            ),
            await self._write_for_cluster(key, setup.phases, context, self._cache.set_setup_error),
        ]
        if not errors[0]:
            errors.append(await self._write_for_cluster(key, credentials.orphan_phases, context))
        if error := next(filter(None, errors), None):
            raise Requeue(error.retry_after) from error
        wrote = bool(credentials.phases or credentials.orphan_phases or setup.phases)
        waits = (credentials.requeue_after, setup.requeue_after)
        soonest = min((wait for wait in waits if wait is not None), default=None)
        self._finish(key, run, wrote=wrote, requeue_after=soonest)

    async def _write_for_cluster(
        self,
        key: Key,
        phases: Iterable[diff.Phase],
        context: WriteContext,
        set_error: Callable[[str, str], set[Key]] | None = None,
    ) -> ApiError | None:
        """Return the error of these writes; the Placements that wait for them report it."""
        found: ApiError | None = None
        try:
            await self._writer.execute(phases, context=context)
        except ApiError as error:
            self._log_failure(key, error)
            found = error
        if set_error and not isinstance(found, Conflict | NotLeading | Postponed):
            for placement in set_error(key.name, found.message if found else ""):
                self._add_after(placement, 0.0)
        return found

    async def _reconcile_scores(self, key: Key, run: ReconcileRun) -> None:
        """Report the scores of a cluster. Raises Requeue."""
        try:
            wrote = bool(self._scores and await self._scores.reconcile(key))
        except ApiError as error:
            self._log_failure(key, error)
            raise Requeue(error.retry_after) from error
        self._finish(key, run, wrote=wrote, requeue_after=None)

    # -- how it ended

    def _finish(self, key: Key, run: ReconcileRun, *, wrote: bool, requeue_after: float | None) -> None:
        """Take in that everything has been written."""
        self._logged.ended((key, "condition"))
        if self._logged.ended(key):
            log.info("the write has succeeded", key=key.name)
        if wrote:
            run.applied()
        if requeue_after is not None:
            self._add_after(key, requeue_after)

    def _log_failure(self, key: Key, error: ApiError) -> None:
        if isinstance(error, NotLeading):
            log.debug("not written; another replica leads", key=key.name)
        elif isinstance(error, WorkloadWritesFailed):
            log.debug("a Workload could not be written; trying again", key=key.name, error=error.message)
        elif isinstance(error, Conflict | NotFound):
            log.debug("an object has changed meanwhile; trying again", key=key.name, error=error.message)
        elif isinstance(error, Refused):
            level = self._logged.level(key, error.message)
            log.log(level, "the API server refused a write", key=key.name, error=error.message)
        elif error.status:
            level = self._logged.level(key, error.message)
            log.log(level, "the API server failed; trying again", key=key.name, error=error.message)
        else:  # the informers log that once for all keys
            log.debug("the API server does not answer; trying again", key=key.name, error=error.message)
