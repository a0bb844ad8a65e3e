"""
NameConflict: not where another job of the same kind, namespace and name is.

Reads the name of the Workload's owner, and the jobs on the worker that no MultiKueue has sent. Kueue neither
deletes nor adopts such a job, but admits the copy beside it, which then never runs. Abstains where the
worker's jobs are not known.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def name_conflict(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster with such a job."""
    if not has_namesake(job, cluster):
        return None
    kind = job.job.kind.partition(".")[0]
    return f"had another {kind} {job.meta.namespace}/{job.job_name}: rename or delete one of the two"


def has_namesake(job: Workload, cluster: Cluster) -> bool:
    """Whether a job of somebody else has the kind, namespace and name of this one there."""
    return (job.meta.namespace, job.job_name) in cluster.jobs.taken.get(job.job.kind, ())
