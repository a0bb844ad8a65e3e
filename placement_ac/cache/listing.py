"""
Which kinds have been listed, in which namespaces, and at which resourceVersion.

No I/O, no clock.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from placement_ac.core.api import objects
from placement_ac.core.api.constants import Kind

Scope = tuple[Kind, str]
"""The extent of one list: a kind, in one namespace or EVERYWHERE."""
EVERYWHERE: Final = ""


def is_newer(version: objects.ObjectVersion, known: objects.Meta) -> bool:
    """Whether `version` comes after what is known: late and repeated events do not."""
    if version.resource_version == known.resource_version:
        return version.uid != known.uid
    return not is_later(known.resource_version, version.resource_version)


def is_later(version: str, other: str) -> bool:
    """Whether a resourceVersion comes after another (Kubernetes 1.35: comparable as integers)."""
    return version.isdecimal() and other.isdecimal() and int(version) > int(other)


class Listings:
    """The watched kinds and namespaces, and which of them have been listed."""

    def __init__(
        self,
        kinds: Iterable[Kind],
        namespaces: Mapping[Kind, tuple[str, ...]],
        versions: Mapping[Scope, str] | None = None,
    ) -> None:
        """`namespaces`: of the kinds that are not watched EVERYWHERE; `versions`: what has been listed."""
        self._namespaces = namespaces
        self.scopes: tuple[Scope, ...] = tuple(
            dict.fromkeys((kind, namespace) for kind in kinds for namespace in self.namespaces(kind))
        )
        self._versions = dict(versions or {})

    def copy(self) -> "Listings":
        return Listings([kind for kind, _ in self.scopes], self._namespaces, self._versions)

    @property
    def complete(self) -> bool:
        """Whether every kind has been listed wherever it is watched."""
        return all(scope in self._versions for scope in self.scopes)

    def unsynced(self) -> list[str]:
        """Return what has not been listed yet, in words."""
        missing = [scope for scope in self.scopes if scope not in self._versions]
        return [f"{kind} in {namespace}" if namespace else str(kind) for kind, namespace in missing]

    def namespaces(self, kind: Kind) -> tuple[str, ...]:
        """Return where a kind is watched: its namespaces, or EVERYWHERE."""
        return self._namespaces.get(kind, (EVERYWHERE,))

    def watches(self, kind: Kind, namespace: str, name: str) -> bool:
        """Whether an object of that kind, namespace and name is one to follow."""
        return bool({EVERYWHERE, namespace}.intersection(self.namespaces(kind))) and kind.only in ("", name)

    def scopes_of(self, kind: Kind, namespace: str | None) -> list[Scope]:
        """Return what a list of that kind covers; None: all namespaces in which the kind is watched."""
        return [(kind, place) for place in (self.namespaces(kind) if namespace is None else (namespace,))]

    def is_served(self, kind: Kind) -> bool:
        """Whether a kind that is watched everywhere has been listed, and the hub has that kind."""
        return bool(self._versions.get((kind, EVERYWHERE)))

    def begins_again(self, scope: Scope, resource_version: str) -> bool:
        """Whether a list is older than the one before: the hub was restored."""
        return is_later(self._versions.get(scope, ""), resource_version)

    def forget(self, scope: Scope) -> None:
        """Nothing is complete before that has been listed again."""
        self._versions.pop(scope, None)

    def set_synced(self, scope: Scope, resource_version: str) -> None:
        """Take in that a list is complete; the version is "" where the hub has no such kind."""
        self._versions[scope] = resource_version
