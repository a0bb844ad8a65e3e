"""
The rules of OCM's work agent: what it does with a ManifestWork, on a worker and on the hub.

Source: ocm at 00f84c3, pkg/work/spoke: manifestcontroller, apply, statuscontroller, statusfeedback. It is for
`work_agent`, which waits for changes, and for tests in virtual time. Not simulated: executors, other update
strategies, condition rules, AppliedManifestWorks: what an agent owns is kept in memory.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    COHORT,
    DEPLOYMENT,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, Refused
from placement_ac.core.api.fields import get_dict, get_list, get_str, key_of, name_of, namespace_of
from placement_ac.kube.client import Object
from placement_lab.hub.table import find_values
from placement_lab.standins.cluster_permissions import WORK, WORK_FINALIZER
from placement_lab.standins.managed_service_accounts import with_condition
from placement_lab.standins.multikueue.objects import is_deleted

KINDS: Final = {
    kind.kind: kind
    for kind in (NAMESPACE, RESOURCE_FLAVOR, COHORT, TOPOLOGY, CLUSTER_QUEUE, LOCAL_QUEUE, DEPLOYMENT)
}
Place = tuple[str, str, str]
"""Kind, namespace and name of an object on a worker."""


class Hub(Protocol):
    """The requests to the hub; both raise Conflict if the object has changed since it was read."""

    async def patch(self, kind: Kind, item: Object, patch: Object) -> Object: ...

    async def replace_status(self, kind: Kind, item: Object, status: Object) -> Object: ...


class Worker(Protocol):
    """The requests to a worker: a part of `kube.Client`."""

    async def discover(self, kinds: Iterable[Kind]) -> Mapping[Kind, Resource]: ...

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object: ...

    async def apply(
        self, resource: Resource, body: Object, *, force: bool = False, manager: str | None = None
    ) -> Object: ...

    async def delete(self, resource: Resource, name: str, namespace: str | None = None) -> Object: ...


class WorkRules:
    """Carries out ManifestWorks, and reports on them. `clock`: the POSIX time."""

    def __init__(self, hub: Hub, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._clock = clock
        self._owned: dict[tuple[str, str], set[Place]] = {}
        """Namespace and name of a ManifestWork → what the agent owns of it."""

    async def reconcile(self, worker: Worker, work: Object) -> None:
        """Bring a worker, and what is reported of it, to what a ManifestWork says. Raises ApiError."""
        held = list(work["metadata"].get("finalizers") or ())
        reported = _objects(work, "status", "resourceStatus", "manifests")
        if is_deleted(work):
            await self._delete_owned(worker, work, self._owned.get(key_of(work), ()))
            if WORK_FINALIZER in held:
                kept = [one for one in held if one != WORK_FINALIZER]
                await self._hub.patch(WORK, work, {"metadata": {"finalizers": kept}})
            return
        if WORK_FINALIZER not in held:
            work = await self._hub.patch(WORK, work, {"metadata": {"finalizers": [*held, WORK_FINALIZER]}})
        manifests = _objects(work, "spec", "workload", "manifests")
        wanted = {_place(manifest) for manifest in manifests}
        before = {_place_of_meta(one["resourceMeta"]): one for one in reported}
        await self._delete_owned(worker, work, before.keys() - wanted)
        entries = [
            await self._entry(worker, work, index, manifest, before.get(_place(manifest)))
            for index, manifest in enumerate(manifests)
        ]
        status = _status(work, entries, self._clock())
        if status != work.get("status"):
            await self._hub.replace_status(WORK, work, status)

    async def _entry(
        self, worker: Worker, work: Object, index: int, manifest: Object, before: Object | None
    ) -> Object:
        """Apply one manifest, and return what the status says of it."""
        config = _config_for(work, manifest)
        served = await worker.discover([KINDS[manifest["kind"]]])
        resource = served.get(KINDS[manifest["kind"]])
        conditions = _objects(before, "conditions")
        meta = _meta(index, manifest, is_served=resource is not None)
        if resource is None:
            why = f'the server doesn\'t have a resource type "{manifest["kind"]}"'
            return {"resourceMeta": meta, "conditions": _applied(conditions, work, why, self._clock())}
        why, there = "", None
        try:
            if get_str(config, "updateStrategy", "type") != "ReadOnly":
                options = get_dict(config, "updateStrategy", "serverSideApply")
                manager = get_str(options, "fieldManager") or "work-agent"
                force = options.get("force") is True
                await worker.apply(resource, manifest, force=force, manager=manager)
                owned, place = self._owned.setdefault(key_of(work), set()), _place(manifest)
                (owned.discard if _is_kept(work, place) else owned.add)(place)
        except (Conflict, NotFound, Refused) as error:
            why = error.message
        with contextlib.suppress(NotFound):
            there = await worker.get(resource, name_of(manifest), namespace_of(manifest) or None)
        now = self._clock()
        conditions = _available(_applied(conditions, work, why, now), there is not None, now)
        entry: Object = {"resourceMeta": meta, "conditions": conditions}
        values = list(_feedback(config, there)) if there else []
        return entry | ({"statusFeedback": {"values": values}} if values else {})

    async def _delete_owned(self, worker: Worker, work: Object, places: Iterable[Place]) -> None:
        """Delete those that were applied, and that no orphaning rule kept then."""
        owned = self._owned.setdefault(key_of(work), set())
        for place in owned & set(places):
            kind, namespace, name = place
            with contextlib.suppress(ApiError):
                resource = (await worker.discover([KINDS[kind]]))[KINDS[kind]]
                await worker.delete(resource, name, namespace or None)
            owned.discard(place)


def _is_kept(work: Object, place: Place) -> bool:
    """Whether an orphaning rule keeps an object."""
    kind, namespace, name = place
    wanted = {"resource": KINDS[kind].plural, "namespace": namespace, "name": name}
    rules = get_list(work, "spec", "deleteOption", "selectivelyOrphans", "orphaningRules")
    return any(all(get_str(rule, key) == value for key, value in wanted.items()) for rule in rules)


def _objects(obj: Object | None, *path: str) -> list[Object]:
    return [dict(item) for item in get_list(obj, *path)]


def _place(manifest: Object) -> Place:
    return manifest["kind"], namespace_of(manifest), name_of(manifest)


def _place_of_meta(meta: Object) -> Place:
    return meta["kind"], meta.get("namespace", ""), meta["name"]


def _meta(index: int, manifest: Object, *, is_served: bool) -> Object:
    kind = KINDS[manifest["kind"]]
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    meta = {
        "ordinal": index,
        "group": group,
        "version": version,
        "kind": kind.kind,
        "name": name_of(manifest),
        "namespace": namespace_of(manifest),
    }
    return meta | ({"resource": kind.plural} if is_served else {})


def _config_for(work: Object, manifest: Object) -> Object:
    kind, namespace, name = _place(manifest)
    wanted = (KINDS[kind].plural, namespace, name)
    for config in get_list(work, "spec", "manifestConfigs"):
        named = get_dict(config, "resourceIdentifier")
        if (get_str(named, "resource"), get_str(named, "namespace"), get_str(named, "name")) == wanted:
            return dict(config)
    return {}


def _applied(conditions: Iterable[Object], work: Object, why: str, now: float) -> list[Object]:
    reason = "AppliedManifestFailed" if why else "AppliedManifestComplete"
    message = f"Failed to apply manifest: {why}" if why else "Apply manifest complete"
    generation = work["metadata"]["generation"]
    return with_condition(conditions, "Applied", not why, reason, message, now, observedGeneration=generation)


def _available(conditions: Iterable[Object], there: bool, now: float) -> list[Object]:
    reason = "ResourceAvailable" if there else "ResourceNotAvailable"
    message = "Resource is available" if there else "Resource is not available"
    return with_condition(conditions, "Available", there, reason, message, now)


def _feedback(config: Object, there: Object) -> Iterator[Object]:
    for rule in get_list(config, "feedbackRules"):
        for path in get_list(rule, "jsonPaths"):
            for value in find_values(path["path"], there)[:1]:
                kind = "Integer" if isinstance(value, int) else "String"
                yield {"name": path["name"], "fieldValue": {"type": kind, kind.lower(): value}}


def _status(work: Object, entries: list[Object], now: float) -> Object:
    conditions = _objects(work, "status", "conditions")
    for kind, good, bad in (
        ("Applied", "AppliedManifestWorkComplete", "AppliedManifestWorkFailed"),
        ("Available", "ResourcesAvailable", "ResourcesNotAvailable"),
    ):
        states = [one["status"] for entry in entries for one in entry["conditions"] if one["type"] == kind]
        whole = len(states) == len(entries) and all(state == "True" for state in states)
        generation = work["metadata"]["generation"]
        conditions = with_condition(
            conditions, kind, whole, good if whole else bad, "", now, observedGeneration=generation
        )
    return {"conditions": conditions, "resourceStatus": {"manifests": entries}}
