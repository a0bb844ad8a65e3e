"""
Preconditions: only the clusters that have the objects which the job's Pods name, and the job's namespace.

Reads the names in the Pod templates, and which objects the worker has of the kinds in the setting
`--preconditions`. Abstains for all that is not known. `Capacity` looks for the LocalQueue.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.inputs.job_facts import NAMESPACES, objects_of


def preconditions(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster that is known to lack one of them."""
    missing = cluster.jobs.missing
    if not missing:
        return None
    for wanted in objects_of(job):
        if wanted in missing:
            where = wanted.name if wanted.plural == NAMESPACES else f"{wanted.namespace}/{wanted.name}"
            return f"had no {wanted.kind} {where}: create it there"
    return None
