"""
Spread and Pack: where the fewest, or the most, jobs of the same queue are.

Reads the queues of the jobs that run or wait on the cluster.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster, queue_of


def spread(job: Workload, cluster: Cluster) -> float | None:
    """Return 100 for no job of the queue, 50 for one, 33 for two …"""
    return 100.0 / (1 + _number(job, cluster))


def pack(job: Workload, cluster: Cluster) -> float | None:
    """Return 0 for no job of the queue, 50 for one, 67 for two …"""
    return 100.0 - 100.0 / (1 + _number(job, cluster))


def _number(job: Workload, cluster: Cluster) -> int:
    return len(cluster.of_queue(queue_of(job)))
