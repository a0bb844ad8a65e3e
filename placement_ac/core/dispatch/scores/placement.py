"""
Placement: OCM's order. Reads the place of the cluster in it.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def placement(_: Workload, cluster: Cluster) -> float | None:
    """Return 100 for the first cluster, and evenly less for each further one."""
    return 100.0 * (cluster.number - cluster.rank) / cluster.number
