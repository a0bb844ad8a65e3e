"""
The room of a cluster for a job, as far as it is known: it decides to how many the job is nominated.

Pure.
"""

from enum import IntEnum

from placement_ac.core.dispatch.scores.headroom import NOMINAL_POINTS, ROOM_POINTS


class Room(IntEnum):
    """The room of one cluster for one job, the best first."""

    NOMINAL = 0
    """The nominal quota has room."""
    BORROWED = 1
    """There is room with quota that others may reclaim."""
    UNKNOWN = 2
    """Its worker has not answered lately, or the job asks for nothing."""
    FULL = 3
    SILENT = 4
    """Its worker does not answer, and Kueue does not know yet: a job that is sent there may start nowhere."""


def room_of(points: float | None) -> Room:
    """Return what the points of the score Headroom say."""
    if points is None:
        return Room.UNKNOWN
    if points >= NOMINAL_POINTS:
        return Room.NOMINAL
    return Room.BORROWED if points >= ROOM_POINTS else Room.FULL
