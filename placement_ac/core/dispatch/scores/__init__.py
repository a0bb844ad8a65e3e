"""
The scores: each returns 0 to 100 for a job and a cluster, more for a better one, or None to abstain.
"""

from collections.abc import Callable, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ANNOTATION_DATA,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.scores.cost import cost
from placement_ac.core.dispatch.scores.data import data
from placement_ac.core.dispatch.scores.headroom import headroom
from placement_ac.core.dispatch.scores.placement import placement
from placement_ac.core.dispatch.scores.preferred import preferred
from placement_ac.core.dispatch.scores.spread import pack, spread
from placement_ac.core.dispatch.scores.sticky import sticky
from placement_ac.core.dispatch.scores.waiting import waiting

Score = Callable[[Workload, Cluster], float | None]

SCORES: Final[Mapping[str, Score]] = {
    "Placement": placement,
    "Spread": spread,
    "Pack": pack,
    "Preferred": preferred,
    "Sticky": sticky,
    "Waiting": waiting,
    "Headroom": headroom,
    "Data": data,
    "Cost": cost,
}


def _has(annotation: str) -> Callable[[Workload], bool]:
    return lambda job: bool(job.job.annotation(annotation))


ASKED_BY: Final[Mapping[str, Callable[[Workload], bool]]] = {
    "Preferred": _has(ANNOTATION_PREFERRED_CLUSTERS),
    "Sticky": _has(ANNOTATION_GROUP),
    "Data": _has(ANNOTATION_DATA),
}
"""Score → whether a job asks for it: for all other jobs it abstains for each cluster."""
