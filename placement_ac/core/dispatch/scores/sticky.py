"""
Sticky: where the last Workload of the same group ran: data and images are there.

Reads the annotation `…/group`, and the cluster on which the last Workload of each group was placed.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster, group_of


def sticky(job: Workload, cluster: Cluster) -> float | None:
    """Return 100 for that cluster, 0 for others; None without a group, or before one of it has run."""
    group = group_of(job)
    last = cluster.last_by_group.get(group) if group else None
    if last is None:
        return None
    return 100.0 if last == cluster.cluster else 0.0
