"""
Rank the clusters of a Placement's decisions.

Pure: no clock, no I/O; time is an argument. The order is the Placement's own:
by the decisions' scores when OCM gives any, else by the AddOn prioritizers
recomputed from AddOnPlacementScores, else by decision group; ties by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from placement_ac.core.api.objects import AddOnPrioritizer, Decision, Scores


class RankedCluster(NamedTuple):
    """A cluster with the sum of its scores (0 if nothing scores) and its decision group."""

    cluster: str
    score: int
    group: int


_group: Final = attrgetter("group")
ScoreTable = Mapping[tuple[str, str], Scores]
"""(cluster, AddOnPlacementScore name) → its scores."""


def rank(
    decisions: Iterable[Decision], prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> tuple[RankedCluster, ...]:
    """Return every decided cluster once, the best first."""
    entries = _once_each(decisions)
    if prioritizers and not any(negative for negative, _, _ in entries):
        entries = [(-score_of(name, prioritizers, scores, now), group, name) for _, group, name in entries]
    entries.sort()
    return tuple([RankedCluster(name, -negative, group) for negative, group, name in entries])


def _once_each(decisions: Iterable[Decision]) -> list[tuple[int, int, str]]:
    """Return (-score, group, cluster) of each; a cluster in several groups counts in the first."""
    first: dict[str, tuple[int, int, str]] = {}
    for decision in sorted(decisions, key=_group):
        group = decision.group
        for entry in decision.decided or ():
            name = entry.cluster_name
            if name and name not in first:
                first[name] = -entry.score, group, name
    return list(first.values())


def score_of(
    cluster: str, prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> int:
    """Return the weighted sum of a cluster's scores, by the AddOn prioritizers alone."""
    return sum(p.weight * _score(scores.get((cluster, p.resource_name)), p, now) for p in prioritizers)


def _score(scores: Scores | None, prioritizer: AddOnPrioritizer, now: datetime) -> int:
    """OCM: a score that is missing or expired (`validUntil`) counts 0."""
    if scores is None or (scores.valid_until and scores.valid_until < now):
        return 0
    return scores.values.get(prioritizer.score_name, 0)
