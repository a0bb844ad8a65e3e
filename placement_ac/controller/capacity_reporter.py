"""
Writes the capacity of the workers into two ConfigMaps, from the answers that others have asked for.

It asks no worker. Answers come from the dispatcher's questions and from those for scores; between them, this
hub's Workloads that came and left are counted. It writes at its own pace, and only if a number has changed by
a step (`core.capacity_report.changes`).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

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
from placement_ac.core.api.errors import ApiError, NotLeading
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.changes import differs_by_step
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import documents
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.core.capacity_report.policy import CapacityPolicy
from placement_ac.core.capacity_report.since import came_since, left_since
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.kube.client import Client
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

WRITE_SECONDS: Final = 60.0
"""The shortest time between two writes."""
LOOK_SECONDS: Final = 15.0
"""The shortest time between two looks at new answers: as often as a worker is asked at most."""
GATHER_SECONDS: Final = 1.0
"""How long an answer waits for those of other workers."""


@dataclass(slots=True)
class _Answer:
    """An answer of a worker: when it was asked, and the Workloads that the answer counts."""

    at: float
    facts: WorkerFacts
    worker: str = ""
    """The MultiKueueCluster that was asked about; "": its cluster, for scores."""
    workloads: Collection[Workload] = ()
    """Those of then; until they are looked at, all that the question was about."""
    counted: dict[str, Workload] | None = field(default=None)
    """Those of this MultiKueueCluster that had quota then, by uid."""
    left: dict[str, Workload] = field(default_factory=dict)
    """Those of them that have left, in that order."""


class CapacityReporter:
    """Reports the capacity of the clusters. `clock` and `monotonic` as in `Reconciler`."""

    def __init__(
        self,
        cache: Cache,
        client: Client,
        policy: CapacityPolicy,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._client = client
        self._policy = policy
        self._clock = clock
        self._monotonic = monotonic
        self._answers: dict[str, _Answer] = {}
        """MultiKueueCluster, or cluster with a leading "/", → its last answer."""
        self._news = asyncio.Event()
        self._written: CapacityReport | None = None
        self._logged = LogDeduplicator()
        self.report: CapacityReport | None = None
        """The last report; None: there is none."""

    def take_queues(
        self, worker: str, asked_at: float, facts: WorkerFacts, workloads: Collection[Workload]
    ) -> None:
        """Take in the queues of a MultiKueueCluster's worker; `workloads`: the Placement's of then."""
        self._take(worker, _Answer(asked_at, facts, worker, workloads))

    def take_reading(self, cluster: str, asked_at: float, facts: WorkerFacts) -> None:
        """Take in the queues of a cluster's worker, read for its scores."""
        self._take(f"/{cluster}", _Answer(asked_at, facts))

    def _take(self, key: str, answer: _Answer) -> None:
        self._answers[key] = answer
        self._news.set()

    def reset(self) -> None:
        """Forget everything, as after a restart."""
        self._answers.clear()
        self._news.clear()
        self._written = self.report = None

    async def run(self, leads: Callable[[], bool]) -> None:
        """Report for ever, as long as this process `leads`."""
        while True:
            await self._wait_for_news()
            pause = LOOK_SECONDS
            if leads() and self._answers and self._cache.has_synced:
                self._news.clear()
                self.report = self._report()
                if (self._written is None or differs_by_step(self._written, self.report)) and leads():
                    await self._write(self.report)
                    pause = WRITE_SECONDS
            await asyncio.sleep(pause)

    async def _wait_for_news(self) -> None:
        """Wait for an answer; without one, jobs may have come or left after `interval` seconds."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)

    async def _write(self, report: CapacityReport) -> None:
        """Write both ConfigMaps; an error is logged once, and the next look tries again."""
        names = (CAPACITY_NAME, CAPACITY_QUEUES_NAME)
        try:
            for name, text in zip(names, documents(report), strict=True):
                await self._apply(name, text)
        except NotLeading:
            return
        except ApiError as error:
            level = self._logged.level("write", error.message)
            log.log(level, "cannot publish the capacity of the workers", error=error.message)
            return
        if self._logged.ended("write"):
            log.info("the capacity of the workers is published again")
        self._written = report

    async def _apply(self, name: str, text: str) -> None:
        metadata = {
            "name": name,
            "namespace": self._policy.namespace,
            "labels": {LABEL_MANAGED_BY: MANAGED_BY},
        }
        body = {"metadata": metadata, "data": {CAPACITY_KEY: text}}
        await self._client.apply(CONFIG_MAP.at("v1"), body, manager=CAPACITY_MANAGER)

    def _report(self) -> CapacityReport:
        clusters, workloads = self._cache.capacity.clusters(), self._cache.capacity.workloads()
        for key in self._answers:
            if key.startswith("/"):
                clusters.setdefault(key[1:], ReportedCluster())
        known = {f"/{name}" for name in clusters}.union(*(one.workers for one in clusters.values()))
        self._answers = {key: answer for key, answer in self._answers.items() if key in known}
        states = (self._state(name, cluster, workloads) for name, cluster in clusters.items())
        return capacity_report(states, self._policy.gpus)

    def _state(
        self, name: str, cluster: ReportedCluster, workloads: Mapping[str, WorkloadsOf]
    ) -> WorkerState:
        there = [workloads.get(worker, WorkloadsOf()) for worker in cluster.workers]
        waiting = {uid: workload for one in there for uid, workload in one.waiting.items()}
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
        counted = _counted(answer)
        asked = workloads.get(answer.worker, WorkloadsOf()).running
        others = (one for place in there for one in place.running.values() if one.meta.uid not in asked)
        gone = (workload for uid, workload in counted.items() if uid not in asked)
        answer.left |= {workload.meta.uid: workload for workload in gone}
        left = (workload for uid, workload in answer.left.items() if uid not in asked)
        return replace(
            state,
            queues=answer.facts.queues,
            read_at=read_at,
            came=(
                *came_since(answer.facts, counted, asked.values(), read_at),
                *(workload for workload in others if _is_later(workload, read_at)),
            ),
            left=tuple(left_since(answer.facts, counted, left)),
        )

    def _last_answer(self, keys: Iterable[str]) -> _Answer | None:
        found = (self._answers[key] for key in keys if key in self._answers)
        return max(found, key=lambda answer: answer.at, default=None)


def _counted(answer: _Answer) -> dict[str, Workload]:
    """Return the Workloads that the answer counts, by uid; the others are let go."""
    if answer.counted is None:
        uids = answer.facts.then.running
        answer.counted = {w.meta.uid: w for w in answer.workloads if w.meta.uid in uids}
        answer.workloads = ()
    return answer.counted


def _is_later(workload: Workload, read_at: datetime) -> bool:
    """Whether a Workload of another Placement was placed since then."""
    return workload.placed_since is not None and workload.placed_since > read_at


def _text(problem: str) -> str:
    """Return a problem without the name of the MultiKueueCluster."""
    return getattr(problem, "why", problem)
