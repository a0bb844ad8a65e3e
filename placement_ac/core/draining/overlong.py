"""
Withdraw jobs that wait on a cluster, and may run longer than is left before its maintenance (our dispatcher).

Pure.
"""

from collections.abc import Iterable

from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.state import ConfigWorkloads, DrainStep
from placement_ac.core.draining.withdrawals import Withdrawals, withdrawal
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.selection.selection import ListableCluster, soonest


def withdraw_overlong(
    snapshot: Snapshot, workloads: ConfigWorkloads, clusters: Iterable[ListableCluster]
) -> Withdrawals:
    """Return what to do about jobs that wait on these clusters, to which others may still be sent."""
    windows = snapshot.fleet.maintenance if snapshot.policy.dispatcher else {}
    leaving = [
        (LeavingCluster(snapshot, workloads, entry.cluster, entry.name), windows[entry.cluster])
        for entry in clusters
        if entry.cluster in windows
    ]
    return Withdrawals(tuple(_step(it, window) for it, window in leaving))


def _step(it: LeavingCluster, window: MaintenanceWindow) -> DrainStep:
    left = window.seconds_left(it.snapshot.now)
    spare = [(w, left - w.job.seconds) for w in it.workloads.waiting_only(it.name) if w.job.seconds]
    next_one = soonest(seconds for _, seconds in spare if seconds >= 0)
    return withdrawal(it, [workload for workload, seconds in spare if seconds < 0], next_one)
