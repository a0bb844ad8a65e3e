"""
The clusters that a Placement may select: the bound ManagedClusterSets and their members.

Pure. OCM uses the binding and the existence of its set, not the binding's
`Bound` condition; a cluster that is being deleted is no member.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.selectors import require_affordable
from placement_ac.core.api import fields
from placement_ac.core.api.constants import LABEL_CLUSTER_SET
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.label_selector import (
    Requirement,
    Selector,
    SelectorError,
    first_unmet,
    read_label_selector,
)


class BrokenSetError(ValueError):
    """A ManagedClusterSet cannot be read: OCM then writes nothing for the Placement and tries again."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The clusters that a Placement may select.

    `bound`: names of the existing sets bound in its namespace. `eligible`:
    those of them that `spec.clusterSets` names (all if it names none).
    `members`: ManagedClusters by name, sorted by name. `tainted`: those of them that
    have taints, in that order. `terminating`: names of the clusters that would be
    members if they were not being deleted.
    """

    bound: tuple[str, ...]
    eligible: tuple[str, ...]
    members: Mapping[str, Obj]
    tainted: tuple[str, ...] = ()
    terminating: frozenset[str] = frozenset()


def pool_for(placement: Obj, fleet: Fleet) -> Pool:
    """Return the pool of `placement`; raise BrokenSetError if a set cannot be read, UnsupportedError."""
    names = (name for where, name in fleet.bindings if where == fields.namespace_of(placement))
    bound = tuple(sorted(name for name in names if ("", name) in fleet.cluster_sets))
    asked = fields.get_strs(placement, "spec", "clusterSets")
    eligible = tuple(name for name in bound if not asked or name in asked)
    return fleet.cached((bound, eligible), lambda: _pool(bound, eligible, fleet))


def _pool(bound: tuple[str, ...], eligible: tuple[str, ...], fleet: Fleet) -> Pool:
    all_selectors = [member_selector(fleet.cluster_sets["", name]) for name in eligible]
    selectors = [selector for selector in all_selectors if selector is not None]
    require_affordable(selectors, len(fleet.clusters))
    members = {
        name: cluster
        for (_, name), cluster in fleet.clusters.items()
        if any(first_unmet(selector, fields.labels_of(cluster)) is None for selector in selectors)
    }
    leaving = frozenset(name for name, cluster in members.items() if fields.is_terminating(cluster))
    staying = {name: members[name] for name in sorted(members.keys() - leaving)}
    tainted = tuple(name for name, obj in staying.items() if fields.get_dict(obj, "spec").get("taints"))
    return Pool(bound, eligible, staying, tainted, leaving)


def member_selector(cluster_set: Obj) -> Selector | None:
    """Return the selector of a set's members, None if it has no members at all; raise BrokenSetError."""
    kind = fields.get_str(cluster_set, "spec", "clusterSelector", "selectorType")
    if kind in ("", "ExclusiveClusterSetLabel"):
        return (Requirement(LABEL_CLUSTER_SET, "In", (fields.name_of(cluster_set),)),)
    if kind != "LabelSelector":
        raise BrokenSetError(
            f"ManagedClusterSet {fields.name_of(cluster_set)}: selectorType is not right: {kind}"
        )
    where = ("spec", "clusterSelector", "labelSelector")
    if fields.get_value(cluster_set, *where) is None:
        return None
    try:
        return read_label_selector(fields.get_dict(cluster_set, *where))
    except SelectorError as error:
        raise BrokenSetError(f"ManagedClusterSet {fields.name_of(cluster_set)}: {error}") from error
