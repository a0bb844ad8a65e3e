"""
Quarantine: not the clusters where jobs keep failing, or that an admin has quarantined.

Reads what is remembered of failed jobs, and an annotation of the MultiKueueCluster. It is the last filter,
and refuses no cluster if it would refuse all that fit the job.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def quarantine(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a quarantined cluster to all jobs but the one that tries it."""
    if not cluster.quarantine or cluster.tried_by in ("", job.meta.uid):
        return None
    return f"is quarantined: {cluster.quarantine}"
