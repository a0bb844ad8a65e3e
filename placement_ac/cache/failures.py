"""
Collect what is remembered of failed jobs, for the decision on one Placement.

No I/O, no clock.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from placement_ac.cache.index import Table
from placement_ac.core.api.objects import KueueObject, Workload
from placement_ac.core.failures.memory import FailureMemory
from placement_ac.core.failures.quarantine import quarantines
from placement_ac.core.inputs.state import FleetState

T = TypeVar("T")


def with_failures(
    fleet: FleetState,
    memory: FailureMemory,
    listed: Mapping[str, KueueObject],
    workloads: Collection[Workload],
    now: datetime,
    recovered_after: float,
) -> FleetState:
    """Return the fleet with the clusters that are quarantined, and those that jobs avoid.

    `listed`: managed cluster → its MultiKueueCluster; `recovered_after`: for how long a job must be well on a
    quarantined cluster, in seconds.
    """
    cluster_of = {worker.meta.name: cluster for cluster, worker in listed.items()}
    connected = {cluster: worker for cluster, worker in listed.items() if worker.active}
    failing = _by_cluster(memory.failing(now), cluster_of)
    well = timedelta(seconds=recovered_after)
    recovered = {
        cluster
        for workload in workloads
        if (cluster := cluster_of.get(workload.cluster, "")) in failing
        and (since := workload.placed_since)
        and failing[cluster].last < since <= now - well
        and (not (whose := failing[cluster].namespaces) or workload.meta.namespace in whose)
    }
    found = quarantines(connected, failing, recovered)
    judged = (w for w in workloads if w.has_quota and not w.cluster)
    avoided = {w.meta.uid: _by_cluster(memory.avoided(w.same_job, now), cluster_of) for w in judged}
    return replace(
        fleet,
        quarantined={cluster: it.why for cluster, it in found.items()},
        quarantined_for={cluster: it.namespaces for cluster, it in found.items() if it.namespaces},
        retry_at={cluster: it.retry_at for cluster, it in found.items() if it.retry_at},
        reliability=_by_cluster(memory.reliability(now, cluster_of), cluster_of),
        avoided={uid: clusters for uid, clusters in avoided.items() if clusters},
    )


def ends_by_cluster(
    memory: FailureMemory | None, workers: Table[KueueObject]
) -> Mapping[tuple[str, str], int]:
    """Return managed cluster and cause → how many jobs ended so; `workers`: the MultiKueueClusters."""
    counts = Counter[tuple[str, str]]()
    for (name, cause), number in memory.counts.items() if memory else ():
        worker = workers.get(("", name))
        counts[(worker.cluster if worker else "") or name, cause] += number
    return counts


def _by_cluster(by_worker: Mapping[str, T], cluster_of: Mapping[str, str]) -> dict[str, T]:
    return {cluster_of[name]: value for name, value in by_worker.items() if name in cluster_of}
