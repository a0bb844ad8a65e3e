"""
Checks every plan that a test makes: whoever waits for an age keeps it.

The age of what has not begun is 0, and what a plan names begins. So a plan that would differ if it were old,
and does not name it, waits without end. Import this module before all that
makes plans.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

from placement_ac.core.inputs.state import Plan, Since, SinceKind, Snapshot
from placement_ac.core.plan import plan as planning
from placement_ac.core.plan.targets import TargetClusters

OLD: Final = 1e7
"""Seconds: older than any setting."""
NOT_AWAITED: Final = {
    SinceKind.GATE_CLOSED,  # its age ends something: the gate, closed for too long, opens for a while
    SinceKind.MADE_READY,  # it begins with a write that only a copy found on a worker calls for
}
"""Those whose age of 0 delays nothing."""
_about_time: Final = ("lasting", "requeue_after", "config_events")
unchecked_plan = planning.plan


class _Ages(dict[Since, float]):
    """The ages, and what was asked for and has not begun."""

    def __init__(self, ages: dict[Since, float]) -> None:
        super().__init__(ages)
        self.missed: set[Since] = set()

    def get(self, since: Since, default: float | None = None) -> float | None:  # type: ignore[override] # of one use
        if since not in self and default == 0.0:  # `Snapshot.age`; infinite is as old as can be
            self.missed.add(since)
        return super().get(since, default)


def checked_plan(snapshot: Snapshot, targets: TargetClusters | None = None) -> Plan:
    """Return the plan; an AssertionError names an age that it waits for and does not keep."""
    if not isinstance(snapshot.all_ages, dict):  # a preview, for which all time has passed
        return unchecked_plan(snapshot, targets)
    ages = _Ages(snapshot.all_ages)
    made = unchecked_plan(replace(snapshot, all_ages=ages))
    awaited = {since for since in ages.missed if since.kind not in NOT_AWAITED}
    for since in awaited - made.lasting:
        later = unchecked_plan(replace(snapshot, all_ages={**snapshot.all_ages, since: OLD}))
        changed = [name for name in _compared() if getattr(made, name) != getattr(later, name)]
        assert not changed, f"the plan waits for {since} and does not keep it: {changed} would change"
    return made


def _compared() -> Iterator[str]:
    return (field.name for field in fields(Plan) if field.name not in _about_time)


def check_all_plans() -> None:
    """From now on, whoever imports `plan` gets the one that is checked."""
    planning.plan = checked_plan
