"""
The base of every stand-in: an informer that caches kinds of a hub, and a controller that reconciles keys.

Uses only the hub's public API: LIST, then WATCH. After an error it waits, lists the kind again, and reports
objects that disappeared meanwhile as deletions. Everything runs in one event loop, so no locks are needed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from itertools import count
from typing import ClassVar

import structlog
from cachetools import LRUCache

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import ApiError, NotFound, Unavailable
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Client, Listing, Object
from placement_ac.kube.login import Login
from placement_ac.kube.reflector import BOOKMARK, Reflector
from placement_ac.kube.workqueue import Requeue, Workqueue

Key = tuple[str, ...]
"""The key of a reconcile request; each stand-in defines its own parts."""
Name = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is ""."""
OnChange = Callable[[Kind, str, str], None]
OnError = Callable[[ApiError], None]

FIRST_BACKOFF_SECONDS = 0.05
LONGEST_BACKOFF_SECONDS = 0.5
"""Short, so that a stand-in notices the end of an outage as soon as the controller does."""
DELETED_UIDS_KEPT = 1000
"""The number of deleted objects to remember: the response to a write may arrive after the deletion."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Kubernetes: the annotation of the bookmark that ends the initial events."""

log = structlog.get_logger(__name__)


def backoff() -> Iterator[float]:
    """Yield the seconds to wait after each consecutive failure."""
    return (min(FIRST_BACKOFF_SECONDS * 2 ** min(n, 16), LONGEST_BACKOFF_SECONDS) for n in count())


class HubInformer:
    """Lists and watches `kinds`, each in the newest version that the hub serves.

    `objects[kind][(namespace, name)]` is the latest known object. `on_change(kind, namespace, name)` is
    called after each change of `objects`, and `on_error` before each retry; both run in the event loop and
    must neither block nor raise. Kinds that are not served are discovered again until they are; `synced()`
    does not wait for `optional` kinds. Kinds in `streamed` are read by a watch with initial events, which
    needs no `list` permission.
    """

    def __init__(
        self,
        client: Client,
        kinds: Iterable[Kind],
        on_change: OnChange,
        *,
        optional: Iterable[Kind] = (),
        streamed: Iterable[Kind] = (),
        on_error: OnError | None = None,
    ) -> None:
        self._streamed = frozenset(streamed)
        self._client = client
        self._optional = frozenset(optional)
        self._kinds = (*kinds, *self._optional)
        self._on_change = on_change
        self._on_error = on_error
        self._listed = {kind: asyncio.Event() for kind in self._kinds}
        self._written: dict[tuple[Kind, Name], Object] = {}
        self._deleted_uids: LRUCache[str, bool] = LRUCache(DELETED_UIDS_KEPT)
        self.resources: dict[Kind, Resource] = {}
        self.objects: dict[Kind, dict[Name, Object]] = {kind: {} for kind in self._kinds}

    async def synced(self) -> None:
        """Return when every kind has been listed once; optional kinds that are not served do not count."""
        for listed in self._listed.values():
            await listed.wait()

    def remember(self, kind: Kind, written: Object) -> None:
        """Store a written object, so that an older event that arrives later does not replace it.

        If newer events of the object have arrived already, they win.
        """
        key, uid = key_of(written), written["metadata"].get("uid")
        latest = self.objects[kind].get(key)
        newer = latest is not None and _version(latest) > _version(written)
        if newer or (uid is not None and uid in self._deleted_uids):
            return
        self._written[kind, key] = written
        self.objects[kind][key] = written

    def forget(self, kind: Kind, key: Name) -> None:
        """Remove an object that was just deleted."""
        self._written.pop((kind, key), None)
        self.objects[kind].pop(key, None)

    async def run(self) -> None:
        """Watch the hub until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in self._kinds:
                tasks.create_task(self._follow(kind))

    async def _follow(self, kind: Kind) -> None:
        failures = backoff()
        while True:
            try:
                resource, now = await self._discover(kind), dict[Name, Object]()
                version = await self._stream(resource) if kind in self._streamed else ""
                async with aclosing(Reflector(self._client, resource, version=version).follow()) as parts:
                    async for part in parts:
                        if not isinstance(part, Listing):
                            failures = backoff()
                            self._apply_event(kind, *part)
                            continue
                        now = (now if not part.first else {}) | {key_of(item): item for item in part.items}
                        if part.last:
                            self._apply_list(kind, now)
            except ApiError as error:
                if isinstance(error, NotFound):
                    self._replace(kind, {})
                log.debug("listing again", kind=str(kind), error=error.message)
                if self._on_error:
                    self._on_error(error)
                await asyncio.sleep(next(failures))

    async def _discover(self, kind: Kind) -> Resource:
        """Return the resource as soon as the hub serves it."""
        tries = backoff()
        while kind not in (resources := await self._client.discover([kind])):
            if kind in self._optional:
                self._listed[kind].set()
            await asyncio.sleep(next(tries))
        self.resources[kind] = resources[kind]
        return resources[kind]

    def _apply_list(self, kind: Kind, now: dict[Name, Object]) -> None:
        written = [name for of, name in self._written if of == kind]
        for name in written:
            del self._written[kind, name]
        self._replace(kind, now, written)
        self._listed[kind].set()

    def _replace(self, kind: Kind, now: dict[Name, Object], written: Iterable[Name] = ()) -> None:
        """Replace the known objects and report all changes, including our own writes in `written`."""
        before = self.objects[kind]
        self.objects[kind] = now
        changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        for namespace, name in changed.union(written):
            self._on_change(kind, namespace, name)

    async def _stream(self, resource: Resource) -> str:
        """Read the initial events of a watch and return the version to continue from. Raises ApiError."""
        now: dict[Name, Object] = {}
        async with aclosing(self._client.watch(resource, "", initial_events=True)) as events:
            async for change, item in events:
                if change != "BOOKMARK":
                    now[key_of(item)] = item
                elif INITIAL_EVENTS_END in (item["metadata"].get("annotations") or {}):
                    self._replace(resource.of, now)
                    self._listed[resource.of].set()
                    return str(item["metadata"]["resourceVersion"])
        raise Unavailable(f"WATCH {resource.path()}: ended before the initial events were complete")

    def _apply_event(self, kind: Kind, change: str, item: Object) -> None:
        if change == BOOKMARK:
            return
        key = key_of(item)
        if change == "DELETED":
            self._deleted_uids[item["metadata"].get("uid", "")] = True
            self._written.pop((kind, key), None)
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = self._newest(kind, item)
        self._on_change(kind, *key)

    def _newest(self, kind: Kind, item: Object) -> Object:
        """Return our written object if it is newer than the received `item`, else `item`."""
        written = self._written.get((kind, key_of(item)))
        if written is not None and _version(item) < _version(written):
            return written
        self._written.pop((kind, key_of(item)), None)
        return item


def _version(item: Object) -> int:
    """Return the resourceVersion as a number: it increases with every write (KEP 5504)."""
    version = str(item["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdecimal() else 0


class StandIn(ABC):
    """A small controller: maps events to keys, and reconciles each key from the informer's objects.

    Its first queue reconciles `parallel` keys at once, and others as `new_queue` says.
    """

    name: ClassVar[str]
    """The name, also used as field manager."""
    kinds: ClassVar[tuple[Kind, ...]]
    optional: ClassVar[tuple[Kind, ...]] = ()
    """Kinds that the hub need not serve."""
    parallel: ClassVar[int] = 1

    def __init__(self, login: Login) -> None:
        self.client = Client(login, field_manager=self.name)
        self.informer = HubInformer(self.client, self.kinds, self._changed, optional=self.optional)
        self._queues: list[Workqueue[Key]] = []
        self._queue = self.new_queue(self.parallel)
        self._failure: asyncio.Future[None] | None = None
        """Done when an unexpected error has to end it."""

    def new_queue(self, parallel: int = 1) -> Workqueue[Key]:
        """Return another queue: its keys are reconciled beside those of the first, `parallel` at once."""
        backoffs = (FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS)
        self._queues.append(Workqueue(self._work, parallel=parallel, backoff=backoffs))
        return self._queues[-1]

    @abstractmethod
    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        """Return the keys to reconcile after a change of this object, which the informer already holds."""

    @abstractmethod
    async def reconcile(self, key: Key) -> None:
        """Bring the hub to the desired state for `key`; write only differences. May raise ApiError."""

    async def run(self) -> None:
        """Watch and reconcile until cancelled; reconciling starts after every kind has been listed once."""
        async with self.client, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informer.run())
            self._failure = asyncio.get_running_loop().create_future()
            try:
                await self._failure
            finally:
                for queue in self._queues:
                    queue.clear()
                    await queue.close()

    async def _work(self, key: Key) -> None:
        await self.informer.synced()
        try:
            await self.reconcile(key)
        except ApiError as error:
            log.debug("trying again", stand_in=self.name, key=key, error=error.message)
            raise Requeue from None
        except Exception as error:
            if self._failure is None or self._failure.done():
                raise
            self._failure.set_exception(error)

    def enqueue(self, key: Key, *, after: float = 0.0) -> None:
        """Enqueue `key`, `after` seconds from now."""
        self._queue.add_after(key, after)

    def objects(self, kind: Kind) -> dict[Name, Object]:
        """Return the objects of `kind` by (namespace, name)."""
        return self.informer.objects[kind]

    async def patch(self, kind: Kind, item: Object, patch: Object, subresource: str = "") -> Object:
        """Merge `patch` into the object; raises Conflict if it has changed since it was read."""
        namespace, name = key_of(item)
        whole = patch | {
            "metadata": {"resourceVersion": item["metadata"]["resourceVersion"], **patch.get("metadata", {})}
        }
        resource = self.informer.resources[kind]
        written = await self.client.merge(resource, name, whole, namespace=namespace, subresource=subresource)
        self.informer.remember(kind, written)
        return written

    async def replace_status(self, kind: Kind, item: Object, status: Object) -> Object:
        """Replace the whole status of the object; raises Conflict if it has changed since it was read."""
        gone = dict.fromkeys((item.get("status") or {}).keys() - status.keys())
        return await self.patch(kind, item, {"status": status | gone}, "status")

    def _changed(self, kind: Kind, namespace: str, name: str) -> None:
        for key in self.keys_for(kind, namespace, name):
            self.enqueue(key)
