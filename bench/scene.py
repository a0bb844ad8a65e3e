"""
A hub for the bench: clusters with Secrets, and checks with a Placement and a decision each.

It is created by requests, over HTTP to any API server, or directly in the process of an embedded one.
A check `c7` has the Placement `p7`, whose decision has ten clusters; a *change* brings the decision to
another *turn*. Even and odd turns differ in one cluster; in a scene that draws, each turn has ten clusters
drawn at random, so that with 40 clusters a change replaces 7.5 of them on average.
"""

import asyncio
import base64
import contextlib
import hashlib
import random
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import trustme

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    KUBECONFIG_KEY,
    LABEL_CLUSTER_SET,
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
SET: Final = "placement-ac-bench"
"""The ManagedClusterSet that all clusters name; it need not exist, as nobody schedules."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The number of checks, and of the clusters that they share."""

    checks: int
    clusters: int = 40
    draws: bool = False
    """Whether each turn draws the clusters anew."""
    shared_names: bool = False
    """Whether the MultiKueueCluster of a cluster has its name, for all Placements."""

    def __str__(self) -> str:
        return f"{self.checks} checks, {self.clusters} clusters"

    def placement(self, check: int) -> str:
        return f"p{check}"

    def clusters_of(self, check: int, turn: int) -> tuple[str, ...]:
        """Return the clusters of a check in a turn, in OCM's order: by name."""
        numbers = self._drawn(check, turn) if self.draws else self._swapped(check, turn)
        return tuple(f"cluster-{number:04}" for number in sorted(numbers))

    def _drawn(self, check: int, turn: int) -> list[int]:
        chance = random.Random(f"{check}/{turn}")  # noqa: S311  # nothing secret
        return chance.sample(range(self.clusters), PER_CHECK)

    def _swapped(self, check: int, turn: int) -> list[int]:
        steps = (*range(PER_CHECK - 1), PER_CHECK - 1 + turn % 2)
        return [(check * 7 + step) % self.clusters for step in steps]

    def config(self, check: int, turn: int) -> list[str]:
        """Return the expected list in the MultiKueueConfig."""
        clusters = self.clusters_of(check, turn)
        return [
            cluster if self.shared_names else f"{self.placement(check)}-{cluster}" for cluster in clusters
        ]


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
        yield (_created(MANAGED_CLUSTER, name, {LABEL_CLUSTER_SET: SET}, spec=spec),)
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
    yield _created(PLACEMENT, name, spec={"clusterSets": [SET]})
    labels = {LABEL_PLACEMENT: name, LABEL_GROUP_INDEX: "0"}
    yield _created(PLACEMENT_DECISION, decision, labels)
    yield _decided(scene, check, turn=0)
    group = {"decisionGroupIndex": 0, "decisions": [decision], "clusterCount": PER_CHECK}
    status = {"numberOfSelectedClusters": PER_CHECK, "decisionGroups": [group]}
    yield _status_written(PLACEMENT, name, status)
    parameters = {"apiGroup": OCM_CLUSTER, "kind": PLACEMENT.kind, "name": name}
    yield _created(
        ADMISSION_CHECK, f"c{check}", spec={"controllerName": OUR_CONTROLLER, "parameters": parameters}
    )


def _decided(scene: Scene, check: int, turn: int) -> Ask:
    decisions = [{"clusterName": name, "reason": ""} for name in scene.clusters_of(check, turn)]
    return _status_written(
        PLACEMENT_DECISION, f"{scene.placement(check)}-decision-1", {"decisions": decisions}
    )


def _created(kind: Kind, name: str, labels: Object | None = None, **rest: Any) -> Ask:
    path = newest(kind).path(NS if kind.namespaced else None)
    return Ask("POST", path, body(kind, name, metadata={"labels": MINE | (labels or {})}, **rest))


def _status_written(kind: Kind, name: str, status: Object) -> Ask:
    return Ask("PATCH", newest(kind).path(NS, name, "status"), {"status": status}, MERGE)


async def decide(client: Client, scene: Scene, check: int, turn: int) -> None:
    """Write a decision for a check, as OCM does."""
    await _send(client, _decided(scene, check, turn))


async def decide_all(client: Client, scene: Scene, turn: int) -> None:
    await all_of(decide(client, scene, check, turn) for check in range(scene.checks))


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
    sent = await owned(client, ask.body) if ask.body.get("kind") == PLACEMENT_DECISION.kind else ask.body
    await client.request(ask.method, ask.path, sent, content_type=ask.content_type)


async def owned(client: Client, decision: Object) -> Object:
    """Return a PlacementDecision that its Placement, which exists, owns."""
    name = decision["metadata"]["labels"][LABEL_PLACEMENT]
    return owned_by(decision, await client.get(newest(PLACEMENT), name, NS))


def owned_by(decision: Object, placement: Object) -> Object:
    named = {"apiVersion": newest(PLACEMENT).api_version, "kind": PLACEMENT.kind, "controller": True}
    owner = named | {key: placement["metadata"][key] for key in ("name", "uid")}
    return decision | {"metadata": decision["metadata"] | {"ownerReferences": [owner]}}


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all, `AT_ONCE` at a time."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine: Coroutine[Any, Any, None]) -> None:
        async with few:
            await coroutine

    await asyncio.gather(*map(one, work))
