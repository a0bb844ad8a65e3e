"""
The mode with scores: clusters that fail every job, and scores that the controller reports.

broken: each job that starts on a cluster fails. smaller: half of its GPUs are away. outage: most clusters of
a Placement are tainted at once. OCM selects the clusters
with the best `gpuFree`, as the controller has reported it.
"""

import asyncio
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from placement_ac.core.api import constants, decode
from placement_ac.core.api.constants import PLACEMENT_SCORE, SCORES_NAME, Kind
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.core.inputs.score_reports import WorkerReading
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.job_fit import ROUND_SECONDS
from placement_ac.core.score_reports.planning import counting
from placement_ac.core.score_reports.values import GPU_FREE
from tests.day.trace import CANDIDATES, DAY, GPUS, HOUR, QUEUES, Job, Trouble
from tests.support.builders import Raw, an
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.controller import ASK_SECONDS, TIMEOUT_SECONDS
from tests.support.virtual.hub import checks_of
from tests.support.virtual.workers import QUEUE
from tests.support.virtual.workloads import NAMESPACE

if TYPE_CHECKING:
    from placement_ac.core.api.objects import Scores
    from tests.day.world import World

FAILS_SECONDS: Final = 20.0
"""How long a job runs that fails."""
AGAIN_SECONDS: Final = 30.0
"""Then its owner submits it again."""
ATTEMPTS: Final = 4
"""How often an owner submits a job that fails everywhere."""
LONGEST_SECONDS: Final = 2 * HOUR
"""docs/rebalancing.md: the longest time until a job may try a cluster again."""
LOST_AT_ONCE: Final = 5
"""How many candidates of a Placement an outage takes away: two are left."""
EXPIRY_SECONDS: Final = 30.0
"""How often OCM looks for scores that have expired."""
MEMORY: Final = "memory"
"""Each job requests as many bytes as its number: so it is known when its owner submits it again."""
PLENTY: Final = FlavorQuota("default", 10**12, 0)


class ScoredFleet:
    """The jobs and clusters of a world whose controller remembers failures and reports scores."""

    def __init__(self, world: "World") -> None:
        self._world, self._hub, self._kueue = world, world.hub, world.kueue
        self.broken: dict[str, float] = {}
        """Cluster that fails each job → until when, in seconds of the day."""
        self.recovered: dict[str, float] = {}
        """Cluster → when it was recovered last."""
        self._scores: dict[str, Scores] = {}
        """Cluster → the scores that the controller has reported last."""
        self._failed: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        """The number of a job, and a cluster where it failed → when."""
        self._hub.weights = {f"{SCORES_NAME}/{GPU_FREE}": 1}
        self._hub.listeners.append(self._witness)
        self._make_queues()
        self._kueue.later(EXPIRY_SECONDS, self._scores_expire)

    def _make_queues(self) -> None:
        """Create the queues on the hub: scores count those that use the checks of a Placement."""
        for queue, placements in QUEUES.items():
            checks = [{"name": check} for name in placements for check in checks_of(name)]
            spec = {"namespaceSelector": {}, "admissionChecksStrategy": {"admissionChecks": checks}}
            self._hub.put(an(constants.CLUSTER_QUEUE, queue, spec=spec))
            local = an(constants.LOCAL_QUEUE, queue, spec={"clusterQueue": queue})
            local["metadata"]["namespace"] = NAMESPACE
            self._hub.put(local)

    def happen(self, item: Trouble) -> None:
        {"broken": self._break, "smaller": self._shrink, "outage": self._lose_most}[item.what](item)

    def _break(self, item: Trouble) -> None:
        until = self._world.now + item.seconds
        self.broken[item.whom] = max(until, self.broken.get(item.whom, 0.0))
        self._kueue.later(item.seconds, partial(self._recover, item.whom))

    def _recover(self, cluster: str) -> None:
        if self.broken.get(cluster, 0.0) <= self._world.now + 1.0 and cluster in self.broken:
            del self.broken[cluster]
            self.recovered[cluster] = self._world.now

    def _shrink(self, item: Trouble) -> None:
        self._resize(item.whom, GPUS[item.whom] // 2)
        self._kueue.later(item.seconds, partial(self._resize, item.whom, GPUS[item.whom]))

    def _lose_most(self, item: Trouble) -> None:
        """OCM selects most candidates of a Placement no more, until they are back."""
        reason, lost = f"outage {item.at}", CANDIDATES[item.whom][:LOST_AT_ONCE]

        def change(*, over: bool) -> None:
            for cluster in lost:
                tainted = self._world.sites[cluster].tainted
                (tainted.discard if over else tainted.add)(reason)
            self._world.decide_every()

        change(over=False)
        self._kueue.later(item.seconds, partial(change, over=True))

    def _resize(self, cluster: str, gpus: int) -> None:
        self._kueue.workers[cluster].slots = gpus
        self._kueue.queues_changed(cluster)

    # -- jobs

    def requests(self, job: Job) -> dict[str, str]:
        return {GPU: str(job.gpus), MEMORY: str(job.number)}

    def fails(self, job: Job, cluster: str) -> bool:
        """Whether a job that starts there now fails."""
        return job.fails or cluster in self.broken

    def is_doubtful(self, cluster: str) -> bool:
        """Whether it fails jobs, or may still be quarantined because it did."""
        longest = LONGEST_SECONDS + ROUND_SECONDS
        return cluster in self.broken or self._world.now - self.recovered.get(cluster, -DAY) < longest

    def comes_last(self, job: Job, cluster: str) -> bool:
        """Whether a job may be sent elsewhere first (docs/rebalancing.md).

        It failed there, for `--avoid-after-failure` after the first time, then twice as long; or others keep
        failing there.
        """
        failed = self._failed[job.number, cluster]
        wait = self._world.settings.avoid_after_failure * 2 ** max(len(failed) - 1, 0)
        avoids = bool(failed) and self._world.now - failed[-1] < min(wait, LONGEST_SECONDS)
        return avoids or self.is_doubtful(cluster)

    def fail(self, job: Job, cluster: str, started: tuple[float, str]) -> None:
        """Let a job fail that runs there since then; its owner submits it again."""
        runs = self._kueue.starts.get(job.name, ())
        if not runs or runs[-1] != started or not self._kueue.is_known(job.name):
            return
        self._kueue.fail(job.name, cluster)
        self._failed[job.number, cluster].append(self._world.now)
        stem, _, attempt = job.name.partition("-")
        number = int(attempt or 0) + 1
        if number < ATTEMPTS or not job.fails:
            again = replace(job, name=f"{stem}-{number}")
            self._kueue.later(AGAIN_SECONDS, partial(self._world.happen, again))

    # -- scores

    def score(self, cluster: str) -> int:
        """Return the score that counts for OCM now."""
        now = datetime.fromtimestamp(self._kueue.now, UTC)
        return counting(self._scores.get(cluster), now).get(GPU_FREE, 0)

    def _witness(self, what: str, kind: Kind, raw: Raw) -> None:
        if kind == PLACEMENT_SCORE and raw["metadata"]["name"] == SCORES_NAME:
            cluster = raw["metadata"]["namespace"]
            if what == "remove":
                self._scores.pop(cluster, None)
            else:
                self._scores[cluster] = decode.scores(raw)
            self._kueue.later(0.1, partial(self._world.decide_all, cluster))

    def _scores_expire(self) -> None:
        self._kueue.later(EXPIRY_SECONDS, self._scores_expire)
        self._world.decide_every()

    def queue_facts(self, cluster: str) -> WorkerFacts:
        """Return what a worker that answers says of its queues."""
        worker = self._kueue.workers[cluster]
        use = self._kueue.use(cluster)
        quota = FlavorQuota("default", worker.slots * 1000, use.gpus.get(QUEUE, 0) * 1000)
        facts = QueueFacts(
            QUEUE,
            {GPU: (quota,), MEMORY: (PLENTY,)},
            pending=sum(use.pending.values()),
            reserving=use.admitted.get(QUEUE, 0),
            active=not worker.held,
        )
        return WorkerFacts({(NAMESPACE, queue): facts for queue in QUEUES})

    async def read_worker(self, cluster: str, _: CredentialSource) -> WorkerReading:
        """Read a worker for its scores, as `workers.scores` does."""
        odds = self._world.odds
        await asyncio.sleep(odds.draw(ASK_SECONDS))
        if not self._kueue.workers[cluster].reachable:
            await asyncio.sleep(TIMEOUT_SECONDS if odds.chance.random() < 0.5 else 0.0)
            return WorkerReading(WorkerFacts(problem="it does not answer"))
        return WorkerReading(self.queue_facts(cluster))
