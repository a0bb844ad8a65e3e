"""
The GPUs of each cluster as bars: used, waited for and free, and how many were used in the last day. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kubectl_placement.timeline.model import Point
from placement_ac.core.capacity_report.model import CapacityReport, ClusterCapacity


@dataclass(frozen=True, slots=True)
class CapacityBar:
    """The GPUs of a cluster; numbers are of GPUs, None: unknown."""

    name: str
    nominal: float
    used: float
    waiting: float | None
    free: float
    read_at: datetime | None
    problem: str
    day: Sequence[Point] = ()
    """How many were used since when, in the last day."""


def capacity_bars(
    report: CapacityReport, day: Mapping[str, Sequence[Point]] | None = None
) -> tuple[CapacityBar, ...]:
    """Return a bar for each cluster that has GPUs, or that is not known."""
    bars = (_bar(cluster, report.gpus, (day or {}).get(cluster.name, ())) for cluster in report.clusters)
    return tuple(bar for bar in bars if bar.nominal or bar.used or bar.problem)


def _bar(cluster: ClusterCapacity, gpus: Sequence[str], day: Sequence[Point]) -> CapacityBar:
    amounts = [one for supply, one in cluster.quota.items() if supply.resource in gpus]
    waiting = [one.waiting for one in amounts]
    return CapacityBar(
        cluster.name,
        sum(one.nominal for one in amounts) / 1000,
        sum(one.used for one in amounts) / 1000,
        None if None in waiting else sum(one or 0 for one in waiting) / 1000,
        sum(one.free for one in amounts) / 1000,
        cluster.read_at,
        cluster.problem,
        day,
    )
