"""
The served kinds and their paths. No objects, no HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement_lab.hub.kinds import priority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement_lab.hub.kinds import ServedResource, ServedVersion


class Catalog:
    """The served kinds, found by group, version and plural name."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str, str], tuple[ServedResource, ServedVersion]] = {}
        self._kinds: dict[tuple[str, str], ServedResource] = {}
        self.edition = 0  # increases when a kind is added, changed or removed

    def add(self, resource: ServedResource) -> None:
        self._kinds[resource.group, resource.plural] = resource
        for version in resource.versions.values():
            self._versions[resource.group, version.name, resource.plural] = resource, version
        self.edition += 1

    def drop(self, resource: ServedResource) -> None:
        del self._kinds[resource.group, resource.plural]
        for version in resource.versions:
            del self._versions[resource.group, version, resource.plural]
        self.edition += 1

    def find(self, group: str, version: str, plural: str) -> tuple[ServedResource, ServedVersion] | None:
        return self._versions.get((group, version, plural))

    def kind(self, group: str, plural: str) -> ServedResource | None:
        return self._kinds.get((group, plural))

    def by_kind(self, group: str, kind: str) -> ServedResource | None:
        return next((r for r in self._kinds.values() if (r.group, r.kind) == (group, kind)), None)

    def groups(self) -> dict[str, list[str]]:
        """Return each group's versions, preferred first, without the core group."""
        groups: dict[str, set[str]] = {}
        for group, version, _ in self._versions:
            if group:
                groups.setdefault(group, set()).add(version)
        return {group: sorted(groups[group], key=priority) for group in sorted(groups)}

    def served(self, group: str, version: str) -> list[tuple[ServedResource, ServedVersion]]:
        """Return the kinds of a group and version, sorted by name."""
        pairs = [pair for (g, v, _), pair in self._versions.items() if (g, v) == (group, version)]
        return sorted(pairs, key=lambda pair: pair[0].plural)

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(tuple(self._kinds.values()))
