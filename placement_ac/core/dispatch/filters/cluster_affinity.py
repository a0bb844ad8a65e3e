"""
ClusterAffinity: only the clusters that the annotation `…/cluster-selector` selects.

Reads the annotation, the labels of the ManagedCluster and its ClusterClaims.
"""

from placement_ac.core.api.constants import ANNOTATION_CLUSTER_SELECTOR
from placement_ac.core.api.label_selector import SelectorError, first_unmet
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.selectors import parse_selector


def cluster_affinity(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster that is not selected; an annotation that cannot be read selects none."""
    text = job.job.annotation(ANNOTATION_CLUSTER_SELECTOR)
    try:
        requirements = parse_selector(text)
    except SelectorError as error:
        return f"couldn't be judged: correct the annotation {ANNOTATION_CLUSTER_SELECTOR}: {error}"
    unmet = first_unmet(requirements, cluster.labels)
    return f"didn't match {unmet}" if unmet else None
