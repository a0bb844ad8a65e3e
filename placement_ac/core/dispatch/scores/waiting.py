"""
Waiting: where the fewest jobs wait. Reads the number of jobs that are nominated to the cluster.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def waiting(_: Workload, cluster: Cluster) -> float | None:
    """Return 100 where no job waits, 50 for one, 33 for two …"""
    return 100.0 / (1 + len(cluster.waiting))
