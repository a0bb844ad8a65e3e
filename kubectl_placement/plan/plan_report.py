"""
The effect of manifests: the document of `plan`, and the details of its output.

Plain data; `what_if` builds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.new_job import NewJob
from kubectl_placement.plan.preview import PlannedWrite

SetupVerb = Literal["create", "change", "delete"]
ObjectVerb = Literal["add", "change", "remove"]


@dataclass(frozen=True, slots=True)
class PlacementCondition:
    """A condition of a Placement, without its time."""

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
    """The condition of an AdmissionCheck now (None: it has none) and after the change."""

    name: str
    before: CheckCondition | None
    after: CheckCondition


@dataclass(frozen=True, slots=True)
class AffectedWorkload:
    """A Workload that runs or waits on a cluster that leaves."""

    namespace: str
    name: str
    queue: str
    cluster: str
    state: Literal["running", "waiting"]
    gpus: int


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """The effect on a Placement. Without a check of ours that names it, `order` is its decisions."""

    namespace: str
    name: str
    decisions: tuple[str, ...]
    """The selected clusters, group by group, in the order of the decisions."""
    groups: tuple[Object, ...]
    """As in `status.decisionGroups`."""
    conditions: tuple[PlacementCondition, ...]
    added: tuple[str, ...]
    """Clusters that join Kueue's list."""
    removed: tuple[str, ...]
    """Clusters that leave it: at once, or after their jobs have ended."""
    order: tuple[str, ...]
    """Kueue's final list."""
    writes: tuple[PlannedWrite, ...]
    """The controller's writes, in order."""
    affected: tuple[AffectedWorkload, ...]
    checks: tuple[CheckChange, ...]
    beyond: tuple[str, ...]
    """Selected and usable, but beyond the last slot."""
    unusable: Mapping[str, str]
    """Selected clusters that are left out → why."""
    draining: tuple[str, ...]
    """Clusters that stay listed for now because of their jobs."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownPlacement:
    """A Placement for which OCM would decide again, and why its decision is unknown."""

    namespace: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """The effect of a manifest on its object."""

    verb: Literal["create", "change", "none"]
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class SetupQuota:
    """The quota of a ClusterQueue on a worker; None: there is none."""

    flavor: str
    resource: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class SetupObject:
    """An object that is put onto a worker, changed or removed there. `quota`: of a ClusterQueue."""

    verb: ObjectVerb
    kind: str
    namespace: str
    name: str
    quota: tuple[SetupQuota, ...] = ()


@dataclass(frozen=True, slots=True)
class SetupChange:
    """The effect on the ManifestWork of a cluster. delete: when it has left the list, after the retention."""

    cluster: str
    verb: SetupVerb
    objects: tuple[SetupObject, ...]


@dataclass(frozen=True, slots=True)
class QuotaSum:
    """The quota of a resource on the hub, and the sum of that on the workers that are listed in the end."""

    queues: tuple[str, ...]
    """The ClusterQueues of the hub whose jobs share the workers' queues."""
    resource: str
    on_hub: str
    before: str | None
    """The sum now; None: it is not known of any."""
    after: str
    workers: int
    """How many listed workers it is of."""
    unknown: tuple[str, ...]
    """The listed clusters whose quota is not known."""
    problem: str
    """That the hub has more than its workers, or less than half of it; "": neither."""
    fix: str
    """The command that sets the quota of the hub then."""


@dataclass(frozen=True, slots=True)
class PlannedPlacement:
    """The plan of a Placement, and the details that the table shows."""

    plan: PlacementPlan
    changed: bool
    listed: bool
    """Whether a check of ours names it."""
    clusters_max: int
    """How many clusters Kueue takes in one list."""
    jobs_known: bool
    """Whether the jobs on the clusters that leave are known."""
    other_jobs: Mapping[str, int]
    """Cluster that leaves → how many Workloads of other checks run there."""
    cluster_details: Mapping[str, str]
    """Cluster → its score and its credentials, as text."""


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The effect of the manifests."""

    entries: tuple[PlannedPlacement, ...]
    unknown: tuple[UnknownPlacement, ...]
    """They are in no entry."""
    objects: tuple[ObjectChange, ...]
    passed_over: tuple[str, ...]
    warnings: tuple[str, ...]
    jobs: tuple[NewJob, ...]
    """The Jobs and Workloads, which are no change of the hub's configuration."""
    after: HubView
    """The hub with the manifests and OCM's decisions applied, before the controller's writes."""
    setups: tuple[SetupChange, ...] = ()
    """The ManifestWorks that change, by cluster."""
    quota: tuple[QuotaSum, ...] = ()
    """The sums of quota that change."""

    @property
    def changed(self) -> bool:
        changed = any(entry.changed for entry in self.entries) or bool(self.setups)
        return changed or any(obj.verb != "none" for obj in self.objects)
