"""
Framework: only the clusters that serve the kind of the job.

Reads the kind of the Workload's owner, and which kinds the worker serves. Abstains where that is not known.
Whether the worker's Kueue has the integration of the kind cannot be read with Kueue's rights.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def framework(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster whose API server does not know the kind, in the version that the hub's Kueue sends."""
    kind = job.job.kind
    if cluster.jobs.served.get(kind, True):
        return None
    return f"served no {kind}: install its CRD and its controller there"
