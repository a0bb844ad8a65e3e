"""
Reads the workers that scores are reported of, each in a task of its own, and writes their scores.

A worker that cannot be read is not scored: what was reported expires.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from placement_ac.cache.store import Cache
from placement_ac.controller.fair_slots import Flow
from placement_ac.controller.writer import WriteContext, Writer
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.score_reports import ScoreInputs, ScorePolicy, WorkerReading
from placement_ac.core.inputs.state import Key
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.score_reports.history import ScoreHistory
from placement_ac.core.score_reports.planning import ScorePlan, is_taken, plan_scores
from placement_ac.core.score_reports.values import score_values
from placement_ac.core.selection.selection import soonest
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

ReadWorker = Callable[[str, CredentialSource], Awaitable[WorkerReading]]
"""Reads the worker of a cluster with these credentials; raises nothing."""


AskCluster = Callable[[str, float], Callable[[WorkerFacts], None]]
"""Called with a cluster, and when its worker is read; returns the callback for its queues."""


class ScoreReporter:
    """Reports the scores of clusters. `add_after(key, seconds)` requeues a key; times as in `Reconciler`.

    `ask_cluster` also gets what is read of the queues (None: nobody does).
    """

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        policy: ScorePolicy,
        read: ReadWorker,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        add_after: Callable[[Key, float], None],
        ask_cluster: AskCluster | None = None,
    ) -> None:
        self._ask_cluster = ask_cluster
        self._cache = cache
        self._writer = writer
        self._policy = policy
        self._read = read
        self._clock = clock
        self._monotonic = monotonic
        self._add_after = add_after
        self._history = ScoreHistory(policy.hold)
        self._asked: dict[str, float] = {}
        """Cluster → when its worker was asked last."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        """Held while a value changes: which value one cluster may get depends on those of the others."""
        self._logged = LogDeduplicator()

    async def reconcile(self, key: Key) -> bool:
        """Read the worker of a cluster if it is due, and write its scores. Return whether it wrote."""
        cluster, inputs = key.name, self._inputs(key)
        if inputs.credentials is None:
            self._forget(cluster)
            if inputs.owners:  # it may get some
                self._add_after(key, self._policy.reading)
            return False
        now = self._monotonic()
        left = self._asked.get(cluster, now - self._policy.reading) + self._policy.reading - now
        if left <= 0 and cluster not in self._tasks:
            self._start(key, inputs.credentials, now)
        read_at = self._history.last_at(cluster)
        if read_at is not None and now - read_at > self._policy.valid:  # its next reading waits for too long
            self._history.forget(cluster)
        plan = self._plan(inputs)
        if plan.changes:
            async with self._changing:
                plan = self._plan(self._inputs(key))
                await self._write(key, plan)
        else:
            await self._write(key, plan)
        self._add_after(key, soonest((plan.requeue_after, left if left > 0 else self._policy.reading)) or 0.0)
        return bool(plan.phases)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Forget everything, as after a restart; cancel and return the running queries."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        self._tasks.clear()
        self._asked.clear()
        self._history.clear()
        return tasks

    def _inputs(self, key: Key) -> ScoreInputs:
        return self._cache.scores.inputs(key.name, self._clock())

    def _plan(self, inputs: ScoreInputs) -> ScorePlan:
        cluster = inputs.cluster
        if is_taken(inputs.observed):
            level = self._logged.level((cluster, "taken"), "")
            log.log(level, "an AddOnPlacementScore of our name is somebody else's", cluster=cluster)
        elif self._logged.ended((cluster, "taken")):
            log.info("the AddOnPlacementScore is no longer somebody else's", cluster=cluster)
        return plan_scores(
            inputs, self._history, lambda: self._cache.scores.score_choices(cluster, inputs.now)
        )

    async def _write(self, key: Key, plan: ScorePlan) -> None:
        await self._writer.execute(plan.phases, context=WriteContext(Flow(key, key.name)))

    def _forget(self, cluster: str) -> None:
        self._history.forget(cluster)
        self._asked.pop(cluster, None)

    def _start(self, key: Key, source: CredentialSource, now: float) -> None:
        self._asked[key.name] = now
        task = self._tasks[key.name] = asyncio.get_running_loop().create_task(self._query(key, source, now))

        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.get(key.name) is task:
                del self._tasks[key.name]

        task.add_done_callback(ended)

    async def _query(self, key: Key, source: CredentialSource, began: float) -> None:
        cluster = key.name
        take = self._ask_cluster(cluster, began) if self._ask_cluster else None
        reading = await self._read(cluster, source)
        self._log_problem(cluster, "queues", reading.facts.problem)
        self._log_problem(cluster, "nodes", reading.node_problem)
        if take:
            take(reading.facts)
        if reading.facts.problem:
            self._history.forget(cluster)
        else:
            self._history.add(cluster, began, score_values(self._inputs(key), reading))
        self._add_after(key, 0.0)

    def _log_problem(self, cluster: str, what: str, problem: str) -> None:
        if problem:
            level = self._logged.level((cluster, what), problem)
            log.log(level, "cannot read a worker for its scores", cluster=cluster, what=what, error=problem)
        elif self._logged.ended((cluster, what)):
            log.info("a worker can be read for its scores again", cluster=cluster, what=what)
