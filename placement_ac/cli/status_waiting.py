"""The lines of `status` about who waits for the gate, and how often the list changed."""

from datetime import datetime
from typing import Final

from placement_ac.cli.output import age_text
from placement_ac.core.api.text import count_text
from placement_ac.inspection.status.model import HeldRow, ListWrites

UNKNOWN: Final = "?"


def held_line(held: HeldRow, now: datetime) -> str:
    """Return how many Workloads the gate holds, for how long, and which clusters leave."""
    since = f" for {age_text((now - held.since).total_seconds())}" if held.since else ""
    verb = "leaves" if len(held.clusters) == 1 else "leave"
    removal = f"{', '.join(held.clusters)} {verb} ({held.why})"
    return f"Held by the gate{since}: {count_text(held.workloads, 'Workload')}, because {removal}"


def list_writes_line(writes: ListWrites, *, wide: bool) -> str:
    """Return how often the list changed, and what a change costs; `wide`: also since it was created."""
    parts = [UNKNOWN if writes.last_hour is None else f"at least {writes.last_hour}"]
    if wide and writes.total:
        since = f" since {writes.since:%Y-%m-%dT%H:%M:%SZ}" if writes.since else ""
        parts.append(f"{writes.total:,} in all{since}")
    clusters = count_text(writes.clusters, "cluster")
    if writes.workloads is not None:
        workloads = count_text(writes.workloads, "Workload")
        parts.append(
            f"a change now costs {writes.requests:,} requests to workers ({workloads} on {clusters})"
        )
    return f"Changes of the list in the last hour, counted by events: {'; '.join(parts)}"
