"""
Wait for the jobs on the clusters of a MultiKueueConfig that no check names any more.

Pure. The parameters of its checks were changed while jobs ran there. Kueue sends no job there by this list
any more, so there is no gate: the list stays as it is until nothing runs or waits there, and until no cluster
holds a copy of a job of these checks that is not recorded there.
"""

from collections.abc import Iterator
from typing import NamedTuple

from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.rules import ask_later, confirm_quiet
from placement_ac.core.draining.state import DrainState, DrainStep, group_workloads
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.selection.selection import listed_clusters, soonest


class LeftBehind(NamedTuple):
    """The clusters of such a config, and what they wait for."""

    steps: tuple[DrainStep, ...] = ()

    @property
    def stays(self) -> bool:
        """Whether the config stays for now."""
        return any(step.stays for step in self.steps)

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


def left_behind(snapshot: Snapshot) -> LeftBehind:
    """Return what holds the config; nothing if its checks have no unfinished Workload."""
    if not snapshot.checks.moved or not snapshot.workloads:
        return LeftBehind()
    clusters = tuple(_clusters(snapshot))
    busy = [it for it in clusters if it.running or it.waiting]
    return LeftBehind(tuple(map(_with_jobs, busy) if busy else map(_without_jobs, clusters)))


def _clusters(snapshot: Snapshot) -> Iterator[LeavingCluster]:
    workloads = group_workloads(snapshot)
    for cluster, name in listed_clusters(snapshot).items():
        it = LeavingCluster(snapshot, workloads, cluster, name)
        if not it.is_lost:
            yield it


def _with_jobs(it: LeavingCluster) -> DrainStep:
    return DrainStep(it.cluster, it.name, DrainState.RUNNING if it.running else DrainState.WAITING)


def _without_jobs(it: LeavingCluster) -> DrainStep:
    """Return the step of a cluster that may hold a copy which Kueue has left behind."""
    step = DrainStep(it.cluster, it.name, DrainState.QUIET, lasting=frozenset({it.since(SinceKind.QUIET)}))
    if it.obstacle:
        return ask_later(it, step._replace(state=DrainState.NOT_ANSWERING, detail=it.obstacle))
    if not it.is_confirmed_quiet:
        return confirm_quiet(it, step)
    if it.copies:
        return ask_later(it, step._replace(state=DrainState.PLACED_ELSEWHERE))
    return step._replace(state=DrainState.UNLISTED)
