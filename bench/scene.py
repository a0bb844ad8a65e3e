"""
The hub of the bench has a scene of clusters with Secrets, checks with a Placement and a decision each, and
Workloads.

A scene is created over HTTP on any API server, without its Workloads; an embedded hub has it from the start.
A check `c7` has the Placement `p7`, whose decision has ten clusters; a *change* brings the decision to
another *turn*. Even and odd turns differ in one cluster; in a scene that draws, each turn has ten clusters
drawn at random, so that with 40 clusters a change replaces 7.5 of them on average.
"""

import asyncio
import base64
import contextlib
import hashlib
import random
import re
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import click
import trustme
import yaml

from placement_ac.core.api import constants as api
from placement_ac.core.api.errors import ApiError, Conflict, NotFound
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.kube.client import Client, Listing, Object
from placement_ac.kube.reflector import BOOKMARK, Reflector

NS: Final = "kueue-system"
NEVER_SECONDS: Final = 300.0
PER_CHECK: Final = 10
"""Clusters of each check."""
AT_ONCE: Final = 16
NAMESPACE: Final = api.Kind("", "Namespace", "namespaces", False, ("v1",))
MINE: Final = {"app.kubernetes.io/created-by": "placement-ac-bench"}
"""The label of a scene's objects."""
SET: Final = "placement-ac-bench"
"""The ManagedClusterSet that all clusters name; it need not exist, as nobody schedules."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The number of checks, and of the clusters that they share.

    `draws`: each turn draws the clusters anew. `shared_names`: the MultiKueueCluster of a cluster has its
    name, for all Placements. `workloads`: on the hub, of which `WAITING` wait for the first check.
    """

    checks: int
    clusters: int = 40
    draws: bool = False
    shared_names: bool = False
    workloads: int = 0

    def __str__(self) -> str:
        names = ", shared names" if self.shared_names else ""
        workloads = f", {self.workloads} Workloads" if self.workloads else ""
        return f"{self.checks} checks, {self.clusters} clusters{names}{workloads}"

    def clusters_of(self, check: int, turn: int) -> tuple[str, ...]:
        """Return the clusters of a check in a turn, in OCM's order: by name."""
        if self.draws:
            chance = random.Random(f"{check}/{turn}")  # noqa: S311  # nothing secret
            numbers = chance.sample(range(self.clusters), PER_CHECK)
        else:
            steps = (*range(PER_CHECK - 1), PER_CHECK - 1 + turn % 2)
            numbers = [(check * 7 + step) % self.clusters for step in steps]
        return tuple(f"cluster-{number:04}" for number in sorted(numbers))

    def config(self, check: int, turn: int) -> list[str]:
        """Return the expected list in the MultiKueueConfig."""
        prefix = "" if self.shared_names else f"p{check}-"
        return [f"{prefix}{cluster}" for cluster in self.clusters_of(check, turn)]


CHANGES: Final = {
    "swap": "one of ten clusters changes",
    "default": "ten clusters drawn anew",
    "shared": "ten clusters drawn anew",
}
"""Kind of change → its title."""


def scene_of(kind: str, checks: int, clusters: int) -> Scene:
    """Return the scene whose changes are of that kind."""
    return Scene(checks, clusters, draws=kind != "swap", shared_names=kind == "shared")


# -- objects


def newest(kind: api.Kind) -> api.Resource:
    return kind.at(kind.versions[0])


def body(kind: api.Kind, name: str, **rest: Any) -> Object:
    metadata = {"name": name} | ({"namespace": NS} if kind.namespaced else {}) | rest.pop("metadata", {})
    return {"apiVersion": newest(kind).api_version, "kind": kind.kind, "metadata": metadata} | rest


def check_of(name: str, placement: str) -> Object:
    """Return a check of ours with that Placement."""
    parameters = {"apiGroup": api.OCM_CLUSTER, "kind": api.PLACEMENT.kind, "name": placement}
    return body(
        api.ADMISSION_CHECK, name, spec={"controllerName": api.OUR_CONTROLLER, "parameters": parameters}
    )


def multikueue_check_of(config: str) -> Object:
    """Return Kueue's check with that MultiKueueConfig."""
    parameters = {"apiGroup": api.KUEUE, "kind": api.MULTIKUEUE_CONFIG.kind, "name": config}
    spec = {"controllerName": api.MULTIKUEUE_CONTROLLER, "parameters": parameters}
    return body(api.ADMISSION_CHECK, MULTIKUEUE, spec=spec)


def secret_of(cluster: str, kubeconfig: bytes) -> Object:
    """Return the Secret with a cluster's kubeconfig."""
    data = {api.KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
    return body(api.SECRET, f"multikueue-{cluster}", data=data)


def decision_of(placement: str, **rest: Any) -> Object:
    """Return a Placement's decision without its owner; see `owned`."""
    labels = {api.LABEL_PLACEMENT: placement, api.LABEL_GROUP_INDEX: "0"}
    return body(api.PLACEMENT_DECISION, f"{placement}-decision-1", metadata={"labels": labels}, **rest)


def decided(clusters: Iterable[str], scores: Mapping[str, int] | None = None) -> Object:
    """Return the status of a decision for these clusters."""
    score = {name: {"score": value} for name, value in (scores or {}).items()}
    return {"decisions": [{"clusterName": name, "reason": ""} | score.get(name, {}) for name in clusters]}


async def owned(client: Client, decision: Object) -> Object:
    """Return a PlacementDecision that its Placement, which exists, owns."""
    name = decision["metadata"]["labels"][api.LABEL_PLACEMENT]
    return owned_by(decision, await client.get(newest(api.PLACEMENT), name, NS))


def owned_by(decision: Object, placement: Object) -> Object:
    named = {"apiVersion": newest(api.PLACEMENT).api_version, "kind": api.PLACEMENT.kind, "controller": True}
    owner = named | {key: placement["metadata"][key] for key in ("name", "uid")}
    return decision | {"metadata": decision["metadata"] | {"ownerReferences": [owner]}}


async def create(client: Client, *objects: Object) -> None:
    """Create objects and their status, in order; a PlacementDecision is owned by its Placement."""
    kinds = {kind.kind: kind for kind in (NAMESPACE, *KINDS)}
    for obj in objects:
        kind, name = kinds[obj["kind"]], obj["metadata"]["name"]
        sent = await owned(client, obj) if kind is api.PLACEMENT_DECISION else obj
        await client.create(newest(kind), sent)
        if "status" in obj:
            await _write_status(client, kind, name, obj["status"])


async def _write_status(client: Client, kind: api.Kind, name: str, status: Object) -> None:
    namespace = NS if kind.namespaced else None
    await client.merge(newest(kind), name, {"status": status}, namespace=namespace, subresource="status")


# -- the objects of a scene


def objects(scene: Scene) -> Iterator[tuple[Object, ...]]:
    """Yield the objects of the scene: each tuple in its order, the first one before all others."""
    yield (_mine(body(NAMESPACE, NS)),)
    authority = trustme.CA().cert_pem.bytes()
    for number in range(scene.clusters):
        name = f"cluster-{number:04}"
        # Of realistic length; its server refuses connections at once: a name would be looked up first.
        token = hashlib.sha512(name.encode()).hexdigest() * 7
        content = write_kubeconfig("https://127.0.0.1:1", authority, token, name)
        assert isinstance(content, bytes), content  # noqa: S101  # its parts are valid
        labels, spec = {api.LABEL_CLUSTER_SET: SET}, {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
        yield (_mine(secret_of(name, content)),)
        yield (_mine(body(api.MANAGED_CLUSTER, name, metadata={"labels": labels}, spec=spec)),)
    for check in range(scene.checks):
        name = f"p{check}"
        decision = decision_of(name, status=decided(scene.clusters_of(check, turn=0)))
        group = {"decisionGroupIndex": 0, "decisions": [decision["metadata"]["name"]]}
        groups = [group | {"clusterCount": PER_CHECK}]
        status = {"numberOfSelectedClusters": PER_CHECK, "decisionGroups": groups}
        placement = body(api.PLACEMENT, name, spec={"clusterSets": [SET]}, status=status)
        yield _mine(placement), _mine(decision), _mine(check_of(f"c{check}", name))


def _mine(item: Object) -> Object:
    return item | {"metadata": item["metadata"] | {"labels": MINE | item["metadata"].get("labels", {})}}


async def decide(client: Client, scene: Scene, check: int, turn: int) -> None:
    """Write a decision for a check, as OCM does."""
    status = decided(scene.clusters_of(check, turn))
    await _write_status(client, api.PLACEMENT_DECISION, f"p{check}-decision-1", status)


async def decide_all(client: Client, scene: Scene, turn: int) -> None:
    await all_of(decide(client, scene, check, turn) for check in range(scene.checks))


async def prepare(client: Client, scene: Scene) -> None:
    """Create the scene on a hub, over HTTP. An existing namespace is used."""
    first, *others = objects(scene)
    with contextlib.suppress(Conflict):  # it exists already
        await create(client, *first)
    await all_of(create(client, *few) for few in others)


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all, `AT_ONCE` at a time."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine: Coroutine[Any, Any, None]) -> None:
        async with few:
            await coroutine

    await asyncio.gather(*map(one, work))


def is_active(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Active", "True") for one in conditions)


async def follow(client: Client, kind: api.Kind, take: Callable[[str, Object], None]) -> None:
    """Watch all objects of a kind for ever, and take each change and its object."""
    reflector = Reflector(client, newest(kind))
    while True:
        with contextlib.suppress(ApiError):
            async for part in reflector.follow():
                events = [("ADDED", item) for item in part.items] if isinstance(part, Listing) else [part]
                for change, item in events:
                    if change != BOOKMARK:
                        take(change, item)
        await asyncio.sleep(0.01)


# -- hubs of others: MultiKueueConfigs and MultiKueueClusters are recognized by name

NAMES: Final[Mapping[api.Kind, str]] = {
    api.MULTIKUEUE_CONFIG: r"p\d+",
    api.MULTIKUEUE_CLUSTER: r"p\d+-cluster-\d{4,}",
}
SHARED: Final = re.compile(r"cluster-\d{4,}")
"""The MultiKueueClusters that all checks share; others may use such names, without a label of ours."""
KINDS: Final = (
    api.ADMISSION_CHECK,
    api.PLACEMENT_DECISION,
    api.PLACEMENT,
    *NAMES,
    api.MANAGED_CLUSTER,
    api.SECRET,
)
"""The kinds of a scene, in order of deletion: causes first."""
IN_USE: Final = (api.ADMISSION_CHECK, api.PLACEMENT, api.MANAGED_CLUSTER, *NAMES)
"""Kinds of which an unused hub has no objects."""


def is_mine(kind: api.Kind, item: Object) -> bool:
    name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
    if kind is api.MULTIKUEUE_CLUSTER and SHARED.fullmatch(name):
        return labels.get(api.LABEL_MANAGED_BY) == api.MANAGED_BY or MINE.items() <= labels.items()
    if kind in NAMES:
        return re.fullmatch(NAMES[kind], name) is not None
    return MINE.items() <= labels.items()


async def refuse_what_is_in_use(client: Client) -> None:
    """Raise ClickException if the hub has objects of these kinds that are not the bench's."""
    for kind in IN_USE:
        listing = await client.list(newest(kind))
        others = [item["metadata"]["name"] for item in listing.items if not is_mine(kind, item)]
        if others:
            named = ", ".join(others[:3]) + ("" if len(others) < 4 else f" and {len(others) - 3} more")
            raise click.ClickException(f"that hub is in use: it has {kind.plural} of others: {named}")


async def clear(client: Client) -> None:
    """Delete all objects of the bench except the namespace."""
    for kind in KINDS:
        namespace = NS if kind.namespaced else None
        found = (await client.list(newest(kind), namespace)).items
        names = [item["metadata"]["name"] for item in found if is_mine(kind, item)]
        await all_of(_delete(client, kind, name, namespace) for name in names)


async def _delete(client: Client, kind: api.Kind, name: str, namespace: str | None) -> None:
    with contextlib.suppress(NotFound):  # the garbage collector was faster
        await client.delete(newest(kind), name, namespace)


# -- what an embedded hub has from the start

FIRST: Final = "c0"
MULTIKUEUE: Final = "mk"
"""The AdmissionChecks that Workloads wait for: ours, and Kueue's."""
WAITING: Final = 1000
"""Workloads that wait for the first check, spread evenly over all."""
TEAMS: Final = 20
WHEN: Final = "2026-08-01T12:00:00Z"
_uids = count(1)


def condition(kind: str, reason: str, message: str, status: str = "True") -> Object:
    body = {"type": kind, "status": status, "reason": reason, "message": message}
    return body | {"observedGeneration": 1, "lastTransitionTime": WHEN}


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
_WAITING: Final = _status((FIRST, "Pending"), (MULTIKUEUE, "Pending"))
_ADMITTED: Final = condition("Admitted", "Admitted", "The workload is admitted")
_COMPLETED: Final = condition("Finished", "Succeeded", "Job finished successfully")
_FINISHED: Final = _status((FIRST, "Ready"), (MULTIKUEUE, "Ready"), more=[_ADMITTED, _COMPLETED])
_NO_QUOTA: Final = condition("QuotaReserved", "Pending", "couldn't assign flavors to pod set main", "False")
_OF_OTHERS: Final = {"conditions": [_NO_QUOTA]}


def workloads(number: int) -> Iterator[Object]:
    """Yield so many Workloads: those that wait, those of others that have no quota, and finished ones."""
    every = max(1, number // WAITING)
    for at in range(number):
        waits = at % every == 0 and at // every < WAITING
        yield workload(at, _WAITING if waits else _FINISHED if at % 10 else _OF_OTHERS)


# -- a scene


def stored(scene: Scene) -> Iterator[Object]:
    """Yield the objects of a scene, without its Workloads, as the server stores them."""
    for few in objects(scene):
        placement, *others = map(_stored, few)
        yield placement
        yield from (
            owned_by(one, placement) if one["kind"] == api.PLACEMENT_DECISION.kind else one for one in others
        )
    if scene.workloads:
        yield _stored(_mine(multikueue_check_of("p0")))


def _stored(item: Object) -> Object:
    """Return the object with the metadata that the server sets."""
    ours = {"uid": str(uuid.UUID(int=next(_uids))), "creationTimestamp": WHEN, "generation": 1}
    return item | {"metadata": ours | item["metadata"]}
