"""
The result of `engine.schedule` for one Placement.

Plain data; the decisions and the status are API objects ready to be written.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from placement_ac.scheduling.objects import Obj
from placement_ac.scheduling.prioritizers import Scored


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
    """What became of one cluster.

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


class ClusterVerdicts(Mapping[str, ClusterVerdict]):
    """The verdicts by cluster, made when the first is asked for: who wants the decisions alone needs none."""

    def __init__(self, make: Callable[[], Mapping[str, ClusterVerdict]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, ClusterVerdict]:
        return self._make()

    def __getitem__(self, cluster: str) -> ClusterVerdict:
        return self._made[cluster]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True, slots=True)
class SchedulingResult:
    """What OCM makes of one Placement.

    `hold`: not empty if everything is to be left as it is, and says why; all
    else is empty then. `clusters`: the verdict on every cluster of the hub.
    `ranked`: the clusters that passed the filters, best first. `decisions`:
    the PlacementDecisions wanted, all others of the Placement go. `status`:
    the Placement's. `again_at`: when time alone changes the answer.
    """

    hold: str = ""
    clusters: Mapping[str, ClusterVerdict] = field(default_factory=dict)
    ranked: tuple[str, ...] = ()
    prioritizers: tuple[Scored, ...] = ()
    decisions: tuple[Obj, ...] = ()
    status: Obj = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    reschedule_at: datetime | None = None

    @property
    def selected(self) -> tuple[str, ...]:
        return tuple(name for name in self.ranked if self.clusters[name].dropped is None)
