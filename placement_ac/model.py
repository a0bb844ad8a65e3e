"""
What the controller knows of each API object: small frozen data, read from the wire.

No I/O, no clock. A shape that does not fit is told in `problem` (field and
finding); it never raises, so that one bad object cannot stop the others.
"""

import base64
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from placement_ac.names import (
    ANNOTATION_DRAINING,
    CONDITION_ACTIVE,
    CONSUMER,
    FIELD_MANAGER,
    KUBECONFIG_KEY,
    LABEL_CLUSTER,
    LABEL_GROUP_INDEX,
    LABEL_MANAGED_BY,
    LABEL_MANAGER,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    OCM_MANAGER,
    OUR_CONTROLLER,
    PLACEMENT,
    SENT_AGAIN,
    SENT_BACK,
    TAINT_UNREACHABLE,
    Kind,
)
from placement_ac.wire import (
    CheckSpec,
    Condition,
    Decided,
    DecisionStatus,
    Group,
    ManagedClusterSpec,
    Parameters,
    PlacementSpec,
    PlacementStatus,
    Policy,
    ProfileStatus,
    Raw,
    ScoreStatus,
    WorkloadStatus,
    read,
)

_SENT_BACK = re.compile("|".join(text.format(r"(\S+)") for text in (SENT_BACK, SENT_AGAIN)))
_NOTHING: Mapping[str, str] = {}
"""Shared by all objects whose labels nobody reads."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The part of `metadata` that every shape carries."""

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


@dataclass(frozen=True, slots=True)
class Check:
    """An AdmissionCheck, ours or not."""

    meta: Meta
    controller: str
    parameters: Parameters | None
    active: Condition | None
    problem: str

    @property
    def ours(self) -> bool:
        return self.controller == OUR_CONTROLLER

    @property
    def multikueue(self) -> bool:
        return self.controller == MULTIKUEUE_CONTROLLER

    def names(self, kind: Kind) -> str:
        """Return the name in `parameters` if they name an object of `kind`, else ""."""
        p = self.parameters
        return p.name if p and (p.api_group, p.kind) == (kind.group, kind.kind) else ""

    @property
    def placement(self) -> str:
        """The Placement that this check of ours names; "" when its parameters are unusable."""
        return self.names(PLACEMENT) if self.ours else ""

    @property
    def config(self) -> str:
        """The MultiKueueConfig that this check of Kueue's names; "" when it names none."""
        return self.names(MULTIKUEUE_CONFIG) if self.multikueue else ""


@dataclass(frozen=True, slots=True)
class AddOnPrioritizer:
    """A prioritizer of a Placement that counts an AddOnPlacementScore: `weight` times `score_name`."""

    resource_name: str
    score_name: str
    weight: int


@dataclass(frozen=True, slots=True)
class Placement:
    """An OCM Placement. `selected` is None as long as its status says nothing at all."""

    meta: Meta
    prioritizers: tuple[AddOnPrioritizer, ...]
    selected: int | None
    groups: tuple[Group, ...]
    conditions: tuple[Condition, ...]
    problem: str
    created: datetime | None = None
    grouped: bool = False
    """Whether its decisions are spread over groups (`spec.decisionStrategy`)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An OCM PlacementDecision; `decided` is None as long as it has no status."""

    meta: Meta
    placement: str
    group: int
    decided: tuple[Decided, ...] | None
    problem: str


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a ClusterProfile says that the Secret for Kueue lies."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A ClusterProfile of `cluster` ("": not OCM's): its Secret for Kueue, and its access providers."""

    meta: Meta
    cluster: str
    secrets: tuple[SecretRef, ...]
    providers: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class Secret:
    """A Secret, without what is in it: `problem` says why Kueue could not use it ("": it could)."""

    meta: Meta
    problem: str


@dataclass(frozen=True, slots=True)
class Scores:
    """An AddOnPlacementScore: scores in [-100, 100] of the cluster whose namespace it is in."""

    meta: Meta
    values: Mapping[str, int]
    valid_until: datetime | None
    problem: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An entry of a Workload's `status.admissionChecks`; `since` is its lastTransitionTime."""

    check: str
    state: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Workload:
    """A Workload of Kueue's: only what decides where it runs, as there may be 100,000 of them."""

    meta: Meta
    answers: tuple[Answer, ...]
    quota: bool
    """Whether it holds quota on the hub (QuotaReserved).

    Though it be Evicted: where Pods have run, Kueue ends an eviction only when a new copy has been made
    (shared/kueue/cluster-unlisted-while-running.log, 9.84 to 13.01), and that takes our Ready.
    """
    cluster: str
    """The MultiKueueCluster that it was placed on; "" while it is on none."""
    nominated: tuple[str, ...]
    """The MultiKueueClusters on which a copy may wait."""
    active: bool
    finished: bool
    sent_from: str = ""
    """The cluster from which we sent it back, if that was its last eviction."""
    evicted: datetime | None = None
    """When its last eviction was, or a little later."""

    def answer(self, check: str) -> Answer | None:
        return next((answer for answer in self.answers if answer.check == check), None)

    @property
    def label(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.meta.namespace}/{self.meta.name}"


@dataclass(frozen=True, slots=True)
class ManagedCluster:
    """A ManagedCluster of OCM's: whether OCM has lost sight of it."""

    meta: Meta
    unreachable: bool


@dataclass(frozen=True, slots=True)
class Owned:
    """What our field manager applied on an object (`managedFields`): we may take only this away again."""

    applied: bool = False
    """Whether it applied anything at all."""
    labels: frozenset[str] = frozenset()
    owner_uids: frozenset[str] = frozenset()
    draining: bool = False
    """Whether it applied our annotation of what leaves."""
    clusters: bool = False
    """Whether the clusters of a MultiKueueConfig are as it applied them: nobody else has set them."""


@dataclass(frozen=True, slots=True)
class KueueObject:
    """A MultiKueueConfig or MultiKueueCluster, ours or not, with its `spec` as it is."""

    meta: Meta
    owners: Mapping[str, str]
    """The AdmissionChecks that own it: uid → name."""
    spec: Raw
    owned: Owned
    active: bool | None = None
    """What Kueue says of a MultiKueueCluster: whether it is connected; None: nothing yet."""

    @property
    def ours(self) -> bool:
        """Whether we made it or took it over: by its label or, if that was taken off, its managed fields."""
        return self.meta.labels.get(LABEL_MANAGED_BY) == MANAGED_BY or self.owned.applied

    @property
    def placement(self) -> str:
        return self.meta.labels.get(LABEL_PLACEMENT, "")

    @property
    def cluster(self) -> str:
        return self.meta.labels.get(LABEL_CLUSTER, "")

    @property
    def draining(self) -> Mapping[str, datetime]:
        """The names in a MultiKueueConfig that leave → since when, by our annotation."""
        entries = self.meta.annotations.get(ANNOTATION_DRAINING, "").split(",")
        found = ((name, time_of(since)) for name, _, since in (entry.partition("=") for entry in entries))
        return {name: since for name, since in found if since}

    @property
    def listed(self) -> tuple[str, ...]:
        """The names in a MultiKueueConfig's `spec.clusters`."""
        clusters = self.spec.get("clusters")
        return tuple(str(name) for name in clusters) if isinstance(clusters, list) else ()


def meta_of(raw: Raw) -> Meta:
    """Read `metadata`; what the API server filled in may be missing, what is there is of its shape."""
    m = raw.get("metadata") or {}
    return Meta(
        name=m.get("name", ""),
        namespace=m.get("namespace") or "",
        uid=m.get("uid") or "",
        resource_version=str(m.get("resourceVersion") or ""),
        generation=m.get("generation") or 0,
        labels=m.get("labels") or {},
        annotations=m.get("annotations") or {},
        deleting=bool(m.get("deletionTimestamp")),
    )


def check(raw: Raw) -> Check:
    spec, problem = read(CheckSpec, raw, "spec")
    # A broken `parameters` must not hide whose check it is.
    controller = spec.controller_name if spec else str(_mapping(raw.get("spec")).get("controllerName", ""))
    return Check(meta_of(raw), controller, spec.parameters if spec else None, _active(raw), problem)


def _active(raw: Raw) -> Condition | None:
    """Return the condition `Active`, whatever the others look like: what we said is not to be said again."""
    entries = _mapping(raw.get("status")).get("conditions")
    for entry in entries if isinstance(entries, list) else ():
        if _mapping(entry).get("type") == CONDITION_ACTIVE:
            return read(Condition, {"condition": entry}, "condition")[0]
    return None


def placement(raw: Raw) -> Placement:
    spec, bad_spec = read(PlacementSpec, raw, "spec")
    status, bad_status = read(PlacementStatus, raw, "status")
    selected = (status.number_of_selected_clusters or 0) if status and raw.get("status") else None
    return Placement(
        meta=meta_of(raw),
        prioritizers=_add_ons(spec.prioritizer_policy) if spec and spec.prioritizer_policy else (),
        selected=selected,
        groups=status.decision_groups if status else (),
        conditions=status.conditions if status else (),
        problem=bad_spec or bad_status,
        created=_created(raw),
        grouped=bool(spec and spec.decision_strategy),
    )


def _created(raw: Raw) -> datetime | None:
    return time_of(str((raw.get("metadata") or {}).get("creationTimestamp")))


def time_of(text: str) -> datetime | None:
    """Return an RFC 3339 time; None when it is none, or does not say where."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else None


def _add_ons(policy: Policy) -> tuple[AddOnPrioritizer, ...]:
    return tuple(
        AddOnPrioritizer(add_on.resource_name, add_on.score_name, entry.weight)
        for entry in policy.configurations
        if entry.weight and entry.score_coordinate and (add_on := entry.score_coordinate.add_on)
    )


def decision(raw: Raw) -> Decision:
    meta = meta_of(raw)
    status, problem = read(DecisionStatus, raw, "status")
    index = meta.labels.get(LABEL_GROUP_INDEX, "0")
    return Decision(
        meta=meta,
        placement=meta.labels.get(LABEL_PLACEMENT, ""),
        group=int(index) if index.isdecimal() else 0,
        decided=status.decisions if status and raw.get("status") else None,
        problem=problem,
    )


def profile(raw: Raw) -> Profile:
    meta = meta_of(raw)
    status, problem = read(ProfileStatus, raw, "status")
    refs = [c.access_ref for c in status.credentials if c.consumer == CONSUMER] if status else []
    providers = (*status.access_providers, *status.credential_providers) if status else ()
    return Profile(
        meta=meta,
        cluster=meta.labels.get(LABEL_CLUSTER) or _named_by_ocm(meta),
        secrets=tuple(SecretRef(ref.kind, ref.namespace or meta.namespace, ref.name) for ref in refs),
        providers=tuple(dict.fromkeys(provider.name for provider in providers if provider.name)),
        problem=problem,
    )


def _named_by_ocm(meta: Meta) -> str:
    """Return the name of a ClusterProfile if it is a managed cluster's: other managers' names say nothing."""
    return meta.name if meta.labels.get(LABEL_MANAGER, OCM_MANAGER) == OCM_MANAGER else ""


def secret(raw: Raw) -> Secret:
    return Secret(meta_of(raw), _kubeconfig_problem(raw.get("data")))


def _kubeconfig_problem(data: object) -> str:
    encoded = _mapping(data).get(KUBECONFIG_KEY)
    if encoded is None:
        return f"has no key {KUBECONFIG_KEY!r}"
    if not encoded:
        return f"has an empty key {KUBECONFIG_KEY!r}"
    try:
        base64.b64decode(encoded, validate=True).decode()
    except (ValueError, TypeError):
        return f"has a key {KUBECONFIG_KEY!r} that is not UTF-8 text"
    return ""


def scores(raw: Raw) -> Scores:
    status, problem = read(ScoreStatus, raw, "status")
    values = {entry.name: entry.value for entry in status.scores} if status else {}
    return Scores(meta_of(raw), values, status.valid_until if status else None, problem)


def kueue_object(raw: Raw) -> KueueObject:
    owners = (raw.get("metadata") or {}).get("ownerReferences") or ()
    return KueueObject(
        meta=meta_of(raw),
        owners={o["uid"]: o["name"] for o in owners if o.get("kind") == "AdmissionCheck"},
        spec=_mapping(raw.get("spec")),
        owned=_owned(raw),
        active=active.status == "True" if (active := _active(raw)) else None,
    )


def workload(raw: Raw) -> Workload:
    status, _ = read(WorkloadStatus, raw, "status")
    status = status or _readable(raw)
    said = {condition.type: condition.status == "True" for condition in status.conditions}
    evicted = next((condition for condition in status.conditions if condition.type == "Evicted"), None)
    sent = _SENT_BACK.search(evicted.message) if evicted else None
    meta = meta_of(raw)
    return Workload(
        meta=replace(meta, labels=_NOTHING, annotations=_NOTHING, generation=0),
        answers=tuple(
            Answer(sys.intern(entry.name), entry.state, entry.message, time_of(entry.last_transition_time))
            for entry in status.admission_checks
        ),
        quota=said.get("QuotaReserved", False),
        cluster=sys.intern(status.cluster_name or ""),
        nominated=tuple(map(sys.intern, status.nominated_cluster_names)),
        active=_mapping(raw.get("spec")).get("active") is not False,
        finished=said.get("Finished", False),
        sent_from=sys.intern(sent[1] or sent[2]) if sent else "",
        evicted=time_of(evicted.last_transition_time) if evicted else None,
    )


def _readable(raw: Raw) -> WorkloadStatus:
    """Return what can be read of a status that does not fit as a whole: above all, where it runs."""
    status = _mapping(raw.get("status"))
    fields = ("conditions", "admissionChecks", "clusterName", "nominatedClusterNames")
    parts = {key: status[key] for key in fields if key in status}
    good = {
        key: part for key, part in parts.items() if read(WorkloadStatus, {"status": {key: part}}, "status")[0]
    }
    return WorkloadStatus.model_validate(good)


def managed_cluster(raw: Raw) -> ManagedCluster:
    spec, _ = read(ManagedClusterSpec, raw, "spec")
    taints = spec.taints if spec else ()
    meta = replace(meta_of(raw), labels=_NOTHING, annotations=_NOTHING)
    return ManagedCluster(meta, any(taint.key == TAINT_UNREACHABLE for taint in taints))


def _owned(raw: Raw) -> Owned:
    entries = (raw.get("metadata") or {}).get("managedFields") or ()
    for entry in entries:
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            applied = entry.get("fieldsV1") or {}
            fields = applied.get("f:metadata") or {}
            labels = (key[2:] for key in fields.get("f:labels") or {} if key.startswith("f:"))
            uids = (_uid_of(key) for key in fields.get("f:ownerReferences") or {} if key.startswith("k:"))
            return Owned(
                True,
                frozenset(labels),
                frozenset(uids),
                draining=f"f:{ANNOTATION_DRAINING}" in (fields.get("f:annotations") or {}),
                clusters="f:clusters" in (applied.get("f:spec") or {}),
            )
    return Owned()


def _uid_of(key: str) -> str:
    """Return the uid in a `k:{"uid":"…"}` key of fieldsV1."""
    return str(json.loads(key[2:]).get("uid", ""))


def _mapping(value: object) -> Raw:
    return value if isinstance(value, Mapping) else {}
