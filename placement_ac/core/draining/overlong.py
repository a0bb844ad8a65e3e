"""
The jobs that wait on a cluster, and may run longer than is left before its maintenance (our dispatcher).

Pure.
"""

from collections.abc import Iterable

from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.withdrawals import Withdrawn
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.selection.selection import soonest


def overlong(snapshot: Snapshot, cluster: str, waiting: Iterable[Workload]) -> Withdrawn:
    """Return those of the jobs that wait on a cluster which are withdrawn for its maintenance."""
    window = snapshot.fleet.maintenance.get(cluster)
    if window is None:
        return Withdrawn()
    left = window.seconds_left(snapshot.now)
    spare = [(job, left - job.job.seconds) for job in waiting if job.job.seconds]
    next_one = soonest(seconds for _, seconds in spare if seconds >= 0)
    return Withdrawn(tuple([job for job, seconds in spare if seconds < 0]), next_one)
