"""
Give away the seats in a MultiKueueConfig, and put those who have one into order.

Pure. A cluster that is listed keeps its seat against one that is hardly better, and the
order alone is changed only when it matters and not often: Kueue looks at every Workload
of the check each time.
"""

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from placement_ac.core.inputs.state import Snapshot, Timer, TimerKind
from placement_ac.core.selection.selection import UsableCluster

NEVER: Final = float("inf")


class LimitedClusters(NamedTuple):
    """Who has a seat, in the Placement's order, and who finds none."""

    within: tuple[UsableCluster, ...]
    over_limit: tuple[str, ...]


class OrderedNames(NamedTuple):
    """The names in the order in which they are to stand."""

    names: tuple[str, ...]
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


def apply_cluster_limit(
    seen: Snapshot, usable: Sequence[UsableCluster], listed: Collection[str], most: int
) -> LimitedClusters:
    """Give at most so many seats away: by score, and for a listed cluster the margin on top.

    Who only stays for now (it has no rank) has its seat before all others.
    """
    if len(usable) <= most:
        return LimitedClusters(tuple(usable), ())
    scored = any(entry.rank and entry.rank.score for entry in usable)
    bonus = dict.fromkeys(listed, seen.policy.reorder_margin) if scored else {}
    by_right = sorted(usable, key=lambda entry: _claim(entry, bonus.get(entry.cluster, 0)))
    seats = {entry.cluster for entry in by_right[: max(most, 0)]}
    return LimitedClusters(
        tuple(entry for entry in usable if entry.cluster in seats),
        tuple(entry.cluster for entry in usable if entry.cluster not in seats),
    )


def _claim(entry: UsableCluster, bonus: int) -> tuple[bool, int, int]:
    """Return who comes first: the least does; of equals the one that ranks first."""
    rank = entry.rank
    return (True, -rank.score - bonus, rank.group) if rank else (False, 0, 0)


def order_names(seen: Snapshot, wanted: Sequence[UsableCluster], staying: Sequence[str]) -> OrderedNames:
    """Return the names to list: those wanted in their order, those that leave last."""
    names = (*[entry.name for entry in wanted], *staying)
    listed = seen.objects.config.listed if seen.objects.config and seen.objects.config.ours else ()
    if set(names) != set(listed):
        return OrderedNames(names, frozenset({_written(names)}))
    if names == listed:
        return OrderedNames(names, frozenset({_written(names)} & seen.timer_ages.keys()))
    if any(entry.rank is None for entry in wanted) and not _out_of_line(listed, staying):
        return OrderedNames(listed)
    if _out_of_line(listed, staying) or (
        seen.objects.config and not seen.objects.config.applied_fields.clusters
    ):
        return OrderedNames(names, frozenset({_written(names)}))
    if not _matters(wanted, listed, seen.policy.reorder_margin):
        return OrderedNames(listed, frozenset({_written(listed)} & seen.timer_ages.keys()))
    age = seen.timer_ages.get(_written(listed), NEVER)
    if age < seen.policy.reorder_interval:
        return OrderedNames(listed, frozenset({_written(listed)}), seen.policy.reorder_interval - age)
    return OrderedNames(names, frozenset({_written(names)}))


def _written(names: Sequence[str]) -> Timer:
    return Timer(TimerKind.LIST_ORDER, ",".join(names))


def _out_of_line(listed: Sequence[str], staying: Collection[str]) -> bool:
    """Whether one that leaves stands before one that is wanted."""
    last = listed[len(listed) - len(staying) :]
    return set(last) != set(staying)


def _matters(wanted: Sequence[UsableCluster], listed: Sequence[str], margin: int) -> bool:
    """Whether a cluster stands behind one that is worse by more than `margin`, or of a later group."""
    place = {name: at for at, name in enumerate(listed)}
    return any(
        place[better.name] > place[worse.name] and _clearly(better, worse, margin)
        for better, worse in combinations(wanted, 2)
    )


def _clearly(better: UsableCluster, worse: UsableCluster, margin: int) -> bool:
    if better.rank is None or worse.rank is None:
        return False
    scored = better.rank.score - worse.rank.score
    return scored > margin or (not scored and better.rank.group < worse.rank.group)
