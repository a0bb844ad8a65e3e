"""
Decision groups, and the PlacementDecisions that hold them.

Pure. The clusters that match a group's selector are split into groups of
`clustersPerDecisionGroup`, the remaining ones into groups without a name; a
group of more than 100 clusters needs several decisions. Without clusters there
is one empty group, so that one decision always exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from kubectl_placement.scheduling.conditions import MisconfiguredError
from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.predicates import parse_predicate
from kubectl_placement.scheduling.selectors import require_affordable
from placement_ac.core.api import fields
from placement_ac.core.api.constants import LABEL_GROUP_INDEX, LABEL_PLACEMENT, OCM_CLUSTER
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.label_selector import SelectorError

MOST_PER_DECISION = 100
"""OCM: the most clusters in one PlacementDecision."""
GROUP_NAME_LABEL = f"{OCM_CLUSTER}/decision-group-name"
EMPTY_FLEET = Fleet()
"""The selector of a group has no CEL, so it needs no scores."""


@dataclass(frozen=True, slots=True)
class Group:
    """A decision group: its name (empty for the rest) and its clusters in the order of the decisions."""

    name: str
    clusters: tuple[str, ...] = ()


def grouped(placement: Obj, chosen: Sequence[Obj]) -> tuple[list[Group], MisconfiguredError | None]:
    """Put `chosen`, the selected clusters in the order wanted within a group, into groups.

    Returns the groups and the objection; as in OCM, the groups before the objection remain.
    """
    groups: list[Group] = []
    left = {fields.name_of(cluster): cluster for cluster in chosen}
    strategy = fields.get_dict(placement, "spec", "decisionStrategy", "groupStrategy")
    try:
        length = group_length(fields.get_value(strategy, "clustersPerDecisionGroup"), len(left))
        for group in fields.get_list(strategy, "decisionGroups"):
            taken = _taken(fields.get_dict(group, "groupClusterSelector"), left)
            groups += (Group(fields.get_str(group, "groupName"), part) for part in _parts(taken, length))
            for name in taken:
                del left[name]
    except MisconfiguredError as objection:
        return groups, objection
    groups += (Group("", part) for part in _parts(list(left), length))
    return groups or [Group("")], None


def group_length(wanted: object, total: int) -> int:
    """Return how many of `total` clusters make a group: a number, or a percentage of them rounded up.

    Absent, zero, or more than there are: all in one. Raises MisconfiguredError.
    """
    length = ceil(_percent(wanted) / 100 * total) if isinstance(wanted, str) else wanted
    return length if isinstance(length, int) and 0 < length <= total else total


def _percent(wanted: str) -> float:
    try:
        percent = float(wanted.removesuffix("%"))
    except ValueError:
        percent = float("nan")
    if not wanted.endswith("%") or not isfinite(percent):
        raise MisconfiguredError("", f"{wanted} invalid type: string is not a percentage")
    return percent


def _taken(selector: Obj, left: dict[str, Obj]) -> list[str]:
    labels_and_claims = {key: selector[key] for key in ("labelSelector", "claimSelector") if key in selector}
    try:
        predicate = parse_predicate(labels_and_claims)
    except SelectorError as error:
        raise MisconfiguredError("", str(error)) from error
    require_affordable((predicate.labels, predicate.claims), len(left))
    return [name for name, cluster in left.items() if predicate.matches(cluster, EMPTY_FLEET)]


def _parts(clusters: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(clusters[start : start + length]) for start in range(0, len(clusters), max(length, 1)))


def group_decisions(
    placement: Obj, groups: Sequence[Group], entries: Mapping[str, Obj]
) -> tuple[tuple[Obj, ...], list[Obj]]:
    """Return the PlacementDecisions, numbered from 1, and `Placement.status.decisionGroups`.

    `entries`: the entry in `status.decisions` of each cluster.
    """
    decisions: list[Obj] = []
    statuses: list[Obj] = []
    for index, group in enumerate(groups):
        labels = {LABEL_GROUP_INDEX: str(index), GROUP_NAME_LABEL: group.name}
        begin = len(decisions)
        for part in list(_parts(group.clusters, MOST_PER_DECISION)) or [()]:
            of_part = [entries[name] for name in part]
            decisions.append(_decision(placement, len(decisions) + 1, labels, of_part))
        status = {
            "decisionGroupIndex": index,
            "decisionGroupName": group.name,
            "decisions": [fields.name_of(decision) for decision in decisions[begin:]],
            "clusterCount": len(group.clusters),
        }
        statuses.append(status)
    return tuple(decisions), statuses


def _decision(placement: Obj, number: int, labels: Obj, entries: list[Obj]) -> Obj:
    name = fields.name_of(placement)
    owner = {
        "apiVersion": f"{OCM_CLUSTER}/v1beta1",
        "kind": "Placement",
        "name": name,
        "uid": fields.get_str(placement, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": f"{OCM_CLUSTER}/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {
            "name": f"{name}-decision-{number}",
            "namespace": fields.namespace_of(placement),
            "labels": {**labels, LABEL_PLACEMENT: name},
            "ownerReferences": [owner],
        },
        "status": {"decisions": entries},
    }
