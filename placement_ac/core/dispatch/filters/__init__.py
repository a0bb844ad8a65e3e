"""
The filters, in their order: each returns why a job cannot go to a cluster, or None.

A reason follows a number of clusters, as in "2 didn't match gpu=h100", and is the same for all clusters that
it concerns, so that they can be counted.
"""

from collections.abc import Callable
from typing import Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters.anti_affinity import anti_affinity
from placement_ac.core.dispatch.filters.capacity import capacity
from placement_ac.core.dispatch.filters.cluster_affinity import cluster_affinity
from placement_ac.core.dispatch.filters.cluster_names import cluster_names
from placement_ac.core.dispatch.filters.limits import limits
from placement_ac.core.dispatch.filters.node_labels import node_labels

Filter = Callable[[Workload, Cluster], str | None]

CAPACITY: Final = "Capacity"
"""The filter that reads facts of workers."""
FILTERS: Final[dict[str, Filter]] = {
    "Limits": limits,
    "ClusterNames": cluster_names,
    "ClusterAffinity": cluster_affinity,
    "NodeLabels": node_labels,
    "AntiAffinity": anti_affinity,
    CAPACITY: capacity,
}
