"""
A hub for the bench: clusters with Secrets, and checks with a Placement and a decision each.

All of it is written over HTTP, so that any API server will do. A check `c7` has the Placement `p7`, whose
decision holds ten clusters; a *change* swaps the last of them for another one, back and forth.
"""

import asyncio
import base64
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

from placement_ac.errors import Conflict
from placement_ac.kube import Client, Object
from placement_ac.names import (
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

NS: Final = "kueue-system"
PER_CHECK: Final = 10
"""Clusters of each check."""
AT_ONCE: Final = 16
NAMESPACE: Final = Kind("", "Namespace", "namespaces", False, ("v1",))


@dataclass(frozen=True, slots=True)
class Scene:
    """How many checks there are, and clusters for them to share."""

    checks: int
    clusters: int = 40

    def placement(self, check: int) -> str:
        return f"p{check}"

    def clusters_of(self, check: int, changed: bool) -> tuple[str, ...]:
        """Return the clusters that a check has, before and after a change, as OCM orders them: by name."""
        first = check * 7
        last = PER_CHECK if changed else PER_CHECK - 1
        steps = (*range(PER_CHECK - 1), last)
        return tuple(sorted(f"cluster-{(first + step) % self.clusters:04}" for step in steps))

    def config(self, check: int, changed: bool) -> list[str]:
        """Return the list that Kueue should get."""
        return [f"{self.placement(check)}-{cluster}" for cluster in self.clusters_of(check, changed)]


def newest(kind: Kind) -> Resource:
    return kind.at(kind.versions[0])


def body(kind: Kind, name: str, **rest: Any) -> Object:
    metadata = {"name": name} | ({"namespace": NS} if kind.namespaced else {}) | rest.pop("metadata", {})
    return {"apiVersion": newest(kind).api_version, "kind": kind.kind, "metadata": metadata} | rest


async def prepare(client: Client, scene: Scene, kubeconfig: bytes) -> None:
    """Put clusters, Secrets, Placements and decisions there; checks come last."""
    await _create(client, NAMESPACE, NS)
    data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
    names = [f"cluster-{number:04}" for number in range(scene.clusters)]
    await _all(_create(client, SECRET, f"multikueue-{name}", data=data) for name in names)
    spec = {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
    await _all(_create(client, MANAGED_CLUSTER, name, spec=spec) for name in names)
    await _all(_place(client, scene, check) for check in range(scene.checks))


async def _place(client: Client, scene: Scene, check: int) -> None:
    name = scene.placement(check)
    await _create(client, PLACEMENT, name, spec={})
    decision = f"{name}-decision-1"
    labels = {LABEL_PLACEMENT: name, LABEL_GROUP_INDEX: "0"}
    await _create(client, PLACEMENT_DECISION, decision, metadata={"labels": labels})
    await decide(client, scene, check, changed=False)
    group = {"decisionGroupIndex": 0, "decisions": [decision], "clusterCount": PER_CHECK}
    status = {"numberOfSelectedClusters": PER_CHECK, "decisionGroups": [group]}
    await client.merge(newest(PLACEMENT), name, {"status": status}, namespace=NS, subresource="status")


async def answer(client: Client, scene: Scene) -> None:
    """Make the checks: from now on there is something to do."""
    await _all(_check(client, scene, check) for check in range(scene.checks))


async def _check(client: Client, scene: Scene, check: int) -> None:
    parameters = {"apiGroup": OCM_CLUSTER, "kind": PLACEMENT.kind, "name": scene.placement(check)}
    spec = {"controllerName": OUR_CONTROLLER, "parameters": parameters}
    await _create(client, ADMISSION_CHECK, f"c{check}", spec=spec)


async def decide(client: Client, scene: Scene, check: int, *, changed: bool) -> None:
    """Be OCM: decide for a check."""
    decisions = [{"clusterName": name, "reason": ""} for name in scene.clusters_of(check, changed)]
    await client.merge(
        newest(PLACEMENT_DECISION),
        f"{scene.placement(check)}-decision-1",
        {"status": {"decisions": decisions}},
        namespace=NS,
        subresource="status",
    )


async def _create(client: Client, kind: Kind, name: str, **rest: Any) -> None:
    try:
        await client.create(newest(kind), body(kind, name, **rest))
    except Conflict:
        return  # it is there already


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    few = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine: Coroutine[Any, Any, None]) -> None:
        async with few:
            await coroutine

    await asyncio.gather(*map(one, work))
