"""
Plan the write of one cluster's scores.

Pure. The object on the hub has the values that count, and its `validUntil` says when they were written: so a
restart writes neither sooner nor other values. Values that stay are written again before they expire, as
seldom as possible; a cluster whose worker cannot be read gets no write, and its scores expire.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from placement_ac.core.api.constants import (
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    PLACEMENT_SCORE,
    SCORES_NAME,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import Scores
from placement_ac.core.inputs.score_reports import ScoreChoice, ScoreInputs, ScorePolicy
from placement_ac.core.plan.diff import Apply, Phase, SetStatus, body_of, is_same
from placement_ac.core.score_reports.damping import bounded_scores, changed_scores
from placement_ac.core.score_reports.history import ScoreHistory

ScoreChoices = Callable[[], Iterable[ScoreChoice]]
"""Returns what Placements choose between; called only when a score is to change."""
_NO_SCORES: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """The write for one cluster."""

    phases: tuple[Phase, ...] = ()
    changes: bool = False
    """Whether it changes a value: other clusters count on that none other does at the same time."""
    requeue_after: float | None = None
    """Seconds until it may be written; None: a reading comes first."""


def plan_scores(inputs: ScoreInputs, history: ScoreHistory, score_choices: ScoreChoices) -> ScorePlan:
    """Return the write that reports the last reading of a cluster."""
    latest, scores = history.last(inputs.cluster), inputs.observed
    if not inputs.needed or not latest or is_taken(scores):
        return ScorePlan()
    if scores is None or scores.written is None or not _is_in_order(inputs, scores):
        return ScorePlan(((_apply(inputs, scores),),))
    if scores.written.meta.deleting:
        return ScorePlan()
    policy = inputs.policy
    published = counting(scores, inputs.now)
    changed = changed_scores(inputs.cluster, published, history, policy.step)
    if changed:
        changed = bounded_scores(inputs.cluster, published, changed, score_choices(), history, policy.step)
    values = {name: changed.get(name, published.get(name, 0)) for name in latest}
    if values == published and not _is_due(scores, inputs):
        return ScorePlan()
    if (left := _left(scores, inputs)) > 0:
        return ScorePlan(requeue_after=left)
    entries = [{"name": name, "value": value} for name, value in sorted(values.items())]
    until = inputs.now + timedelta(seconds=policy.valid, microseconds=999_999)
    status = {"scores": entries, "validUntil": format_time(until)}
    meta = scores.meta
    write = SetStatus(PLACEMENT_SCORE, meta.name, meta.resource_version, status, meta.namespace)
    return ScorePlan(((write,),), values != published)


def is_taken(scores: Scores | None) -> bool:
    """Whether the AddOnPlacementScore of our name is somebody else's."""
    written = scores.written if scores else None
    return written is not None and not written.ours and not written.handed_over


def counting(scores: Scores | None, now: datetime) -> Mapping[str, int]:
    """Return the values that count for OCM now."""
    if scores is None or (scores.valid_until and scores.valid_until < now):
        return _NO_SCORES
    return scores.values


def _is_due(scores: Scores, inputs: ScoreInputs) -> bool:
    """Whether values that stay are to be written again: a period before they expire."""
    policy, until = inputs.policy, scores.valid_until
    left = (until - inputs.now).total_seconds() if until else 0.0
    return left <= policy.interval or _is_of_another_writer(left, policy)


def _left(scores: Scores, inputs: ScoreInputs) -> float:
    """Return the seconds until there may be another write."""
    policy = inputs.policy
    valid = (scores.valid_until - inputs.now).total_seconds() if scores.valid_until else 0.0
    written_ago = policy.valid - valid
    return 0.0 if _is_of_another_writer(valid, policy) else policy.interval - written_ago


def _is_of_another_writer(valid: float, policy: ScorePolicy) -> bool:
    """Whether scores are valid for longer than ours ever are: by another writer, or another interval."""
    return valid > policy.valid + policy.interval


def _labels(inputs: ScoreInputs) -> Mapping[str, str]:
    return {LABEL_MANAGED_BY: MANAGED_BY, LABEL_CLUSTER: inputs.cluster}


def _is_in_order(inputs: ScoreInputs, scores: Scores) -> bool:
    return is_same(scores.written, _labels(inputs), inputs.owners, {})


def _apply(inputs: ScoreInputs, scores: Scores | None) -> Apply:
    written = scores.written if scores else None
    body = body_of(SCORES_NAME, _labels(inputs), inputs.owners, written, inputs.hub, namespace=inputs.cluster)
    return Apply(PLACEMENT_SCORE, body, written)
