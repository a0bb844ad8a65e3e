"""
The objects read from a hub or from files, by kind, and the kinds that could not be read.

Pure: plain data. `readers` fills it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Final

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.fields import Key, get_list, key_of

Object = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which `kubectl apply` keeps what it has applied."""


class InvalidManifest(PlacementAcError):
    """A file or an object in it cannot be read; the message names it."""


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A right that the caller lacks. `namespace` "": in all namespaces; `name`: of this object alone."""

    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.kind}{where}"

    @property
    def check_command(self) -> str:
        """The kubectl command that checks whether the caller has the right."""
        where = f" -n {self.namespace}" if self.namespace else " -A" if self.kind.namespaced else ""
        what = "/".join(filter(None, (str(self.kind), self.name)))
        return f"kubectl auth can-i {self.verb} {what}{where}"


@dataclass(frozen=True)
class Dump:
    """Objects as the API returns them. A kind that is not in `objects` was not read.

    The repr shows no object, because some may be Secrets.
    """

    objects: Mapping[Kind, tuple[Object, ...]] = field(default_factory=dict, repr=False)
    served: Mapping[Kind, Resource] = field(default_factory=dict)
    """The served version of each kind; of a file, the version of its first object."""
    missing: tuple[MissingRight, ...] = ()
    schemas: Mapping[Resource, Object] = field(default_factory=dict, repr=False)
    """OpenAPI schemas, if they were requested."""
    live: bool = False
    """Whether it was read from an API server: then an object that is missing here does not exist."""
    server: str = ""
    """The URL of that server."""
    release: str = ""
    """Its release, as `v1.35.0`, if it was requested."""
    _index: dict[Kind, dict[Key, Object]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, kind: Kind) -> tuple[Object, ...]:
        """Return the objects of a kind; () if the kind is unknown."""
        return self.objects.get(kind, ())

    def knows(self, kind: Kind) -> bool:
        """Whether all objects of a kind are known: they were listed, or the hub does not serve the kind.

        Of a file: whether it contains any object of the kind, or an empty list of that kind.
        """
        return kind in self.objects and all(right.kind != kind for right in self.missing)

    def why_unknown(self, kind: Kind) -> str:
        """Return that the objects of a kind are unknown, and why; "" if they are known."""
        return f"unknown: {why}" if (why := self.why_not_read(kind)) else ""

    def why_not_read(self, kind: Kind) -> str:
        """Return why the objects of a kind are unknown; "" if they are known."""
        if self.knows(kind):
            return ""
        right = next((right for right in self.missing if right.kind == kind), None)
        if right:
            return f"no right to {right}"
        return f"{'not read:' if self.live else 'the dump holds no'} {kind}"

    def find(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """Return one object; None if it does not exist."""
        return self.by_key(kind).get((namespace, name))

    def by_key(self, kind: Kind) -> Mapping[Key, Object]:
        """Return the objects of a kind by namespace and name."""
        if kind not in self._index:
            self._index[kind] = {key_of(obj): obj for obj in self.of(kind)}
        return self._index[kind]

    def share_unchanged(self, before: "Dump") -> "Dump":
        """Return a copy that shares with `before` the indexes of the kinds whose objects are the same."""
        same = {
            kind: old
            for kind, new in self.objects.items()
            if (old := before.objects.get(kind)) is not None and _are_same(old, new)
        }
        copy = self.with_objects(same)
        for kind in same:
            if kind in before._index:  # noqa: SLF001  # of this class
                copy._index[kind] = before._index[kind]  # noqa: SLF001
        return copy

    def with_objects(self, changed: Mapping[Kind, tuple[Object, ...]]) -> "Dump":
        """Return a copy in which these replace all objects of their kinds."""
        return replace(self, objects={**self.objects, **changed})

    def with_kinds_of(self, other: "Dump") -> "Dump":
        """Return a copy in which the kinds of another reading of this hub replace those of the same name."""
        return replace(
            self,
            objects={**self.objects, **other.objects},
            served={**self.served, **other.served},
            missing=(*(right for right in self.missing if right.kind not in other.objects), *other.missing),
        )


def _are_same(old: tuple[Object, ...], new: tuple[Object, ...]) -> bool:
    return old is new or (len(old) == len(new) and all(map(is_, old, new)))


def condition_of(obj: object, kind: str) -> Mapping[str, Any]:
    """Return the condition of that type of an object; {} if there is none."""
    return next(
        (condition for condition in get_list(obj, "status", "conditions") if condition.get("type") == kind),
        {},
    )
