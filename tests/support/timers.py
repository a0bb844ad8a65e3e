"""
Checks every plan that a test makes: whoever waits for the age of a timer starts it.

The age of a timer that has not begun is 0, and a plan starts the timers that it names. So a plan that would
differ if such a timer were old, and does not name it, waits without end. Import this module before all that
makes plans.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

from placement_ac.core.inputs.state import Plan, Snapshot, Timer, TimerKind
from placement_ac.core.plan import plan as planning
from placement_ac.core.plan.targets import TargetClusters

OLD: Final = 1e7
"""Seconds: older than any setting."""
NOT_AWAITED: Final = {
    TimerKind.GATE_CLOSED,  # its age ends something: the gate, closed for too long, opens for a while
    TimerKind.MADE_READY,  # it begins with a write that only a copy found on a worker calls for
}
"""Timers whose age of 0 delays nothing."""
_about_time: Final = ("timers", "requeue_after", "config_events")
_plan = planning.plan


class _Ages(dict[Timer, float]):
    """The ages of timers, and those timers that were asked for and have not begun."""

    def __init__(self, ages: dict[Timer, float]) -> None:
        super().__init__(ages)
        self.missed: set[Timer] = set()

    def get(self, timer: Timer, default: float | None = None) -> float | None:  # type: ignore[override] # of one use
        if timer not in self and default is not None:  # `Snapshot.age`
            self.missed.add(timer)
        return super().get(timer, default)


def checked_plan(seen: Snapshot, targets: TargetClusters | None = None) -> Plan:
    """Return the plan; an AssertionError names a timer that it waits for and does not start."""
    ages = _Ages(dict(seen.timer_ages))
    made = _plan(replace(seen, timer_ages=ages))
    awaited = {timer for timer in ages.missed if timer.kind not in NOT_AWAITED}
    for timer in awaited - made.timers:
        later = _plan(replace(seen, timer_ages={**seen.timer_ages, timer: OLD}))
        changed = [name for name in _compared() if getattr(made, name) != getattr(later, name)]
        assert not changed, f"the plan waits for {timer} and does not start it: {changed} would change"
    return made


def _compared() -> Iterator[str]:
    return (field.name for field in fields(Plan) if field.name not in _about_time)


def check_all_plans() -> None:
    """From now on, whoever imports `plan` gets the one that is checked."""
    planning.plan = checked_plan
