"""
OCM's placement scheduler as a pure function.

This package does no I/O, reads no clock, and neither logs nor awaits. Its API:
`schedule(placement, Fleet.of(objects), now) -> SchedulingResult`.
"""

from kubectl_placement.scheduling.engine import schedule
from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.outcome import ClusterVerdict, FilterStep, SchedulingResult

__all__ = ["ClusterVerdict", "FilterStep", "Fleet", "SchedulingResult", "schedule"]
