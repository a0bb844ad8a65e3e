"""
The filters, in their order: each returns why a job cannot go to a cluster, or None.

A reason follows a number of clusters, as in "2 didn't match gpu=h100", and is the same for all clusters that
it concerns, so that they can be counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters.anti_affinity import anti_affinity, keeps_apart
from placement_ac.core.dispatch.filters.capacity import capacity
from placement_ac.core.dispatch.filters.cluster_affinity import cluster_affinity
from placement_ac.core.dispatch.filters.cluster_names import cluster_names
from placement_ac.core.dispatch.filters.framework import framework
from placement_ac.core.dispatch.filters.limits import limits
from placement_ac.core.dispatch.filters.maintenance import maintenance
from placement_ac.core.dispatch.filters.name_conflict import name_conflict
from placement_ac.core.dispatch.filters.node_labels import node_labels
from placement_ac.core.dispatch.filters.quarantine import quarantine
from placement_ac.core.dispatch.filters.taints import taints


def _never(_: Workload) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Filter:
    """A function that returns why a job cannot go to a cluster, or None, and what its answer depends on."""

    refuse: Callable[[Workload, Cluster], str | None]
    reads_queues: bool = False
    """Whether it reads the worker, which is asked for its queues and what jobs need beside them."""
    compares: Callable[[Workload], bool] = _never
    """Whether it compares the job with others: then each nomination may change its answer, and costs more."""

    def __call__(self, job: Workload, cluster: Cluster) -> str | None:
        return self.refuse(job, cluster)


CAPACITY: Final = "Capacity"
QUARANTINE: Final = "Quarantine"
"""It comes after all others: see `DispatchCycle.refusals`."""
FILTERS: Final[dict[str, Filter]] = {
    "Limits": Filter(limits),
    "Maintenance": Filter(maintenance),
    "ClusterNames": Filter(cluster_names),
    "ClusterAffinity": Filter(cluster_affinity),
    "NodeLabels": Filter(node_labels),
    "Taints": Filter(taints),
    "AntiAffinity": Filter(anti_affinity, compares=keeps_apart),
    "Framework": Filter(framework, reads_queues=True),
    "NameConflict": Filter(name_conflict, reads_queues=True),
    CAPACITY: Filter(capacity, reads_queues=True),
    QUARANTINE: Filter(quarantine),
}
