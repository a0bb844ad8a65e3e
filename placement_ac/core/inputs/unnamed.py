"""
PlacementDecisions that their Placement's status does not name.

Pure. Whoever may create PlacementDecisions can copy an owner and a label, but only OCM writes the Placement's
status. OCM writes a decision first and the status a moment later, so a decision counts for `SETTLE_SECONDS`.
"""

from collections.abc import Iterable
from datetime import datetime

from placement_ac.core.api.constants import SETTLE_SECONDS
from placement_ac.core.api.objects import Decision, Placement
from placement_ac.core.inputs.state import Timer, TimerAges, TimerKind


def unnamed_decisions(placement: Placement | None, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the decisions that `status.decisionGroups` does not name; none if OCM does not fill it."""
    named = {name for group in placement.groups for name in group.decisions} if placement else set()
    return tuple([one for one in decisions if named and one.meta.name not in named])


def is_ignored(decision: Decision, now: datetime, ages: TimerAges) -> bool:
    """Whether a decision that is not named counts no more.

    By its age as well: after a restart it must not count again. API servers give times in whole seconds.
    """
    if ages.get(unnamed_timer(decision.meta.name), 0.0) >= SETTLE_SECONDS:
        return True
    return decision.created is not None and (now - decision.created).total_seconds() >= SETTLE_SECONDS + 1


def unnamed_timer(decision: str) -> Timer:
    """Return the timer of a decision that is not named."""
    return Timer(TimerKind.DECISION_UNNAMED, decision)
