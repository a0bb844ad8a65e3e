"""
A hub for the bench: clusters with Secrets, and checks with a Placement and a decision each.

It is created by requests, over HTTP to any API server, or directly in the process of an embedded one.
A check `c7` has the Placement `p7`, whose decision has ten clusters; a *change* replaces the last one by
another one, back and forth.
"""

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import trustme

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    KUBECONFIG_KEY,
    LABEL_GROUP_INDEX,
    LABEL_PLACEMENT,
    MANAGED_CLUSTER,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import Conflict
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.kube.client import JSON, MERGE, Client, Object

NS: Final = "kueue-system"
PER_CHECK: Final = 10
"""Clusters of each check."""
AT_ONCE: Final = 16
NAMESPACE: Final = Kind("", "Namespace", "namespaces", False, ("v1",))
MINE: Final = {"app.kubernetes.io/created-by": "placement-ac-bench"}
"""The label of a scene's objects."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The number of checks, and of the clusters that they share."""

    checks: int
    clusters: int = 40

    def __str__(self) -> str:
        return f"{self.checks} checks, {self.clusters} clusters"

    def placement(self, check: int) -> str:
        return f"p{check}"

    def clusters_of(self, check: int, changed: bool) -> tuple[str, ...]:
        """Return the clusters of a check, before or after a change, in OCM's order: by name."""
        first = check * 7
        last = PER_CHECK if changed else PER_CHECK - 1
        steps = (*range(PER_CHECK - 1), last)
        return tuple(sorted(f"cluster-{(first + step) % self.clusters:04}" for step in steps))

    def config(self, check: int, changed: bool) -> list[str]:
        """Return the expected list in the MultiKueueConfig."""
        return [f"{self.placement(check)}-{cluster}" for cluster in self.clusters_of(check, changed)]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request that creates a part of the scene."""

    method: str
    path: str
    body: Object
    content_type: str = JSON


def newest(kind: Kind) -> Resource:
    return kind.at(kind.versions[0])


def body(kind: Kind, name: str, **rest: Any) -> Object:
    metadata = {"name": name} | ({"namespace": NS} if kind.namespaced else {}) | rest.pop("metadata", {})
    return {"apiVersion": newest(kind).api_version, "kind": kind.kind, "metadata": metadata} | rest


def asks(scene: Scene) -> Iterator[tuple[Ask, ...]]:
    """Yield the requests of the scene: each tuple in its order, the first one before all others."""
    yield (_created(NAMESPACE, NS),)
    authority = trustme.CA().cert_pem.bytes()
    for number in range(scene.clusters):
        name = f"cluster-{number:04}"
        data = {KUBECONFIG_KEY: base64.b64encode(_kubeconfig(name, authority)).decode()}
        yield (_created(SECRET, f"multikueue-{name}", data=data),)
        spec = {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
        yield (_created(MANAGED_CLUSTER, name, spec=spec),)
    for check in range(scene.checks):
        yield tuple(_check(scene, check))


def _kubeconfig(cluster: str, authority: bytes) -> bytes:
    """Return a kubeconfig of realistic length; no server answers at its address."""
    token = hashlib.sha512(cluster.encode()).hexdigest() * 7
    content = write_kubeconfig(f"https://api.{cluster}.example.com:6443", authority, token, cluster)
    assert isinstance(content, bytes), content  # noqa: S101  # its parts are valid
    return content


def _check(scene: Scene, check: int) -> Iterator[Ask]:
    name = scene.placement(check)
    decision = f"{name}-decision-1"
    yield _created(PLACEMENT, name, spec={})
    labels = {LABEL_PLACEMENT: name, LABEL_GROUP_INDEX: "0"}
    yield _created(PLACEMENT_DECISION, decision, labels)
    yield _decided(scene, check, changed=False)
    group = {"decisionGroupIndex": 0, "decisions": [decision], "clusterCount": PER_CHECK}
    status = {"numberOfSelectedClusters": PER_CHECK, "decisionGroups": [group]}
    yield _status_written(PLACEMENT, name, status)
    parameters = {"apiGroup": OCM_CLUSTER, "kind": PLACEMENT.kind, "name": name}
    yield _created(
        ADMISSION_CHECK, f"c{check}", spec={"controllerName": OUR_CONTROLLER, "parameters": parameters}
    )


def _decided(scene: Scene, check: int, *, changed: bool) -> Ask:
    decisions = [{"clusterName": name, "reason": ""} for name in scene.clusters_of(check, changed)]
    return _status_written(
        PLACEMENT_DECISION, f"{scene.placement(check)}-decision-1", {"decisions": decisions}
    )


def _created(kind: Kind, name: str, labels: Object | None = None, **rest: Any) -> Ask:
    path = newest(kind).path(NS if kind.namespaced else None)
    return Ask("POST", path, body(kind, name, metadata={"labels": MINE | (labels or {})}, **rest))


def _status_written(kind: Kind, name: str, status: Object) -> Ask:
    return Ask("PATCH", newest(kind).path(NS, name, "status"), {"status": status}, MERGE)


async def decide(client: Client, scene: Scene, check: int, *, changed: bool) -> None:
    """Write a decision for a check, as OCM does."""
    await _send(client, _decided(scene, check, changed=changed))


async def decide_all(client: Client, scene: Scene, *, changed: bool) -> None:
    await all_of(decide(client, scene, check, changed=changed) for check in range(scene.checks))


async def prepare(client: Client, scene: Scene) -> None:
    """Create the scene on a hub, over HTTP. An existing namespace is used."""
    first, *others = asks(scene)
    with contextlib.suppress(Conflict):  # it exists already
        await _in_order(client, first)
    await all_of(_in_order(client, few) for few in others)


async def _in_order(client: Client, few: Iterable[Ask]) -> None:
    for one in few:
        await _send(client, one)


async def _send(client: Client, ask: Ask) -> None:
    await client.request(ask.method, ask.path, ask.body, content_type=ask.content_type)


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all, `AT_ONCE` at a time."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine: Coroutine[Any, Any, None]) -> None:
        async with few:
            await coroutine

    await asyncio.gather(*map(one, work))
