"""
A table of objects, with many-to-many indexes that give the objects for a key.

Pure: plain dicts and sets.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from placement_ac.core.api.fields import Obj

Id = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is ""."""
T = TypeVar("T")


class Index(Generic[T]):
    """key → the ids of the objects for which `keys_of` gives that key."""

    def __init__(
        self, keys_of: Callable[[T], Iterable[str]], ids: Mapping[str, Iterable[Id]] | None = None
    ) -> None:
        self._keys_of = keys_of
        self._ids = {key: set(known) for key, known in (ids or {}).items()}

    def copy(self) -> "Index[T]":
        return Index(self._keys_of, self._ids)

    def update(self, id_: Id, before: T | None, now: T | None) -> None:
        """Move an object from the keys that it had to those that it has; None: it is not there."""
        old = set(self._keys_of(before)) if before is not None else set[str]()
        new = set(self._keys_of(now)) if now is not None else set[str]()
        for key in old - new:
            ids = self._ids[key]
            ids.discard(id_)
            if not ids:
                del self._ids[key]
        for key in new - old:
            self._ids.setdefault(key, set()).add(id_)

    def used_by_others(self, keys: Iterable[str], id_: Id) -> list[str]:
        """Return those of `keys` that an object other than `id_` has."""
        return [key for key in keys if not self._ids.get(key, set()) <= {id_}]

    def ids(self, key: str) -> Collection[Id]:
        return self._ids.get(key, ())

    def __contains__(self, key: str) -> bool:
        return key in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)


class Table(Generic[T]):
    """The objects of one kind by id, with indexes: a change looks at nothing but the object that changed.

    `read` decodes one of them.
    """

    def __init__(self, read: Callable[[Obj], T], **indexes: Callable[[Any], Iterable[str]]) -> None:
        self.read = read
        self.objects: dict[Id, T] = {}
        self.changes = 0
        """The number of changes so far: what was read at the same number holds still."""
        self.indexes = {name: Index[T](keys_of) for name, keys_of in indexes.items()}

    def copy(self) -> "Table[T]":
        """Return a table that holds the same; later changes of either stay its own."""
        other = Table[T](self.read)
        other.objects = dict(self.objects)
        other.indexes = {name: index.copy() for name, index in self.indexes.items()}
        return other

    def get(self, id_: Id) -> T | None:
        return self.objects.get(id_)

    def put(self, id_: Id, obj: T) -> None:
        before = self.objects.get(id_)
        self.objects[id_] = obj
        self.changes += 1
        for index in self.indexes.values():
            index.update(id_, before, obj)

    def remove(self, id_: Id) -> None:
        before = self.objects.pop(id_, None)
        self.changes += 1
        for index in self.indexes.values():
            index.update(id_, before, None)

    def by(self, index: str, key: str) -> list[T]:
        """Return the objects that have `key` in that index, ordered by id."""
        return [self.objects[id_] for id_ in sorted(self.indexes[index].ids(key))]

    def index(self, name: str) -> Index[T]:
        return self.indexes[name]
