"""
Writes the capacity of the workers into two ConfigMaps, from the answers that others have asked for.

It asks no worker. Answers come from the dispatcher's questions and from those for scores; between them, this
hub's Workloads that came and left are counted. It writes at its own pace, and only if a step has changed
(`CapacityReport.steps`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from placement_ac.cache.capacity_report import ReportedCluster, WorkloadsOf
from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import (
    CAPACITY_KEY,
    CAPACITY_MANAGER,
    CAPACITY_NAME,
    CAPACITY_QUEUES_NAME,
    CONFIG_MAP,
    LABEL_MANAGED_BY,
    MANAGED_BY,
)
from placement_ac.core.api.errors import ApiError, NotLeading, error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import documents
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.core.capacity_report.policy import CapacityPolicy
from placement_ac.core.capacity_report.since import came_since, left_since
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.kube.client import Client
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

WRITE_SECONDS: Final = 30.0
"""The shortest time between two writes."""
AGE_SECONDS: Final = 600.0
"""It is written this often in any case: else its answers would count as old."""
LOOK_SECONDS: Final = 15.0
"""The shortest time between two looks at new answers: as often as a worker is asked at most."""
GATHER_SECONDS: Final = 1.0
"""How long an answer waits for those of other workers."""


TakeFacts = Callable[[WorkerFacts], None]
"""Takes in the answer to a question."""
_Workloads = dict[str, Workload]
"""Workloads by uid."""


@dataclass(slots=True)
class _Answer:
    """An answer of a worker: when it was asked, and the Workloads that the answer counts."""

    at: float
    facts: WorkerFacts
    counted: _Workloads
    """This hub's Workloads that had quota there when it was asked."""
    left: _Workloads = field(default_factory=dict)
    """Those of them that have left, in that order."""


@dataclass(frozen=True, slots=True)
class _Hub:
    """The clusters and the Workloads of this hub at one time."""

    clusters: dict[str, ReportedCluster]
    workloads: Mapping[str, WorkloadsOf]
    """By MultiKueueCluster."""
    cluster_of: Mapping[str, str]
    """MultiKueueCluster → its cluster."""

    def there(self, workers: Iterable[str]) -> tuple[_Workloads, _Workloads]:
        """Return all Workloads that run on these MultiKueueClusters, and those that wait there."""
        there = [self.workloads[worker] for worker in workers if worker in self.workloads]
        running = {uid: workload for one in there for uid, workload in one.running.items()}
        waiting = {uid: workload for one in there for uid, workload in one.waiting.items()}
        return running, waiting


class CapacityReporter:
    """Reports the capacity of the clusters. `clock` and `monotonic` as in `Reconciler`.

    `in_thread(work, *arguments)` does the sums.
    """

    def __init__(
        self,
        cache: Cache,
        client: Client,
        policy: CapacityPolicy,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread,
    ) -> None:
        self._cache = cache
        self._client = client
        self._policy = policy
        self._clock = clock
        self._monotonic = monotonic
        self._in_thread = in_thread
        self._answers: dict[str, _Answer] = {}
        """Cluster with a leading "/", or MultiKueueCluster of an unknown one, → its last answer."""
        self._known: _Hub | None = None
        self._news = asyncio.Event()
        self._written: CapacityReport | None = None
        self._written_at = 0.0
        self._term = 0
        """Grows with each reset: what was begun before does not count."""
        self._logged = LogDeduplicator()
        self.report: CapacityReport | None = None
        """The last report; None: there is none."""

    def ask_worker(self, worker: str, asked_at: float) -> TakeFacts:
        """Take in that a MultiKueueCluster's worker is asked now; return what takes its answer.

        It is an answer of the cluster, also when that MultiKueueCluster is gone and others of it are not.
        """
        hub = self._hub()
        cluster = hub.cluster_of.get(worker)
        return self._ask(f"/{cluster}" if cluster else worker, hub, cluster, asked_at)

    def ask_cluster(self, cluster: str, asked_at: float) -> TakeFacts:
        """Take in that a cluster's worker is read for its scores now; return what takes its queues."""
        return self._ask(f"/{cluster}", self._hub(), cluster, asked_at)

    def _ask(self, key: str, hub: _Hub, cluster: str | None, asked_at: float) -> TakeFacts:
        known = hub.clusters.get(cluster or "")
        running, waiting = hub.there(known.workers if known else (key,))
        then = WorkloadsThere(frozenset(running), frozenset(waiting))

        term = self._term

        def take(facts: WorkerFacts) -> None:
            last = self._answers.get(key)
            if term != self._term or (last and last.at > asked_at):
                return
            self._answers[key] = _Answer(asked_at, replace(facts, then=then), running)
            self._news.set()

        return take

    def _hub(self) -> _Hub:
        """Return the hub as it is, read once for all questions of one turn of the event loop."""
        if self._known is None:
            clusters = self._cache.capacity.clusters()
            cluster_of = {worker: name for name, one in clusters.items() for worker in one.workers}
            self._known = _Hub(clusters, self._cache.capacity.workloads(), cluster_of)
            asyncio.get_running_loop().call_soon(self._forget_hub)
        return self._known

    def _forget_hub(self) -> None:
        self._known = None

    def reset(self) -> None:
        """Forget everything, as after a restart."""
        self._answers.clear()
        self._news.clear()
        self._written = self.report = None
        self._term += 1

    async def run(self, leads: Callable[[], bool]) -> None:
        """Report for ever, as long as this process `leads`. Whatever goes wrong, the controller goes on."""
        while True:
            await self._wait_for_news()
            pause = LOOK_SECONDS
            try:
                if leads() and self._answers and self._cache.has_synced and await self._look(leads):
                    pause = WRITE_SECONDS
            except Exception as error:  # it is no reason to stop the dispatcher
                level = self._logged.level("look", error_place(error))
                log.log(level, "cannot report the capacity of the workers", error=error_place(error))
            await asyncio.sleep(pause)

    async def _look(self, leads: Callable[[], bool]) -> bool:
        """Report; return whether that was to be written."""
        self._news.clear()
        term = self._term
        report = await self._report()
        if term != self._term:
            return False
        self.report = report
        if not leads() or not await self._is_due(report):
            return False
        await self._write(report)
        return True

    async def _is_due(self, report: CapacityReport) -> bool:
        """Whether to write: after a step, and now and then in any case, as somebody may have deleted it."""
        written = self._written
        if written is None or self._monotonic() - self._written_at >= AGE_SECONDS:
            return True
        differs: bool = await self._in_thread(lambda: written.steps != report.steps)
        return differs

    async def _wait_for_news(self) -> None:
        """Wait for an answer; without one, jobs may have come or left after WRITE_SECONDS."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)

    async def _write(self, report: CapacityReport) -> None:
        """Write both ConfigMaps; an error is logged once, and the next look tries again."""
        names, term = (CAPACITY_NAME, CAPACITY_QUEUES_NAME), self._term
        try:
            for name, text in zip(names, await self._in_thread(documents, report), strict=True):
                await self._apply(name, text)
        except NotLeading:
            return
        except ApiError as error:
            level = self._logged.level("write", error.message)
            log.log(level, "cannot publish the capacity of the workers", error=error.message)
            return
        if self._logged.ended("write"):
            log.info("the capacity of the workers is published again")
        if term == self._term:
            self._written, self._written_at = report, self._monotonic()

    async def _apply(self, name: str, text: str) -> None:
        metadata = {
            "name": name,
            "namespace": self._policy.namespace,
            "labels": {LABEL_MANAGED_BY: MANAGED_BY},
        }
        body = {"metadata": metadata, "data": {CAPACITY_KEY: text}}
        await self._client.apply(CONFIG_MAP.at("v1"), body, manager=CAPACITY_MANAGER)

    async def _report(self) -> CapacityReport:
        """Return the capacity of now; others have their turn between two clusters, and while it is summed."""
        hub, counted_at = self._hub(), self._clock()
        clusters = dict(hub.clusters)
        for key in self._answers:
            if key.startswith("/") and self._cache.scores.is_wanted(key[1:]):
                clusters.setdefault(key[1:], ReportedCluster())
        known = {f"/{name}" for name in clusters}.union(*(one.workers for one in clusters.values()))
        self._answers = {key: answer for key, answer in self._answers.items() if key in known}
        states = []
        for name, cluster in clusters.items():
            states.append(self._state(name, cluster, hub))
            await asyncio.sleep(0)
        report: CapacityReport = await self._in_thread(capacity_report, states, self._policy.gpus)
        return replace(report, counted_at=counted_at) if self._policy.reads_jobs else report

    def _state(self, name: str, cluster: ReportedCluster, hub: _Hub) -> WorkerState:
        running, waiting = hub.there(cluster.workers)
        state = WorkerState(
            name,
            tuple(sorted(cluster.placements)),
            waiting=tuple(waiting.values()) if self._policy.reads_jobs else None,
        )
        answer = self._last_answer((*cluster.workers, f"/{name}"))
        if answer is None:
            return replace(state, problem=cluster.not_asked)
        if answer.facts.problem:
            return replace(state, problem=_text(answer.facts.problem))
        read_at = self._clock() - timedelta(seconds=self._monotonic() - answer.at)
        came = {
            workload.meta.uid: workload
            for workload in came_since(answer.facts, answer.counted, running.values(), read_at)
        }
        # The others were recorded a moment after the answer, which counts them until they leave.
        answer.counted = counted = answer.counted | {
            uid: workload for uid, workload in running.items() if uid not in came
        }
        answer.left |= {uid: workload for uid, workload in counted.items() if uid not in running}
        left = (workload for uid, workload in answer.left.items() if uid not in running)
        return replace(
            state,
            queues=answer.facts.queues,
            read_at=read_at,
            came=tuple(came.values()),
            left=tuple(left_since(answer.facts, counted, left)),
        )

    def _last_answer(self, keys: Iterable[str]) -> _Answer | None:
        found = (self._answers[key] for key in keys if key in self._answers)
        return max(found, key=lambda answer: answer.at, default=None)


def _text(problem: str) -> str:
    """Return a problem without the name of the MultiKueueCluster."""
    return getattr(problem, "why", problem)
