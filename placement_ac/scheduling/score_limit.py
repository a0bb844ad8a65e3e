"""
The proposed `scoreRateLimit`: changes of scores alone are rate-limited.

Pure. Source: ocm pull request 1436 and the field's text in the CRD: a change
of anything but the scores is written at once and takes the scores along.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from placement_ac.scheduling.objects import Obj, at, decided_names, instant, labels_of, name_of, text

DEFAULT_LIMIT = timedelta(minutes=1)
_UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}


def held_until(
    placement: Obj, existing: Sequence[Obj], wanted: Sequence[Obj], now: datetime
) -> datetime | None:
    """Return when `wanted` may be written, None if at once."""
    last = instant(placement, "status", "lastScoreUpdateTime")
    if last is None or _entries(existing) == _entries(wanted) or not _choose_the_same(existing, wanted):
        return None
    until = last + limit_of(placement)
    return until if now < until else None


def scores_change(existing: Sequence[Obj], wanted: Sequence[Obj]) -> bool:
    """Say whether writing `wanted` updates a score."""
    return _scores(existing) != _scores(wanted)


def limit_of(placement: Obj) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([hms])", text(placement, "spec", "scoreRateLimit"))
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else DEFAULT_LIMIT


def _choose_the_same(existing: Sequence[Obj], wanted: Sequence[Obj]) -> bool:
    shape = [{name_of(one): labels_of(one) for one in side} for side in (existing, wanted)]
    return shape[0] == shape[1] and decided_names(existing) == decided_names(wanted)


def _entries(decisions: Sequence[Obj]) -> dict[str, object]:
    return {name_of(one): at(one, "status", "decisions") or [] for one in decisions}


def _scores(decisions: Sequence[Obj]) -> dict[str, object]:
    entries = (one for held in _entries(decisions).values() if isinstance(held, list) for one in held)
    return {text(one, "clusterName"): at(one, "score") or 0 for one in entries}
