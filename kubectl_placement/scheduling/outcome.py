"""
The result of `engine.schedule` for one Placement.

Plain data; the decisions and the status are API objects ready to be written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from kubectl_placement.scheduling.prioritizers import Scored
from placement_ac.core.api.fields import Obj


class FilterStep(StrEnum):
    """Where a cluster dropped out, in the order of the steps."""

    TERMINATING = "Terminating"
    CLUSTER_SET = "ClusterSet"
    PREDICATE = "Predicate"
    TAINT = "TaintToleration"
    MISCONFIGURED = "Misconfigured"
    NUMBER = "NumberOfClusters"


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """The verdict on one cluster.

    `dropped` None: selected, and `group` is the index of its decision group
    (None if the groups are misconfigured and it is in no decision). `why` says
    what dropped it. `score` is the sum of weight times score, None for a
    cluster that was not scored; `scores` by prioritizer are without their weights.
    """

    dropped: FilterStep | None = None
    why: str = ""
    score: int | None = None
    scores: Mapping[str, int] = field(default_factory=dict)
    group: int | None = None


@dataclass(frozen=True)
class SchedulingResult:
    """The result of scheduling one Placement.

    `hold`: why nothing is to be changed; all other fields are empty then.
    `unsupported`: why OCM's decision cannot be computed; all other fields are empty then, too.
    `make_verdicts`: computes `clusters`. `ranked`: the clusters that passed the
    filters, best first. `decisions`: the wanted PlacementDecisions; all others
    of the Placement are to be deleted. `status`: the Placement's.
    `reschedule_at`: when time alone changes the result.
    """

    hold: str = ""
    unsupported: str = ""
    make_verdicts: Callable[[], Mapping[str, ClusterVerdict]] = field(default=dict, compare=False, repr=False)
    ranked: tuple[str, ...] = ()
    prioritizers: tuple[Scored, ...] = ()
    decisions: tuple[Obj, ...] = ()
    status: Obj = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    reschedule_at: datetime | None = None

    @cached_property
    def clusters(self) -> Mapping[str, ClusterVerdict]:
        """The verdict on every cluster of the hub."""
        return self.make_verdicts()
