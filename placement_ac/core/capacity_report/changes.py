"""
Say whether a report differs from the one before by a step: then it is written.

Pure. Source of the steps: an admin plans with whole GPUs, and with a twentieth of everything else.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, Quota

GPU_STEP: Final = 1000
"""One GPU, in thousandths."""
SHARE_STEP: Final = 0.05
"""Of other resources: so much of their nominal quota."""
AGE_STEP: Final = timedelta(minutes=10)
"""An answer that is so much newer is reported even if it says the same: else it would count as old."""


def differs_by_step(before: CapacityReport, now: CapacityReport) -> bool:
    """Whether the clusters, a nominal quota or what is known differs, or an amount by a step."""
    if before.gpus != now.gpus or len(before.clusters) != len(now.clusters):
        return True
    pairs = zip(before.clusters, now.clusters, strict=True)
    return any(_differs(one, other, now.gpus) for one, other in pairs)


def _differs(before: ClusterCapacity, now: ClusterCapacity, gpus: tuple[str, ...]) -> bool:
    if (before.name, before.placements, before.problem) != (now.name, now.placements, now.problem):
        return True
    if before.read_at and now.read_at and now.read_at - before.read_at >= AGE_STEP:
        return True
    queues, others = _by_name(before), _by_name(now)
    if queues.keys() != others.keys() or before.quota.keys() != now.quota.keys():
        return True
    return any(_quota_differs(queues[name], others[name], gpus) for name in others)


def _by_name(cluster: ClusterCapacity) -> Mapping[tuple[str, bool], Quota]:
    return {(queue.name, queue.active): queue.quota for queue in cluster.queues}


def _quota_differs(before: Quota, now: Quota, gpus: tuple[str, ...]) -> bool:
    if before.keys() != now.keys():
        return True
    return any(
        _amounts_differ(before[supply], amounts, is_gpu=supply.resource in gpus)
        for supply, amounts in now.items()
    )


def _amounts_differ(before: Amounts, now: Amounts, *, is_gpu: bool) -> bool:
    if (before.nominal, before.borrowable) != (now.nominal, now.borrowable):
        return True
    step = GPU_STEP if is_gpu else max(now.nominal * SHARE_STEP, 1)
    return any(abs(change) >= step for change in _changes(before, now))


def _changes(before: Amounts, now: Amounts) -> Iterator[float]:
    yield now.used - before.used
    yield (now.waiting or 0) - (before.waiting or 0)
