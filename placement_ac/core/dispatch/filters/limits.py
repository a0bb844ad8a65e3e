"""
Limits: no cluster, if a Workload has more labels, requirements, podSets … than are read.

Reads what the limits of `core.api.job_spec` say. It comes first: nothing else is known of such a Workload.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def limits(job: Workload, _: Cluster) -> str | None:
    """Refuse all clusters to a Workload that is over a limit."""
    return f"couldn't be judged: {job.job.problem}" if job.job.problem else None
