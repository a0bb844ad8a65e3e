"""
Builders of objects as the API server returns them, and of caches and plans; callers name only what differs.

The uid of an object defaults to `Kind/name`, so that a test can write ownerReferences by hand.
"""

import base64
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import trustme

from placement_ac.cache.store import Cache
from placement_ac.core.api import constants
from placement_ac.core.api.constants import CredentialMethod, Kind
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.kinds import CAPACITY_KINDS, SETUP_KINDS, WATCHED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningInputs, ProvisioningPolicy
from placement_ac.core.inputs.state import (
    HubFacts,
    Key,
    PlacementPolicy,
    Plan,
    Since,
    SinceKind,
    Snapshot,
    Verdict,
    WorkerCopies,
)
from placement_ac.core.kubeconfig.servers import AllowedServers
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.core.plan.diff import Phase, diff
from placement_ac.core.plan.event_intents import postable_events
from placement_ac.core.plan.plan import plan
from placement_ac.core.selection.selection import Selection, listed_clusters, select

Raw = dict[str, Any]

NS = "kueue-system"
SHARED = HubFacts(naming="{cluster}")
"""A hub on which all Placements share a MultiKueueCluster for each cluster."""
NOW = datetime(2026, 8, 1, 12, 0, 0, tzinfo=UTC)
GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
_OTHER_KINDS = (*CAPACITY_KINDS, *SETUP_KINDS, constants.ACCOUNT, constants.PERMISSION)
KINDS = {kind.kind: kind for kind in (*WATCHED_KINDS, *_OTHER_KINDS)}


def uid_of(kind: Kind, name: str) -> str:
    return f"{kind.kind}/{name}"


def kind_of(raw: Raw) -> Kind:
    return KINDS[raw["kind"]]


def an(kind: Kind, name: str, namespace: str = NS, *, version: int = 1, **rest: Any) -> Raw:
    """An object of `kind`; `rest` goes into metadata, except spec, status and data."""
    metadata = {"name": name, "uid": uid_of(kind, name), "resourceVersion": str(version), "generation": 1}
    if kind.namespaced:
        metadata["namespace"] = namespace
        metadata["uid"] += f"@{namespace}" * (namespace not in (NS, "default"))
    body = {key: rest.pop(key) for key in ("spec", "status", "data") if key in rest}
    metadata |= rest
    return {
        "apiVersion": kind.at(kind.versions[0]).api_version,
        "kind": kind.kind,
        "metadata": metadata,
    } | body


# -- objects of the admin and of OCM


def check(name: str = "check", placement: str = "p", *, active: Raw | None = None, **rest: Any) -> Raw:
    """An AdmissionCheck of ours; `active` is its condition."""
    parameters = {"apiGroup": constants.OCM_CLUSTER, "kind": "Placement", "name": placement}
    return check_with(parameters, name, active=active, **rest)


def check_with(parameters: object, name: str = "check", *, active: Raw | None = None, **rest: Any) -> Raw:
    """An AdmissionCheck of ours with any `parameters`; None: without parameters."""
    spec: Raw = {"controllerName": constants.OUR_CONTROLLER}
    if parameters is not None:
        spec["parameters"] = parameters
    status = {"conditions": [active]} if active else {}
    return an(constants.ADMISSION_CHECK, name, spec=spec, **({"status": status} | rest))


def multikueue_check(name: str = "mk", config: str = "p") -> Raw:
    parameters = {"apiGroup": constants.KUEUE, "kind": "MultiKueueConfig", "name": config}
    spec = {"controllerName": constants.MULTIKUEUE_CONTROLLER, "parameters": parameters}
    return an(constants.ADMISSION_CHECK, name, spec=spec)


def condition(status: str = "True", reason: str = "Active", message: str = GENERATED, **rest: Any) -> Raw:
    """The condition `Active` as the controller writes it."""
    return {
        "type": "Active",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-07-01T00:00:00Z",
    } | rest


def placement(
    name: str = "p",
    selected: int | None = None,
    *,
    groups: Sequence[tuple[Sequence[str], int]] = (),
    says: tuple[str, str, str, str] | None = None,
    weights: Mapping[str, int] | None = None,
    **rest: Any,
) -> Raw:
    """A Placement. `says`: type, status, reason, message of a condition; `weights` by "resource/score"."""
    status: Raw = {}
    if selected is not None:
        status = {"numberOfSelectedClusters": selected}
    if groups:
        status["decisionGroups"] = [{"decisions": list(d), "clusterCount": count} for d, count in groups]
    if says:
        status["conditions"] = [dict(zip(("type", "status", "reason", "message"), says, strict=True))]
    prioritizers = [_add_on(*name.split("/"), weight) for name, weight in (weights or {}).items()]
    spec = {"prioritizerPolicy": {"configurations": prioritizers}} if weights else {}
    return an(constants.PLACEMENT, name, **({"spec": spec, "status": status} | rest))


def _add_on(resource: str, score: str, weight: int) -> Raw:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}
    return {"scoreCoordinate": coordinate, "weight": weight}


def decision(
    *clusters: str | tuple[str, int], of: str = "p", index: int = 1, group: int = 0, **rest: Any
) -> Raw:
    """A PlacementDecision with these clusters, each a name or a (name, score)."""
    entries = [
        {"clusterName": c} if isinstance(c, str) else {"clusterName": c[0], "score": c[1]} for c in clusters
    ]
    labels = {constants.LABEL_PLACEMENT: of, constants.LABEL_GROUP_INDEX: str(group)}
    namespace = str(rest.get("namespace", NS))
    owner = {"apiVersion": f"{constants.OCM_CLUSTER}/v1beta1", "kind": "Placement", "name": of}
    owner["uid"] = an(constants.PLACEMENT, of, namespace)["metadata"]["uid"]
    rest = {"status": {"decisions": entries}, "labels": labels, "ownerReferences": [owner]} | rest
    return an(constants.PLACEMENT_DECISION, f"{of}-decision-{index}", **rest)


def undecided(of: str = "p", index: int = 1, namespace: str = NS) -> Raw:
    """A PlacementDecision that OCM has created but not filled."""
    filled = decision(of=of, index=index, namespace=namespace)
    return {key: value for key, value in filled.items() if key != "status"}


def unreadable(of: str = "p", index: int = 1, namespace: str = NS) -> Raw:
    return decision(of=of, index=index, namespace=namespace, status={"decisions": "all of them"})


def kubeconfig(
    token: str = "token", server: str = "https://worker.example:6443", authority: bytes = b""
) -> bytes:
    """A kubeconfig that Kueue accepts."""
    content = write_kubeconfig(server, authority, token, "worker")
    assert isinstance(content, bytes), content
    return content


KUBECONFIG = kubeconfig()


def secret(name: str, text: bytes | None = KUBECONFIG, *, key: str = "kubeconfig", **rest: Any) -> Raw:
    data = {} if text is None else {key: base64.b64encode(text).decode()}
    return an(constants.SECRET, name, **({"data": data} | rest))


def secrets(*clusters: str) -> list[Raw]:
    """A Secret with a valid kubeconfig for each cluster."""
    return [secret(f"multikueue-{cluster}") for cluster in clusters]


def profile(
    cluster: str,
    namespace: str = NS,
    *,
    secret: tuple[str, str] | None = None,
    providers: Sequence[str] = (),
    server: str = "",
    deprecated_providers: Sequence[str] = (),
    **rest: Any,
) -> Raw:
    """A ClusterProfile; `secret`: the namespace and name that it references for kueue-admin."""
    status: Raw = {}
    if secret:
        ref = {"kind": "Secret", "namespace": secret[0], "name": secret[1]}
        status["credentials"] = [{"consumer": "kueue-admin", "accessRef": ref}]
    if providers:
        status["accessProviders"] = [
            {"name": name, "cluster": {"server": server} if server else {}} for name in providers
        ]
    if deprecated_providers:
        status["credentialProviders"] = [{"name": name} for name in deprecated_providers]
    labels = {constants.LABEL_CLUSTER: cluster}
    uid = f"ClusterProfile/{namespace}/{cluster}"
    return an(
        constants.CLUSTER_PROFILE,
        cluster,
        namespace,
        **({"status": status, "labels": labels, "uid": uid} | rest),
    )


def scores(cluster: str, resource: str = "usage", *, until: object = None, **values: int) -> Raw:
    """An AddOnPlacementScore."""
    status: Raw = {"scores": [{"name": name, "value": value} for name, value in values.items()]}
    if until is not None:
        status["validUntil"] = until
    uid = f"AddOnPlacementScore/{cluster}/{resource}"
    return an(constants.PLACEMENT_SCORE, resource, cluster, status=status, uid=uid)


def foreign_config(name: str = "p", *clusters: str, **rest: Any) -> Raw:
    return an(constants.MULTIKUEUE_CONFIG, name, spec={"clusters": list(clusters or ("by-hand",))}, **rest)


def foreign_cluster(name: str, **rest: Any) -> Raw:
    return an(constants.MULTIKUEUE_CLUSTER, name, **({"spec": kubeconfig_spec("by-hand")} | rest))


# -- objects of the controller


def kubeconfig_spec(secret: str) -> Raw:
    return {"clusterSource": {"kubeConfig": {"location": secret, "locationType": "Secret"}}}


def labels_of(placement: str | None = "p", cluster: str | None = None) -> dict[str, str]:
    """The labels on our objects."""
    labels = {"app.kubernetes.io/managed-by": "placement-ac"}
    labels |= {"cluster.open-cluster-management.io/placement": placement} if placement else {}
    return labels | ({"open-cluster-management.io/cluster-name": cluster} if cluster else {})


def references(*checks: str, version: str = "v1beta2") -> list[Raw]:
    """ownerReferences to these AdmissionChecks."""
    return [
        {
            "apiVersion": f"kueue.x-k8s.io/{version}",
            "kind": "AdmissionCheck",
            "name": name,
            "uid": uid_of(constants.ADMISSION_CHECK, name),
        }
        for name in checks
    ]


def managed(labels: Iterable[str], uids: Iterable[str], annotations: Iterable[str] = ()) -> list[Raw]:
    """managedFields after the controller has applied an object."""
    fields: Raw = {"f:labels": {f"f:{label}": {} for label in labels}}
    if annotated := {f"f:{annotation}": {} for annotation in annotations}:
        fields["f:annotations"] = annotated
    if owned := {"k:" + json.dumps({"uid": uid}, separators=(",", ":")): {} for uid in uids}:
        fields["f:ownerReferences"] = owned
    spec = {"f:clusters": {}}
    written = {"f:metadata": fields, "f:spec": spec}
    entry = {"manager": "placement-ac", "operation": "Apply", "fieldsV1": written}
    return [{"manager": "someone", "operation": "Update", "fieldsV1": {}}, entry]


def _applied(
    kind: Kind, name: str, labels: dict[str, str], owners: Sequence[str], spec: Raw, rest: Raw
) -> Raw:
    metadata = {
        "labels": labels,
        "ownerReferences": references(*owners),
        "managedFields": managed(labels, [uid_of(constants.ADMISSION_CHECK, owner) for owner in owners]),
    }
    return an(kind, name, **({"spec": spec} | metadata | rest))


def our_config(*clusters: str, of: str = "p", owners: Sequence[str] = ("check",), **rest: Any) -> Raw:
    """A MultiKueueConfig of the controller; `clusters` are names of MultiKueueClusters."""
    return _applied(
        constants.MULTIKUEUE_CONFIG, of, labels_of(of), owners, {"clusters": list(clusters)}, rest
    )


def our_cluster(
    cluster: str, of: str | None = "p", *, owners: Sequence[str] = ("check",), **rest: Any
) -> Raw:
    """A MultiKueueCluster of the controller for a Placement's cluster; `of` None: for all Placements."""
    name = f"{of}-{cluster}" if of else cluster
    spec = kubeconfig_spec(f"multikueue-{cluster}")
    return _applied(constants.MULTIKUEUE_CLUSTER, name, labels_of(of, cluster), owners, spec, rest)


def our_objects(*clusters: str, of: str = "p", owners: Sequence[str] = ("check",)) -> list[Raw]:
    """The controller's MultiKueueConfig followed by its MultiKueueClusters."""
    objects = [our_cluster(cluster, of, owners=owners) for cluster in clusters]
    return [our_config(*(f"{of}-{cluster}" for cluster in clusters), of=of, owners=owners), *objects]


def connected_objects(*clusters: str, off: Iterable[str] = ()) -> list[Raw]:
    """The controller's objects, of two checks, with Kueue's condition: not connected to those of `off`."""
    config, *rest = our_objects(*clusters, owners=["check", "mk"])
    for cluster, obj in zip(clusters, rest, strict=True):
        status = "False" if cluster in off else "True"
        obj["status"] = {"conditions": [{"type": "Active", "status": status}]}
    return [config, *rest]


# -- caches and plans


AT_ONCE = PlacementPolicy(retention=0.0, loss_grace=0.0, reorder_margin=0, reorder_interval=0.0)
"""Every wait is zero: most tests check the final state."""


def world(
    *objects: Raw | Iterable[Raw],
    hub: HubFacts | None = None,
    methods: Sequence[CredentialMethod] = constants.CREDENTIAL_METHODS,
    policy: PlacementPolicy = AT_ONCE,
    provisioning: ProvisioningPolicy | None = None,
    providers: Sequence[str] | AllowedServers | None = None,
    **watched: Any,
) -> Cache:
    """A complete cache that holds these objects (and lists of objects); `watched`: more for Cache."""
    if providers is not None and not isinstance(providers, Mapping):
        providers = dict.fromkeys(providers, ())
    given = {"policy": policy, "provisioning": provisioning, "providers": providers} | watched
    seen = Cache(hub, methods=methods, **given)
    raws = [raw for part in objects for raw in ([part] if isinstance(part, dict) else part)]
    for kind in seen.kinds:
        seen.replace(kind, [raw for raw in raws if is_of(kind, raw)], "1")
    return seen


def is_of(kind: Kind, raw: Raw) -> bool:
    """Whether a list of that kind contains the object."""
    found = raw["metadata"]
    is_kind = kind._replace(only="") == kind_of(raw)._replace(only="")
    return is_kind and kind.only in ("", found["name"])


AnyAges = Mapping[Any, float]
"""Ages; a plain name is a cluster that leaves before OCM has settled."""


def placement_keys(*names: str) -> set[Key]:
    """The keys of these Placements."""
    return {Key("placement", name) for name in names}


def snapshot(cache: Cache, name: str = "p", ages: AnyAges | None = None, **asked: WorkerCopies) -> Snapshot:
    marks = {
        k if isinstance(k, Since) else Since(SinceKind.REMOVAL_UNSETTLED, k): age
        for k, age in (ages or {}).items()
    }
    return cache.snapshot(Key("placement", name), NOW, marks, asked)


def selection_of(seen: Snapshot) -> Selection:
    return select(seen, listed_clusters(seen))


def unmarked(answer: Plan) -> Plan:
    """A plan without its ages."""
    return replace(answer, lasting=frozenset())


def inputs(
    *objects: Any,
    of: str = "p",
    ages: AnyAges | None = None,
    copies: Mapping[str, WorkerCopies] | None = None,
    **rest: Any,
) -> Snapshot:
    """The inputs of the plan for the Placement `of` on a hub with these objects; `rest`: of `world`."""
    return snapshot(world(*objects, **rest), of, ages, **(copies or {}))


def planned(*objects: Any, **rest: Any) -> Plan:
    """The plan for `inputs`."""
    return plan(inputs(*objects, **rest))


def the(objects: Iterable[Raw], kind: str, name: str = "") -> Raw:
    """The first of these objects of that kind, or that one."""
    return next(raw for raw in objects if raw["kind"] == kind and name in ("", raw["metadata"]["name"]))


def posts(answer: Plan) -> list[tuple[str, str, str]]:
    """The events of a plan once everything is written: reason, Workload name ("": on the checks), message."""
    notices = (*answer.events, *answer.config_events())
    every = {workload.meta.uid for notice in notices for workload in notice.workloads}
    due_now = postable_events(notices, listed=True, answered=every, succeeded=True)
    return [(one.reason, one.about.meta.name if one.about else "", one.message) for one in due_now]


def verdict(*objects: Any, check: str = "check", **rest: Any) -> Verdict:
    return planned(*objects, **rest).verdicts[check]


def listed(*objects: Any, **rest: Any) -> list[str] | None:
    """The MultiKueueClusters that the plan lists in the config; None: no config."""
    config = planned(*objects, **rest).config
    return list(config.clusters) if config else None


def listed_in(answer: Plan) -> tuple[str, ...]:
    """The MultiKueueClusters in the config of a plan; (): no config."""
    return answer.config.clusters if answer.config else ()


def phases(*objects: Any, **rest: Any) -> tuple[Phase, ...]:
    """The phases of writes that are still needed with `inputs`."""
    seen = inputs(*objects, **rest)
    return diff(seen, plan(seen))


def write_names(done: Iterable[Phase]) -> list[list[str]]:
    """Each phase as short texts: the type of each write, and the kind and name of its object."""
    return [
        [f"{type(action).__name__} {action.kind.kind} {action.name}" for action in phase] for phase in done
    ]


# -- Workloads


def workload(
    name: str = "job",
    *,
    cluster: str = "",
    nominated: Sequence[str] = (),
    quota: bool = True,
    active: bool = True,
    finished: bool = False,
    since: datetime = NOW,
    version: int = 1,
    **states: str,
) -> Raw:
    """A Workload in namespace `default`; `states` are those of its checks, by default `check` and `mk`."""
    when = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [("QuotaReserved", quota), ("Finished", finished)]
    status: Raw = {
        "conditions": [
            {"type": kind, "status": str(is_true), "reason": "x", "message": "", "lastTransitionTime": when}
            for kind, is_true in conditions
        ],
        "admissionChecks": [
            {"name": check, "state": state, "message": "", "lastTransitionTime": when}
            for check, state in (states or {"check": "Pending", "mk": "Pending"}).items()
        ],
    }
    if cluster:
        status["clusterName"] = cluster
    if nominated:
        status["nominatedClusterNames"] = list(nominated)
    return an(constants.WORKLOAD, name, "default", version=version, spec={"active": active}, status=status)


def running(name: str, cluster: str, **states: str) -> Raw:
    """A Workload that runs on a MultiKueueCluster."""
    return workload(name, cluster=cluster, **(states or {"check": "Ready", "mk": "Ready"}))


def managed_clusters(*clusters: str, unreachable: Sequence[str] = ()) -> list[Raw]:
    taint = {"key": constants.TAINT_UNREACHABLE, "effect": "NoSelect"}
    return [
        an(
            constants.MANAGED_CLUSTER,
            name,
            labels={"name": name},
            spec={"taints": [taint]} if name in unreachable else {},
        )
        for name in clusters
    ]


# -- provisioned credentials


A_RULE = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get"]}
PROVISIONING = ProvisioningPolicy(provision=True, rules=(A_RULE,))
SERVER = "https://worker.example:6443"


@functools.cache
def authority() -> str:
    """The CA of a worker's API server, as PEM."""
    return trustme.CA().cert_pem.bytes().decode()


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def jwt(of: str = "", issued: datetime = NOW, hours: float = 24.0) -> str:
    """A token with that lifetime; tokens with different `of` differ."""
    claims = {"sub": of, "iat": int(issued.timestamp()), "exp": int(issued.timestamp() + hours * 3600)}
    parts = [{}, claims, {"signature": "SeCrEt"}]
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


def managed_cluster(name: str, server: str = SERVER, bundle: str | None = None, **rest: Any) -> Raw:
    """A ManagedCluster with a client config; `bundle` is its caBundle, verbatim."""
    config = {"url": server} | ({} if bundle is None else {"caBundle": bundle})
    return an(constants.MANAGED_CLUSTER, name, **({"spec": {"managedClusterClientConfigs": [config]}} | rest))


def grant(kind: Kind, cluster: str, name: str = "placement-ac", *, done: bool = True, **rest: Any) -> Raw:
    """A ManagedServiceAccount or ClusterPermission of another owner; `done`: OCM has put it in force."""
    of = {constants.ACCOUNT: "TokenReported", constants.PERMISSION: "AppliedRBACManifestWork"}[kind]
    status = {"conditions": [{"type": of, "status": "True", "reason": of, "message": ""}]} if done else {}
    uid = f"{kind.kind}/{cluster}/{name}"
    return an(kind, name, cluster, **({"spec": {}, "status": status, "uid": uid} | rest))


def our_grant(
    kind: Kind, cluster: str, name: str = "placement-ac", *, owners: Sequence[str] = ("check",), **rest: Any
) -> Raw:
    """A ManagedServiceAccount or ClusterPermission as the controller writes it."""
    specs = {
        constants.ACCOUNT: {"rotation": {"enabled": True, "validity": "24h0m0s"}},
        constants.PERMISSION: {
            "clusterRole": {"rules": [A_RULE]},
            "clusterRoleBinding": {
                "subject": {
                    "apiGroup": constants.OCM_AUTHENTICATION,
                    "kind": "ManagedServiceAccount",
                    "name": name,
                }
            },
        },
    }
    account = {constants.ANNOTATION_ACCOUNT: f"ManagedServiceAccount/{cluster}/{name}"}
    annotations = {"annotations": account} if kind is constants.PERMISSION else {}
    marks = _marks_of_ours(cluster, owners) | annotations
    return grant(kind, cluster, name, **({"spec": specs[kind]} | marks | rest))


def token(cluster: str, name: str = "placement-ac", *, text: str | None = None, **rest: Any) -> Raw:
    """The Secret in which OCM reports the token of an account."""
    data = {"token": encoded(jwt(cluster) if text is None else text), "ca.crt": encoded(authority())}
    return an(constants.SECRET, name, cluster, **({"data": data, "uid": f"Secret/{cluster}/{name}"} | rest))


def our_secret(
    cluster: str,
    name: str = "placement-ac",
    *,
    text: str | None = None,
    owners: Sequence[str] = ("check",),
    **rest: Any,
) -> Raw:
    """The controller's Secret, built from `token(cluster, text=text)` and `managed_cluster(cluster)`."""
    content = write_kubeconfig(SERVER, authority(), jwt(cluster) if text is None else text, cluster)
    assert isinstance(content, bytes), content
    return secret(f"{name}-{cluster}", content, **(_marks_of_ours(cluster, owners) | rest))


def _marks_of_ours(cluster: str, owners: Sequence[str]) -> Raw:
    labels = labels_of(None, cluster)
    return {
        "labels": labels,
        "ownerReferences": references(*owners),
        "managedFields": managed(labels, [uid_of(constants.ADMISSION_CHECK, owner) for owner in owners]),
    }


def provided(cluster: str, name: str = "placement-ac", **rest: Any) -> list[Raw]:
    """All objects of the controller for a cluster's credentials, and OCM's token Secret."""
    return [
        our_grant(constants.ACCOUNT, cluster, name, **rest),
        our_grant(constants.PERMISSION, cluster, name, **rest),
        token(cluster, name),
        our_secret(cluster, name, **rest),
    ]


def provisioned_cluster(cluster: str, secret: str = "", of: str = "p", **rest: Any) -> Raw:
    """The controller's MultiKueueCluster with provisioned credentials."""
    spec = kubeconfig_spec(secret or f"placement-ac-{cluster}")
    return our_cluster(cluster, of, **({"spec": spec} | rest))


def provisioning_inputs(
    cache: Cache, cluster: str = "a", ages: AnyAges | None = None, now: datetime = NOW
) -> ProvisioningInputs:
    """The inputs of the plan for a cluster's credentials."""
    return cache.provisioning_inputs(cluster, now, dict(ages or {}))


def writes(*objects: Any, cluster: str = "a", ages: AnyAges | None = None, **rest: Any) -> list[str]:
    """The planned writes for the credentials of a cluster, phase by phase."""
    provided = plan_provisioning(
        provisioning_inputs(world(*objects, **({"provisioning": PROVISIONING} | rest)), cluster, ages)
    )
    phases = (*provided.phases, *provided.orphan_phases)
    return [f"{type(a).__name__} {a.kind.kind} {a.name}" for phase in phases for a in phase]
