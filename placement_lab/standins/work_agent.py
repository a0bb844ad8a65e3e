"""
A stand-in for OCM's work agents: it applies ManifestWorks on the workers, and reports what became of them.

Source: ocm at 00f84c3, pkg/work/spoke: manifestcontroller, apply, statuscontroller, statusfeedback. An object
is applied by server-side apply, or only read; that it is there, and the feedback, are read again every `poll`
seconds (OCM: 10 to 19). `ocm_addons` has those of ClusterPermissions. Not simulated: executors,
other update strategies, condition rules, AppliedManifestWorks: what an agent owns is kept in memory.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    COHORT,
    DEPLOYMENT,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    Kind,
)
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, Refused
from placement_ac.core.api.fields import get_dict, get_list, get_str, key_of, name_of, namespace_of
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.hub.table import find_values
from placement_lab.standins.cluster_permissions import WORK, WORK_FINALIZER, owner_of
from placement_lab.standins.informer import Key, Name, StandIn
from placement_lab.standins.managed_service_accounts import with_condition
from placement_lab.standins.multikueue.objects import is_deleted

KINDS: Final = {
    kind.kind: kind
    for kind in (NAMESPACE, RESOURCE_FLAVOR, COHORT, TOPOLOGY, CLUSTER_QUEUE, LOCAL_QUEUE, DEPLOYMENT)
}
POLL_SECONDS: Final = 10.0
Place = tuple[str, str, str]
"""Kind, namespace and name of an object on a worker."""


class WorkAgents(StandIn):
    """Simulates the agents of all workers. `logins`: an admin's login for the worker of each cluster.

    `pause` and `resume` may be called from any thread except the stand-in's own.
    """

    name = "ocm-work"
    kinds = (WORK,)

    def __init__(
        self, login: Login, logins: Mapping[str, Callable[[], Login]], *, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__(login)
        self._logins = dict(logins)
        self._poll = poll
        self._clients: dict[str, Client] = {}
        self._paused: set[str] = set()
        self._owned: dict[Name, set[Place]] = {}
        """ManifestWork → what the agent owns of it."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await super().run()
        finally:
            for client in self._clients.values():
                await client.__aexit__(None, None, None)

    def pause(self, cluster: str) -> None:
        """Stop acting for a cluster, like an agent that is disconnected from the hub."""
        self._paused.add(cluster)

    def resume(self, cluster: str) -> None:
        self._paused.discard(cluster)
        if self._loop:
            self._loop.call_soon_threadsafe(self._enqueue_all, cluster)

    def add(self, cluster: str, login: Callable[[], Login]) -> None:
        """Take in another worker."""
        self._logins[cluster] = login

    def _enqueue_all(self, cluster: str) -> None:
        for namespace, name in self.objects(WORK):
            if namespace == cluster:
                self.enqueue((namespace, name))

    # -- the stand-in

    def keys_for(self, _: Kind, namespace: str, name: str) -> Iterable[Key]:
        return [(namespace, name)]

    async def reconcile(self, key: Key) -> None:
        cluster, name = key
        work = self.objects(WORK).get((cluster, name))
        if work is None or owner_of(work) or cluster not in self._logins or cluster in self._paused:
            return
        try:
            await self._reconcile(await self._client(cluster), work)
        except (Conflict, NotFound):
            await asyncio.sleep(0.01)
            self.enqueue(key)

    async def _client(self, cluster: str) -> Client:
        if cluster not in self._clients:
            client = Client(self._logins[cluster](), field_manager=self.name)
            self._clients[cluster] = await client.__aenter__()
        return self._clients[cluster]

    async def _reconcile(self, worker: Client, work: Object) -> None:
        held = list(work["metadata"].get("finalizers") or ())
        reported = _objects(work, "status", "resourceStatus", "manifests")
        if is_deleted(work):
            await self._delete_owned(worker, work, self._owned.get(key_of(work), ()))
            if WORK_FINALIZER in held:
                kept = [one for one in held if one != WORK_FINALIZER]
                await self.patch(WORK, work, {"metadata": {"finalizers": kept}})
            return
        if WORK_FINALIZER not in held:
            work = await self.patch(WORK, work, {"metadata": {"finalizers": [*held, WORK_FINALIZER]}})
        manifests = _objects(work, "spec", "workload", "manifests")
        wanted = {_place(manifest) for manifest in manifests}
        before = {_place_of_meta(one["resourceMeta"]): one for one in reported}
        await self._delete_owned(worker, work, before.keys() - wanted)
        entries = [
            await self._entry(worker, work, index, manifest, before.get(_place(manifest)))
            for index, manifest in enumerate(manifests)
        ]
        status = _status(work, entries)
        if status != work.get("status"):
            await self.replace_status(WORK, work, status)
        self.enqueue((namespace_of(work), name_of(work)), after=self._poll)

    async def _entry(
        self, worker: Client, work: Object, index: int, manifest: Object, before: Object | None
    ) -> Object:
        """Apply one manifest, and return what the status says of it."""
        config = _config_for(work, manifest)
        served = await worker.discover([KINDS[manifest["kind"]]])
        resource = served.get(KINDS[manifest["kind"]])
        conditions = _objects(before, "conditions")
        meta = _meta(index, manifest, found=resource is not None)
        if resource is None:
            why = f'the server doesn\'t have a resource type "{manifest["kind"]}"'
            return {"resourceMeta": meta, "conditions": _applied(conditions, work, why)}
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
        conditions = _available(_applied(conditions, work, why), there is not None)
        entry: Object = {"resourceMeta": meta, "conditions": conditions}
        values = list(_feedback(config, there)) if there else []
        return entry | ({"statusFeedback": {"values": values}} if values else {})

    async def _delete_owned(self, worker: Client, work: Object, places: Iterable[Place]) -> None:
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


def _meta(index: int, manifest: Object, *, found: bool) -> Object:
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
    return meta | ({"resource": kind.plural} if found else {})


def _config_for(work: Object, manifest: Object) -> Object:
    kind, namespace, name = _place(manifest)
    wanted = (KINDS[kind].plural, namespace, name)
    for config in get_list(work, "spec", "manifestConfigs"):
        named = get_dict(config, "resourceIdentifier")
        if (get_str(named, "resource"), get_str(named, "namespace"), get_str(named, "name")) == wanted:
            return dict(config)
    return {}


def _applied(conditions: Iterable[Object], work: Object, why: str) -> list[Object]:
    reason = "AppliedManifestFailed" if why else "AppliedManifestComplete"
    message = f"Failed to apply manifest: {why}" if why else "Apply manifest complete"
    generation = work["metadata"]["generation"]
    return with_condition(
        conditions, "Applied", not why, reason, message, time.time(), observedGeneration=generation
    )


def _available(conditions: Iterable[Object], there: bool) -> list[Object]:
    reason = "ResourceAvailable" if there else "ResourceNotAvailable"
    message = "Resource is available" if there else "Resource is not available"
    return with_condition(conditions, "Available", there, reason, message, time.time())


def _feedback(config: Object, there: Object) -> Iterator[Object]:
    for rule in get_list(config, "feedbackRules"):
        for path in get_list(rule, "jsonPaths"):
            for value in find_values(path["path"], there)[:1]:
                kind = "Integer" if isinstance(value, int) else "String"
                yield {"name": path["name"], "fieldValue": {"type": kind, kind.lower(): value}}


def _status(work: Object, entries: list[Object]) -> Object:
    conditions = _objects(work, "status", "conditions")
    for kind, good, bad in (
        ("Applied", "AppliedManifestWorkComplete", "AppliedManifestWorkFailed"),
        ("Available", "ResourcesAvailable", "ResourcesNotAvailable"),
    ):
        states = [one["status"] for entry in entries for one in entry["conditions"] if one["type"] == kind]
        whole = len(states) == len(entries) and all(state == "True" for state in states)
        generation = work["metadata"]["generation"]
        conditions = with_condition(
            conditions, kind, whole, good if whole else bad, "", time.time(), observedGeneration=generation
        )
    return {"conditions": conditions, "resourceStatus": {"manifests": entries}}
