"""
Where the last Workload of each group was placed, for our dispatcher. No I/O.

Finished Workloads count: the cache forgets them, this does not.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from cachetools import LRUCache

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Group, group_of

GROUPS_BYTES: Final = 2_000_000
"""About what the remembered groups take: 10,000 with names of a usual length."""
ENTRY_BYTES: Final = 200
"""The bytes that a group takes besides its names."""
_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)


class _Place(NamedTuple):
    since: datetime
    multikueue_cluster: str
    size: int
    """In bytes, with the group's name."""


class GroupPlaces:
    """The last place of each group."""

    def __init__(self) -> None:
        self._places: LRUCache[Group, _Place] = LRUCache(GROUPS_BYTES, getsizeof=lambda place: place.size)

    def take(self, workload: Workload) -> None:
        """Take in where a Workload is, if it is placed."""
        group = group_of(workload) if workload.cluster else None
        if group:
            size = ENTRY_BYTES + sum(map(len, group)) + len(workload.cluster)
            place = _Place(workload.quota_since or _ALWAYS, workload.cluster, size)
            self._places[group] = max(place, self._places.get(group, place))

    def of(self, workloads: Iterable[Workload], cluster_of: Callable[[str], str]) -> dict[Group, str]:
        """Return the clusters of the groups of `workloads`; `cluster_of` that of a MultiKueueCluster."""
        groups = {group for workload in workloads if (group := group_of(workload))}
        return {
            group: cluster_of(place.multikueue_cluster)
            for group in groups
            if (place := self._places.get(group))
        }

    def copy(self) -> "GroupPlaces":
        other = GroupPlaces()
        other._places.update(self._places)
        return other
