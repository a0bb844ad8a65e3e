"""
The rows of a capacity report: by cluster, Placement or queue, and of namespaces by their Workloads.

Pure. Amounts are in thousandths.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.model import (
    Amounts,
    CapacityReport,
    ClusterCapacity,
    Quota,
    Supply,
    added,
    by_resource,
)

By = Literal["cluster", "placement", "queue", "team"]
OLD: Final = timedelta(minutes=15)
"""Older answers are reported: the controller confirms each in ten minutes, if it is asked for at all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One resource in one flavor ("": all) of a cluster, Placement, queue or namespace; None: unknown."""

    name: str
    flavor: str
    resource: str
    nominal: int | None = None
    used: int | None = None
    waiting: int | None = None
    borrowable: int | None = None
    free: int | None = None
    largest: int | None = None
    read_at: datetime | None = None
    """When the oldest of its numbers was read; None: just now, or of a namespace."""
    asked_at: datetime | None = None
    """When the worker was asked on which it is based, of several the first; None: as for `read_at`."""
    lends: bool = False
    """Whether a cohort lends to it without a limit of its own: `borrowable` is None."""
    on_hub: bool = False
    """Whether it is a ClusterQueue of the hub."""


def rows_of(report: CapacityReport, by: By) -> tuple[Row, ...]:
    """Return the rows of a view, by name, in each the GPUs first. For teams: see `team_rows`.

    A cluster that is not known has a row without numbers.
    """
    groups: dict[str, list[tuple[Quota, datetime | None]]] = {}
    for name, quota, read_at in _parts(report, by):
        groups.setdefault(name, []).append((quota, read_at))
    rows = {name: list(_rows(name, parts, report)) for name, parts in groups.items()}
    for cluster in report.clusters if by == "cluster" else ():
        rows.setdefault(cluster.name, [Row(cluster.name, "", "")])
    return tuple(row for name in sorted(rows) for row in rows[name])


def _parts(report: CapacityReport, by: By) -> Iterator[tuple[str, Quota, datetime | None]]:
    """Yield each cluster's or queue's quota with the group that it belongs to."""
    for cluster in filter(lambda one: one.known, report.clusters):
        if by == "placement":
            for placement in cluster.placements:
                yield placement, cluster.quota, cluster.read_at
        elif by == "queue":
            for queue in cluster.queues:
                yield queue.name, queue.quota, cluster.read_at
        else:
            yield cluster.name, cluster.quota, cluster.read_at


def _rows(name: str, parts: list[tuple[Quota, datetime | None]], report: CapacityReport) -> Iterator[Row]:
    asked_at = min((at for _, at in parts if at), default=None)
    sums = added(pair for quota, _ in parts for pair in quota.items())
    for supply in sorted(sums, key=lambda one: (by_resource(one.resource, report.gpus), one.flavor)):
        yield _row(name, supply, sums[supply], report, asked_at)


def _row(
    name: str, supply: Supply, amounts: Amounts, report: CapacityReport, asked_at: datetime | None
) -> Row:
    read_at = max(asked_at, report.counted_at) if asked_at and report.counted_at else asked_at
    return Row(name, *supply, *amounts, read_at, asked_at, amounts.borrowable is None)


def total_rows(report: CapacityReport) -> tuple[Row, ...]:
    """Return a row for each resource, with the sum of all clusters that are known."""
    totals = report.totals()
    asked_at = min((one.read_at for one in report.clusters if one.known and one.read_at), default=None)
    return tuple(
        _row("", Supply("", resource), amounts, report, asked_at) for resource, amounts in totals.items()
    )


def team_rows(workloads: Iterable[Workload], gpus: tuple[str, ...]) -> tuple[Row, ...]:
    """Return what the Workloads of each namespace use and wait for: those that have quota on the hub."""
    used: dict[tuple[str, str], list[int]] = {}
    for workload in workloads:
        if not workload.has_quota or workload.finished:
            continue
        for podset in workload.job.requests:
            for resource, amount in podset:
                sums = used.setdefault((workload.meta.namespace, resource), [0, 0])
                sums[0 if workload.cluster else 1] += amount
    ordered = sorted(used, key=lambda key: (key[0], by_resource(key[1], gpus)))
    return tuple(_team_row(name, resource, used[name, resource]) for name, resource in ordered)


def team_totals(rows: Iterable[Row], gpus: tuple[str, ...]) -> tuple[Row, ...]:
    """Return a row for each resource, with the sum of all namespaces."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        total = sums.setdefault(row.resource, [0, 0])
        total[0] += row.used or 0
        total[1] += row.waiting or 0
    ordered = sorted(sums, key=lambda resource: by_resource(resource, gpus))
    return tuple(_team_row("", resource, sums[resource]) for resource in ordered)


def _team_row(name: str, resource: str, sums: list[int]) -> Row:
    return Row(name, "", resource, used=sums[0], waiting=sums[1])


def unknown_clusters(report: CapacityReport) -> Mapping[str, list[str]]:
    """Return why clusters are not known → these clusters."""
    found: dict[str, list[str]] = {}
    for cluster in report.clusters:
        if not cluster.known:
            found.setdefault(cluster.problem, []).append(cluster.name)
    return found


def old_clusters(report: CapacityReport, now: datetime) -> list[ClusterCapacity]:
    """Return the clusters whose answers are old."""
    return [one for one in report.clusters if one.known and one.read_at and now - one.read_at > OLD]
