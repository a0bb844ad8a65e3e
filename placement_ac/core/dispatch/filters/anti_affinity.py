"""
AntiAffinity: not where a Workload of the same queue is that the annotation `…/anti-affinity` selects.

Reads the annotation, and the labels of the Workloads that run or wait on the cluster.
"""

from placement_ac.core.api.constants import ANNOTATION_ANTI_AFFINITY
from placement_ac.core.api.label_selector import SelectorError
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import shortened
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.dispatch.selectors import parse_selector


def keeps_apart(job: Workload) -> bool:
    """Whether the job has the annotation."""
    return bool(job.job.annotation(ANNOTATION_ANTI_AFFINITY))


def anti_affinity(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster with such a Workload; an annotation that cannot be read refuses all."""
    text = job.job.annotation(ANNOTATION_ANTI_AFFINITY)
    if not text:
        return None
    try:
        requirements = parse_selector(text)
    except SelectorError as error:
        return f"couldn't be judged: correct the annotation {ANNOTATION_ANTI_AFFINITY}: {error}"
    for other in cluster.of_queue(queue_of(job)):
        if other.meta.uid != job.meta.uid and all(
            requirement.accepts(other.label_value(requirement.key)) for requirement in requirements
        ):
            return f"had a Workload with {shortened(text)}"
    return None
