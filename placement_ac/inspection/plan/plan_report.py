"""
What would become of Placements: the document of `plan`, and what is told beside it.

Plain data; `whatif` makes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from placement_ac.inspection.hub.dump import Object
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.plan.preview import PlannedWrite


@dataclass(frozen=True, slots=True)
class PlacementCondition:
    """A condition of a Placement, less its time."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckCondition:
    """The condition `Active` of an AdmissionCheck."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckChange:
    """What an AdmissionCheck says now (None: nothing yet), and what it would."""

    name: str
    before: CheckCondition | None
    after: CheckCondition


@dataclass(frozen=True, slots=True)
class AffectedWorkload:
    """A Workload that runs, or waits, on a cluster that is to be removed."""

    namespace: str
    name: str
    queue: str
    cluster: str
    state: Literal["running", "waiting"]
    gpus: int


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """What would become of a Placement. Where no check of ours names it, its decisions stand for the list."""

    namespace: str
    name: str
    decisions: tuple[str, ...]
    """Its clusters, group by group, in the order of the decisions."""
    groups: tuple[Object, ...]
    """As in `status.decisionGroups`."""
    conditions: tuple[PlacementCondition, ...]
    added: tuple[str, ...]
    """Clusters that come onto Kueue's list."""
    removed: tuple[str, ...]
    """Clusters that leave it: at once, or when their jobs have ended."""
    order: tuple[str, ...]
    """Kueue's list as it will be in the end."""
    writes: tuple[PlannedWrite, ...]
    """What the controller would write, in that order."""
    affected: tuple[AffectedWorkload, ...]
    checks: tuple[CheckChange, ...]
    beyond: tuple[str, ...]
    """Selected and usable, but after the last seat."""
    unusable: Mapping[str, str]
    """Selected clusters that are left out, and why."""
    draining: tuple[str, ...]
    """Clusters that stay listed for now as jobs are there."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What applying a manifest does to its object."""

    verb: Literal["create", "change", "none"]
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PlannedPlacement:
    """The plan of a Placement, and what is told of its clusters beside it."""

    plan: PlacementPlan
    changed: bool
    listed: bool
    """Whether a check of ours names it: otherwise its decisions are all there is."""
    clusters_max: int
    """How many clusters Kueue takes."""
    jobs_known: bool
    """Whether it is known which jobs are on the clusters that leave."""
    cluster_details: Mapping[str, str]
    """Cluster → its score and its credentials, in words."""


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What the manifests would change."""

    entries: tuple[PlannedPlacement, ...]
    objects: tuple[ObjectChange, ...]
    passed_over: tuple[str, ...]
    warnings: tuple[str, ...]
    after: HubView
    """The hub with the manifests applied and OCM's answer to them, before the controller has written."""

    @property
    def changed(self) -> bool:
        return any(one.changed for one in self.entries) or any(one.verb != "none" for one in self.objects)
