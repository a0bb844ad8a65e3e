"""
The objects of a hub that OCM's scheduler reads.

Pure. The scheduler judges what it reads; this module does not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from placement_ac.core.api.constants import LABEL_PLACEMENT
from placement_ac.core.api.fields import Key, Obj, get_list, get_str, key_of, labels_of

T = TypeVar("T")
Memo: TypeAlias = dict[tuple[str, int], tuple[Obj, str]]
"""By expression and id of a cluster: that cluster, and why it does not match, empty if it does."""


def claims_of(cluster: Obj) -> dict[str, str]:
    """Return the ClusterClaims of a ManagedCluster; the last claim of a name wins."""
    return {
        get_str(claim, "name"): get_str(claim, "value")
        for claim in get_list(cluster, "status", "clusterClaims")
    }


@dataclass(frozen=True, slots=True)
class Fleet:
    """The objects of a hub that scheduling reads. They do not change; a change makes another fleet.

    `memo`: a cache of CEL results per cluster (0.1 ms each), which fleets may share.
    `cache`: values computed from this fleet, such as the clusters of each namespace
    (2 ms for 1,000 clusters).
    """

    clusters: Mapping[Key, Obj] = field(default_factory=dict)
    cluster_sets: Mapping[Key, Obj] = field(default_factory=dict)
    bindings: Mapping[Key, Obj] = field(default_factory=dict)
    scores: Mapping[Key, Obj] = field(default_factory=dict)
    decisions: Mapping[Key, Obj] = field(default_factory=dict)
    memo: Memo = field(default_factory=dict)
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """Return the value that `compute` returned the first time for this key."""
        if key not in self.cache:
            self.cache[key] = compute()
        value: T = self.cache[key]
        return value

    def with_decisions(self, key: Key, made: Sequence[Obj]) -> "Fleet":
        """Return the fleet with these decisions in place of the present ones of a Placement."""
        before = {key_of(decision) for decision in _decisions_of(key, self)}
        rest = {where: decision for where, decision in self.decisions.items() if where not in before}
        return replace(self, decisions=rest | {key_of(decision): decision for decision in made})

    @classmethod
    def of(cls, objects: Iterable[Obj]) -> "Fleet":
        """Return the fleet of these objects. Other kinds are ignored; the last object of a key wins."""
        kinds: dict[str, dict[Key, Obj]] = {kind: {} for kind in KINDS}
        for obj in objects:
            kinds.get(get_str(obj, "kind"), {})[key_of(obj)] = obj
        clusters, cluster_sets, bindings, scores, decisions = kinds.values()
        return cls(clusters, cluster_sets, bindings, scores, decisions)


KINDS = (
    "ManagedCluster",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "AddOnPlacementScore",
    "PlacementDecision",
)
"""The kinds a Fleet holds, in the order of its fields."""


def own_decisions(placement: Obj, fleet: Fleet) -> list[Obj]:
    """Return the PlacementDecisions that carry the label of `placement` in its namespace."""
    return _decisions_of(key_of(placement), fleet)


def _decisions_of(placement: Key, fleet: Fleet) -> list[Obj]:
    def by_placement() -> dict[Key, list[Obj]]:
        table: dict[Key, list[Obj]] = {}
        for (namespace, _), decision in fleet.decisions.items():
            key = namespace, get_str(labels_of(decision), LABEL_PLACEMENT)
            table.setdefault(key, []).append(decision)
        return table

    return fleet.cached("decisions by Placement", by_placement).get(placement, [])


def decided_names(decisions: Iterable[Obj]) -> list[str]:
    """Return the names of the clusters in `decisions`, as often as they occur."""
    return [
        get_str(entry, "clusterName")
        for decision in decisions
        for entry in get_list(decision, "status", "decisions")
    ]
