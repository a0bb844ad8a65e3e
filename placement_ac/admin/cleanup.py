"""
Remove what this controller has made and left on the hub; what others have made stays.

Goes by labels alone, so it works without the controller. Nothing is deleted before all has been found, and
nothing that something else which is still there stands on. Deletes each object by its uid.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ANNOTATION_ADOPT,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LEASE,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    SECRET,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.decode import workload
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, PlacementAcError
from placement_ac.core.api.schemas import parse_time
from placement_ac.core.api.text import joined
from placement_ac.kube.client import PAGE, Client, Object

KINDS: Final = (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, PERMISSION, ACCOUNT, SECRET, LEASE)
"""What goes, in this order: lists before what they list, clusters before their credentials."""
LOOK_AGAIN_SECONDS: Final = 5.0
"""Within this time a leader renews its Lease twice, whatever its clock and ours show."""

Served = Mapping[Kind, Resource]


class CleanupBlocked(PlacementAcError):
    """What is to be removed is in use, or cannot be looked at."""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object of ours."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    cluster: str = ""
    """The managed cluster that it is for; "" for those that are for none in particular."""
    lists: frozenset[str] = frozenset()
    """The MultiKueueClusters that it lists."""

    @property
    def label(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.of.kind} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """What became of one object; `problem` says why it is still there, `held` by which finalizers it is."""

    thing: OwnedObject
    problem: str = ""
    held: str = ""


async def find(client: Client, kueue_namespace: str) -> list[OwnedObject]:
    """Return all that is ours, in the order in which it is to go. Raises InTheWay when it cannot be told."""
    served = await client.discover(KINDS)
    found: list[OwnedObject] = []
    problems: list[str] = []
    for kind in KINDS:
        if kind in served:
            namespace = kueue_namespace if kind in (SECRET, LEASE) else None
            try:
                found += [_thing(served[kind], obj) async for obj in _ours(client, served[kind], namespace)]
            except ApiError as error:
                problems.append(error.message)
    if problems:
        raise CleanupBlocked(f"cannot tell all that is ours, so nothing is deleted: {'; '.join(problems)}")
    return found


async def obstacles(client: Client, things: Collection[OwnedObject], kueue_namespace: str) -> list[str]:
    """Return why these should stay for now: a controller that is alive, jobs, others' lists.

    Raises InTheWay when that cannot be told.
    """
    served = await client.discover((LEASE, MULTIKUEUE_CONFIG, WORKLOAD))
    clusters = {name for thing in things for name in _clusters(thing)}
    try:
        found = await _controller(client, served, kueue_namespace)
        if clusters:
            found += [message async for message in _foreign_lists(client, served, things)]
            jobs = [message async for message in _jobs(client, served, clusters)]
            found += [f"jobs are not finished: {joined(jobs, '; ')}"] if jobs else []
    except ApiError as error:
        raise CleanupBlocked(f"cannot tell whether it is in use: {error.message}; or use --force") from None
    return found


async def remove(client: Client, things: Iterable[OwnedObject]) -> AsyncIterator[DeleteOutcome]:
    """Delete them one by one; what stands in the way of one does not stop those that do not depend on it."""
    left: list[OwnedObject] = []
    for thing in things:
        under = next((one for one in left if _depends_on(one, thing)), None)
        if under:
            outcome = DeleteOutcome(thing, f"stays, as {under.label} does")
        else:
            outcome = await _delete(client, thing)
        if outcome.problem:
            left.append(thing)
        yield outcome


# -- what is ours


async def _ours(client: Client, resource: Resource, namespace: str | None) -> AsyncIterator[Object]:
    """Yield the objects of ours: by label; the Lease, which is nobody's else, by its name."""
    query = {"limit": str(PAGE)}
    if resource.of is not LEASE:
        query["labelSelector"] = f"{LABEL_MANAGED_BY}={MANAGED_BY}"
    while True:
        answer = await client.request("GET", resource.path(namespace), query=query)
        for obj in answer.get("items") or ():
            if _is_ours(obj["metadata"], by_name=resource.of is LEASE):
                yield obj
        more = (answer.get("metadata") or {}).get("continue")
        if not more:
            return
        query["continue"] = str(more)


def _is_ours(metadata: Object, *, by_name: bool) -> bool:
    """Whether an object is ours, and its annotation does not give it away."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    made = labels.get(LABEL_MANAGED_BY) == MANAGED_BY or (by_name and metadata["name"] == MANAGED_BY)
    return made and annotations.get(ANNOTATION_ADOPT, "true") == "true"


def _thing(resource: Resource, obj: Object) -> OwnedObject:
    metadata = obj["metadata"]
    return OwnedObject(
        resource,
        metadata.get("namespace") or "",
        metadata["name"],
        metadata["uid"],
        cluster=(metadata.get("labels") or {}).get(LABEL_CLUSTER, ""),
        lists=_listed(obj) if resource.of is MULTIKUEUE_CONFIG else frozenset(),
    )


def _listed(config: Object) -> frozenset[str]:
    return frozenset((config.get("spec") or {}).get("clusters") or ())


def _clusters(thing: OwnedObject) -> frozenset[str]:
    """Return the MultiKueueClusters that jobs cannot run on any more without it."""
    return frozenset((thing.name,)) if thing.resource.of is MULTIKUEUE_CLUSTER else thing.lists


# -- what is in the way


async def _controller(client: Client, served: Served, namespace: str) -> list[str]:
    """Say that a controller runs, which would make everything again."""
    if LEASE not in served:
        return []
    resource = served[LEASE]
    spec = await _lease(client, resource, namespace)
    holder = spec.get("holderIdentity")
    if not holder:
        return []
    if not _is_fresh(spec):
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        before, spec = spec, await _lease(client, resource, namespace)
        if not spec.get("holderIdentity") or spec.get("renewTime") == before.get("renewTime"):
            return []
    stop = "kubectl scale deployment -n placement-ac-system placement-ac --replicas=0"
    return [f"the controller runs ({holder} holds its Lease), and would make everything again: first {stop}"]


async def _lease(client: Client, resource: Resource, namespace: str) -> Mapping[str, Any]:
    try:
        found = await client.get(resource, MANAGED_BY, namespace)
    except NotFound:
        return {}
    return found.get("spec") or {}


def _is_fresh(spec: Mapping[str, Any]) -> bool:
    renewed = parse_time(spec.get("renewTime") or "")
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return renewed is not None and datetime.now(UTC) < renewed + lasts


async def _foreign_lists(
    client: Client, served: Served, things: Collection[OwnedObject]
) -> AsyncIterator[str]:
    """Say which lists of somebody else's have clusters of ours."""
    ours = {thing.name for thing in things if thing.resource.of is MULTIKUEUE_CLUSTER}
    mine = {thing.uid for thing in things}
    if MULTIKUEUE_CONFIG not in served:
        return
    for config in (await client.list(served[MULTIKUEUE_CONFIG])).items:
        listed = sorted(ours & _listed(config))
        if listed and config["metadata"]["uid"] not in mine:
            name = config["metadata"]["name"]
            yield f"MultiKueueConfig {name} is somebody else's and lists {joined(listed)}"


async def _jobs(client: Client, served: Served, clusters: Collection[str]) -> AsyncIterator[str]:
    """Say which unfinished Workloads run on a cluster or wait there."""
    if WORKLOAD not in served:
        return
    async for page in client.pages(served[WORKLOAD], limit=PAGE):
        for one in map(workload, page.items):
            if one.finished:
                continue
            if one.cluster in clusters:
                yield f"Workload {one.label} runs on {one.cluster}"
            elif waits := [name for name in one.nominated if name in clusters]:
                yield f"Workload {one.label} waits for {joined(waits)}"


# -- the end


def _depends_on(one: OwnedObject, thing: OwnedObject) -> bool:
    """Whether `one`, which is still there, needs `thing`."""
    if one.resource.of is MULTIKUEUE_CONFIG:
        return thing.resource.of is MULTIKUEUE_CLUSTER and thing.name in one.lists
    return one.resource.of is MULTIKUEUE_CLUSTER and "" != thing.cluster == one.cluster


async def _delete(client: Client, thing: OwnedObject) -> DeleteOutcome:
    try:
        after = await client.delete(thing.resource, thing.name, thing.namespace, uid=thing.uid)
    except NotFound:  # Kubernetes has been quicker: its owner has gone
        return DeleteOutcome(thing)
    except Conflict:
        return DeleteOutcome(thing, "has been made anew meanwhile: does the controller run?")
    except ApiError as error:
        return DeleteOutcome(thing, error.message)
    held = (
        (after.get("metadata") or {}).get("finalizers") if after.get("kind") == thing.resource.of.kind else ()
    )
    return DeleteOutcome(thing, held=joined(held or ()))
