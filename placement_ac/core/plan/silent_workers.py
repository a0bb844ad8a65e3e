"""
The listed workers that do not answer though Kueue calls them connected: their API server hangs.

Pure; for our dispatcher. Kueue finds that out after about 51 s. Until then it asks such a worker about every
Workload of a check that lists it, whichever cluster the Workload is nominated to, and waits: no job of the
check starts, and from about ten Workloads on none of any check. Source: Kueue main, and seen with a frozen
API server. So all that can be done is to send it nothing more, and to say so. A worker that is out of our
reach alone looks the same: after a minute it is one whose room is not known.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest

NOTICED_SECONDS: Final = 60.0
"""After how long Kueue has noticed it, from our first question without an answer."""


class SilentWorkers(NamedTuple):
    """Since when workers are silent, and when to look again."""

    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def silent_workers(snapshot: Snapshot, targets: TargetClusters) -> SilentWorkers:
    """Return the workers that did not answer the last question, for however long."""
    lasting = frozenset(_since(name) for name, _ in _silent(snapshot, targets))
    left = [NOTICED_SECONDS - snapshot.age(since) for since in lasting]
    return SilentWorkers(lasting, soonest([seconds for seconds in left if seconds > 0]))


def is_silent(snapshot: Snapshot, name: str) -> bool:
    """Whether the worker of a MultiKueueCluster did not answer the last question, and Kueue may not know."""
    facts, cluster = snapshot.fleet.queue_facts.get(name), snapshot.objects.clusters.get(name)
    if not (facts and facts.silent and cluster and cluster.active):
        return False
    return snapshot.age(_since(name)) < NOTICED_SECONDS


def silent_clusters(snapshot: Snapshot, targets: TargetClusters) -> list[str]:
    """Return the clusters of silent workers."""
    return [cluster for name, cluster in _silent(snapshot, targets) if is_silent(snapshot, name)]


def _silent(snapshot: Snapshot, targets: TargetClusters) -> Iterator[tuple[str, str]]:
    """Yield listed MultiKueueClusters whose workers did not answer the last question, and their clusters."""
    facts, listed = snapshot.fleet.queue_facts, set(snapshot.objects.listed)
    for entry in targets.to_list:
        if entry.name in listed and entry.name in facts and facts[entry.name].silent:
            yield entry.name, entry.cluster


def _since(name: str) -> Since:
    return Since(SinceKind.SILENT, name)
