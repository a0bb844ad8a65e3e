"""
Every object of the hub, and what happened to them lately.

Touched by the hub's own thread only. A stored object is never changed: a write
puts a new one in its place, and parts that did not change are shared. Nothing
outside gets hold of an object, only of its JSON.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from placement_ac.lab.hub.errors import gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from placement_ac.lab.hub.kinds import ServedResource

Key = tuple[str, str]  # namespace ("" for a cluster-scoped object), name
Object = dict[str, Any]


class Record:
    """One version of one object; its JSON is made once per API version it is asked in."""

    __slots__ = ("_json", "key", "obj", "resource", "rv")

    def __init__(self, resource: ServedResource, key: Key, obj: Object, rv: int) -> None:
        self.resource, self.key, self.obj, self.rv = resource, key, obj, rv
        self._json: dict[str, bytes] = {}

    def json(self, version: str) -> bytes:
        blob = self._json.get(version)
        if blob is None:
            blob = self._json[version] = orjson.dumps(self.in_version(version), option=orjson.OPT_SORT_KEYS)
        return blob

    def in_version(self, version: str) -> Object:
        """The object under another of its versions: nothing but apiVersion differs."""
        wanted = self.resource.api_version(version)
        return self.obj if self.obj["apiVersion"] == wanted else self.obj | {"apiVersion": wanted}

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid


@dataclass(frozen=True, slots=True, eq=False)
class ObjectChange:
    """What happened to one object: `now` is None when it went, `before` is None when it came."""

    rv: int
    now: Record | None
    before: Record | None
    last: Record  # `now`, or the object as it went, with the version of its going

    @property
    def key(self) -> Key:
        return self.last.key


class ResourceStore:
    """The objects of one kind, their recent changes, and who watches them."""

    def __init__(self, resource: ServedResource, store: Store, history: int) -> None:
        self.resource, self.store = resource, store
        self.records: dict[Key, Record] = {}
        self.keys: list[Key] = []  # sorted
        self.changes: deque[ObjectChange] = deque()
        self.oldest = self.last = (
            store.rv
        )  # a watch may start at `floor` or later; `last`: of the last change
        self.history = history
        # Told in the order in which they came; None says: this kind is gone.
        self.watchers: dict[Callable[[ObjectChange | None], None], None] = {}

    def append(self, change: ObjectChange) -> None:
        self.changes.append(change)
        self.last = change.rv
        while len(self.changes) > self.history:
            self.oldest = self.changes.popleft().rv
        for tell in tuple(self.watchers):
            tell(change)

    def current_version(self) -> int:
        return self.store.rv

    def forget(self, rv: int) -> None:
        self.changes.clear()
        self.oldest = rv

    def since(self, rv: int) -> Iterator[ObjectChange]:
        """The changes after version `rv`; raises 410 when some of them are forgotten."""
        if rv < self.oldest:
            raise gone(f"too old resource version: {rv} ({self.oldest})")
        return (change for change in self.changes if change.rv > rv)

    def between(self, namespace: str, after: Key | None = None) -> Iterable[Record]:
        """The records of one namespace ("" for all), in order, beginning behind the key `after`."""
        if not namespace and after is None:
            return map(self.records.__getitem__, self.keys)
        begin = bisect_left(self.keys, (namespace, ""))
        if after is not None:
            begin = max(begin, bisect_left(self.keys, (after[0], after[1] + "\0")))
        end = bisect_left(self.keys, (namespace + "\0", "")) if namespace else len(self.keys)
        return map(self.records.__getitem__, self.keys[begin:end])

    def as_of(self, rv: int) -> dict[Key, Record]:
        """The records as they were at version `rv`; raises 410 when that is forgotten."""
        then = dict(self.records)
        for change in reversed(list(self.since(rv))):
            if change.before is None:
                then.pop(change.key, None)
            else:
                then[change.key] = change.before
        return then


class Store:
    """All shelves, one counter of versions, and the indexes the garbage collector needs."""

    def __init__(self, history: int) -> None:
        self.rv = 1
        self.history = history
        self.by_resource: dict[ServedResource, ResourceStore] = {}
        self.by_uid: dict[str, Record] = {}
        self.dependents: dict[str, set[str]] = {}  # an owner's uid: the uids of what it owns

    def add_kind(self, resource: ServedResource) -> None:
        self.by_resource[resource] = ResourceStore(resource, self, self.history)

    def replace_kind(self, old: ServedResource, new: ServedResource) -> None:
        """A kind's definition changed: its objects, history and watchers stay."""
        shelf = self.by_resource.pop(old)
        shelf.resource = new
        for record in shelf.records.values():
            record.resource = new
        self.by_resource[new] = shelf

    def drop_kind(self, resource: ServedResource) -> None:
        """Remove a kind with its objects; who watches them is told of each, and then that it is over."""
        shelf = self.by_resource[resource]
        for record in tuple(shelf.records.values()):
            self.remove(record)
        del self.by_resource[resource]
        for tell in tuple(shelf.watchers):
            tell(None)

    def get(self, resource: ServedResource, key: Key) -> Record | None:
        return self.by_resource[resource].records.get(key)

    def put(self, resource: ServedResource, key: Key, obj: Object) -> Record:
        """Store a new object or a new version of one, under the next version number."""
        shelf = self.by_resource[resource]
        record = self._stamped(resource, key, obj)
        before = shelf.records.get(key)
        shelf.records[key] = record
        if before is None:
            insort(shelf.keys, key)
        else:
            self._unindex(before)
        self._index(record)
        shelf.append(ObjectChange(record.rv, record, before, record))
        return record

    def remove(self, record: Record) -> Record:
        """Take an object away; the answer is the object as it went."""
        shelf = self.by_resource[record.resource]
        before = shelf.records.pop(record.key)
        del shelf.keys[bisect_left(shelf.keys, record.key)]
        self._unindex(before)
        last = self._stamped(record.resource, record.key, record.obj)
        shelf.append(ObjectChange(last.rv, None, before, last))
        return last

    def forget(self) -> None:
        """Forget all changes: a watch from any version known so far answers 410."""
        self.rv += 1
        for shelf in self.by_resource.values():
            shelf.forget(self.rv)

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
