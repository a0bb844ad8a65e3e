"""
NodeLabels: only the clusters that can have the nodes which the job's Pods require.

Reads the nodeSelector and the required node affinity of the podSets, for the node labels that the setting
`--node-labels` maps to labels or ClusterClaims of clusters. Requirements on other node labels are not judged.
"""

from placement_ac.core.api.job_spec import NodeTerm
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def node_labels(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster that meets none of the alternatives of a podSet."""
    if not cluster.node_labels:
        return None
    for alternatives in job.job.nodes:
        refusals = [_refusal(term, cluster) for term in alternatives]
        if all(refusals):
            return f"had no node with {refusals[0]}"
    return None


def _refusal(term: NodeTerm, cluster: Cluster) -> str:
    """Return the first requirement that the cluster does not meet, "" if it meets all."""
    for requirement in term:
        if requirement.key in cluster.node_labels:
            value = cluster.node_labels[requirement.key]
            if not requirement.is_met_by({} if value is None else {requirement.key: value}):
                return str(requirement)
    return ""
