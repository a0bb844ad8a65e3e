"""
OCM's placement scheduler as a pure function.

Nothing in this package does I/O, reads a clock, logs or awaits. The face of it:
`schedule(placement, Fleet.of(objects), now) -> Outcome`.
"""

from placement_ac.scheduling.engine import schedule
from placement_ac.scheduling.objects import Fleet
from placement_ac.scheduling.outcome import ClusterVerdict, FilterStep, SchedulingResult

__all__ = ["ClusterVerdict", "FilterStep", "Fleet", "SchedulingResult", "schedule"]
