"""
Withdraw jobs that wait on a cluster, and may run longer than is left before its maintenance (our dispatcher).

Pure. The cluster is asked before, and again 2 s after, as one that leaves: see `rules.withdraw`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.rules import withdraw
from placement_ac.core.draining.state import ConfigWorkloads, DrainState, DrainStep
from placement_ac.core.inputs.state import Since, Snapshot
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.selection.selection import ListableCluster, soonest


class Withdrawals(NamedTuple):
    """The steps of the clusters whose maintenance is announced and has not begun."""

    steps: tuple[DrainStep, ...] = ()

    @property
    def ask_for_copies(self) -> tuple[str, ...]:
        """The MultiKueueClusters whose clusters are to be asked."""
        return tuple([step.name for step in self.steps if step.ask_for_copies])

    @property
    def lasting(self) -> frozenset[Since]:
        return frozenset[Since]().union(*[step.lasting for step in self.steps])

    @property
    def requeue_after(self) -> float | None:
        return soonest(step.requeue_after for step in self.steps)


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
    step = DrainStep(it.cluster, it.name, DrainState.RUNNING, requeue_after=next_one)
    step = withdraw(it, step, [workload for workload, seconds in spare if seconds < 0])
    return step._replace(make_ready=tuple([w for w in step.make_ready if _is_reported(it, w)]))


def _is_reported(it: LeavingCluster, workload: Workload) -> bool:
    """Whether the Workload has had its quota since before the report: a copy of before says nothing."""
    since = workload.quota_since
    return since is not None and (it.snapshot.now - since).total_seconds() >= it.report.age
