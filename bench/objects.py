"""
Objects that an embedded hub has from the start: Workloads, or a whole fleet.

A fleet: clusters, their credentials, Placements, checks, and the objects and conditions of Kueue and the
controller.
"""

import base64
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import orjson
import trustme
import yaml

from bench import scene
from placement_ac.core.api import constants as api
from placement_ac.core.kubeconfig.write import write_kubeconfig

Object = dict[str, Any]

CHECK: Final = "p"
"""The AdmissionCheck that our Workloads wait for."""
TEAMS: Final = 20
WHEN: Final = "2026-08-01T12:00:00Z"
_uids = count(1)


def condition(kind: str, reason: str, message: str, status: str = "True") -> Object:
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    return said | {"observedGeneration": 1, "lastTransitionTime": WHEN}


# -- Workloads


def workload(number: int, status: Object) -> Object:
    """Return a Workload as Kueue creates it for a Job, 3 to 4 KB as JSON."""
    name = f"job-train-{number:06}-{number * 2654435761 % 0xFFFFF:05x}"
    job = str(uuid.UUID(int=number + 2**120))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job}
    metadata = {
        "name": name,
        "namespace": f"team-{number % TEAMS}",
        "uid": str(uuid.UUID(int=number + 2**121)),
        "creationTimestamp": WHEN,
        "generation": 1,
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "labels": {"kueue.x-k8s.io/job-uid": job},
        "managedFields": _MANAGED,
        "ownerReferences": [owner | {"blockOwnerDeletion": True, "controller": True}],
    }
    kind = {"apiVersion": f"{api.KUEUE}/v1beta2", "kind": "Workload"}
    return kind | {"metadata": metadata, "spec": _SPEC, "status": status}


def _status(*states: tuple[str, str], more: Iterable[Object] = ()) -> Object:
    """Return the status of a Workload with quota; `states`: check and state."""
    answers = [
        {"name": check, "state": state, "message": "", "lastTransitionTime": WHEN} for check, state in states
    ]
    reserved = condition("QuotaReserved", "QuotaReserved", "Quota reserved in ClusterQueue research")
    return {"admission": _ADMISSION, "admissionChecks": answers, "conditions": [reserved, *more]}


def _manager(name: str, *fields: str) -> Object:
    written: Object = {"f:status": {f"f:{field}": {".": {}, "f:x": {}} for field in fields}}
    entry = {"apiVersion": f"{api.KUEUE}/v1beta2", "fieldsType": "FieldsV1", "fieldsV1": written}
    return entry | {"manager": name, "operation": "Apply", "subresource": "status", "time": WHEN}


_MANAGED: Final = [
    _manager("kueue-admission", "admission", "admissionChecks", "conditions"),
    _manager("kueue-job-controller", "conditions", "reclaimablePods"),
]
_CONTAINER: Final = """
- name: NAME
  image: registry.example.com/machine-learning/NAME:2026.08.1
  command: [python, -m, train, --epochs, "30", --data, "s3://bucket/data"]
  env: [{name: OPTION_0, value: value-of-option-0}, {name: OPTION_1, value: value-of-option-1},
    {name: OPTION_2, value: value-of-option-2}, {name: OPTION_3, value: value-of-option-3},
    {name: OPTION_4, value: value-of-option-4}, {name: OPTION_5, value: value-of-option-5}]
  imagePullPolicy: IfNotPresent
  resources:
    limits: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "1"}
    requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "1"}
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
  volumeMounts: [{mountPath: /scratch, name: scratch}]
"""
_SPEC: Final = yaml.safe_load("""
active: true
priority: 0
queueName: user-queue
podSets:
- count: 1
  name: main
  template:
    metadata: {labels: {app: train, team: research}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 30, volumes: [{name: scratch, emptyDir: {}}]}
""")
_SPEC["podSets"][0]["template"]["spec"]["containers"] = [
    one for name in ("trainer", "logger") for one in yaml.safe_load(_CONTAINER.replace("NAME", name))
]
_ADMISSION: Final = yaml.safe_load("""
clusterQueue: research
podSetAssignments:
- count: 1
  flavors: {cpu: default, memory: default, nvidia.com/gpu: a100}
  name: main
  resourceUsage: {cpu: "16", memory: 128Gi, nvidia.com/gpu: "2"}
""")
_WAITING: Final = _status((CHECK, "Pending"), ("mk", "Pending"))
_ADMITTED: Final = condition("Admitted", "Admitted", "The workload is admitted")
_COMPLETED: Final = condition("Finished", "Succeeded", "Job finished successfully")
_FINISHED: Final = _status((CHECK, "Ready"), ("mk", "Ready"), more=[_ADMITTED, _COMPLETED])
_NO_QUOTA: Final = condition("QuotaReserved", "Pending", "couldn't assign flavors to pod set main", "False")
_OF_OTHERS: Final = {"conditions": [_NO_QUOTA]}


def workloads(number: int, ours: int) -> Iterator[Object]:
    """Yield so many Workloads, `ours` of them unfinished and spread evenly over the list."""
    every = number // ours if ours else 0
    for at in range(number):
        waits = bool(ours) and at % every == 0 and at // every < ours
        yield workload(at, _WAITING if waits else _FINISHED if at % 10 else _OF_OTHERS)


# -- a fleet


def fleet(clusters: int, checks: int, workloads: int) -> Iterator[Object]:
    """Yield all objects of the hub. The clusters are in one set, bound in Kueue's namespace."""
    names = [f"cluster-{number:04}" for number in range(clusters)]
    yield _object("Namespace", scene.NS, group="v1", spec={}, status={"phase": "Active"})
    group = f"{api.OCM_CLUSTER}/v1beta2"
    yield _object("ManagedClusterSet", "global", group=group, spec={})
    yield _object("ManagedClusterSetBinding", "global", scene.NS, group, spec={"clusterSet": "global"})
    for name in names:
        yield from _cluster(name)
    for number in range(checks):
        yield from _check(number, names)
    for number in range(workloads):
        of = number % checks
        states = [(f"placement-{of:03}", "Ready"), (f"multikueue-{of:03}", "Ready")]
        yield workload(number, _status(*states))


def stored_scene(*sizes: int) -> Iterator[Object]:
    """Yield the objects of a scene as the server stores them; `sizes`: the fields of the `Scene`."""
    for few in scene.objects(scene.Scene(*sizes)):
        placement, *others = map(_stored, few)
        yield placement
        yield from (
            scene.owned_by(one, placement) if one["kind"] == api.PLACEMENT_DECISION.kind else one
            for one in others
        )


FILLS: Final[Mapping[str, Callable[..., Iterator[Object]]]] = {
    "workloads": workloads,
    "fleet": fleet,
    "scene": stored_scene,
}
"""Name → the objects of a hub."""


def _object(
    kind: str, name: str, namespace: str = "", group: str = f"{api.KUEUE}/v1beta2", **rest: Any
) -> Object:
    where = {"namespace": namespace} if namespace else {}
    item = {"apiVersion": group, "kind": kind, "metadata": {"name": name} | where | rest.pop("metadata", {})}
    return _stored(item | rest)


def _stored(item: Object, **rest: Any) -> Object:
    """Return the object with the metadata that the server sets."""
    ours = {"uid": str(uuid.UUID(int=next(_uids))), "creationTimestamp": WHEN, "generation": 1}
    return item | {"metadata": ours | item["metadata"]} | rest


def _token(cluster: str) -> str:
    """A token as an API server issues it to a ServiceAccount, except for the signature."""
    now = datetime.now(UTC)
    claims = {
        "aud": ["https://kubernetes.default.svc"],
        "exp": int((now + timedelta(days=1)).timestamp()),
        "iat": int(now.timestamp()),
        "iss": "https://kubernetes.default.svc",
        "sub": f"system:serviceaccount:open-cluster-management-agent-addon:{cluster}",
    }
    parts = (orjson.dumps({"alg": "RS256", "kid": "k" * 43}), orjson.dumps(claims), b"s" * 256)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _cluster(name: str) -> Iterator[Object]:
    """Yield a ManagedCluster and its Secret; every cluster has its own CA."""
    authority = trustme.CA().cert_pem.bytes()
    server = f"https://api.{name}.example.com:6443"
    config = {"url": server, "caBundle": base64.b64encode(authority).decode()}
    resources = {"cpu": "512", "memory": "4Ti", "nvidia.com/gpu": "64", "pods": "5000"}
    claims = [{"name": f"claim-{n}.open-cluster-management.io", "value": f"value-{n}"} for n in range(12)]
    kinds = ("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable")
    conditions = [condition(kind, kind, f"The condition {kind} of the managed cluster") for kind in kinds]
    status = {"allocatable": resources, "capacity": resources, "clusterClaims": claims}
    status |= {"conditions": conditions, "version": {"kubernetes": "v1.34.1"}}
    labels = {f"{api.OCM_CLUSTER}/clusterset": "global", "vendor": "OpenShift", "cloud": "Amazon"}
    spec = {"hubAcceptsClient": True, "leaseDurationSeconds": 60, "managedClusterClientConfigs": [config]}
    rest: Object = {"metadata": {"labels": labels}, "spec": spec, "status": status}
    yield _object("ManagedCluster", name, group=f"{api.OCM_CLUSTER}/v1", **rest)
    kubeconfig = write_kubeconfig(server, authority, _token(name), name)
    assert isinstance(kubeconfig, bytes), kubeconfig  # noqa: S101  # its parts are valid
    yield _stored(scene.secret_of(name, kubeconfig), type="Opaque")


def _by_us(labels: Object, check: Object, fields: Object) -> Object:
    """The metadata of an object that the controller has applied."""
    owner = {"apiVersion": check["apiVersion"], "kind": "AdmissionCheck"}
    owner |= {key: check["metadata"][key] for key in ("name", "uid")}
    owned = f'k:{{"uid":"{owner["uid"]}"}}'
    applied: Object = {"f:labels": {f"f:{label}": {} for label in labels}, "f:ownerReferences": {owned: {}}}
    entry = {"manager": "placement-ac", "operation": "Apply", "apiVersion": check["apiVersion"], "time": WHEN}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": applied, "f:spec": fields}}
    return {"labels": labels, "ownerReferences": [owner], "managedFields": [entry]}


def _check(number: int, names: list[str]) -> Iterator[Object]:
    """Yield one check of ours with its objects; its Placement selects ten of the clusters."""
    name, theirs = f"placement-{number:03}", f"multikueue-{number:03}"
    chosen = [names[(number * 5 + n) % len(names)] for n in range(scene.PER_CHECK)]
    active = condition("Active", "Active", "MultiKueueConfig and MultiKueueCluster generated")
    check = _stored(scene.check_of(name, name), status={"conditions": [active]})
    yield check
    yield _stored(scene.multikueue_check_of(theirs, name), status={"conditions": [active]})
    labels = {api.LABEL_MANAGED_BY: api.MANAGED_BY, api.LABEL_PLACEMENT: name}
    listed = {f"{name}-{cluster}": cluster for cluster in chosen}
    metadata = _by_us(labels, check, {"f:clusters": {}})
    yield _object("MultiKueueConfig", name, metadata=metadata, spec={"clusters": [*listed]})
    connected = {"conditions": [condition("Active", "Active", "Connected")]}
    for listed_as, cluster in listed.items():
        metadata = _by_us(
            labels | {api.LABEL_CLUSTER: cluster}, check, {"f:clusterSource": {"f:kubeConfig": {}}}
        )
        source = {"kubeConfig": {"location": f"multikueue-{cluster}", "locationType": "Secret"}}
        rest: Object = {"spec": {"clusterSource": source}, "status": connected}
        yield _object("MultiKueueCluster", listed_as, metadata=metadata, **rest)
    yield from _placement(name, chosen)
    strategy = {"admissionChecks": [{"name": one} for one in (name, theirs)]}
    status = {"conditions": [condition("Active", "Ready", "Can admit new workloads")], "pendingWorkloads": 1}
    queue, spec = f"queue-{number:03}", {"admissionChecksStrategy": strategy}
    yield _object("ClusterQueue", queue, spec=spec, status=status)
    yield _object("LocalQueue", "user-queue", f"team-{number}", spec={"clusterQueue": queue})


def _placement(name: str, chosen: list[str]) -> Iterator[Object]:
    """Yield a Placement and its decision."""
    satisfied = ("PlacementSatisfied", "AllDecisionsScheduled", "All cluster decisions scheduled")
    status = {
        "numberOfSelectedClusters": scene.PER_CHECK,
        "decisionGroups": [{"clusterCount": scene.PER_CHECK, "decisions": [f"{name}-decision-1"]}],
        "conditions": [condition(*satisfied)],
    }
    spec = {"numberOfClusters": scene.PER_CHECK, "clusterSets": ["global"]}
    placement = _object("Placement", name, scene.NS, f"{api.OCM_CLUSTER}/v1beta1", spec=spec, status=status)
    yield placement
    scores = {cluster: 100 - n for n, cluster in enumerate(chosen)}
    yield _stored(scene.owned_by(scene.decision_of(name, status=scene.decided(chosen, scores)), placement))
