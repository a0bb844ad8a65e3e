"""
Where decisions come from: the clusters that a Placement selects, best first.

Pure data. A source of decisions is one module of this folder, in one `DecisionSource`. All others know its
`Decisions`, and the cache its `DecisionObject`s.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from placement_ac.core.api.constants import SETTLE_SECONDS, Kind
from placement_ac.core.api.objects import Meta, Placement, Scores
from placement_ac.core.api.schemas import Raw

ScoreTable = Mapping[tuple[str, str], Scores]
"""(cluster, AddOnPlacementScore name) → its scores."""
RankedBy = Literal["scores", "placement scores", "groups"]
"""What ranks clusters: the scores in the decisions, AddOnPlacementScores, or decision groups alone."""


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
    """What to report once it has lasted `SETTLE_SECONDS`; "": nothing."""
    passes: bool = False
    """Whether the source itself puts it right, sooner or later."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a source has decided for one Placement, and what it says about it."""

    placement: Meta | None = None
    """The Placement; None: there is none."""
    by: str = ""
    """Who decides."""
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
    """What to do if no cluster is selected; "": the conditions do not say."""


class DecisionObject(Protocol):
    """An object on the hub by which a source selects clusters for a Placement in its namespace."""

    @property
    def meta(self) -> Meta: ...
    @property
    def placement(self) -> str:
        """The name of the Placement; "": it names none."""

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names that it holds; "" for an entry without one."""

    def belongs_to(self, placement: Placement) -> bool:
        """Whether it is the Placement's own. Labels are easily copied, and it may be of a former one."""


D = TypeVar("D", bound=DecisionObject)


@dataclass(frozen=True, slots=True)
class DecisionSource(Generic[D]):
    """A source of decisions: the kind of its objects, and how they are read."""

    kind: Kind
    read: Callable[[Raw], D]
    """Returns an object of that kind; a shape that does not fit is a finding, never an exception."""
    confirmed: Callable[[Placement | None, Sequence[D]], Sequence[D]]
    """Returns those of a Placement's objects that nobody else can have forged."""
    decide: Callable[[Placement | None, Sequence[D], ScoreTable, datetime, Callable[[str], float]], Decisions]
    """Returns the decisions on a Placement.

    It gets the objects in the Placement's namespace that name it, the scores of clusters, the time, and a
    function that returns for how many seconds a doubt about an object has lasted.
    """
