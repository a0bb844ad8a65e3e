"""
Framework: only the clusters that serve the kind of the job, and whose Kueue starts jobs of that kind.

Reads the kind of the Workload's owner, which kinds the worker serves, and with the setting
`--look-for integrations`, which integrations Kueue has there. Abstains where that is not known. Without
the integration, Kueue there admits the copy of the Workload, and its job stays suspended for ever.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def framework(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster whose API server does not know the kind, in the version that the hub's Kueue sends, or
    whose Kueue does not have its integration.
    """
    kind = job.job.kind
    if not cluster.jobs.served.get(kind, True):
        return f"served no {kind}: install its CRD and its controller there"
    if name := cluster.jobs.lacks_integration(kind):
        return f"had no integration {name}: add it to integrations.frameworks of Kueue's configuration there"
    return None
