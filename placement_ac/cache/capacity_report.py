"""
Collect the workers whose capacity is reported, and this hub's Workloads there.

No I/O, no clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement_ac.cache.tables import Tables
from placement_ac.core.api.constants import READABLE_SOURCES
from placement_ac.core.api.objects import KueueObject, Workload

NOT_ASKED = "its worker has not been asked since the controller began to lead"


@dataclass(slots=True)
class ReportedCluster:
    """A cluster that gets jobs."""

    placements: dict[str, None] = field(default_factory=dict)
    """The Placements whose MultiKueueConfigs list it, in no order."""
    workers: dict[str, None] = field(default_factory=dict)
    """Its MultiKueueClusters."""
    not_asked: str = NOT_ASKED
    """Why its worker has not been asked, if it has not."""


@dataclass(slots=True)
class WorkloadsOf:
    """The unfinished Workloads of one MultiKueueCluster, by uid."""

    running: dict[str, Workload] = field(default_factory=dict)
    waiting: dict[str, Workload] = field(default_factory=dict)
    """Those that are nominated there and not placed yet."""


class CapacityReports:
    """Reads the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def clusters(self) -> dict[str, ReportedCluster]:
        """Return each cluster that a MultiKueueConfig of ours lists."""
        tables, found = self._tables, dict[str, ReportedCluster]()
        for config in tables.configs.objects.values():
            for name in config.listed if config.ours else ():
                worker = tables.multikueue_clusters.get(("", name))
                cluster = tables.hub.cluster_of(config.meta.name, name, worker)
                one = found.setdefault(cluster, ReportedCluster())
                one.placements[config.meta.name] = None
                one.workers[name] = None
                one.not_asked = self._not_asked(cluster, worker)
        return found

    def workloads(self) -> Mapping[str, WorkloadsOf]:
        """Return MultiKueueCluster → its Workloads."""
        found: dict[str, WorkloadsOf] = {}
        for workload in self._tables.workloads.objects.values():
            for name in _places(workload):
                one = found.setdefault(name, WorkloadsOf())
                (one.running if workload.cluster else one.waiting)[workload.meta.uid] = workload
        return found

    def _not_asked(self, cluster: str, worker: KueueObject | None) -> str:
        managed = self._tables.managed_clusters.get(("", cluster))
        if worker is None:
            return "it has no MultiKueueCluster"
        if managed is not None and managed.unreachable:
            return "OCM cannot reach it"
        if worker.source[0] not in READABLE_SOURCES:
            return "its kubeconfig is in a file, which only Kueue can read"
        return NOT_ASKED if worker.active else "Kueue is not connected to it"


def _places(workload: Workload) -> Iterator[str]:
    """Yield the MultiKueueClusters where it runs, or on which its copies wait."""
    if workload.cluster:
        yield workload.cluster
    else:
        yield from workload.nominated
