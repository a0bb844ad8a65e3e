"""
Clusters where jobs fail, in virtual time: users submit jobs, and some clusters fail every one of them.

The controller is the real one, Kueue's is `tests.support.virtual`.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from placement_ac.core.api.constants import ADMISSION_CHECK, OUR_CONTROLLER
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.job_facts import JobNeeds
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy
from placement_lab.standins.multikueue import KueueSettings
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.client import Odds
from tests.support.virtual.controller import VirtualController
from tests.support.virtual.hub import VirtualHub, object_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play
from tests.support.virtual.workloads import NAMESPACE, OURS

SLOTS: Final = 8
MINUTE: Final = 60.0
AVOID_SECONDS: Final = 10 * MINUTE
RUN_SECONDS: Final = 10 * MINUTE
FAILS_AFTER_SECONDS: Final = 10.0


@dataclass
class FailingClusters:
    """Clusters, their jobs, and what is seen of both.

    `broken`: cluster → how its jobs end there: "fails", the Job fails, and its owner submits it again; or
    "evicts", the worker's Kueue evicts it, and the hub's queues it again. `bad_jobs` fail everywhere.
    """

    clusters: tuple[str, ...]
    policy: PlacementPolicy
    seed: int = 1
    broken: dict[str, str] = field(default_factory=dict)
    bad_jobs: Callable[[int], bool] = lambda _: False
    retries: int = 20
    """How often an owner submits a job again at most."""
    sent: list[tuple[float, str, str]] = field(default_factory=list)
    """When which job began where; in seconds since the start."""
    done: set[int] = field(default_factory=set)
    """The numbers of jobs that have succeeded."""

    def __post_init__(self) -> None:
        self._workers = {object_of(cluster): cluster for cluster in self.clusters}
        self.kueue = VirtualKueue(
            self.seed,
            dict.fromkeys(self._workers, SLOTS),
            settings=KueueSettings(dispatcher=OUR_CONTROLLER),
        )
        self.kueue.logs = False
        self.hub = VirtualHub(self.kueue, self.clusters)
        self.kueue.on_start.append(self._begins)
        self._odds = Odds(random.Random(self.seed))
        self._start = self.kueue.now
        self.controller: VirtualController

    @property
    def now(self) -> float:
        return self.kueue.now - self._start

    def play(
        self,
        submissions: Iterable[tuple[float, int]],
        until: float,
        *others: tuple[float, Callable[[], None]],
    ) -> None:
        """Submit each (second, number of a job), do the `others` at their seconds, and go on until then."""

        async def story() -> None:
            self.controller = VirtualController(self.hub, self.policy, self._odds, self._read_queues)
            self.hub.select(self.clusters)
            for second, number in submissions:
                self.kueue.later(second, partial(self.submit, number))
            for second, happen in others:
                self.kueue.later(second, happen)
            await asyncio.sleep(until)

        play(self.kueue, story())

    def submit(self, number: int, attempt: int = 0) -> None:
        """Submit a job; each has a spec of its own, the same whenever it is submitted."""
        requests = {GPU: "1", "memory": str(number)}
        name = f"j{number}-{attempt}"
        self.kueue.submit(name, requests=requests)
        if "evicts" in self.broken.values():
            self.kueue.set_pods_ready(name, False)

    def recover(self, cluster: str) -> None:
        del self.broken[cluster]

    def count(self, cluster: str, after: float = 0.0) -> int:
        """Return how many jobs began there, after so many seconds."""
        return sum(where == cluster and when >= after for when, _, where in self.sent)

    @property
    def events(self) -> Counter[str]:
        """The reasons of the events, and how many different ones there were."""
        return Counter(raw["reason"] for raw in self.hub.kept_events.values())

    @property
    def message(self) -> str:
        """The message of our check's condition."""
        conditions = self.hub.objects[ADMISSION_CHECK, "", OURS]["status"]["conditions"]
        return str(conditions[0]["message"])

    def _begins(self, name: str, worker: str) -> None:
        cluster = self._workers[worker]
        self.sent.append((self.now, name, cluster))
        how = "fails" if self.bad_jobs(_number(name)) else self.broken.get(cluster, "")
        run = len(self.kueue.starts[name])
        self.kueue.later(
            FAILS_AFTER_SECONDS if how else RUN_SECONDS, partial(self._ends, name, worker, how, run)
        )
        if not how and "evicts" in self.broken.values():
            self.kueue.later(2.0, partial(self.kueue.set_pods_ready, name, True))

    def _ends(self, name: str, worker: str, how: str, run: int) -> None:
        if not self.kueue.is_known(name) or len(self.kueue.starts[name]) != run:
            return
        if how == "evicts":
            self.kueue.time_out(name, worker)
        elif how == "fails":
            self.kueue.fail(name, worker)
            number, attempt = _number(name), int(name.partition("-")[2])
            if attempt < self.retries:
                self.kueue.later(1.0, partial(self.submit, number, attempt + 1))
        else:
            self.kueue.finish(name, worker)
            self.done.add(_number(name))

    async def _read_queues(self, worker: KueueObject, _: JobNeeds) -> WorkerFacts:
        await asyncio.sleep(0.01)
        used = self.kueue.slots_used(worker.meta.name)
        quota = FlavorQuota("default", SLOTS * 1000, used * 1000)
        memory = FlavorQuota("default", 10**12, 0)
        use = self.kueue.use(worker.meta.name)
        counts = sum(use.pending.values()), sum(use.admitted.values())
        facts = QueueFacts("cluster-queue", {GPU: (quota,), "memory": (memory,)}, *counts)
        return WorkerFacts({(NAMESPACE, "user-queue"): facts})


def _number(name: str) -> int:
    return int(name[1:].partition("-")[0])
