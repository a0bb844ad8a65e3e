"""
Maintenance: not where the job may still run when the cluster's maintenance begins.

Reads how long the job may run, and the annotation `…/maintenance` of the ManagedCluster. A job that does not
say how long it may run fits until the maintenance begins.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def maintenance(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster with less time left than the job may take, and all jobs once it is in maintenance."""
    left, seconds = cluster.maintenance_in, job.job.seconds or 0
    if left is None or (left and seconds <= left):
        return None
    if not left:
        return "was in maintenance"
    return f"had too little time left before its maintenance for a job of {seconds:,} s"
