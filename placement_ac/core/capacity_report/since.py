"""
The Workloads that an answer of a worker does not count yet, and those that it still counts.

Pure. Kueue records about a second late on the hub that a worker has admitted a job, or that one has ended
there: an answer of that second already counts it. The number of Workloads with quota there tells.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.queue_facts import WorkerFacts

RECORDED_WITHIN: Final = timedelta(seconds=5)
"""How much later than on its worker a job is placed on the hub at most, as a rule."""


def came_since(
    facts: WorkerFacts, counted: Mapping[str, Workload], running: Iterable[Workload], read_at: datetime
) -> Iterator[Workload]:
    """Yield those of the running Workloads that the answer does not count; `counted`: by uid."""
    surplus = _surplus(facts, counted)
    new = [workload for workload in running if workload.meta.uid not in counted]
    for workload in sorted(new, key=lambda one: (str(one.placed_since), one.meta.uid)):
        queue, since = _queue_of(facts, workload), workload.placed_since
        was_waiting = workload.meta.uid in facts.then.waiting
        if was_waiting and surplus[queue] > 0 and since and since <= read_at + RECORDED_WITHIN:
            surplus[queue] -= 1
        else:
            yield workload


def left_since(
    facts: WorkerFacts, counted: Mapping[str, Workload], left: Iterable[Workload]
) -> Iterator[Workload]:
    """Yield those that the answer counts of the Workloads that have left, in the order in which they did."""
    surplus = _surplus(facts, counted)
    for workload in left:
        queue = _queue_of(facts, workload)
        if surplus[queue] < 0:
            surplus[queue] += 1
        else:
            yield workload


def _surplus(facts: WorkerFacts, counted: Mapping[str, Workload]) -> Counter[str]:
    """Return ClusterQueue → how many more Workloads have quota there than the hub knows of."""
    surplus = Counter({queue.cluster_queue: queue.reserving for queue in facts.queues.values()})
    surplus.subtract(_queue_of(facts, workload) for workload in counted.values())
    return surplus


def _queue_of(facts: WorkerFacts, workload: Workload) -> str:
    """Return the ClusterQueue there that a Workload uses; "": its LocalQueue is not there."""
    queue = facts.queues.get((workload.meta.namespace, workload.job.queue))
    return queue.cluster_queue if queue else ""
