"""
The API objects as the controller knows them: small frozen data.

No I/O, no clock. `core.api.decode` reads them from JSON.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from placement_ac.core.api import schemas
from placement_ac.core.api.constants import (
    ANNOTATION_ADOPT,
    ANNOTATION_DRAINING,
    ANNOTATION_PLACEMENT,
    ANNOTATION_PLACEMENT_NAMESPACE,
    ANNOTATION_SECOND_NAMES,
    ANNOTATION_UNLIST,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    OUR_CONTROLLER,
    PLACEMENT,
    READY,
    Kind,
)
from placement_ac.core.api.fields import Obj, get_dict, get_str, parse_time
from placement_ac.core.api.job_spec import NO_JOB, JobSpec
from placement_ac.core.kubeconfig.servers import Endpoints


class Meta(NamedTuple):
    """The part of `metadata` that every object here has."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool

    @property
    def id(self) -> tuple[str, str]:
        return self.namespace, self.name


def named(parameters: schemas.Parameters | None, kind: Kind) -> str:
    """Return the name in `parameters` if they name an object of `kind`, else ""."""
    p = parameters
    return p.name if p and (p.api_group, p.kind) == (kind.group, kind.kind) else ""


@dataclass(frozen=True, slots=True)
class Check:
    """An AdmissionCheck, ours or not."""

    meta: Meta
    controller: str
    parameters: schemas.Parameters | None
    active: schemas.Condition | None
    problem: str

    @property
    def ours(self) -> bool:
        return self.controller == OUR_CONTROLLER

    @property
    def multikueue(self) -> bool:
        return self.controller == MULTIKUEUE_CONTROLLER

    def names(self, kind: Kind) -> str:
        """Return the name in `parameters` if they name an object of `kind`, else ""."""
        return named(self.parameters, kind)

    @property
    def placement(self) -> str:
        """The Placement that this check of ours names; "" when its parameters are unusable."""
        return self.names(PLACEMENT) if self.ours else ""

    @property
    def placement_namespace(self) -> str:
        """The namespace of its Placement, if an annotation says so."""
        return self.meta.annotations.get(ANNOTATION_PLACEMENT_NAMESPACE, "").strip()

    @property
    def config(self) -> str:
        """The MultiKueueConfig that this check of Kueue names; "" when it names none."""
        return self.names(MULTIKUEUE_CONFIG) if self.multikueue else ""


@dataclass(frozen=True, slots=True)
class AddOnPrioritizer:
    """A prioritizer of a Placement that counts an AddOnPlacementScore: `weight` times `score_name`."""

    resource_name: str
    score_name: str
    weight: int


@dataclass(frozen=True, slots=True)
class Placement:
    """An OCM Placement. `selected` is None as long as it has no status that can be read."""

    meta: Meta
    prioritizers: tuple[AddOnPrioritizer, ...]
    selected: int | None
    groups: tuple[schemas.DecisionGroup, ...]
    conditions: tuple[schemas.Condition, ...]
    problem: str
    created: datetime | None = None
    grouped: bool = False
    """Whether its decisions are spread over groups (`spec.decisionStrategy`)."""
    cluster_sets: tuple[str, ...] = ()
    """The ManagedClusterSets in `spec.clusterSets`."""
    number_of_clusters: int | None = None
    """`spec.numberOfClusters`; None: as many as there are."""
    has_predicates: bool = False


@dataclass(frozen=True, slots=True)
class SecretRef:
    """The reference of a ClusterProfile to the Secret for Kueue."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ClusterProfile:
    """A ClusterProfile of `cluster` ("": not OCM's): its Secret for Kueue, and its access providers.

    `providers`: the name of each, with its addresses.
    """

    meta: Meta
    cluster: str
    secrets: tuple[SecretRef, ...]
    providers: Mapping[str, Endpoints]
    problem: str


@dataclass(frozen=True, slots=True)
class AdmissionCheckState:
    """An entry of a Workload's `status.admissionChecks`; `since` is its lastTransitionTime."""

    check: str
    state: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Workload:
    """A Workload of Kueue: only what decides where it runs, as there may be 100,000 of them."""

    meta: Meta
    check_states: tuple[AdmissionCheckState, ...]
    has_quota: bool
    """Whether it holds quota on the hub (QuotaReserved).

    An evicted one may too: where Pods have run, Kueue ends an eviction only when a new copy has been made
    (measured on Kueue main), and Kueue makes no copy before our Ready.
    """
    cluster: str
    """The MultiKueueCluster that it was placed on; "" while it is on none."""
    nominated: tuple[str, ...]
    """The MultiKueueClusters on which a copy may wait."""
    active: bool
    finished: bool
    sent_back_from: str = ""
    """The cluster from which we sent it back, if that was its last eviction."""
    evicted_at: datetime | None = None
    """When its last eviction was, or a little later."""
    quota_since: datetime | None = None
    """Since when it holds quota on the hub."""
    nominated_since: datetime | None = None
    """When it was nominated last, or a little later, while it waits; None: `managedFields` does not say."""
    job: JobSpec = NO_JOB
    """Its wishes about the cluster; read only for our dispatcher."""
    label_values: tuple[str, ...] = ()
    """The values of its `job.label_keys`; read only for our dispatcher, and until it has finished."""
    job_name: str = ""
    """The name of its job; read only for our dispatcher, and while it waits."""
    same_job: str = ""
    """The same for all Workloads of one job; read only where failures are remembered."""

    def check_state(self, check: str) -> AdmissionCheckState | None:
        return next((answer for answer in self.check_states if answer.check == check), None)

    def label_value(self, key: str) -> str | None:
        """Return the value of a label; None: it is not set, or the Workload has finished."""
        keys, values = self.job.label_keys, self.label_values
        at = bisect_left(keys, key)
        return values[at] if at < len(values) and keys[at] == key else None

    @property
    def placed_since(self) -> datetime | None:
        """Since when it is on its cluster, or a little earlier: Kueue's check is the last to be Ready."""
        times = [state.since for state in self.check_states if state.state == READY and state.since]
        return max(times, default=None) if self.cluster else None

    @property
    def label(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.meta.namespace}/{self.meta.name}"


class ClusterTaint(NamedTuple):
    """A taint of a ManagedCluster."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class ManagedCluster:
    """A ManagedCluster: whether OCM can reach it, and where its API server is."""

    meta: Meta
    unreachable: bool
    cluster_set: str = ""
    """The ManagedClusterSet that its label names."""
    server: str = ""
    """The URL in its first client config; "": it has none."""
    authority: str = ""
    """The CA of that URL: PEM in base64; "": none is set."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels and, with the prefix `claim:`, its ClusterClaims; read only for our dispatcher and to set up
    workers."""
    maintenance: str = ""
    """The annotation that announces its maintenance; "": there is none."""
    deletes_unknown_copies: bool = False
    """Whether an admin consents that Kueue deletes the copies there that this hub does not have."""
    taints: tuple[ClusterTaint, ...] = ()
    """Read only for our dispatcher and to set up workers."""
    claim: str = ""
    """The value of its ClusterClaim `id.k8s.io`; "": it has none."""
    created: datetime | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)
    """Resource → what its nodes can allocate, in thousandths; read only to set up workers, and for the hub's
    quota."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AppliedFields:
    """The fields of an object that our field manager applied (`managedFields`): only these may we remove."""

    applied: bool = False
    """Whether it applied anything at all."""
    labels: frozenset[str] = frozenset()
    owner_uids: frozenset[str] = frozenset()
    draining: bool = False
    """Whether it applied our annotation of what leaves."""
    clusters: bool = False
    """Whether the clusters of a MultiKueueConfig are as it applied them: nobody else has set them."""
    changed_by: str = ""
    """The field manager that has changed what we applied of the `spec`; "" if nobody has."""
    second_names: bool = False
    """Whether it applied our annotation of second names."""


_set: Final = object.__setattr__
"""Sets the derived fields of a frozen object while it is built."""
_NONE: Final[Mapping[str, datetime]] = MappingProxyType({})
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WritableObject:
    """An object of a kind that we write, ours or not, with its `spec` as it is."""

    meta: Meta
    owners: Mapping[str, str]
    """The AdmissionChecks that own it: uid → name."""
    spec: Obj
    applied_fields: AppliedFields

    ours: bool = field(init=False, repr=False, compare=False)
    """Whether we made it or took it over: by its label or, if that was taken off, its managed fields."""

    def __post_init__(self) -> None:
        """Derive `ours` once: it is read often."""
        _set(
            self, "ours", self.meta.labels.get(LABEL_MANAGED_BY) == MANAGED_BY or self.applied_fields.applied
        )

    @property
    def handed_over(self) -> bool:
        """Whether an annotation of its owner hands it over to us."""
        return self.meta.annotations.get(ANNOTATION_ADOPT) == "true"


@dataclass(frozen=True, slots=True)
class Scores:
    """An AddOnPlacementScore: scores in [-100, 100] of the cluster whose namespace it is in."""

    meta: Meta
    values: Mapping[str, int]
    valid_until: datetime | None
    problem: str
    written: WritableObject | None = None
    """The same as an object that we may write; None: its name is another one."""


@dataclass(frozen=True, slots=True)
class KueueObject(WritableObject):
    """A MultiKueueConfig or MultiKueueCluster."""

    active: bool | None = None
    """Whether Kueue is connected to a MultiKueueCluster; None: not reported."""
    active_since: datetime | None = None
    """Since when `active` has been what it is."""
    active_reason: str = ""
    """The reason that Kueue gives for `active`."""

    placement: str = field(init=False, repr=False, compare=False)
    cluster: str = field(init=False, repr=False, compare=False)
    draining: Mapping[str, datetime] = field(init=False, repr=False, compare=False)
    """The names in a MultiKueueConfig that leave → since when, by our annotation."""
    second_names: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """The clusters left out of a MultiKueueConfig → those that are the same workers, by our annotation."""
    unlist: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The clusters, or their MultiKueueClusters, that an admin does not want to stand by."""
    listed: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The names in a MultiKueueConfig's `spec.clusters`."""
    source: tuple[str, str] = field(init=False, repr=False, compare=False)
    """The kind and name in a MultiKueueCluster's spec, in any version; ("", ""): none."""

    @property
    def placement_in_use(self) -> str:
        """NAMESPACE/UID of the Placement from which a MultiKueueConfig was made; "" if it does not say."""
        return self.meta.annotations.get(ANNOTATION_PLACEMENT, "") if self.ours else ""

    def __post_init__(self) -> None:
        WritableObject.__post_init__(self)
        labels, clusters = self.meta.labels, self.spec.get("clusters")
        _set(self, "placement", labels.get(LABEL_PLACEMENT, ""))
        _set(self, "cluster", labels.get(LABEL_CLUSTER, ""))
        _set(self, "draining", _draining(self.meta))
        _set(self, "second_names", _second_names(self.meta))
        _set(self, "unlist", tuple(filter(None, self.meta.annotations.get(ANNOTATION_UNLIST, "").split(","))))
        _set(self, "listed", tuple(map(str, clusters)) if isinstance(clusters, list) else ())
        _set(self, "source", _source(self.spec))


def _draining(meta: Meta) -> Mapping[str, datetime]:
    value = meta.annotations.get(ANNOTATION_DRAINING)
    if not value:
        return _NONE
    entries = (
        (name, parse_time(since)) for name, _, since in (entry.partition("=") for entry in value.split(","))
    )
    return {name: since for name, since in entries if since}


def _second_names(meta: Meta) -> Mapping[str, str]:
    value = meta.annotations.get(ANNOTATION_SECOND_NAMES)
    if not value:
        return _NO_NAMES
    pairs = (entry.partition("=") for entry in value.split(","))
    return {name: keeper for name, _, keeper in pairs if name and keeper}


def _source(spec: Obj) -> tuple[str, str]:
    source = get_dict(spec, "clusterSource") or spec
    if location := get_str(source, "kubeConfig", "location"):
        return get_str(source, "kubeConfig", "locationType") or "Secret", location
    profile = get_str(source, "clusterProfileRef", "name")
    return ("ClusterProfile", profile) if profile else ("", "")


@dataclass(frozen=True, slots=True)
class ProvisionedObject(WritableObject):
    """A ManagedServiceAccount or ClusterPermission in a managed cluster's namespace."""

    in_force: bool = False
    """Whether OCM has put it in force: the token reported, the rights granted."""
    problem: str = ""
    """OCM's messages on why it is not in force."""


@dataclass(frozen=True, slots=True)
class Secret(WritableObject):
    """A Secret, without its content. `problem`: what must change before Kueue can use it; "": nothing."""

    problem: str = ""
    digest: str = ""
    """SHA-256 of its kubeconfig, by which it is compared."""
    expires: datetime | None = None
    """When its token, client certificate or authority expires; None: never, or not known."""
    issued: datetime | None = None
    expires_what: str = ""
    """Which of them ends then: `expiry.TOKEN`, `CLIENT_CERTIFICATE` or `AUTHORITY`."""


@dataclass(frozen=True, slots=True)
class AccountToken:
    """The Secret in which OCM reports the token of a ManagedServiceAccount. Its repr shows no secret."""

    meta: Meta
    token: str = field(default="", repr=False)
    authority: bytes = field(default=b"", repr=False)
    """PEM: the CA of the worker's API server, as it looks from within."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HubQueue:
    """A ClusterQueue, LocalQueue or ResourceFlavor of the hub: only what a worker gets of it."""

    meta: Meta
    spec: Obj
    checks: frozenset[str] = frozenset()
    """The AdmissionChecks that a ClusterQueue lists."""


@dataclass(frozen=True, slots=True)
class CapacityProvider:
    """A CapacityProvider of Kueue's Dynamic Quota Orchestration, ours or not."""

    meta: Meta
    controller: str
    parameters: schemas.Parameters | None
    flavors: tuple[str, ...] = ()
    """The ResourceFlavors whose quota follows it."""
    capacity: Mapping[str, Obj] | None = None
    """Flavor → resource → amount as it is on the wire; None: none was published."""
    synchronized: schemas.Condition | None = None
    problem: str = ""

    @property
    def ours(self) -> bool:
        return self.controller == OUR_CONTROLLER

    @property
    def placement(self) -> str:
        """The Placement that one of ours names; "" when its parameters are unusable."""
        return named(self.parameters, PLACEMENT) if self.ours else ""


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A ConfigMap in Kueue's namespace that may be a template; `text` None: it has no such key."""

    meta: Meta
    text: str | None


ManifestKey = tuple[str, str, str]
"""Kind, namespace and name of an object in a ManifestWork."""


@dataclass(frozen=True, slots=True)
class ManifestState:
    """The report of OCM's work agent on one object in a ManifestWork; None: there is none yet."""

    applied: bool | None = None
    message: str = ""
    """Why it is not applied."""
    available: bool | None = None
    """Whether it exists on the worker."""
    values: Mapping[str, str | int] = field(default_factory=dict)
    """The feedback that the ManifestWork asks for, by name."""


@dataclass(frozen=True, slots=True)
class ManifestWork(WritableObject):
    """A ManifestWork, and what OCM's work agent reports of it."""

    created: datetime | None = None
    added: Mapping[ManifestKey, datetime] = field(default_factory=dict)
    """The LocalQueues that were added to it later, and when."""
    states: Mapping[ManifestKey, ManifestState] = field(default_factory=dict)
    applied_generation: int = 0
    """The generation that OCM's work agent has seen last."""


class ObjectVersion(NamedTuple):
    """The identity and version of an object: most events need no more."""

    namespace: str
    name: str
    uid: str
    resource_version: str
