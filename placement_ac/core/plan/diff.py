"""
Compare a plan with the observed objects, and return the writes in their order.

Pure. Only the fields that we own are compared, so that fields of others stay, and a diff after
our own writes is empty.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import ClassVar, Final

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_DRAINING,
    ANNOTATION_PLACEMENT,
    ANNOTATION_SECOND_NAMES,
    CAPACITY_PROVIDER,
    CONDITION_ACTIVE,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import Check, KueueObject, Workload, WritableObject
from placement_ac.core.inputs.state import (
    Body,
    CheckStateUpdate,
    HubFacts,
    Plan,
    Snapshot,
    Verdict,
    WantedCluster,
    WantedConfig,
    is_shared,
)
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.selection.selection import removable_clusters


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply an object of ours; `observed`: the existing one, if any."""

    kind: Kind
    body: Body = field(repr=False)
    """It may hold a token."""
    observed: WritableObject | None

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object of ours with that uid."""

    kind: Kind
    name: str
    uid: str
    namespace: str = ""
    version: str = ""
    """If not "": only as long as it has this resourceVersion."""


@dataclass(frozen=True, slots=True)
class SetCondition:
    """Apply the condition `Active` on a check of ours, as long as it has this resourceVersion."""

    kind: ClassVar[Kind] = ADMISSION_CHECK
    name: str
    version: str
    condition: Body


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Apply the status of a CapacityProvider or AddOnPlacementScore of ours, as `SetCondition` does."""

    kind: Kind
    name: str
    version: str
    status: Body
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadWrite:
    """A write to a Workload, unless it has changed since it was observed."""

    kind: ClassVar[Kind] = WORKLOAD
    workload: Workload

    @property
    def namespace(self) -> str:
        return self.workload.meta.namespace

    @property
    def name(self) -> str:
        return self.workload.meta.name


@dataclass(frozen=True, slots=True)
class SetCheckStates(WorkloadWrite):
    """Apply our entries of `status.admissionChecks`: mostly one, or one for each check of ours."""

    entries: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Nominate(WorkloadWrite):
    """Set the clusters on which it may wait."""

    clusters: tuple[str, ...]


ABSENT: Final = "0"
"""The resourceVersion that a custom resource is applied with which nobody may have created meanwhile.

Seen (kube-apiserver 1.36.2): 201 if there is none, otherwise 422. Any other version creates it, too.
"""

Action = Apply | Delete | SetCondition | SetStatus | SetCheckStates | Nominate
Phase = tuple[Action, ...]
"""Writes that do not depend on each other."""


def diff(snapshot: Snapshot, wanted: Plan) -> tuple[Phase, ...]:
    """Return the phases still to be done, none of them empty.

    A MultiKueueCluster exists before the config lists it (any other is created or repaired after that), and
    is deleted after the config no longer lists it. A check turns False before objects are removed; all other
    conditions are written after the objects, and a refusal that lasts is not overwritten at every try.
    Workloads come last: what becomes Ready must find the final config.
    """
    return (
        phases_through_config(snapshot, wanted) + phases_after_config(snapshot, wanted) + capacities(wanted)
    )


def phases_through_config(snapshot: Snapshot, wanted: Plan) -> tuple[Phase, ...]:
    """Return the phases up to the config: they put a decision of OCM into effect."""
    early = _objections(snapshot, wanted.verdicts)
    first, _ = _by_urgency(snapshot, wanted)
    return _non_empty(early, tuple(_clusters(snapshot, first)), tuple(_config(snapshot, wanted.config)))


def unlists(snapshot: Snapshot, phases: Iterable[Phase]) -> bool:
    """Whether these phases take a cluster out of the list."""
    listed = set(snapshot.objects.listed)
    configs = (action for phase in phases for action in phase if action.kind is MULTIKUEUE_CONFIG)
    return any(
        isinstance(action, Delete) or not listed.issubset(action.body["spec"]["clusters"])
        for action in configs
        if isinstance(action, Apply | Delete)
    )


def repairs(snapshot: Snapshot, wanted: Plan) -> tuple[Phase, ...]:
    """Return the phase that repairs listed MultiKueueClusters, and creates those with new names."""
    _, later = _by_urgency(snapshot, wanted)
    return _non_empty(tuple(_clusters(snapshot, later)))


def capacities(wanted: Plan) -> tuple[Phase, ...]:
    """Return the writes to CapacityProviders: they fail alone, and come when the list is as wanted."""
    providers = ((wanted.provider.meta, wanted.status) for wanted in wanted.capacities)
    return _non_empty(
        tuple(
            SetStatus(CAPACITY_PROVIDER, meta.name, meta.resource_version, status)
            for meta, status in providers
        )
    )


def phases_after_config(snapshot: Snapshot, wanted: Plan) -> tuple[Phase, ...]:
    """Return the phases after the config."""
    turned_false = {action.name for action in _objections(snapshot, wanted.verdicts)}
    others = [check for check in snapshot.checks.ours if check.meta.name not in turned_false]
    return repairs(snapshot, wanted) + _non_empty(
        tuple(_superfluous(snapshot, wanted)),
        tuple(_conditions(others, wanted.verdicts, snapshot)),
        tuple(_check_states(snapshot, wanted.check_state_updates)),
        tuple(Nominate(workload, clusters) for workload, clusters in wanted.nominations),
    )


def _non_empty(*phases: Phase) -> tuple[Phase, ...]:
    return tuple([phase for phase in phases if phase])


def _objections(snapshot: Snapshot, verdicts: Mapping[str, Verdict]) -> tuple[SetCondition, ...]:
    objections = {name: verdict for name, verdict in verdicts.items() if verdict.status == "False"}
    turn = [check for check in snapshot.checks.ours if check.active is None or check.active.status != "False"]
    return tuple(_conditions(turn, objections, snapshot))


def conditions(snapshot: Snapshot, verdicts: Mapping[str, Verdict]) -> Phase:
    """Return the conditions alone, for when the objects could not be written."""
    return tuple(_conditions(snapshot.checks.ours, verdicts, snapshot))


# -- objects


def _by_urgency(snapshot: Snapshot, wanted: Plan) -> tuple[list[WantedCluster], list[WantedCluster]]:
    """Return the MultiKueueClusters that the config is about to list, and all others."""
    config = snapshot.objects.config
    old = set(config.listed).intersection(snapshot.objects.clusters) if config else set()
    new = set(wanted.config.clusters if wanted.config else ()) - old
    return (
        [cluster for cluster in wanted.clusters if cluster.name in new],
        [cluster for cluster in wanted.clusters if cluster.name not in new],
    )


def _clusters(snapshot: Snapshot, wanted: Iterable[WantedCluster]) -> Iterable[Apply]:
    for cluster in wanted:
        observed = snapshot.objects.clusters.get(cluster.name)
        labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_CLUSTER: cluster.cluster}
        if not is_shared(cluster.name, cluster.cluster):
            labels[LABEL_PLACEMENT] = snapshot.name
        unchanged_spec = dict(observed.spec) if observed else {}
        spec = source_spec(cluster.source, snapshot.hub) if cluster.source else unchanged_spec
        if not is_same(observed, labels, cluster.owners, spec):
            body = body_of(cluster.name, labels, cluster.owners, observed, snapshot.hub)
            yield Apply(MULTIKUEUE_CLUSTER, body | {"spec": spec}, observed)


def _config(snapshot: Snapshot, wanted: WantedConfig | None) -> Iterable[Action]:
    observed = snapshot.objects.config
    if wanted is None:
        # Labels are easily copied with an object, managed fields are not.
        mine = observed and observed.applied_fields.applied and observed.placement in ("", snapshot.name)
        if observed and mine and not observed.meta.deleting:
            meta = observed.meta
            yield Delete(MULTIKUEUE_CONFIG, meta.name, meta.uid, version=meta.resource_version)
    elif write := _config_write(wanted, observed, snapshot.hub):
        yield write


def _config_write(wanted: WantedConfig, observed: KueueObject | None, hub: HubFacts) -> Apply | None:
    labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_PLACEMENT: wanted.name}
    spec = {"clusters": list(wanted.clusters)}
    draining = ",".join(f"{name}={format_time(since)}" for name, since in wanted.draining.items())
    second = ",".join(f"{name}={keeper}" for name, keeper in wanted.second_names.items())
    if observed and is_same(observed, labels, wanted.owners, spec):
        fields = observed.applied_fields
        same = _has_annotation(observed, ANNOTATION_DRAINING, draining, applied=fields.draining)
        same = same and _has_annotation(
            observed, ANNOTATION_SECOND_NAMES, second, applied=fields.second_names
        )
        if same and (wanted.is_recorded or observed.placement_in_use == wanted.placement):
            return None
    body = body_of(wanted.name, labels, wanted.owners, observed, hub) | {"spec": spec}
    # A decision made on an old list must not come after what another leader has decided.
    body["metadata"]["resourceVersion"] = observed.meta.resource_version if observed else ABSENT
    annotations = {
        ANNOTATION_DRAINING: draining,
        ANNOTATION_PLACEMENT: wanted.placement,
        ANNOTATION_SECOND_NAMES: second,
    }
    if given := {key: value for key, value in annotations.items() if value}:
        body["metadata"]["annotations"] = given
    return Apply(MULTIKUEUE_CONFIG, body, observed)


def _has_annotation(observed: KueueObject, key: str, value: str, *, applied: bool) -> bool:
    """Whether it has an annotation of ours with that value; "": whether we have applied none."""
    return observed.meta.annotations.get(key) == value if value else not applied


def _superfluous(snapshot: Snapshot, wanted: Plan) -> Iterable[Delete]:
    keep = {cluster.name for cluster in wanted.clusters} | wanted.retained
    keep.update(wanted.config.clusters if wanted.config else ())
    for obj in removable_clusters(snapshot):
        if obj.meta.name not in keep and not obj.meta.deleting:
            yield Delete(MULTIKUEUE_CLUSTER, obj.meta.name, obj.meta.uid)


def source_spec(source: CredentialSource, hub: HubFacts) -> Body:
    """Return the `spec` of a MultiKueueCluster in the version that the hub serves."""
    named = source.cluster_source
    return {"clusterSource": named} if hub.takes_profiles or source.kind != "Secret" else named


def is_same(
    observed: WritableObject | None, labels: Mapping[str, str], owners: Mapping[str, str], spec: Body
) -> bool:
    """Whether `observed` carries all that is wanted, and nothing of ours that is no longer wanted."""
    if observed is None:
        return False
    owned = observed.applied_fields
    return (
        (observed.spec == spec or holds(observed.spec, spec))
        and labels.items() <= observed.meta.labels.items()
        and (owners == observed.owners or owners.keys() <= observed.owners.keys())
        and owned.labels.issubset(labels)
        and owned.owner_uids.issubset(owners)
    )


def holds(observed: object, wanted: object) -> bool:
    """Whether all that we apply is there: fields beside it are others', or those of a newer Kueue."""
    if not isinstance(wanted, Mapping):
        return observed == wanted
    return isinstance(observed, Mapping) and all(
        key in observed and holds(observed[key], value) for key, value in wanted.items()
    )


def body_of(
    name: str,
    labels: Mapping[str, str],
    owners: Mapping[str, str],
    observed: WritableObject | None,
    hub: HubFacts,
    *,
    namespace: str = "",
) -> Body:
    """Return what is applied of an object's metadata; `owners` are AdmissionChecks."""
    metadata: Body = {"name": name, "labels": dict(labels)}
    if namespace:
        metadata["namespace"] = namespace
    if owners:
        metadata["ownerReferences"] = [
            {"apiVersion": hub.check_version, "kind": ADMISSION_CHECK.kind, "name": owner, "uid": uid}
            for uid, owner in sorted(owners.items(), key=itemgetter(1))
        ]
    if observed:
        metadata["uid"] = observed.meta.uid
    return {"metadata": metadata}


# -- conditions


def _conditions(
    checks: Iterable[Check], verdicts: Mapping[str, Verdict], snapshot: Snapshot
) -> Iterable[SetCondition]:
    for check in checks:
        verdict = verdicts.get(check.meta.name)
        if verdict and not _is_set(check, verdict):
            condition = _condition(check, verdict, snapshot)
            yield SetCondition(check.meta.name, check.meta.resource_version, condition)


def _is_set(check: Check, verdict: Verdict) -> bool:
    active, wanted = check.active, (verdict.status, verdict.reason, verdict.message, check.meta.generation)
    return active is not None and wanted == (
        active.status,
        active.reason,
        active.message,
        active.observed_generation,
    )


def _condition(check: Check, verdict: Verdict, snapshot: Snapshot) -> Body:
    active = check.active
    turned = active is None or active.status != verdict.status or not active.last_transition_time
    when = format_time(snapshot.now) if turned or not active else active.last_transition_time
    return {
        "type": CONDITION_ACTIVE,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "observedGeneration": check.meta.generation,
        "lastTransitionTime": when,
    }


# -- Workloads


def _check_states(snapshot: Snapshot, updates: Iterable[CheckStateUpdate]) -> Iterable[SetCheckStates]:
    """Yield one write per Workload: two on the same version would be in conflict."""
    by_workload: dict[tuple[str, str], list[CheckStateUpdate]] = {}
    for update in updates:
        by_workload.setdefault(update.workload.meta.id, []).append(update)
    for together in by_workload.values():
        yield SetCheckStates(together[0].workload, tuple(_entry(update, snapshot) for update in together))


def _entry(update: CheckStateUpdate, snapshot: Snapshot) -> Body:
    before = update.workload.check_state(update.check)
    since = before.since if before and before.state == update.state else None
    entry: Body = {
        "name": update.check,
        "state": update.state,
        "lastTransitionTime": format_time(since or snapshot.now),
        "message": update.message,
    }
    if update.requeue_after is not None:
        entry["requeueAfterSeconds"] = update.requeue_after
    return entry
