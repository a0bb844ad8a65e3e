"""
The proposed `scoreRateLimit`: changes of scores alone are rate-limited.

Pure. Source: ocm pull request 1436 and the field's text in the CRD: a change
of anything but the scores is written at once and takes the scores along.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kubectl_placement.scheduling.fleet import decided_names
from kubectl_placement.scheduling.outcome import SchedulingResult
from placement_ac.core.api.fields import Obj, format_time, get_str, get_time, get_value, labels_of, name_of

DEFAULT_LIMIT = timedelta(minutes=1)
_UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}


def limited(
    placement: Obj, existing: Sequence[Obj], outcome: SchedulingResult, now: datetime
) -> SchedulingResult:
    """Delay changes of scores alone, and set the time when scores are written.

    `existing`: the present decisions of the Placement.
    """
    wanted, last = outcome.decisions, get_time(placement, "status", "lastScoreUpdateTime")
    if last is not None and _entries(existing) != _entries(wanted) and _choose_the_same(existing, wanted):
        until = last + _limit_of(placement)
        if now < until:
            kept = {name_of(decision): decision.get("status", {}) for decision in existing}
            decisions = tuple({**decision, "status": kept[name_of(decision)]} for decision in wanted)
            ends = filter(None, (until, outcome.reschedule_at))
            return replace(outcome, decisions=decisions, reschedule_at=min(ends))
    if _scores(existing) == _scores(wanted):
        return outcome
    return replace(outcome, status={**outcome.status, "lastScoreUpdateTime": format_time(now)})


def _limit_of(placement: Obj) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([hms])", get_str(placement, "spec", "scoreRateLimit"))
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else DEFAULT_LIMIT


def _choose_the_same(existing: Sequence[Obj], wanted: Sequence[Obj]) -> bool:
    shape = [{name_of(decision): labels_of(decision) for decision in side} for side in (existing, wanted)]
    return shape[0] == shape[1] and set(decided_names(existing)) == set(decided_names(wanted))


def _entries(decisions: Sequence[Obj]) -> dict[str, object]:
    return {name_of(decision): get_value(decision, "status", "decisions") or [] for decision in decisions}


def _scores(decisions: Sequence[Obj]) -> dict[str, object]:
    entries = (entry for held in _entries(decisions).values() if isinstance(held, list) for entry in held)
    return {get_str(entry, "clusterName"): get_value(entry, "score") or 0 for entry in entries}
