"""
A hub for the bench: clusters with Secrets, and checks with a Placement and a decision each.

It is created over HTTP on any API server; an embedded one has its objects from the start.
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
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import trustme

from bench.processes import NEVER_SECONDS
from placement_ac.core.api import constants as api
from placement_ac.core.api.errors import ApiError, Conflict, NotFound
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.kube.client import Client, Listing, Object
from placement_ac.kube.reflector import BOOKMARK, Reflector

NS: Final = "kueue-system"
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
    name, for all Placements.
    """

    checks: int
    clusters: int = 40
    draws: bool = False
    shared_names: bool = False

    def __str__(self) -> str:
        return f"{self.checks} checks, {self.clusters} clusters"

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


def multikueue_check_of(name: str, config: str) -> Object:
    parameters = {"apiGroup": api.KUEUE, "kind": api.MULTIKUEUE_CONFIG.kind, "name": config}
    spec = {"controllerName": f"{api.KUEUE}/multikueue", "parameters": parameters}
    return body(api.ADMISSION_CHECK, name, spec=spec)


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


async def select(client: Client, placement: str, scores: Mapping[str, int]) -> None:
    """Write OCM's decision for these clusters, best first."""
    await _write_status(client, api.PLACEMENT_DECISION, f"{placement}-decision-1", decided(scores, scores))


async def _write_status(client: Client, kind: api.Kind, name: str, status: Object) -> None:
    await client.merge(newest(kind), name, {"status": status}, namespace=NS, subresource="status")


# -- the objects of a scene


def objects(scene: Scene) -> Iterator[tuple[Object, ...]]:
    """Yield the objects of the scene: each tuple in its order, the first one before all others."""
    yield (_mine(body(NAMESPACE, NS)),)
    authority = trustme.CA().cert_pem.bytes()
    for number in range(scene.clusters):
        name = f"cluster-{number:04}"
        # Of realistic length; no server answers at its address.
        token = hashlib.sha512(name.encode()).hexdigest() * 7
        content = write_kubeconfig(f"https://api.{name}.example.com:6443", authority, token, name)
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


async def until_listed(
    client: Client, kind: api.Kind, reached: Callable[[Sequence[Object]], bool]
) -> Sequence[Object]:
    """Return the objects of a kind once they are as wanted; ClickException at the deadline."""
    end = time.monotonic() + NEVER_SECONDS
    while not reached(found := (await client.list(newest(kind))).items):
        if time.monotonic() > end:
            raise click.ClickException(f"the {kind.plural} are not as expected after {NEVER_SECONDS:g} s")
        await asyncio.sleep(0.05)
    return found


def is_active(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any((condition["type"], condition["status"]) == ("Active", "True") for condition in conditions)


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
"""The MultiKueueClusters that all checks share; others may use such names, without the controller's label."""
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
        return labels.get(api.LABEL_MANAGED_BY) == api.MANAGED_BY
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
