"""
Put the clusters of a Placement's decisions into one order.

Pure: no clock, no I/O; time is an argument. The order is the Placement's own:
by the decisions' scores when OCM gives any, else by the AddOn prioritizers
recomputed from AddOnPlacementScores, else by decision group; ties by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from placement_ac.model import AddOnPrioritizer, Decision, Scores


class Ranked(NamedTuple):
    """A cluster in its place; `score` is the sum that put it there (0 when nothing scores)."""

    cluster: str
    score: int
    group: int


ScoreTable = Mapping[tuple[str, str], Scores]
"""(cluster, AddOnPlacementScore name) → its scores."""


def rank(
    decisions: Iterable[Decision], prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> tuple[Ranked, ...]:
    """Return every decided cluster once, the best first."""
    seen = _once_each(decisions)
    if prioritizers and not any(entry.score for entry in seen):
        seen = [_rescored(entry, prioritizers, scores, now) for entry in seen]
    return tuple(sorted(seen, key=lambda entry: (-entry.score, entry.group, entry.cluster)))


def _once_each(decisions: Iterable[Decision]) -> list[Ranked]:
    """A cluster that stands in several groups counts where it stands first."""
    first: dict[str, Ranked] = {}
    for decision in sorted(decisions, key=lambda d: d.group):
        for entry in decision.decided or ():
            name = entry.cluster_name
            if name and name not in first:
                first[name] = Ranked(name, entry.score, decision.group)
    return list(first.values())


def _rescored(
    entry: Ranked, prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> Ranked:
    return Ranked(entry.cluster, score_of(entry.cluster, prioritizers, scores, now), entry.group)


def score_of(
    cluster: str, prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> int:
    """Return the sum that puts a cluster in its place, by the AddOn prioritizers alone."""
    return sum(p.weight * _score(scores.get((cluster, p.resource_name)), p, now) for p in prioritizers)


def _score(scores: Scores | None, prioritizer: AddOnPrioritizer, now: datetime) -> int:
    """OCM: a score that is missing or expired (`validUntil`) counts 0."""
    if scores is None or (scores.valid_until and scores.valid_until < now):
        return 0
    return scores.values.get(prioritizer.score_name, 0)
