"""
The inputs and the outputs of one decision, as plain data.

No logic beyond reading what is there; no I/O, no clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, auto
from typing import Any, Final, Literal, NamedTuple

from placement_ac.core.api.constants import (
    CLUSTERS_MAX,
    DRAIN,
    PER_PLACEMENT,
    REORDER_MARGIN,
    REORDER_SECONDS,
    RETENTION_SECONDS,
    SHARED,
    SPARE_CLUSTERS,
    RemovalPolicy,
)
from placement_ac.core.api.list_change import ListChange
from placement_ac.core.api.objects import (
    CapacityProvider,
    Check,
    ClusterTaint,
    KueueObject,
    ManagedCluster,
    Workload,
)
from placement_ac.core.decisions.source import Decisions
from placement_ac.core.inputs.capacity import CapacityInputs
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.identity import Identities
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.rights import UNKNOWN_KUEUE, RunningKueue
from placement_ac.core.inputs.unknown_copies import UnknownCopiesByCredentials
from placement_ac.core.kubeconfig.source import CredentialsByCluster, CredentialSource
from placement_ac.core.maintenance.window import MaintenanceWindow

Body = dict[str, Any]
"""An object, or a part of one, as it goes over the wire."""
NOTHING: Final[Mapping[Any, Any]] = {}
"""An empty mapping, for defaults."""


class Key(NamedTuple):
    """The unit of reconciliation: a Placement, what names none (a check, a CapacityProvider), or a cluster.

    A cluster has two: one for what is made for it, and one for its scores.

    A Placement's name is that in the first watched namespace that has it.
    """

    kind: Literal["placement", "check", "provider", "cluster", "score"]
    name: str


@dataclass(frozen=True, slots=True)
class HubFacts:
    """Facts from the hub and the settings that are the same for all keys: limits, versions, names."""

    check_version: str = "kueue.x-k8s.io/v1beta2"
    """apiVersion of AdmissionChecks."""
    cluster_version: str = "v1beta2"
    """Version of MultiKueueCluster."""
    clusters_max: int = CLUSTERS_MAX
    namespaces: tuple[str, ...] = ("kueue-system",)
    """Where Placements are looked for: the first that has one of the name counts."""
    naming: str = PER_PLACEMENT
    kueue: RunningKueue = UNKNOWN_KUEUE
    """The hub's Kueue; nothing is known of it where that is of no use."""

    @property
    def provisioned_max(self) -> int:
        """The number of clusters of one Placement that get credentials from us, if all become usable."""
        return self.clusters_max + SPARE_CLUSTERS

    def multikueue_cluster_name(self, placement: str, cluster: str) -> str:
        """Return the MultiKueueCluster's name for a Placement's cluster."""
        return self.naming.format(placement=placement, cluster=cluster)

    def cluster_of(self, placement: str, name: str, obj: KueueObject | None = None) -> str:
        """Return the cluster of a Placement's MultiKueueCluster: by the label of `obj` if it has one."""
        if obj and obj.cluster:
            return obj.cluster
        return name if self.shared else name.removeprefix(f"{placement}-")

    def is_for(self, placement: str, name: str) -> bool:
        """Whether a MultiKueueCluster of that name may be one of the Placement's."""
        return self.shared or name.startswith(f"{placement}-")

    @property
    def takes_profiles(self) -> bool:
        """Whether MultiKueueCluster has `clusterSource`, from v1beta2 on, instead of `kubeConfig`."""
        return self.cluster_version != "v1beta1"

    @property
    def shared(self) -> bool:
        """Whether one MultiKueueCluster serves all Placements."""
        return self.naming == SHARED


def is_shared(name: str, cluster: str) -> bool:
    """Whether a MultiKueueCluster of that name, for that cluster, serves all Placements."""
    return name == cluster


def ignore_rule_problem(rule: str, problem: str) -> None:
    """Report the problem of a filter or score to nobody."""


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """The settings for removal, order, dispatching and warnings. Times are in seconds."""

    removal: RemovalPolicy = DRAIN
    drain_deadline: float | None = None
    waiting_grace: float = 60.0
    settle: float = 0.0
    """For how long the selection must be the same before clusters are removed, if it was not before."""
    retention: float = RETENTION_SECONDS
    loss_share: float = 0.5
    loss_grace: float = 300.0
    reorder_margin: int = REORDER_MARGIN
    reorder_interval: float = REORDER_SECONDS
    retry_waiting_after: float | None = None
    """How long a job with quota waits for a usable cluster before it is sent back; None: for ever."""
    dispatcher: bool = False
    unlist_after: float = 0.0
    """How long a cluster that is no longer selected stands by; 0 without the dispatcher."""
    step_size: int = 3
    dispatch_profile: str = "ranked"
    """The profile by which clusters are scored, for checks without one of their own."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Label key of nodes → the label of clusters, or `claim:` and the ClusterClaim, that has its value."""
    job_taints: tuple[str, ...] = ()
    """Keys of ManagedClusters' taints that jobs must tolerate, too; one may end in `*`."""
    cost_labels: tuple[str, ...] = ()
    """The label of clusters, or `claim:` and the ClusterClaim, with their price; a second one: per GPU."""
    gpus: frozenset[str] = frozenset()
    """The resources that count as GPUs."""
    judged_at_once: int | None = None
    """How many jobs a plan judges at most, fewer large ones; None: all."""
    report_rule_problem: Callable[[str, str], None] = ignore_rule_problem
    """Gets the name of a filter or score that fails, and what is wrong with it."""
    avoid_after_failure: float = 0.0
    """How long a job avoids a cluster where it failed; 0: failures are not remembered."""
    expiry_warning: float = 604800.0
    """How long before credentials expire an event warns of it."""
    probe: bool = False
    """Whether clusters are probed before they are listed."""
    identify: bool = False
    """Whether workers are asked for what tells one from another, before they are listed."""
    guards_copies: bool = False
    """Whether workers are asked for copies that Kueue would delete, before they are listed."""


class SinceKind(StrEnum):
    """Things with an age; the comment gives the subject."""

    REMOVAL_UNSETTLED = auto()  # a listed cluster that would go, though OCM has not settled it
    DECISIONS_DISAGREE = auto()  # decisions do not fit together, and their source will put that right
    DECISIONS_DOUBTED = auto()  # decisions that may not be the source's own: the object, or all of them
    CREDENTIALS_MISSING = auto()  # credentials by others have vanished, and ours replace them
    CREDENTIALS_UNNEEDED = auto()  # nobody needs the credentials that we made
    SETUP_UNNEEDED = auto()  # nobody needs the set-up of a worker
    SETUP_WRITTEN = auto()  # the set-up of a worker is of one generation
    ALLOCATABLE_CHANGED = auto()  # the amounts that a cluster can allocate now, other than its quota follows
    PROVISIONED_UNUSABLE = auto()  # a cluster that is to get credentials from us, but is not usable
    MASS_LOSS = auto()  # too many clusters would go at once
    LISTED_BEFORE = auto()  # the clusters of the list before the first loss; 0 or 1 in turn
    PLACEMENT_NAMESPACE = auto()  # the namespace of the Placement
    PLACEMENT_GENERATION = auto()  # uid of the Placement; its generation
    PLACEMENT_EDITED = auto()  # the same, when it has just changed
    GATE_CLOSED_FOR = auto()  # a cluster for which the gate is closed
    GATE_CLOSED = auto()  # the gate is closed, for whichever cluster
    GATE_REOPENED = auto()  # the gate was closed for too long, and is open for a while
    QUIET = auto()  # a cluster where nothing runs and nothing waits
    WITHDRAWN = auto()  # a cluster where none that must leave is nominated any more (our dispatcher)
    MADE_READY = auto()  # uid of a Workload that became Ready because a cluster holds a copy of it
    BEING_UNLISTED = auto()  # a cluster that the next list does not hold
    JUST_UNLISTED = auto()  # a cluster that the list has just lost
    SECOND_NAME = auto()  # a listed cluster that is the same worker as another one
    IDENTITY_AWAITED = auto()  # a cluster that is to be listed when it is known which worker it is
    COPIES_AWAITED = auto()  # a cluster that is to be listed when its worker has said whose jobs run there
    UNLISTED = auto()  # a cluster that was unlisted in the last hour
    UNKNOWN_COPIES = auto()  # a listed cluster whose worker has running jobs of our origin that are not ours
    SELECTION = auto()  # the names of the MultiKueueClusters whose clusters are selected
    FLAPPING = auto()  # the same, if the selection before it was short
    DESELECTED = auto()  # a listed cluster that leaves or stands by
    STANDING_BY = auto()  # a cluster that stands by: nothing runs or waits there
    RETAINED = auto()  # a MultiKueueCluster that is no longer listed
    LIST_ORDER = auto()  # the names of the list in their order
    NO_CLUSTER = auto()  # uid of a Workload with quota that no cluster can take
    JUDGED = auto()  # uid of a Workload that was judged, while there are too many for one plan; how often
    NOMINATION_ROUND = auto()  # uid of a Workload; the number of clusters that it is nominated to
    FACTS_AWAITED = auto()  # a MultiKueueCluster whose worker is asked for its queues, and has not answered
    QUEUE_LACKING = auto()  # a listed MultiKueueCluster, namespace and name of a queue without quota there
    SILENT = auto()  # a listed MultiKueueCluster whose worker did not answer the last question in time
    DISCONNECTED = auto()  # a listed MultiKueueCluster that Kueue has lost; its reason
    QUOTA_UNKNOWN = auto()  # a listed cluster whose quota is not known, for a CapacityProvider
    TRIES = auto()  # a quarantined cluster and uid of a Workload that is nominated there since one may try it
    QUARANTINED = auto()  # a cluster that the dispatcher sends no new job to
    CLUSTERS_UNUSABLE = auto()  # the message of an event about unusable clusters
    CLUSTERS_LACK = auto()  # the message of an event about listed clusters that lack something


class Since(NamedTuple):
    """Something whose age matters: a plan names it while it lasts, the next snapshot gives its age."""

    kind: SinceKind
    subject: str = ""
    number: int = 0
    """With another number, it is another age."""


Ages = Mapping[Since, float]
"""Seconds since each began."""


@dataclass(frozen=True, slots=True)
class WorkerCopies:
    """The copies of this hub's Workloads that a worker reported; `problem`: why it could not be asked."""

    copies: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """(namespace, name) → whether it holds quota there."""
    problem: str = ""
    age: float = 0.0
    """Seconds since the question."""


class ProbeRequest(NamedTuple):
    """A cluster to probe, and the credentials for it."""

    cluster: str
    source: CredentialSource


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a cluster's probe, and the credentials that were used."""

    fitness: Fitness
    source: CredentialSource
    version: str
    """Of what was in the Secret then."""
    age: float = 0.0
    """Seconds since the question."""


@dataclass(frozen=True, slots=True)
class PlacementCluster:
    """A Placement and one of its clusters."""

    placement: str
    """As namespace/name."""
    cluster: str


@dataclass(frozen=True, slots=True)
class Checks:
    """The AdmissionChecks that use a Placement or its MultiKueueConfig."""

    ours: tuple[Check, ...] = ()
    """Ours that name the Placement (or the one check with unusable parameters), by name."""
    multikueue: tuple[Check, ...] = ()
    """Kueue's checks whose parameters name the MultiKueueConfig."""
    former: tuple[Check, ...] = ()
    """Ours that own objects of the Placement, but whose parameters are unusable now."""
    moved: tuple[Check, ...] = ()
    """Those, of whichever controller, that own the MultiKueueConfig and name another one now; only if no
    check uses it."""


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """Which Placement of a name is in use, where several namespaces may have one."""

    namesakes: tuple[str, ...] = ()
    """The namespaces in which Placements of that name are not used; none if a check names its namespace."""
    is_recorded: bool = True
    """Whether a restart chooses this Placement again, by the MultiKueueConfig or as the first of its name."""
    contradicting: tuple[str, ...] = ()
    """The checks whose annotation names another namespace."""
    named_home: str = ""
    """The namespace of the Placement, if an annotation of a check names it."""


@dataclass(frozen=True, slots=True)
class ClusterCredentials:
    """The credentials of clusters, or why they have none."""

    selected: CredentialsByCluster = field(default_factory=dict)
    """Of the clusters that OCM has decided on."""
    unselected: CredentialsByCluster = field(default_factory=dict)
    """Of clusters that are listed though not selected."""
    provisioned: bool = False
    """Whether we provision those that nobody else has put on the hub, or set up workers."""

    def usable(self, cluster: str) -> CredentialSource | None:
        """Return the usable credentials of a cluster that is selected or listed."""
        source = self.selected.get(cluster) or self.unselected.get(cluster)
        return source if isinstance(source, CredentialSource) else None


@dataclass(frozen=True, slots=True)
class KueueObjects:
    """The MultiKueueConfig and the MultiKueueClusters that matter to a Placement."""

    config: KueueObject | None = None
    """The MultiKueueConfig of the Placement's name, ours or not."""
    clusters: Mapping[str, KueueObject] = field(default_factory=dict)
    """MultiKueueClusters by name: those that may be wanted and those that are this Placement's."""
    name_conflicts: Mapping[str, PlacementCluster] = field(default_factory=dict)
    """MultiKueueCluster name → another Placement and usable cluster that use this name and come first."""
    unneeded: frozenset[str] = frozenset()
    """The shared MultiKueueCluster of the key's name, if no Placement selects or lists it: this key
    removes it."""
    listed_elsewhere: frozenset[str] = frozenset()
    """MultiKueueClusters that other MultiKueueConfigs of ours list: Kueue would never get over their loss."""

    @property
    def listed(self) -> tuple[str, ...]:
        """The names that the MultiKueueConfig lists now, if it is ours."""
        return self.config.listed if self.config and self.config.ours else ()


@dataclass(frozen=True, slots=True)
class FleetState:
    """The state of the worker clusters themselves."""

    deleted_clusters: frozenset[str] = frozenset()
    """Clusters that have no ManagedCluster (any more)."""
    unreachable: frozenset[str] = frozenset()
    """Clusters that OCM cannot reach."""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Cluster → the labels of its ManagedCluster and, with the prefix `claim:`, its ClusterClaims; only for
    our dispatcher."""
    taints: Mapping[str, tuple[ClusterTaint, ...]] = field(default_factory=dict)
    """Cluster → the taints of its ManagedCluster; only for our dispatcher."""
    last_by_group: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Namespace and group of Workloads → the cluster on which the last one of it was placed; only for our
    dispatcher."""
    worker_copies: Mapping[str, WorkerCopies] = field(default_factory=dict)
    """MultiKueueCluster name → the copies that the cluster reported last."""
    queue_facts: Mapping[str, WorkerFacts] = field(default_factory=dict)
    """MultiKueueCluster name → the queues that the cluster reported last; only for our dispatcher,
    and for CapacityProviders."""
    probe_results: Mapping[str, ProbeResult] = field(default_factory=dict)
    """Cluster → the result of its last probe."""
    identities: Identities = field(default_factory=dict)
    """Credentials → the identity that their worker has shown, of all that were used."""
    unknown_copies: UnknownCopiesByCredentials = field(default_factory=dict)
    """Credentials → the copies of our origin on their worker that this hub does not have."""
    managed: Mapping[str, ManagedCluster] = field(default_factory=dict)
    """Cluster → its ManagedCluster."""
    setup_remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cluster → what is to be said of its queues, if we set up workers."""
    maintenance: Mapping[str, MaintenanceWindow] = field(default_factory=dict)
    """Cluster → until when jobs may run there, by the annotation of its ManagedCluster."""
    maintenance_problems: Mapping[str, str] = field(default_factory=dict)
    """Cluster → what to correct in that annotation: it is ignored."""
    quarantined: Mapping[str, str] = field(default_factory=dict)
    """Cluster → why no new job is sent there: jobs keep failing."""
    quarantined_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Quarantined cluster → the namespaces whose jobs alone are not sent there, if not all are."""
    retry_at: Mapping[str, datetime] = field(default_factory=dict)
    """Quarantined cluster → when one job may try it; not those that an admin has quarantined."""
    reliability: Mapping[str, float] = field(default_factory=dict)
    """Cluster → the share of its jobs that did not end because of it, 0 to 1; only where at least five
    ended."""
    avoided: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    """Uid of a Workload → the clusters where that job failed, and until when they come last."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one key depends on, taken at one moment."""

    name: str
    """The Placement's name, which is the MultiKueueConfig's; "" for a check without a usable Placement."""
    now: datetime
    hub: HubFacts = HubFacts()
    policy: PlacementPolicy = PlacementPolicy()
    checks: Checks = Checks()
    decisions: Decisions = field(default_factory=Decisions)
    choice: PlacementChoice = PlacementChoice()
    credentials: ClusterCredentials = ClusterCredentials()
    objects: KueueObjects = KueueObjects()
    fleet: FleetState = FleetState()
    workloads: tuple[Workload, ...] = ()
    """Unfinished Workloads that carry one of the checks, ours or Kueue's.

    Of checks that have moved, those that do not run where the MultiKueueConfig has them that is named now.
    """
    capacity: CapacityInputs = field(default_factory=CapacityInputs)
    all_ages: Ages = field(default_factory=dict)

    def age(self, since: Since) -> float:
        """Return the seconds since it began; 0 if it has not."""
        return self.all_ages.get(since, 0.0)

    def ages(self, kind: SinceKind) -> dict[str, float]:
        """Return subject → seconds, for each of that kind that has begun."""
        return {since.subject: age for since, age in self.all_ages.items() if since.kind is kind}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition `Active` that a check gets."""

    status: Literal["True", "False"]
    reason: str
    message: str


class WantedCluster(NamedTuple):
    """A MultiKueueCluster that must exist. `source` None: its spec stays as it is."""

    name: str
    cluster: str
    source: CredentialSource | None
    owners: Mapping[str, str]


class WantedConfig(NamedTuple):
    """The MultiKueueConfig that must exist, its clusters in order."""

    name: str
    clusters: tuple[str, ...]
    owners: Mapping[str, str]
    draining: Mapping[str, datetime] = NOTHING
    """Those of `clusters` that leave → since when."""
    placement: str = ""
    """NAMESPACE/UID of the Placement in use, where several namespaces may have one of its name."""
    is_recorded: bool = True
    """Whether this need not be written: a restart chooses the same Placement."""
    second_names: Mapping[str, str] = NOTHING
    """Clusters that are left out → those that are the same workers, as their connections have shown."""


@dataclass(frozen=True, slots=True)
class CheckStateUpdate:
    """The state that an entry of a Workload's `status.admissionChecks` gets."""

    workload: Workload
    check: str
    state: Literal["Pending", "Ready", "Retry"]
    message: str
    requeue_after: int | None = None
    """For `Retry`: the seconds that Kueue waits before it tries again; None: Kueue decides."""


@dataclass(frozen=True, slots=True)
class EventIntent:
    """An event to be posted on the checks, and on the Workloads that it names."""

    reason: str
    message: str
    """Where it names Workloads, their names follow."""
    after: Literal["success", "list", "answers"] = "success"
    """The write that must have been done: of the MultiKueueConfig, or of an entry in a Workload named here.

    "success": the event is about a state that lasts, not about a write; none has failed.
    """
    workloads: tuple[Workload, ...] = ()
    to_each: tuple[str, str] = ("", "")
    """Reason and message of the event on each of them."""
    change: ListChange | None = None
    """The change of the list that it is about, as data."""


class WantedCapacity(NamedTuple):
    """The status that a CapacityProvider of ours is to get."""

    provider: CapacityProvider
    status: Body


class HeldWorkloads(NamedTuple):
    """Workloads with quota that no cluster gets for now, because the same clusters leave."""

    check: str
    """Our check, whose entry is Pending."""
    clusters: tuple[str, ...]
    """The clusters that leave, by name."""
    number: int
    """Of Workloads."""
    since: datetime | None
    """When the first of them had both quota and a Pending entry; None: no time can be read."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects, conditions, answers and events that one Placement calls for."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """AdmissionCheck name → its verdict."""
    selected: tuple[str, ...] = ()
    """The clusters that OCM has decided on, best first."""
    unusable: tuple[str, ...] = ()
    """Those of them that cannot be used."""
    drain_states: Mapping[str, str] = field(default_factory=dict)
    """Clusters that leave → the state of the drain, in lower case."""
    config: WantedConfig | None = None
    clusters: tuple[WantedCluster, ...] = ()
    to_provision: frozenset[str] | None = None
    """The selected clusters that get credentials from us; None: all of them."""
    retained: frozenset[str] = frozenset()
    """MultiKueueClusters that are no longer needed, but stay for a while as they are."""
    check_state_updates: tuple[CheckStateUpdate, ...] = ()
    held: tuple[HeldWorkloads, ...] = ()
    """The Workloads that the gate holds, by check and by the clusters that leave."""
    nominations: tuple[tuple[Workload, tuple[str, ...]], ...] = ()
    """Workloads, each with the clusters on which it may wait, as our dispatcher chooses them."""
    unfit: tuple[tuple[Workload, str], ...] = ()
    """Workloads with quota that no cluster fits, and why."""
    ignored: tuple[tuple[Workload, str], ...] = ()
    """Workloads with quota, each with what to correct in it: it is ignored."""
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Filter → how often it has refused a cluster to a Workload with quota that is not nominated yet."""
    capacities: tuple[WantedCapacity, ...] = ()
    """CapacityProviders whose status is to change."""
    ask_for_copies: tuple[str, ...] = ()
    """MultiKueueClusters whose clusters are to be asked for the copies that they hold."""
    ask_for_facts: tuple[str, ...] = ()
    """MultiKueueClusters whose clusters are to be asked for their queues."""
    probe_requests: tuple[ProbeRequest, ...] = ()
    """Clusters that are to be asked whether they are fit."""
    ask_for_identity: tuple[CredentialSource, ...] = ()
    """The credentials of workers that are to be asked for what tells them from others."""
    ask_for_unknown_copies: tuple[CredentialSource, ...] = ()
    """The credentials of workers that are to be asked for copies that this hub does not have."""
    events: tuple[EventIntent, ...] = ()
    config_events: Callable[[], tuple[EventIntent, ...]] = field(default=tuple, compare=False)
    """Returns the events about the write of the list: called after it was written."""
    lasting: frozenset[Since] = frozenset()
    """Those that last: the next snapshot gives the age of each."""
    requeue_after: float | None = None
    """Seconds after which the answer may change although nothing happens; None: it will not."""
