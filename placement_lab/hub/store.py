"""
The hub's objects and their recent changes.

Only the hub's thread may use it. Stored objects are immutable: a write replaces the object, and both
share the parts that did not change. Other threads only get JSON.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from placement_lab.hub.errors import gone, internal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from placement_lab.hub.kinds import ServedResource

Key = tuple[str, str]  # namespace ("" for a cluster-scoped object), name
Object = dict[str, Any]

LARGEST_OBJECT = 3 * 2**19  # bytes of JSON: `--max-request-bytes` of etcd is 1.5 MiB by default


class Record:
    """One revision of an object; caches its JSON per API version."""

    __slots__ = ("_json", "key", "obj", "resource", "rv")

    def __init__(self, resource: ServedResource, key: Key, obj: Object, rv: int) -> None:
        self.resource, self.key, self.obj, self.rv = resource, key, obj, rv
        self._json: dict[str, bytes] = {}

    def json(self, version: str) -> bytes:
        blob = self._json.get(version)
        if blob is None:
            blob = self._json[version] = orjson.dumps(self.in_version(version), option=orjson.OPT_SORT_KEYS)
        return blob

    def bare_json(self) -> bytes:
        """Return the JSON without kind and apiVersion."""
        blob = self._json.get("")
        if blob is None:
            bare = {key: value for key, value in self.obj.items() if key not in ("kind", "apiVersion")}
            blob = self._json[""] = orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)
        return blob

    def in_version(self, version: str) -> Object:
        """Return the object in another API version: only apiVersion differs."""
        wanted = self.resource.api_version(version)
        return self.obj if self.obj["apiVersion"] == wanted else self.obj | {"apiVersion": wanted}

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid


@dataclass(frozen=True, slots=True, eq=False)
class StoreChange:
    """A change of one object: `now` is None if it was deleted, `before` is None if it was created."""

    rv: int
    now: Record | None
    before: Record | None
    last: Record  # `now`, or the deleted object with the version of its deletion

    @property
    def key(self) -> Key:
        return self.last.key


class ResourceStore:
    """The objects of one kind, their recent changes, and their watchers."""

    def __init__(self, resource: ServedResource, store: Store, history: int) -> None:
        self.resource, self.store = resource, store
        self.records: dict[Key, Record] = {}
        self.keys: list[Key] = []  # sorted
        self.changes: deque[StoreChange] = deque()
        self.oldest = self.last = store.rv  # oldest version for a watch; version of the last change
        self.history = history
        # Notified in the order of registration; None: the kind was removed.
        self.watchers: dict[Callable[[StoreChange | None], None], None] = {}

    def append(self, change: StoreChange) -> None:
        self.changes.append(change)
        self.last = change.rv
        while len(self.changes) > self.history:
            self.oldest = self.changes.popleft().rv
        for notify in tuple(self.watchers):
            notify(change)

    def current_version(self) -> int:
        return self.store.rv

    def forget(self, rv: int) -> None:
        self.changes.clear()
        self.oldest = rv

    def since(self, rv: int) -> Iterator[StoreChange]:
        """Return the changes after version `rv`; raises 410 if some of them are no longer kept."""
        if rv < self.oldest:
            raise gone(f"too old resource version: {rv} ({self.oldest})")
        return (change for change in self.changes if change.rv > rv)

    def between(self, namespace: str, after: Key | None = None) -> Iterable[Record]:
        """Return the records of a namespace ("" for all) in order, starting after the key `after`."""
        if not namespace and after is None:
            return map(self.records.__getitem__, self.keys)
        begin = bisect_left(self.keys, (namespace, ""))
        if after is not None:
            begin = max(begin, bisect_left(self.keys, (after[0], after[1] + "\0")))
        end = bisect_left(self.keys, (namespace + "\0", "")) if namespace else len(self.keys)
        return map(self.records.__getitem__, self.keys[begin:end])

    def as_of(self, rv: int) -> dict[Key, Record]:
        """Return the records as of version `rv`; raises 410 if it is too old."""
        then = dict(self.records)
        for change in reversed(list(self.since(rv))):
            if change.before is None:
                then.pop(change.key, None)
            else:
                then[change.key] = change.before
        return then


class Store:
    """The objects of all kinds, the version counter, and the garbage collector's indexes."""

    def __init__(self, history: int) -> None:
        self.rv = 1
        self.history = history
        self.by_resource: dict[ServedResource, ResourceStore] = {}
        self.by_uid: dict[str, Record] = {}
        self.dependents: dict[str, set[str]] = {}  # uid of an owner: uids of its dependents

    def add_kind(self, resource: ServedResource) -> None:
        self.by_resource[resource] = ResourceStore(resource, self, self.history)

    def replace_kind(self, old: ServedResource, new: ServedResource) -> None:
        """Replace the definition of a kind and keep its objects, history and watchers."""
        kind = self.by_resource.pop(old)
        kind.resource = new
        for record in kind.records.values():
            record.resource = new
        self.by_resource[new] = kind

    def drop_kind(self, resource: ServedResource) -> None:
        """Remove a kind and its objects; watchers get each deletion, and then None."""
        kind = self.by_resource[resource]
        for record in tuple(kind.records.values()):
            self.remove(record)
        del self.by_resource[resource]
        for notify in tuple(kind.watchers):
            notify(None)

    def get(self, resource: ServedResource, key: Key) -> Record | None:
        return self.by_resource[resource].records.get(key)

    def put(self, resource: ServedResource, key: Key, obj: Object) -> Record:
        """Store a new object or a new version of one, under the next version number.

        Raises 500 if it is too large for etcd.
        """
        kind = self.by_resource[resource]
        record = self._stamped(resource, key, obj)
        if len(record.json(obj["apiVersion"].rpartition("/")[2])) > LARGEST_OBJECT:
            self.rv -= 1
            raise internal("etcdserver: request is too large")
        before = kind.records.get(key)
        kind.records[key] = record
        if before is None:
            insort(kind.keys, key)
        else:
            self._unindex(before)
        self._index(record)
        kind.append(StoreChange(record.rv, record, before, record))
        return record

    def remove(self, record: Record) -> Record:
        """Delete an object and return its last revision."""
        kind = self.by_resource[record.resource]
        before = kind.records.pop(record.key)
        del kind.keys[bisect_left(kind.keys, record.key)]
        self._unindex(before)
        last = self._stamped(record.resource, record.key, record.obj)
        kind.append(StoreChange(last.rv, None, before, last))
        return last

    def forget(self) -> None:
        """Forget all changes: watches from any earlier version get 410."""
        self.rv += 1
        for kind in self.by_resource.values():
            kind.forget(self.rv)

    def _stamped(self, resource: ServedResource, key: Key, obj: Object) -> Record:
        self.rv += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.rv)}
        return Record(resource, key, obj | {"metadata": metadata}, self.rv)

    def _index(self, record: Record) -> None:
        self.by_uid[record.uid] = record
        for owner in record.obj["metadata"].get("ownerReferences") or ():
            self.dependents.setdefault(owner["uid"], set()).add(record.uid)

    def _unindex(self, record: Record) -> None:
        del self.by_uid[record.uid]
        for owner in record.obj["metadata"].get("ownerReferences") or ():
            owned = self.dependents.get(owner["uid"], set())
            owned.discard(record.uid)
            if not owned:
                self.dependents.pop(owner["uid"], None)
