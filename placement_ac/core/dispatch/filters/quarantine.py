"""
Quarantine: not the clusters where jobs keep failing, or that an admin has quarantined.

Reads what is remembered of failed jobs, an annotation of the MultiKueueCluster, and the queues of a worker
that a job may try. It is the last filter, and refuses no cluster if it would refuse all that fit the job.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.scores.headroom import may_have_room


def quarantine(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a quarantined cluster to all jobs but the one that tries it: the next one with room there."""
    if cluster.quarantined_for and job.meta.namespace not in cluster.quarantined_for:
        return None
    if not cluster.quarantine or cluster.tried_by == job.meta.uid:
        return None
    if cluster.tried_by == "" and may_have_room(job, cluster):
        return None
    return f"is quarantined: {cluster.quarantine}"
