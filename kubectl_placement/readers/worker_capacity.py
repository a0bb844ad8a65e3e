"""
Ask workers for their queues, and return their capacity.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.quota_reader import problem_text
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, READABLE_SOURCES, WORKLOAD
from placement_ac.core.api.decode import kueue_object, workload_with_job
from placement_ac.core.api.objects import KueueObject, Workload
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.queues import QueueReader

PARALLEL: Final = 32
"""Workers that are asked at once."""


async def read_workers(connector: WorkerConnector, view: HubView) -> CapacityReport:
    """Return what the workers of all Placements say now. Raises nothing but CancelledError."""
    reader = QueueReader(connector, parallel=PARALLEL)
    workloads = _waiting_workloads(view)
    clusters = _clusters(view)
    states = (_state(reader, view, name, *found, workloads) for name, found in clusters.items())
    return capacity_report(await asyncio.gather(*states), view.settings.score_gpus)


def _clusters(view: HubView) -> dict[str, tuple[set[str], set[str]]]:
    """Return cluster → its MultiKueueClusters, and the Placements whose MultiKueueConfigs list them."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for config in map(kueue_object, view.dump.of(MULTIKUEUE_CONFIG)):
        for name in config.listed if config.ours else ():
            obj = view.cluster_objects.get(name)
            cluster = view.facts.cluster_of(config.meta.name, name, obj)
            workers, placements = found.setdefault(cluster, (set(), set()))
            workers.add(name)
            placements.add(config.meta.name)
    return found


async def _state(
    reader: QueueReader,
    view: HubView,
    cluster: str,
    workers: set[str],
    placements: set[str],
    workloads: Iterable[Workload] | None,
) -> WorkerState:
    asked_at, obj = datetime.now(UTC), _readable(view, workers)
    waiting = (
        None if workloads is None else tuple(w for w in workloads if not workers.isdisjoint(w.nominated))
    )
    if obj is None:
        problem = "its kubeconfig is in a file, or it has no MultiKueueCluster"
        return WorkerState(cluster, tuple(sorted(placements)), problem=problem, waiting=waiting)
    facts = await reader.read(obj)
    return WorkerState(
        cluster,
        tuple(sorted(placements)),
        None if facts.problem else facts.queues,
        asked_at,
        problem_text(facts, obj, view.settings.kueue_namespace) if facts.problem else "",
        waiting=waiting,
    )


def _readable(view: HubView, workers: Iterable[str]) -> KueueObject | None:
    known = (view.cluster_objects.get(name) for name in sorted(workers))
    return next((obj for obj in known if obj and obj.source[0] in READABLE_SOURCES), None)


def _waiting_workloads(view: HubView) -> list[Workload] | None:
    """Return the Workloads that are nominated and not placed; None: the caller may not list them."""
    if any(right.kind == WORKLOAD for right in view.dump.missing):
        return None
    workloads = map(workload_with_job, view.dump.of(WORKLOAD))
    return [one for one in workloads if one.nominated and not one.cluster and not one.finished]
