"""
OCM's placement scheduler as a pure function.

This package does no I/O, reads no clock, and neither logs nor awaits. Its API:
`schedule(placement, Fleet.of(objects), now) -> SchedulingResult`.
"""

from placement_ac.scheduling.engine import schedule
from placement_ac.scheduling.objects import Fleet
from placement_ac.scheduling.outcome import ClusterVerdict, FilterStep, SchedulingResult

__all__ = ["ClusterVerdict", "FilterStep", "Fleet", "SchedulingResult", "schedule"]
