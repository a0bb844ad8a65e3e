"""
Which jobs have waited as long as they say themselves, and are deactivated (a setting).

Pure. Only a Workload that Kueue has placed nowhere, and of which all listed clusters, and those to which it
is nominated, have just said that they hold no copy with quota: one may have kept a copy from before. One that
cannot be asked keeps the job active. If the write fails, the job may be nominated as before, and the write is
tried again later.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    COPIES_FRESH_SECONDS,
    COPIES_RETRY_SECONDS,
    READY,
    WORKLOAD_WRITES_AT_ONCE,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.patience import patience
from placement_ac.core.api.text import duration_text, joined
from placement_ac.core.draining.leaving import NO_REPORT
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest

TRIED_AGAIN_SECONDS: Final = 60.0
"""How often a job is deactivated whose write fails: meanwhile it may be nominated."""


class GiveUps(NamedTuple):
    """The Workloads that are deactivated now, and why; at most WORKLOAD_WRITES_AT_ONCE."""

    workloads: tuple[tuple[Workload, str], ...] = ()
    ask_for_copies: tuple[str, ...] = ()
    """The MultiKueueClusters that are asked for their copies before."""
    requeue_after: float | None = None
    lasting: frozenset[Since] = frozenset()

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(workload.meta.uid for workload, _ in self.workloads)


def give_ups(
    snapshot: Snapshot, targets: TargetClusters, unfit: Mapping[str, str], left_copies: Collection[str] = ()
) -> GiveUps:
    """Return the jobs that give up.

    `unfit`: uid of a Workload → why no cluster fits it. `left_copies`: uids of those that were withdrawn from
    a cluster that holds a copy of them.
    """
    if not snapshot.policy.give_up:
        return GiveUps()
    given: list[tuple[Workload, str]] = []
    ask: dict[str, None] = {}
    waits: list[float] = []
    left_copy = {workload.meta.uid for step in targets.drain.releases for workload in step.make_ready}
    may_run = left_copy.union(targets.drain.held_back, left_copies)
    tried = _tried(snapshot)
    lasting = set[Since]()
    for workload in targets.workloads.undecided:
        seconds = patience(workload.job)
        if seconds is None or workload.meta.uid in may_run or not _waits(snapshot, workload):
            continue
        last = tried.get(workload.meta.uid)
        again = TRIED_AGAIN_SECONDS - snapshot.all_ages[last] if last else 0.0
        if (left := max(seconds - _waited(snapshot, workload), again)) > 0:
            waits.append(left)
            lasting |= {last} if last else set()
            continue
        names = dict.fromkeys((*workload.nominated, *snapshot.objects.listed))
        unknown = [name for name in names if _has_no_copy(snapshot, workload, name) is None]
        ask |= dict.fromkeys(name for name in unknown if _may_be_asked(snapshot, name))
        if unknown:
            waits.append(COPIES_RETRY_SECONDS)
        elif all(_has_no_copy(snapshot, workload, name) for name in names):
            given.append((workload, _why(targets, workload, seconds, unfit.get(workload.meta.uid, ""))))
    more = 0.0 if len(given) > WORKLOAD_WRITES_AT_ONCE else None
    now = _rotated(given, snapshot)
    lasting |= {_next_try(workload, tried) for workload, _ in now}
    return GiveUps(now, tuple(ask), soonest((more, *waits)), frozenset(lasting))


def _tried(snapshot: Snapshot) -> Mapping[str, Since]:
    """Return uid → since when a write that deactivates the Workload was last tried: it is still active."""
    return {since.subject: since for since in snapshot.all_ages if since.kind is SinceKind.GIVE_UP_TRIED}


def _next_try(workload: Workload, tried: Mapping[str, Since]) -> Since:
    last = tried.get(workload.meta.uid)
    return Since(SinceKind.GIVE_UP_TRIED, workload.meta.uid, 1 - last.number if last else 0)


def _rotated(given: list[tuple[Workload, str]], snapshot: Snapshot) -> tuple[tuple[Workload, str], ...]:
    """Begin at another place each second: writes that are refused must not block all others."""
    start = 0
    if len(given) > WORKLOAD_WRITES_AT_ONCE:
        start = int(snapshot.now.timestamp()) * WORKLOAD_WRITES_AT_ONCE % len(given)
    return tuple((given[start:] + given[:start])[:WORKLOAD_WRITES_AT_ONCE])


def _waits(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether it waits for a cluster: MultiKueue is to send it, and has placed it nowhere."""
    multikueue = {check.meta.name for check in snapshot.checks.multikueue}
    states = [entry.state for entry in workload.check_states if entry.check in multikueue]
    is_placed = bool(workload.cluster) or READY in states
    is_over = workload.finished or not workload.active or workload.meta.deleting
    return bool(states) and not is_placed and not is_over


def _waited(snapshot: Snapshot, workload: Workload) -> float:
    since = workload.waits_since
    return (snapshot.now - since).total_seconds() if since else 0.0


def _has_no_copy(snapshot: Snapshot, workload: Workload, name: str) -> bool | None:
    """Whether a cluster has just said that it holds no copy with quota; None: it has not."""
    copies = snapshot.fleet.worker_copies.get(name, NO_REPORT)
    if copies.problem or copies.age > COPIES_FRESH_SECONDS:
        return None
    return not copies.copies.get(workload.meta.id)


def _may_be_asked(snapshot: Snapshot, name: str) -> bool:
    copies = snapshot.fleet.worker_copies.get(name, NO_REPORT)
    return copies.age > (COPIES_RETRY_SECONDS if copies.problem else COPIES_FRESH_SECONDS)


def _why(targets: TargetClusters, workload: Workload, seconds: float, unfit: str) -> str:
    clusters = {name: cluster for cluster, name in targets.listed.items()}
    if workload.nominated:
        names = joined([clusters.get(name, name) for name in workload.nominated])
        cause = f"nominated to {names}, and got no quota there"
    elif not workload.has_quota:
        cause = "it got no quota on the hub"
    else:
        cause = unfit or "it was nominated to no cluster"
    return f"set spec.active to true to try again: it gave up after {duration_text(seconds)}: {cause}"
