"""
A fleet on the virtual clock whose jobs may be moved: the real controller with either dispatcher.

Each job takes its time and then ends where it runs. It notes who was moved when, and the work lost.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from placement_ac.core.api.constants import ANNOTATION_MOVABLE, MOVED_FROM, OUR_CONTROLLER, WORKLOAD, Kind
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.job_facts import JobFacts, JobNeeds
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy
from placement_lab.standins.multikueue import ALL_AT_ONCE, KueueSettings
from placement_lab.standins.multikueue import objects as of
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.client import Odds
from tests.support.virtual.clock import START, Delays
from tests.support.virtual.controller import ASK_SECONDS, TIMEOUT_SECONDS, VirtualController
from tests.support.virtual.hub import VirtualHub, object_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workloads import NAMESPACE

QUEUE = "user-queue"


@dataclass(frozen=True)
class Moved:
    """A move: the job's eviction on the hub."""

    at: float
    job: str
    left: str
    """The cluster that it left."""
    lost: float
    """Seconds for which it had run there."""


class MovingFleet:
    """`gpus`: cluster → its GPUs."""

    def __init__(
        self,
        seed: int,
        gpus: Mapping[str, int],
        policy: PlacementPolicy,
        *,
        left_behind: float = 1 / 8,
    ) -> None:
        dispatcher = OUR_CONTROLLER if policy.dispatcher else ALL_AT_ONCE
        workers = {object_of(cluster): number for cluster, number in gpus.items()}
        self.policy, self.clusters = policy, tuple(gpus)
        self.kueue = VirtualKueue(
            seed,
            workers,
            settings=KueueSettings(dispatcher=dispatcher),
            delays=Delays(left_behind=left_behind),
            config="p",
        )
        self.kueue.logs = False
        for cluster in gpus:
            self.kueue.add_alias(object_of(cluster), cluster)
        self.hub = VirtualHub(self.kueue, self.clusters)
        self.seconds: dict[str, float] = {}
        """Job → how long it takes."""
        self.taken: dict[str, set[str]] = {}
        """Cluster → the names of jobs there that no MultiKueue has sent."""
        self.movable: set[str] = set()
        self.moved: list[Moved] = []
        self.others_evicted: set[str] = set()
        """Jobs that were evicted while they ran, by no move."""
        self.placed: dict[str, list[tuple[float, str]]] = defaultdict(list)
        """Job → when it was recorded on which cluster."""
        self._odds = Odds(random.Random(seed))
        self._before: dict[str, Any] = {}
        self.kueue.on_start.append(self._started)
        self.hub.listeners.append(self._witness)
        self.controller: VirtualController

    @property
    def now(self) -> float:
        return self.kueue.now - START

    def start(self, *selected: str) -> None:
        """Start the controller, in the running loop."""
        self.controller = VirtualController(self.hub, self.policy, self._odds, self._read_queues)
        self.hub.select(selected or self.clusters)

    def submit(self, name: str, seconds: float, *, movable: bool = True, gpus: int = 1) -> None:
        self.seconds[name] = seconds
        self.movable |= {name} if movable else set()
        template = {"annotations": {ANNOTATION_MOVABLE: "true"}} if movable else None
        self.kueue.submit(name, template=template, requests={GPU: str(gpus)}, slots=gpus)

    def resize(self, cluster: str, gpus: int) -> None:
        """Change the quota of a worker; what runs there keeps it."""
        for name in (object_of(cluster), cluster):
            self.kueue.workers[name].slots = gpus
        self.kueue.queues_changed(object_of(cluster))

    def use(self) -> dict[str, float]:
        """Return selected cluster → the share of its GPUs that is used."""
        workers = {cluster: object_of(cluster) for cluster in self.hub.selected}
        return {
            cluster: self.kueue.slots_used(name) / self.kueue.workers[name].slots
            for cluster, name in workers.items()
        }

    def where(self, name: str) -> str:
        """Return the cluster that the hub names for a job, "" if none."""
        return self.kueue.placed(name).removeprefix("p-")

    def ran_twice(self) -> list[str]:
        return [name for name in self.seconds if self.kueue.max_copies[name] > 1]

    def _started(self, name: str, worker: str) -> None:
        self.kueue.later(self.seconds[name], partial(self._ends, name, worker, self.kueue.now))

    def _ends(self, name: str, worker: str, started: float) -> None:
        """Let a job end, unless this run of it has ended before."""
        runs = self.kueue.starts.get(name, ())
        if runs and runs[-1] == (started, worker):
            self.kueue.finish(name, worker)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind != WORKLOAD or what != "put":
            return
        name = raw["metadata"]["name"].removeprefix("job-")
        before = self._before.get(name, {})
        self._before[name] = raw
        if (cluster := of.cluster_of(raw)) and cluster != of.cluster_of(before):
            self.placed[name].append((self.now, cluster.removeprefix("p-")))
        if of.is_condition_true(raw, of.EVICTED) and not of.is_condition_true(before, of.EVICTED):
            left, runs = of.cluster_of(before).removeprefix("p-"), self.kueue.starts.get(name, ())
            if MOVED_FROM.split("{", maxsplit=1)[0] in of.condition_field(raw, of.EVICTED):
                lost = self.kueue.now - runs[-1][0] if runs else 0.0
                self.moved.append(Moved(self.now, name, left, lost))
            elif left:
                self.others_evicted.add(name)

    async def _read_queues(self, cluster: KueueObject, needs: JobNeeds) -> WorkerFacts:
        """Read a worker's queues and the names that are taken there, as `workers.queues` does."""
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        worker = self.kueue.workers[cluster.meta.name]
        if not worker.reachable:
            await asyncio.sleep(TIMEOUT_SECONDS)
            return WorkerFacts(problem="it does not answer")
        used = self.kueue.slots_used(cluster.meta.name)
        facts = QueueFacts(
            "cluster-queue",
            {GPU: (FlavorQuota("default", worker.slots * 1000, used * 1000),)},
            active=not worker.held,
        )
        names = self.taken.get(cluster.meta.name.removeprefix("p-"), ())
        taken = dict.fromkeys(needs.waiting, frozenset((NAMESPACE, name) for name in names))
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        return WorkerFacts({(NAMESPACE, QUEUE): facts}, jobs=JobFacts(taken=taken))
