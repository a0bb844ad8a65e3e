"""
The controller's writes, sent after something has happened to the object that they were decided on.

A write that is late must not land on a successor of the same name, nor after what another leader has decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from placement_ac.controller.writer import Writer
from placement_ac.core.api import decode
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT_SCORE,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError, NotFound
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.plan.diff import (
    ABSENT,
    Action,
    Apply,
    Delete,
    Nominate,
    SetCheckStates,
    SetCondition,
    SetStatus,
    body_of,
)
from placement_ac.kube.client import Client
from tests.support.guards import NAME, NAMESPACE, remove

Object = dict[str, Any]

KINDS: Final = (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, ADMISSION_CHECK, PLACEMENT_SCORE, WORKLOAD)
_WHEN: Final = "2026-01-01T00:00:00Z"
_POD: Final = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "resources": {}}]}


def _cluster(secret: str) -> Object:
    return {"clusterSource": {"kubeConfig": {"location": secret, "locationType": "Secret"}}}


_SPECS: Final[Mapping[Kind, Object]] = {
    MULTIKUEUE_CONFIG: {"clusters": ["read"]},
    MULTIKUEUE_CLUSTER: _cluster("read"),
    ADMISSION_CHECK: {"controllerName": "example.com/nobody"},
    PLACEMENT_SCORE: {},
    WORKLOAD: {
        "queueName": NAME,
        "podSets": [{"name": "main", "count": 1, "template": {"spec": _POD}}],
    },
}
"""The objects that writes are decided on: no controller but Kueue's looks after them."""


@dataclass(frozen=True, slots=True)
class LateWrite:
    """A write, and where it lands; `is_done` tells by the object as it is then (None: there is none)."""

    kind: Kind
    decide: Callable[[Object], Action]
    is_done: Callable[[Object | None], bool]
    lands: Mapping[str, bool]
    """The change of the object meanwhile → whether it lands."""
    change: Object = field(default_factory=lambda: {"metadata": {"labels": {"written-by": "another"}}})
    """The body that another leader writes meanwhile."""


_VERSION: Final = {"nothing": True, "changed": False, "recreated": False}
"""Guarded by the resourceVersion."""
_UID: Final = {"nothing": True, "changed": True, "recreated": False}
"""Guarded by the uid."""


def _applied(kind: Kind, spec: Object, *, version: bool = False) -> Callable[[Object], Action]:
    def decide(seen: Object) -> Action:
        observed = decode.kueue_object(seen)
        body = body_of(NAME, {}, {}, observed, HubFacts()) | {"spec": spec}
        if version:
            body["metadata"]["resourceVersion"] = observed.meta.resource_version
        return Apply(kind, body, observed)

    return decide


def _created(kind: Kind, spec: Object, **metadata: str) -> Callable[[Object], Action]:
    return lambda _: Apply(kind, {"metadata": {"name": NAME} | metadata, "spec": spec}, None)


def _deleted(kind: Kind, *, version: bool = False) -> Callable[[Object], Action]:
    def decide(seen: Object) -> Action:
        meta = decode.meta_of(seen)
        return Delete(kind, NAME, meta.uid, version=meta.resource_version if version else "")

    return decide


def _condition(seen: Object) -> Action:
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Guard",
        "message": "",
        "lastTransitionTime": _WHEN,
    }
    return SetCondition(NAME, decode.meta_of(seen).resource_version, condition)


def _score(seen: Object) -> Action:
    status = {"scores": [{"name": "guard", "value": 1}]}
    return SetStatus(PLACEMENT_SCORE, NAME, decode.meta_of(seen).resource_version, status, NAMESPACE)


def _answer(seen: Object) -> Action:
    entry = {"name": "guard", "state": "Ready", "message": "", "lastTransitionTime": _WHEN}
    return SetCheckStates(decode.workload(seen), (entry,))


def _has(*path: str, wanted: object) -> Callable[[Object | None], bool]:
    """Whether there is this value; of a list, whether its first item has it."""

    def has(now: Object | None) -> bool:
        value: Any = now or {}
        for key in path:
            value = value.get(key) or {}
            value = value[0] if isinstance(value, list) else value
        return bool(value == wanted)

    return has


_LISTED: Final = _has("spec", "clusters", wanted="written")
_SOURCE: Final = _has("spec", "clusterSource", "kubeConfig", "location", wanted="written")

LATE_WRITES: Final[Mapping[str, LateWrite]] = {
    "the first list": LateWrite(
        MULTIKUEUE_CONFIG,
        _created(MULTIKUEUE_CONFIG, {"clusters": ["written"]}, resourceVersion=ABSENT),
        _LISTED,
        {"created": False},
    ),
    "a list": LateWrite(
        MULTIKUEUE_CONFIG,
        _applied(MULTIKUEUE_CONFIG, {"clusters": ["written"]}, version=True),
        _LISTED,
        _VERSION,
    ),
    "the deletion of a list": LateWrite(
        MULTIKUEUE_CONFIG, _deleted(MULTIKUEUE_CONFIG, version=True), lambda now: now is None, _VERSION
    ),
    "a new MultiKueueCluster": LateWrite(
        MULTIKUEUE_CLUSTER, _created(MULTIKUEUE_CLUSTER, _cluster("written")), _SOURCE, {"created": True}
    ),
    "a MultiKueueCluster": LateWrite(
        MULTIKUEUE_CLUSTER, _applied(MULTIKUEUE_CLUSTER, _cluster("written")), _SOURCE, _UID
    ),
    "the deletion of a MultiKueueCluster": LateWrite(
        MULTIKUEUE_CLUSTER, _deleted(MULTIKUEUE_CLUSTER), lambda now: now is None, _UID
    ),
    "a condition": LateWrite(
        ADMISSION_CHECK, _condition, _has("status", "conditions", "reason", wanted="Guard"), _VERSION
    ),
    "a score": LateWrite(PLACEMENT_SCORE, _score, _has("status", "scores", "name", wanted="guard"), _VERSION),
    "an answer": LateWrite(
        WORKLOAD,
        _answer,
        _has("status", "admissionChecks", "name", wanted="guard"),
        _VERSION,
        {"spec": {"active": False}},
    ),
    "a nomination": LateWrite(
        WORKLOAD,
        lambda seen: Nominate(decode.workload(seen), ("guard",)),
        _has("status", "nominatedClusterNames", wanted="guard"),
        _VERSION,
    ),
}


async def landings(client: Client, write: LateWrite) -> dict[str, bool]:
    """Return situation → whether the write lands; it raises an error if it does not.

    Kueue may change the object just then: where nothing is to happen meanwhile, there are five tries.
    """
    served = await client.discover(KINDS)
    found: dict[str, bool] = {}
    for situation in write.lands:
        for _ in range(5 if situation == "nothing" else 1):
            found[situation] = await _lands(client, served, write, situation)
            if found[situation]:
                break
    return found


async def _lands(client: Client, served: Mapping[Kind, Resource], write: LateWrite, situation: str) -> bool:
    resource = served[write.kind]
    namespace = NAMESPACE if write.kind.namespaced else None
    await remove(client, resource, NAME, namespace)
    created = {} if situation == "created" else await client.create(resource, _body(resource))
    action = write.decide(created)
    if situation == "changed":
        await client.merge(resource, NAME, write.change, namespace=namespace)
    elif situation == "recreated":
        await remove(client, resource, NAME, namespace)
        await client.create(resource, _body(resource))
    elif situation == "created":
        await client.apply(resource, _body(resource))
    try:
        await Writer(client, served, lambda *_: None).execute([(action,)])
    except ApiError:
        raised = True
    else:
        raised = False
    done = write.is_done(await _found(client, resource, namespace))
    await remove(client, resource, NAME, namespace)
    assert done is not raised
    return done


async def _found(client: Client, resource: Resource, namespace: str | None) -> Object | None:
    try:
        return await client.get(resource, NAME, namespace)
    except NotFound:
        return None


def _body(resource: Resource) -> Object:
    metadata = {"name": NAME} | ({"namespace": NAMESPACE} if resource.of.namespaced else {})
    identity = {"apiVersion": resource.api_version, "kind": resource.of.kind, "metadata": metadata}
    return identity | {"spec": _SPECS[resource.of]} if _SPECS[resource.of] else identity
