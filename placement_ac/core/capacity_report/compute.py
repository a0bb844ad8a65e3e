"""
Compute the capacity of workers from their queues, with the arithmetic of the dispatcher.

Pure. Between two answers of a worker, this hub's Workloads that were placed there or have left are counted:
so the numbers stay right while nobody needs to ask the worker.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.model import (
    Amounts,
    CapacityReport,
    ClusterCapacity,
    QueueCapacity,
    Supply,
    added,
)
from placement_ac.core.dispatch.free_quota import FreeQuota
from placement_ac.core.inputs.queue_facts import FlavorQuota, Queue, QueueFacts


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A cluster, the last answer of its worker, and this hub's Workloads there."""

    cluster: str
    placements: tuple[str, ...] = ()
    queues: Mapping[Queue, QueueFacts] | None = None
    """None: they are not known."""
    read_at: datetime | None = None
    problem: str = ""
    came: tuple[Workload, ...] = ()
    """Workloads that were placed there since."""
    left: tuple[Workload, ...] = ()
    """Workloads that had quota there then, and are no longer there."""
    waiting: tuple[Workload, ...] | None = ()
    """Those that are nominated there and not placed yet; None: what they ask for is not known."""


def capacity_report(workers: Iterable[WorkerState], gpus: Iterable[str]) -> CapacityReport:
    """Return the capacity of these workers, by cluster."""
    states = sorted(workers, key=lambda state: state.cluster)
    return CapacityReport(tuple(map(_cluster, states)), tuple(gpus), _waiting(states))


def _cluster(state: WorkerState) -> ClusterCapacity:
    if state.queues is None or state.problem:
        return ClusterCapacity(state.cluster, state.placements, None, state.problem or "it was not asked")
    queues = tuple(_queues(state, state.queues))
    cohorts = {facts.cluster_queue: facts.cohort for facts in state.queues.values()}
    sums = _sum_of(queues, cohorts)
    return ClusterCapacity(state.cluster, state.placements, state.read_at, "", queues, sums)


def _queues(state: WorkerState, queues: Mapping[Queue, QueueFacts]) -> Iterator[QueueCapacity]:
    """Yield each ClusterQueue once, by name; of its LocalQueues one that is not on hold counts."""
    used, coming = FreeQuota(queues, state.came), FreeQuota(queues, (*state.came, *(state.waiting or ())))
    for workload in state.left:
        used.remove(workload)
        coming.remove(workload)
    chosen: dict[str, Queue] = {}
    for queue in sorted(queues, key=lambda one: queues[one].active):
        chosen[queues[queue].cluster_queue] = queue
    for name, queue in sorted(chosen.items()):
        facts = queues[queue]
        if facts.exists:
            now, then = used.of(queue), coming.of(queue)
            quota = {
                Supply(flavor.flavor, resource): _amounts(
                    flavor, after, active=facts.active, knows_waiting=state.waiting is not None
                )
                for resource, flavors in now.items()
                for flavor, after in zip(flavors, then[resource], strict=True)
            }
            yield QueueCapacity(name, quota, facts.active, facts.pending)


def _amounts(now: FlavorQuota, after: FlavorQuota, *, active: bool, knows_waiting: bool) -> Amounts:
    """Return the amounts of a flavor: as it is now, and after the Workloads that wait there."""
    return Amounts(
        now.nominal,
        now.reserved,
        after.reserved - now.reserved if knows_waiting else None,
        now.borrowable,
        max(now.nominal - now.reserved, 0) if active else 0,
        max(now.nominal - after.reserved, 0) if active else 0,
    )


def _sum_of(queues: Iterable[QueueCapacity], cohorts: Mapping[str, str]) -> dict[Supply, Amounts]:
    """Return the sum of the queues; what one has borrowed is not free in another of its cohort.

    `cohorts`: ClusterQueue → its cohort; "": it has none.
    """
    known = tuple(queues)
    sums = added((supply, amounts) for queue in known for supply, amounts in queue.quota.items())
    unused: Counter[tuple[Supply, tuple[str, str]]] = Counter()
    for queue in known:
        cohort = cohorts[queue.name]
        shared = (cohort, "") if cohort else ("", queue.name)
        for supply, amounts in queue.quota.items() if queue.active else ():
            unused[supply, shared] += amounts.nominal - amounts.used
    free: Counter[Supply] = Counter()
    for (supply, _), amount in unused.items():
        free[supply] += max(amount, 0)
    return {
        supply: one._replace(free=free[supply], largest=min(one.largest, free[supply]))
        for supply, one in sums.items()
    }


def _waiting(states: Iterable[WorkerState]) -> dict[str, int] | None:
    """Return resource → what all Workloads ask for that wait, each once."""
    jobs: dict[str, Workload] = {}
    for state in states:
        if state.waiting is None:
            return None
        if state.queues is not None:
            jobs |= {workload.meta.uid: workload for workload in state.waiting}
    asked: dict[str, int] = {}
    for workload in jobs.values():
        for podset in workload.job.requests:
            for resource, amount in podset:
                asked[resource] = asked.get(resource, 0) + amount
    return asked
