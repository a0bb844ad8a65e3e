"""
Remove the objects that this controller has created on the hub; objects of others stay.

It uses only labels, so it works without the controller. It deletes nothing before it has found everything,
and no object that a remaining object depends on. It deletes each object by its uid.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ANNOTATION_ADOPT,
    CONFIG_MAP,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LEASE,
    MANAGED_BY,
    MANIFEST_WORK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.decode import meta_of, workload
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, PlacementAcError
from placement_ac.core.api.fields import parse_time
from placement_ac.core.api.objects import Meta, Workload
from placement_ac.core.api.text import joined
from placement_ac.kube.client import PAGE_SIZE, Client, Object

KINDS: Final = (
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    MANIFEST_WORK,
    PLACEMENT_SCORE,
    PERMISSION,
    ACCOUNT,
    SECRET,
    CONFIG_MAP,
    LEASE,
)
"""The kinds to delete, in order: lists before their clusters, and these before what is made for them."""
LOOK_AGAIN_SECONDS: Final = 5.0
"""Within this time a leader renews its Lease twice, whatever the clocks show."""

Served = Mapping[Kind, Resource]


class CleanupBlocked(PlacementAcError):
    """The objects are in use, or it is unknown whether they are."""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object of ours."""

    resource: Resource
    meta: Meta
    lists: frozenset[str]
    """The MultiKueueClusters that it lists."""

    @property
    def label(self) -> str:
        return f"{self.resource.of.kind} {'/'.join(filter(None, self.meta.id))}"


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """The result for one object. `problem`: why it was not deleted; `held`: the finalizers that delay it."""

    thing: OwnedObject
    problem: str = ""
    held: str = ""


async def find(client: Client, kueue_namespace: str) -> list[OwnedObject]:
    """Return all objects of ours, in the order of deletion. Raises CleanupBlocked if they are unknown."""
    served = await client.discover(KINDS)
    things: list[OwnedObject] = []
    problems: list[str] = []
    for kind in KINDS:
        if kind in served:
            namespace = kueue_namespace if kind in (SECRET, CONFIG_MAP, LEASE) else None
            try:
                things += await _ours(client, served[kind], namespace)
            except ApiError as error:
                problems.append(error.message)
    if problems:
        raise CleanupBlocked(
            f"nothing is deleted, because not all objects could be listed: {'; '.join(problems)}"
        )
    return things


async def obstacles(client: Client, things: Collection[OwnedObject], kueue_namespace: str) -> list[str]:
    """Return the reasons not to delete `things` now: a running controller, jobs, lists of others.

    Raises CleanupBlocked if that is unknown.
    """
    served = await client.discover((LEASE, MULTIKUEUE_CONFIG, WORKLOAD))
    clusters = {name for thing in things for name in _clusters(thing)}
    try:
        reasons = await _controller(client, served, kueue_namespace)
        if clusters:
            reasons += [message async for message in _foreign_lists(client, served, things)]
            jobs = await _jobs(client, served, clusters)
            reasons += [f"jobs are not finished: {joined(jobs, '; ')}"] if jobs else []
    except ApiError as error:
        raise CleanupBlocked(
            f"it is unknown whether the objects are in use: {error.message}; or use --force"
        ) from None
    return reasons


async def remove(client: Client, things: Iterable[OwnedObject]) -> AsyncIterator[DeleteOutcome]:
    """Delete them one by one; a failure stops only the objects that depend on it."""
    kept: list[OwnedObject] = []
    for thing in things:
        under = next((owned for owned in kept if _depends_on(owned, thing)), None)
        if under:
            outcome = DeleteOutcome(thing, f"stays, because {under.label} does")
        else:
            outcome = await _delete(client, thing)
        if outcome.problem:
            kept.append(thing)
        yield outcome


# -- our objects


async def _ours(client: Client, resource: Resource, namespace: str | None) -> list[OwnedObject]:
    """Return our objects: by label, or the Lease by its name."""
    by_name = resource.of is LEASE
    labels = "" if by_name else f"{LABEL_MANAGED_BY}={MANAGED_BY}"
    objects = (await client.list(resource, namespace, label_selector=labels)).items
    return [
        OwnedObject(resource, meta, _listed(obj) if resource.of is MULTIKUEUE_CONFIG else frozenset())
        for obj in objects
        if _is_ours(meta := meta_of(obj), by_name=by_name)
    ]


def _is_ours(meta: Meta, *, by_name: bool) -> bool:
    """Whether an object is ours and not handed over by its annotation."""
    created = meta.labels.get(LABEL_MANAGED_BY) == MANAGED_BY or (by_name and meta.name == MANAGED_BY)
    return created and meta.annotations.get(ANNOTATION_ADOPT, "true") == "true"


def _listed(config: Object) -> frozenset[str]:
    return frozenset((config.get("spec") or {}).get("clusters") or ())


def _clusters(thing: OwnedObject) -> frozenset[str]:
    """Return the MultiKueueClusters on which jobs can no longer run without it."""
    return frozenset((thing.meta.name,)) if thing.resource.of is MULTIKUEUE_CLUSTER else thing.lists


# -- obstacles


async def _controller(client: Client, served: Served, namespace: str) -> list[str]:
    """Return a message if a controller runs: it would recreate everything."""
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
    return [
        f"run `{stop}` first: the controller runs ({holder} holds its Lease) and would recreate everything"
    ]


async def _lease(client: Client, resource: Resource, namespace: str) -> Mapping[str, Any]:
    try:
        lease = await client.get(resource, MANAGED_BY, namespace)
    except NotFound:
        return {}
    return lease.get("spec") or {}


def _is_fresh(spec: Mapping[str, Any]) -> bool:
    renewed = parse_time(spec.get("renewTime") or "")
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return renewed is not None and datetime.now(UTC) < renewed + lasts


async def _foreign_lists(
    client: Client, served: Served, things: Collection[OwnedObject]
) -> AsyncIterator[str]:
    """Yield the lists of others that have clusters of ours."""
    ours = {thing.meta.name for thing in things if thing.resource.of is MULTIKUEUE_CLUSTER}
    mine = {thing.meta.uid for thing in things}
    if MULTIKUEUE_CONFIG not in served:
        return
    for config in (await client.list(served[MULTIKUEUE_CONFIG])).items:
        listed = sorted(ours & _listed(config))
        if listed and config["metadata"]["uid"] not in mine:
            name = config["metadata"]["name"]
            yield f"MultiKueueConfig {name} is owned by someone else and lists {joined(listed)}"


async def _jobs(client: Client, served: Served, clusters: Collection[str]) -> list[str]:
    """Return a message for each unfinished Workload that runs or waits on one of the clusters."""
    messages: list[str] = []
    if WORKLOAD not in served:
        return messages
    async for page in client.pages(served[WORKLOAD], limit=PAGE_SIZE):
        if page.first:
            messages.clear()
        messages += filter(None, (_job_message(workload(obj), clusters) for obj in page.items))
    return messages


def _job_message(job: Workload, clusters: Collection[str]) -> str:
    if job.finished:
        return ""
    if job.cluster in clusters:
        return f"Workload {job.label} runs on {job.cluster}"
    waits = [name for name in job.nominated if name in clusters]
    return f"Workload {job.label} waits for {joined(waits)}" if waits else ""


# -- deletion


def _depends_on(owned: OwnedObject, thing: OwnedObject) -> bool:
    """Whether `one`, which is still there, needs `thing`."""
    if owned.resource.of is MULTIKUEUE_CONFIG:
        return thing.resource.of is MULTIKUEUE_CLUSTER and thing.meta.name in owned.lists
    dependent, cluster = (each.meta.labels.get(LABEL_CLUSTER, "") for each in (owned, thing))
    return owned.resource.of is MULTIKUEUE_CLUSTER and "" != cluster == dependent


async def _delete(client: Client, thing: OwnedObject) -> DeleteOutcome:
    try:
        after = await client.delete(thing.resource, thing.meta.name, thing.meta.namespace, uid=thing.meta.uid)
    except NotFound:  # garbage-collected with its owner
        return DeleteOutcome(thing)
    except Conflict:
        return DeleteOutcome(thing, "was recreated meanwhile: is the controller running?")
    except ApiError as error:
        return DeleteOutcome(thing, error.message)
    held = (
        (after.get("metadata") or {}).get("finalizers") if after.get("kind") == thing.resource.of.kind else ()
    )
    return DeleteOutcome(thing, held=joined(held or ()))
