"""
A many-to-many index kept beside a table: which objects answer to a key.

Pure: plain dicts and sets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

Id = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is ""."""
T = TypeVar("T")


class Index(Generic[T]):
    """key → the ids of the objects for which `keys_of` gives that key."""

    def __init__(self, keys_of: Callable[[T], Iterable[str]]) -> None:
        self._keys_of = keys_of
        self._ids: dict[str, Id | set[Id]] = {}
        """An id that is alone stands for itself: a set takes 216 bytes, and most would hold one."""
        self.known = self._ids.get
        """What is kept for a key: an id, a set of them, or None."""

    def _add(self, id_: Id, key: str) -> None:
        known = self._ids.setdefault(key, id_)
        if isinstance(known, set):
            known.add(id_)
        elif known != id_:
            self._ids[key] = {known, id_}

    def _drop(self, id_: Id, key: str) -> None:
        known = self._ids.get(key)
        if isinstance(known, set):
            known.discard(id_)
        if not known or known == id_:
            self._ids.pop(key, None)

    def move(self, id_: Id, before: T | None, thing: T | None) -> None:
        """Let an object answer to what it answers to now; mostly that is nearly the same. None: it is not."""
        old = () if before is None else self._keys_of(before)
        new = () if thing is None else self._keys_of(thing)
        if old == new:
            return
        for key in set(old).difference(new) if old else ():
            self._drop(id_, key)
        for key in set(new).difference(old) if old else new:
            self._add(id_, key)

    def others(self, keys: Iterable[str], id_: Id) -> list[str]:
        """Return those of `keys` to which any other object answers."""
        ids, alone = self._ids, {id_}
        return [key for key in keys if (known := ids.get(key)) and known != id_ and known != alone]

    def copy(self) -> "Index[T]":
        other = Index(self._keys_of)
        other._ids.update({key: set(ids) if isinstance(ids, set) else ids for key, ids in self._ids.items()})
        return other

    def ids(self, key: str) -> Collection[Id]:
        ids = self._ids.get(key)
        return ids if isinstance(ids, set) else (ids,) if ids else ()

    def __contains__(self, key: str) -> bool:
        return key in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)


WAITING_MOST: Final = 64
"""So many changes wait to be indexed at most: what was there before waits with them."""


class Table(Generic[T]):
    """The objects of one kind by id, and the indexes on them, which are kept right when they are asked."""

    def __init__(self, **indexes: Callable[[Any], Iterable[str]]) -> None:
        self.things: dict[Id, T] = {}
        self.changes = 0
        """Moves with every change."""
        self._indexes = {name: Index[T](keys_of) for name, keys_of in indexes.items()}
        self._waiting: dict[Id, T | None] = {}
        """What has changed since they were right, and what they know of it (None: nothing)."""

    def copy(self) -> "Table[T]":
        """Return one that holds the same things, and goes its own way from now on."""
        other = Table[T]()
        other.things, other.changes = dict(self.things), self.changes
        other._indexes = {name: index.copy() for name, index in self._indexes.items()}
        other._waiting = dict(self._waiting)
        return other

    def put(self, id_: Id, thing: T) -> T | None:
        """Store and return what was there before."""
        before = self.things.pop(id_, None)  # what has changed last comes last
        self.things[id_] = thing
        self._changed(id_, before)
        return before

    def drop(self, id_: Id) -> T | None:
        before = self.things.pop(id_, None)
        if before is not None:
            self._changed(id_, before)
        return before

    def _changed(self, id_: Id, before: T | None) -> None:
        self.changes += 1
        if self._indexes:
            self._waiting.setdefault(id_, before)
            if len(self._waiting) > WAITING_MOST:
                self._index()

    def _index(self) -> None:
        for id_, before in self._waiting.items():
            thing = self.things.get(id_)
            for index in self._indexes.values():
                index.move(id_, before, thing)
        self._waiting.clear()

    def by(self, index: str, key: str) -> list[T]:
        """Return the objects that answer to `key`, ordered by id."""
        known = self.keys(index).known(key)
        if not isinstance(known, set):  # mostly
            return [self.things[known]] if known else []
        return [self.things[id_] for id_ in sorted(known)]

    def keys(self, index: str) -> Index[T]:
        """Return an index as it is now; it is to be asked at once."""
        if self._waiting:
            self._index()
        return self._indexes[index]
