"""
The maintenance window of a cluster, as an annotation of its ManagedCluster announces it.

Pure. `kubectl placement drain` writes the annotation for an admin; the controller only reads it. A window
ends when the annotation is removed.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE
from placement_ac.core.api.fields import format_time, parse_time

FORCE: Final = "force"
"""Follows the time, after a comma."""


class MaintenanceWindow(NamedTuple):
    """The maintenance of a cluster."""

    starts: datetime
    """From when on no job is sent there. UTC."""
    force: bool = False
    """Whether the jobs that still run there then are sent back."""

    def __str__(self) -> str:
        """Return the value of the annotation."""
        return f"{format_time(self.starts)},{FORCE}" if self.force else format_time(self.starts)

    @property
    def announcement(self) -> str:
        return f"maintenance begins at {format_time(self.starts)}"

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds until it begins; 0 once it has begun."""
        return max((self.starts - now).total_seconds(), 0.0)

    def has_begun(self, now: datetime) -> bool:
        return self.starts <= now


def parse_window(text: str) -> MaintenanceWindow | str:
    """Return the window that the value of the annotation announces, or what to correct in it."""
    written, comma, force = text.partition(",")
    starts = parse_time(written.strip())
    if starts is None or (comma and force.strip() != FORCE):
        return (
            f"correct the annotation {ANNOTATION_MAINTENANCE}: it is no time like 2026-11-26T18:00:00Z, with "
            f",{FORCE} after it or not, and is ignored"
        )
    try:
        return MaintenanceWindow(starts.astimezone(UTC), bool(comma))
    except OverflowError:  # in the years 1 and 9999, of another zone
        return parse_window("")
