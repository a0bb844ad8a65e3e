"""
The quota of the workers' ClusterQueues for which this hub's jobs wait, and why it cannot be foretold.

Pure. The part that others hold there is left out of the quota: nobody knows when they end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from placement_ac.core.api.job_spec import JobSpec
from placement_ac.core.api.objects import Workload
from placement_ac.core.expected_start.history import Run
from placement_ac.core.expected_start.model import PoolKey, PoolSpec
from placement_ac.core.inputs.queue_facts import FlavorQuota, Queue, QueueFacts, WorkerFacts

QUOTA_VALID_SECONDS: Final = 900.0
"""For so long after a worker was asked, its quota and the part that others hold count as what they were."""
RECORDING: Final = timedelta(seconds=2)
"""The hub records so late that a worker has given a job quota."""
SHARED: Final = "{queue} shares quota with others, in cohort {cohort}"
ON_HOLD: Final = "{queue} or its LocalQueue is on hold, or not ready"
OTHERS_WAIT: Final = "{number} jobs that are not of this hub wait in {queue}"


class Stay(NamedTuple):
    """A job on a worker: from when, and until when (None: it is still there)."""

    cluster: str
    """The MultiKueueCluster."""
    queue: Queue
    job: JobSpec
    began: datetime
    ended: datetime | None = None


def stays(workloads: Iterable[Workload], runs: Iterable[Run]) -> Iterator[Stay]:
    """Yield where jobs run now, and where they ran."""
    for workload in workloads:
        if workload.cluster and workload.placed_since:
            queue = workload.meta.namespace, workload.job.queue
            yield Stay(workload.cluster, queue, workload.job, workload.placed_since)
    for run in runs:
        if run.seconds is not None:
            ended = run.began + timedelta(seconds=run.seconds)
            yield Stay(run.cluster, run.queue, run.job, run.began, ended)


@dataclass(frozen=True, slots=True)
class WorkerPools:
    """The pools of the workers. A queue of a MultiKueueCluster that is in neither mapping is not known."""

    specs: Mapping[PoolKey, PoolSpec]
    pool_of: Mapping[tuple[str, Queue], PoolKey]
    """MultiKueueCluster and LocalQueue → the pool."""
    objections: Mapping[PoolKey, str]
    """Pool → why its future is not known."""
    preempting: frozenset[PoolKey]
    """Those in which jobs preempt others of lower priority."""


def worker_pools(
    facts: Mapping[str, WorkerFacts],
    clusters: Mapping[str, str],
    there: Iterable[Stay],
    waiting: Mapping[str, int],
    now: datetime,
) -> WorkerPools:
    """Return the pools of these workers.

    `facts`: by MultiKueueCluster, as `clusters`: its managed cluster; `there`: this hub's jobs; `waiting`:
    MultiKueueCluster → how many of them wait there.
    """
    held: dict[str, list[Stay]] = defaultdict(list)
    for stay in there:
        held[clusters.get(stay.cluster, stay.cluster)].append(stay)
    waits = Counter[str]()
    for name, number in waiting.items():
        waits[clusters.get(name, name)] += number
    specs: dict[PoolKey, PoolSpec] = {}
    pool_of: dict[tuple[str, Queue], PoolKey] = {}
    objections: dict[PoolKey, str] = {}
    preempting: set[PoolKey] = set()
    last: dict[str, WorkerFacts] = {}
    for name in (one for one in facts if one in clusters):
        last[clusters[name]] = newest(last.get(clusters[name]), facts[name])
    for name in facts:
        known = last.get(cluster := clusters.get(name, ""))
        if known is None or known.problem or known.age > QUOTA_VALID_SECONDS:
            continue
        asked_at = now - timedelta(seconds=known.age)
        for queue, queue_facts in known.queues.items():
            key = cluster, queue_facts.cluster_queue
            pool_of[name, queue] = key
            if key not in specs:
                behind = {one for one, other in known.queues.items() if other.cluster_queue == key[1]}
                ours = [stay for stay in held[cluster] if stay.queue in behind and _held(stay, asked_at)]
                most = max(waits[cluster], len(known.then.waiting))
                specs[key] = pool_spec(key, queue_facts, [stay.job for stay in ours])
                objections[key] = objection(
                    queue_facts, f"ClusterQueue {key[1]} of cluster {cluster}", queue_facts.pending - most
                )
                preempting |= {key} if queue_facts.preempts else set()
    objections = {key: why for key, why in objections.items() if why}
    return WorkerPools(specs, pool_of, objections, frozenset(preempting))


def newest(one: WorkerFacts | None, other: WorkerFacts) -> WorkerFacts:
    """Return which of two answers of a worker counts: the later one, but none that is a problem."""
    return other if one is None else min(one, other, key=lambda facts: (bool(facts.problem), facts.age))


def objection(facts: QueueFacts, queue: str, others: int = 0) -> str:
    """Return why nobody knows what a ClusterQueue will do; "": it can be simulated.

    `others`: how many jobs wait there that are not known here.
    """
    if not facts.active:
        return ON_HOLD.format(queue=queue)
    borrows = any(flavor.borrowable != 0 for flavors in facts.quotas.values() for flavor in flavors)
    if facts.cohort or borrows:
        return SHARED.format(queue=queue, cohort=facts.cohort or "?")
    return OTHERS_WAIT.format(number=others, queue=queue) if others > 0 else ""


def pool_spec(key: PoolKey, facts: QueueFacts, ours: Iterable[JobSpec]) -> PoolSpec:
    """Return the quota of a ClusterQueue without what others than `ours` hold."""
    held: Counter[str] = Counter()
    for job in ours:
        for podset in job.requests:
            held.update(dict(podset))
    quotas = {name: _without_others(flavors, held[name]) for name, flavors in facts.quotas.items()}
    return PoolSpec(key, quotas, facts.strict)


def _held(stay: Stay, asked_at: datetime) -> bool:
    """Whether a job held quota on its worker when that was asked."""
    return stay.began - RECORDING <= asked_at and (stay.ended is None or stay.ended > asked_at)


def _without_others(flavors: Iterable[FlavorQuota], ours: int) -> tuple[int, ...]:
    others = max(sum(flavor.reserved for flavor in flavors) - ours, 0)
    left: list[int] = []
    for flavor in flavors:
        part = min(others, flavor.reserved)
        left.append(flavor.nominal - part)
        others -= part
    return tuple(left)
