"""
Which Placements a change affects.

No I/O. It remembers each cluster and the Placement of each decision, because
the state before a change matters too. The results are those of OCM's enqueuer:
a changed score, for example, affects only the Placements whose prioritizers
name it, not those whose CEL expressions read it.
"""

from collections.abc import Mapping
from contextlib import suppress

from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.sets import BrokenSetError, member_selector
from placement_ac.core.api import fields
from placement_ac.core.api.constants import LABEL_PLACEMENT
from placement_ac.core.api.fields import Key, Obj
from placement_ac.core.api.label_selector import first_unmet

Placements = Mapping[Key, Obj]


class AffectedPlacements:
    """Maps changed objects to keys of Placements; `fleet` and `placements` already have the new state."""

    def __init__(self) -> None:
        self._clusters: dict[str, Obj] = {}
        self._placement_of: dict[Key, str] = {}

    def of_decision(self, key: Key, fleet: Fleet) -> set[Key]:
        """Return the present and the former Placement of the decision."""
        now = fields.get_str(fleet.decisions.get(key), "metadata", "labels", LABEL_PLACEMENT)
        before = self._placement_of.pop(key, "")
        if now:
            self._placement_of[key] = now
        return {(key[0], name) for name in (before, now) if name}

    def of_cluster(self, name: str, fleet: Fleet, placements: Placements) -> set[Key]:
        """Return the Placements that may choose from a set the cluster is or was in."""
        # The former cluster, not its former sets: a set may have become known after the cluster.
        before = self._clusters.pop(name, None)
        now = fleet.clusters.get(("", name))
        if now is not None:
            self._clusters[name] = now
        sets = sets_holding(before, fleet) | sets_holding(now, fleet)
        return {key for set_name in sets for key in self.of_set(set_name, fleet, placements)}

    def of_score(self, cluster: str, name: str, fleet: Fleet, placements: Placements) -> set[Key]:
        """Return the Placements that prioritize by the AddOnPlacementScore `name` of `cluster`."""
        sets = sets_holding(fleet.clusters.get(("", cluster)), fleet)
        spaces = {space for space, bound in fleet.bindings if bound in sets}
        return {key for key, obj in placements.items() if key[0] in spaces and _prioritizes(obj, name)}

    def of_set(
        self, name: str, fleet: Fleet, placements: Placements, namespace: str | None = None
    ) -> set[Key]:
        """Return the Placements that may choose from the set `name`, given: those of one `namespace`.

        With a namespace the set need not be bound there (any more).
        """
        bound_in = {space for space, bound in fleet.bindings if bound == name}
        spaces = bound_in if namespace is None else {namespace}
        return {key for key, obj in placements.items() if key[0] in spaces and _may_use(obj, name)}


def sets_holding(cluster: Obj | None, fleet: Fleet) -> frozenset[str]:
    """Return the names of the sets that the cluster is in; a set that cannot be read has no members."""
    if cluster is None:
        return frozenset()
    names: set[str] = set()
    for (_, name), cluster_set in fleet.cluster_sets.items():
        with suppress(BrokenSetError):
            selector = member_selector(cluster_set)
            if selector is not None and first_unmet(selector, fields.labels_of(cluster)) is None:
                names.add(name)
    return frozenset(names)


def _may_use(placement: Obj, cluster_set: str) -> bool:
    asked = fields.get_strs(placement, "spec", "clusterSets")
    return not asked or cluster_set in asked


def _prioritizes(placement: Obj, score: str) -> bool:
    configs = fields.get_list(placement, "spec", "prioritizerPolicy", "configurations")
    return any(
        fields.get_str(config, "scoreCoordinate", "type") == "AddOn"
        and fields.get_str(config, "scoreCoordinate", "addOn", "resourceName") == score
        for config in configs
    )
