"""
Who waits for the gate, and who has been placed since its Ready.

Pure.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from placement_ac.core.api.constants import PENDING, READY
from placement_ac.core.api.objects import AdmissionCheckState, Check, Workload
from placement_ac.core.inputs.state import HeldWorkloads, Snapshot
from placement_ac.core.plan.workload_states import AnswerContext, awaited_clusters, our_entries


def held_workloads(snapshot: Snapshot, context: AnswerContext) -> tuple[HeldWorkloads, ...]:
    """Return the Workloads that the gate holds, by check and by the clusters that leave."""
    groups: dict[tuple[str, tuple[str, ...]], list[datetime | None]] = {}
    for workload, entry in our_entries(snapshot):
        waits = entry.state == PENDING and workload.has_quota and not workload.cluster
        if waits and context.ready and (clusters := awaited_clusters(context.drain, workload)):
            groups.setdefault((entry.check, clusters), []).append(_held_since(workload, entry))
    return tuple(
        HeldWorkloads(*group, len(times), min(filter(None, times), default=None))
        for group, times in sorted(groups.items())
    )


def _held_since(workload: Workload, entry: AdmissionCheckState) -> datetime | None:
    times = [when for when in (workload.quota_since, entry.since) if when]
    return max(times, default=None)


class Placed(NamedTuple):
    """Uids of Workloads that became Ready by a write of ours: those placed since, and those that wait."""

    placed: tuple[str, ...]
    waiting: tuple[str, ...]


def placed_since_ready(ready: Collection[str], snapshot: Snapshot) -> Placed:
    """Return which of the `ready` uids a worker has admitted by now.

    One that was sent back, deleted or finished meanwhile is in neither.
    """
    placed, waiting = [], []
    for workload in snapshot.workloads if ready else ():
        if workload.meta.uid not in ready:
            continue
        if workload.cluster or _is_ready(workload, snapshot.checks.multikueue):
            placed.append(workload.meta.uid)
        elif _is_ready(workload, snapshot.checks.ours):
            waiting.append(workload.meta.uid)
    return Placed(tuple(placed), tuple(waiting))


def _is_ready(workload: Workload, checks: Iterable[Check]) -> bool:
    states = (workload.check_state(check.meta.name) for check in checks)
    return any(entry.state == READY for entry in states if entry)
