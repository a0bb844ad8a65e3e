"""
The plain data that flows: what one decision is made of, and what it comes to.

No logic beyond reading what is there; no I/O, no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from placement_ac.model import Check, Decision, KueueObject, Placement
from placement_ac.names import CLUSTERS_MAX, PER_PLACEMENT, SHARED
from placement_ac.rank import ScoreTable


@dataclass(frozen=True, slots=True)
class Key:
    """What is reconciled as one: everything of one Placement, or one check without a usable Placement."""

    kind: Literal["placement", "check"]
    name: str


@dataclass(frozen=True, slots=True)
class Source:
    """How Kueue gets into a cluster: a Secret in its namespace, or a ClusterProfile there."""

    kind: Literal["Secret", "ClusterProfile"]
    name: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a cluster cannot be used, for a person to act on."""

    why: str


Credentials = Mapping[str, Source | Unusable]
"""Managed cluster → the way in, or why there is none."""


@dataclass(frozen=True, slots=True)
class HubFacts:
    """What the hub and the settings say once for all: limits, versions, the form of names."""

    check_version: str = "kueue.x-k8s.io/v1beta2"
    """apiVersion of AdmissionChecks."""
    cluster_version: str = "v1beta2"
    """Version of MultiKueueCluster."""
    clusters_max: int = CLUSTERS_MAX
    namespace: str = "kueue-system"
    """Where Placements are looked for."""
    naming: str = PER_PLACEMENT

    def cluster_object(self, placement: str, cluster: str) -> str:
        """Return the MultiKueueCluster's name for a Placement's cluster."""
        return self.naming.format(placement=placement, cluster=cluster)

    def cluster_of(self, placement: str, name: str) -> str:
        """Return the cluster that a Placement's MultiKueueCluster is for: the inverse of `cluster_object`."""
        return name if self.shared else name.removeprefix(f"{placement}-")

    @property
    def shared(self) -> bool:
        """Whether one MultiKueueCluster serves all Placements."""
        return self.naming == SHARED


@dataclass(frozen=True, slots=True)
class Pair:
    """A Placement and one of its clusters."""

    placement: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one key depends on, taken in one go."""

    name: str
    """The Placement's name, which is the MultiKueueConfig's."""
    now: datetime
    hub: HubFacts = HubFacts()
    checks: tuple[Check, ...] = ()
    """Ours that name the Placement (or the one check with unusable parameters), by name."""
    users: tuple[Check, ...] = ()
    """Kueue's checks whose parameters name the MultiKueueConfig."""
    holders: tuple[Check, ...] = ()
    """Ours that own objects here while their parameters are unusable."""
    placement: Placement | None = None
    decisions: tuple[Decision, ...] = ()
    scores: ScoreTable = field(default_factory=dict)
    credentials: Credentials = field(default_factory=dict)
    config: KueueObject | None = None
    """The MultiKueueConfig of that name, whoever made it."""
    clusters: Mapping[str, KueueObject] = field(default_factory=dict)
    """MultiKueueClusters by name: those that may be wanted and those that are this Placement's."""
    rivals: Mapping[str, Pair] = field(default_factory=dict)
    """MultiKueueCluster name → another Placement and usable cluster that make it too and come first."""
    others: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """MultiKueueCluster name → owners (uid → name) that other Placements which list it, or are about to,
    give it; only when shared."""
    listed_elsewhere: frozenset[str] = frozenset()
    """MultiKueueClusters that other MultiKueueConfigs of ours list: Kueue would never get over their loss."""
    pending_for: Mapping[str, float] = field(default_factory=dict)
    """Cluster → seconds since it was first seen to go without OCM having settled it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition `Active` that a check gets."""

    status: Literal["True", "False"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WantedCluster:
    """A MultiKueueCluster that must be there. `source` None: its spec stays as it is."""

    name: str
    cluster: str
    source: Source | None
    owners: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WantedConfig:
    """The MultiKueueConfig that must be there, its clusters in order."""

    name: str
    clusters: tuple[str, ...]
    owners: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What one Placement calls for."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """AdmissionCheck name → its verdict."""
    config: WantedConfig | None = None
    clusters: tuple[WantedCluster, ...] = ()
    pending: tuple[str, ...] = ()
    """Listed clusters that go, or would, without OCM having settled it: the next snapshot tells their age."""
    recheck_after: float | None = None
    """Seconds after which the answer may change although nothing happens; None: it will not."""
