"""
Apply Kueue's limit of clusters in a MultiKueueConfig, and put the listed ones into order.

Pure. A listed cluster keeps its slot against one that is hardly better. The order alone
changes only if a rank differs by more than a margin, and not often: after each change
Kueue reconciles every Workload of the check.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from placement_ac.core.decisions.source import RankedCluster
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.selection.selection import ListableCluster

NEVER: Final = float("inf")


class OrderedNames(NamedTuple):
    """The names of MultiKueueClusters in the order of the list."""

    names: tuple[str, ...]
    requeue_after: float | None = None

    @property
    def lasting(self) -> frozenset[Since]:
        return frozenset({_order_since(self.names)})


def apply_cluster_limit(
    snapshot: Snapshot, listable: Sequence[ListableCluster], listed: Collection[str]
) -> tuple[tuple[ListableCluster, ...], tuple[str, ...]]:
    """Return the best clusters by score, in the Placement's order, and the names of the others."""
    limit = snapshot.hub.clusters_max
    if len(listable) <= limit:
        return tuple(listable), ()
    within = set(best_first(snapshot, {entry.cluster: entry.rank for entry in listable}, listed)[:limit])
    return (
        tuple(entry for entry in listable if entry.cluster in within),
        tuple(entry.cluster for entry in listable if entry.cluster not in within),
    )


def best_first(
    snapshot: Snapshot, ranks: Mapping[str, RankedCluster | None], listed: Collection[str]
) -> list[str]:
    """Return clusters by score, the best first; `ranks` is in the Placement's order, which breaks ties.

    The score of a listed one gets the margin on top. A cluster without a rank, which only stays for now,
    comes before all others.
    """
    scored = any(rank and rank.score for rank in ranks.values())
    bonus = dict.fromkeys(listed, snapshot.policy.reorder_margin) if scored else {}
    return sorted(ranks, key=lambda cluster: _sort_key(ranks[cluster], bonus.get(cluster, 0)))


def _sort_key(rank: RankedCluster | None, bonus: int) -> tuple[bool, int, int]:
    """Return the sort key, the best cluster first; ties stay as they are, as the sort is stable."""
    return (True, -rank.score - bonus, rank.group) if rank else (False, 0, 0)


def order_names(
    snapshot: Snapshot, wanted: Sequence[ListableCluster], staying: Sequence[str], settling: Sequence[str]
) -> OrderedNames:
    """Return the names to list: those wanted in their order, those that leave last.

    `settling`: names that keep their places, as they may be wanted again.
    """
    names = (*[entry.name for entry in wanted], *settling, *staying)
    listed, config = snapshot.objects.listed, snapshot.objects.config
    is_not_applied = config is not None and not config.applied_fields.clusters
    if set(names) != set(listed) or is_not_applied:
        return OrderedNames(names)
    if names == listed or snapshot.policy.dispatcher:  # our dispatcher nominates in the Placement's order
        return OrderedNames(listed)
    draining_is_last = set(listed[len(listed) - len(staying) :]) == set(staying)
    waits = settling or any(entry.rank is None for entry in wanted)
    if draining_is_last and (waits or not _is_worth_a_write(wanted, listed, snapshot.policy.reorder_margin)):
        return OrderedNames(listed)
    left = snapshot.policy.reorder_interval - snapshot.all_ages.get(_order_since(listed), NEVER)
    return OrderedNames(listed, left) if left > 0 else OrderedNames(names)


def seconds_unchanged(snapshot: Snapshot) -> float:
    """Return for how long the list has been as it is, as far as this process knows. Unit: seconds."""
    return snapshot.age(_order_since(snapshot.objects.listed))


def _order_since(names: Sequence[str]) -> Since:
    return Since(SinceKind.LIST_ORDER, ",".join(names))


def _is_worth_a_write(wanted: Sequence[ListableCluster], listed: Sequence[str], margin: int) -> bool:
    """Whether a cluster is listed behind one that is worse by more than `margin`, or of a later group."""
    index = {name: at for at, name in enumerate(listed)}
    return any(
        index[better.name] > index[worse.name] and _is_clearly_better(better, worse, margin)
        for better, worse in combinations(wanted, 2)
    )


def _is_clearly_better(better: ListableCluster, worse: ListableCluster, margin: int) -> bool:
    if better.rank is None or worse.rank is None:
        return False
    difference = better.rank.score - worse.rank.score
    return difference > margin or (not difference and better.rank.group < worse.rank.group)
