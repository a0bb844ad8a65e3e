"""
Where decisions come from: the clusters that a Placement selects, best first.

Pure data. A source of decisions is one module of this folder, in one `DecisionSource`. All others know what
it says of a Placement, `Decisions`, and the cache its objects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from placement_ac.core.api.constants import SETTLE_SECONDS, Kind
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.objects import Meta, Placement, Scores
from placement_ac.core.api.shapes import SlottedModel

ScoreTable = Mapping[tuple[str, str], Scores]
"""(cluster, AddOnPlacementScore name) → its scores."""
DoubtAge = Callable[[str], float]
"""Returns for how many seconds a doubt about an object has lasted; 0: there was none."""
RankedBy = Literal["scores", "placement scores", "groups"]
"""The rank comes from the scores in decisions, from AddOnPlacementScores, or from decision groups alone."""


class RankedCluster(NamedTuple):
    """A cluster with the sum of its scores (0 if nothing scores) and its decision group."""

    cluster: str
    score: int
    group: int


class Doubt(NamedTuple):
    """Something that does not fit together in decisions."""

    about: str = ""
    """The object that it is about, if there may be several; its age is counted by that."""
    remark: str = ""
    """The text to report once it has lasted `SETTLE_SECONDS`; "": none."""
    passes: bool = False
    """Whether the source itself puts it right, sooner or later."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a source on one Placement, and its findings about them."""

    placement: Meta | None = None
    """The Placement; None: there is none."""
    by: str = ""
    """The source's name."""
    clusters: tuple[RankedCluster, ...] = ()
    """Every selected cluster once, the best first."""
    ranked_by: RankedBy = "groups"
    scored: frozenset[str] = frozenset()
    """Those of `clusters` that have a score, be it 0."""
    is_decided: bool = False
    """Whether it is decided what is selected: else nothing changes, while "no cluster" is a decision."""
    settle_seconds: float = SETTLE_SECONDS
    """How long a listed cluster stays that is not selected: a source may write one object after another."""
    malformed: str = ""
    """The objects that cannot be read, and why: they take nothing away."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Object → why it, or an entry of it, cannot be read."""
    doubts: tuple[Doubt, ...] = ()
    remarks: tuple[str, ...] = ()
    """Problems of the decisions as a whole, to be reported at once."""
    says: str = ""
    """The problems that the Placement's own conditions report."""
    says_none: str = ""
    """The same, shorter: without what `fix` explains."""
    fix: str = ""
    """The fix if no cluster is selected; "": the conditions do not say."""


@dataclass(frozen=True, slots=True)
class DecidedCluster(SlottedModel):
    """A cluster in a decision, as it is on the wire; a `score` of 0 may be left out."""

    cluster_name: str = ""
    score: int = 0


class Decision(NamedTuple):
    """An object on the hub by which a source selects clusters for a Placement in its namespace."""

    meta: Meta
    placement: str
    """The name of the Placement; "": it names none."""
    group: int
    decided: tuple[DecidedCluster, ...] | None
    """None: nothing is decided yet."""
    clusters: tuple[str, ...]
    """The names in `decided`; "" for an entry without one."""
    problem: str
    """Why it cannot be read; "": it can."""
    owner: str = ""
    """The uid of the Placement that owns it."""
    created: datetime | None = None

    def belongs_to(self, placement: Placement) -> bool:
        """Whether the Placement owns it; one in a file has no uid. Labels are easily copied."""
        return placement.meta.uid in ("", self.owner)


class DecisionSource(NamedTuple):
    """A source of decisions: the kind of its objects, and how they are read."""

    name: str
    """Who decides, as texts call it."""
    kind: Kind
    read: Callable[[Obj], Decision]
    """Returns an object of that kind; a shape that does not fit is a finding, never an exception."""
    confirmed: Callable[[Placement | None, Sequence[Decision]], Sequence[Decision]]
    """Returns those of a Placement's objects that nobody else can have forged."""
    decide: Callable[[Placement | None, Sequence[Decision], ScoreTable, datetime, DoubtAge], Decisions]
    """Returns the decisions on a Placement by the objects that name it in its namespace."""
