"""
Decide which scores of a cluster change: those that have been different for long enough.

Pure. A cluster that a Placement has selected stays better than all others until another one has been better
by the step for as long: so noise changes no decision, however near the clusters are to each other.
"""

from collections.abc import Iterable, Mapping

from placement_ac.core.inputs.score_reports import ScoreChoice
from placement_ac.core.score_reports.history import ScoreHistory


def changed_scores(
    cluster: str, published: Mapping[str, int], history: ScoreHistory, step: int
) -> dict[str, int]:
    """Return the scores whose value is to be another one, or that have none yet."""
    changed = {}
    for score, value in history.last(cluster).items():
        before, between = published.get(score), history.range(cluster, score)
        has_moved = before is not None and between is not None and (
            between.least >= before + step or between.largest <= before - step
        )  # fmt: skip
        if before is None or has_moved:
            changed[score] = value
    return changed


def bounded_scores(
    cluster: str,
    published: Mapping[str, int],
    changed: Mapping[str, int],
    score_choices: Iterable[ScoreChoice],
    history: ScoreHistory,
    step: int,
) -> dict[str, int]:
    """Return those of `changed` that may change, and how far: none passes a selected cluster too soon."""

    def is_better(name: str, than: str, score: str) -> bool:
        better, worse = history.range(name, score), history.range(than, score)
        return better is not None and worse is not None and better.least >= worse.largest + step

    bounded = dict(changed)
    for score, selected, others in score_choices:
        before, value = published.get(score), bounded.get(score)
        if before is None or value is None:
            continue
        if cluster in selected and value < before:
            near = [at for name, at in others.items() if not is_better(name, cluster, score)]
            bounded[score] = min(before, max((value, *(at + 1 for at in near))))
        elif cluster in others and value > before:
            near = [at for name, at in selected.items() if not is_better(cluster, name, score)]
            bounded[score] = max(before, min((value, *(at - 1 for at in near))))
    return {
        score: value
        for score, value in bounded.items()
        if score not in published or abs(value - published[score]) >= step
    }
