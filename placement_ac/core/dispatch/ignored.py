"""
The wishes of a job that are ignored: misspelt keys of our domain, preferences that cannot be read, and
tolerations that are too many.

Pure. The job goes where the rest of its wishes say, so an event reports them to its owner.
"""

from collections.abc import Iterator

from placement_ac.core.api.constants import ANNOTATION_DATA, ANNOTATION_PREFERRED_CLUSTERS
from placement_ac.core.api.job_spec import OUR_ANNOTATIONS, JobSpec
from placement_ac.core.api.label_selector import SelectorError
from placement_ac.core.api.text import did_you_mean
from placement_ac.core.dispatch.scores.data import data_sets
from placement_ac.core.dispatch.scores.preferred import parse_preferences


def ignored(job: JobSpec, *, taints: bool = False) -> Iterator[str]:
    """Yield what to correct, for each annotation or label that is ignored.

    `taints`: whether jobs must tolerate taints.
    """
    if taints and job.tolerations_problem:
        yield f"{job.tolerations_problem}; meanwhile no taint keeps the job from a cluster"
    for key in job.ignored:
        if key in OUR_ANNOTATIONS:
            yield f"make the label {key} an annotation: it is ignored"
        else:
            meant = did_you_mean(key, OUR_ANNOTATIONS)
            yield f"correct {key}: there is no such annotation, it is ignored{meant}"
    try:
        parse_preferences(job.annotation(ANNOTATION_PREFERRED_CLUSTERS))
    except SelectorError as error:
        yield f"correct the annotation {ANNOTATION_PREFERRED_CLUSTERS}, it is ignored: {error}"
    try:
        data_sets(job.annotation(ANNOTATION_DATA))
    except SelectorError as error:
        yield f"correct the annotation {ANNOTATION_DATA}, it is ignored: {error}"
