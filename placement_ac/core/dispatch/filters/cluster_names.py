"""
ClusterNames: only the clusters that the annotation `kueue.x-k8s.io/multikueue-cluster-names` lists.

Reads the annotation, and the names of the MultiKueueCluster and of the managed cluster.
"""

from placement_ac.core.api.constants import ANNOTATION_CLUSTER_NAMES
from placement_ac.core.api.job_spec import NAMES_MAX
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def cluster_names(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster that is not listed; without the annotation, all are."""
    listed = job.job.annotation(ANNOTATION_CLUSTER_NAMES)
    if not listed:
        return None
    if listed.count(",") >= NAMES_MAX:
        why = f"at most {NAMES_MAX} are read, it has {listed.count(',') + 1:,}"
        return f"couldn't be judged: use fewer names in the annotation {ANNOTATION_CLUSTER_NAMES}: {why}"
    names = {name.strip() for name in listed.split(",")}
    return None if names & {cluster.name, cluster.cluster} else f"didn't match {ANNOTATION_CLUSTER_NAMES}"
