"""
Kueue's record of where a job is: whether its worker was lost once, and the record as it should be. Pure.
"""

from collections.abc import Sequence
from typing import Final

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.fields import get_str

LOST: Final = "remote lost"
"""Kueue: part of its message about a job whose worker was not connected for too long."""


def was_lost(workload: Object) -> bool:
    """Whether the worker of a job was lost once, so that Kueue has sent the job again."""
    return LOST in get_str(condition_of(workload, "Evicted"), "message")


def relocated(workload: Object, cluster_objects: Sequence[str]) -> Object:
    """Return a Workload as if Kueue's record named the MultiKueueCluster on which it runs, if it is one."""
    if len(cluster_objects) != 1:
        return workload
    return workload | {"status": workload["status"] | {"clusterName": cluster_objects[0]}}
