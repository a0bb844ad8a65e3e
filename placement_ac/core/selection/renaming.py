"""
Give a listed worker the name that it is to have, without harm to running jobs.

Pure. It gets another name if the setting `cluster_names` wants that, or if the listed cluster is no longer
selected and another one that is the same worker is. Both names lead to one worker, and Kueue deletes a job's
copy through every listed name but the one that it recorded (by its code: `reconcileGroup` in workload.go). So
a list never holds both: a worker keeps its old name until nothing runs there; then that leaves through the
gate, and the new one takes its place in the same write. Its MultiKueueCluster exists before, so that
Kueue is connected.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from placement_ac.core.inputs.state import NOTHING, Snapshot
from placement_ac.core.selection.selection import ListableCluster


class Renaming(NamedTuple):
    """The clusters to list, under the names that they have for now."""

    wanted: tuple[ListableCluster, ...]
    """Under the old name as long as it must not leave."""
    pending: tuple[ListableCluster, ...] = ()
    """Those that have their old name in the list, under the new one."""
    former: Mapping[str, ListableCluster] = NOTHING
    """Cluster of `pending` → what is listed of its worker."""


def begin_renaming(
    snapshot: Snapshot,
    clusters: Sequence[ListableCluster],
    listed: Mapping[str, str],
    running: Collection[str],
    groups: Mapping[str, str],
) -> Renaming:
    """Return each cluster under its old name while anything runs there, or Kueue lacks the new connection.

    `listed`: cluster → the name in the list; `running`: the MultiKueueClusters that run Workloads; `groups`:
    as of `worker_groups`.
    """
    former = {
        entry.cluster: entry._replace(name=listed[entry.cluster])
        for entry in clusters
        if listed.get(entry.cluster, entry.name) != entry.name
    }
    former |= _same_workers(snapshot, clusters, listed, running, groups)
    if not former:
        return Renaming(tuple(clusters))
    pending = tuple([entry for entry in clusters if entry.cluster in former])
    kept = {
        entry.cluster
        for entry in pending
        if (name := former[entry.cluster].name) in running or not _is_connected(snapshot, entry.name, name)
    }
    return Renaming(_with_old_names(clusters, kept, former), pending, former)


def finish_renaming(renaming: Renaming, staying: Collection[str]) -> tuple[ListableCluster, ...]:
    """Return the clusters, under their old names while these stay listed; `staying`: names that drain."""
    kept = {entry.cluster for entry in renaming.pending if renaming.former[entry.cluster].name in staying}
    return _with_old_names(renaming.wanted, kept, renaming.former)


def _with_old_names(
    clusters: Sequence[ListableCluster], kept: Collection[str], former: Mapping[str, ListableCluster]
) -> tuple[ListableCluster, ...]:
    return tuple([former[entry.cluster] if entry.cluster in kept else entry for entry in clusters])


def _is_connected(snapshot: Snapshot, new: str, old: str) -> bool:
    """Whether Kueue is connected by the new name, or by neither."""
    now, before = snapshot.objects.clusters.get(new), snapshot.objects.clusters.get(old)
    return now is not None and (bool(now.active) or not (before and before.active))


def _same_workers(
    snapshot: Snapshot,
    clusters: Sequence[ListableCluster],
    listed: Mapping[str, str],
    running: Collection[str],
    groups: Mapping[str, str],
) -> dict[str, ListableCluster]:
    """Return, of new clusters whose worker is listed as a cluster that is not wanted, what is listed.

    A cluster without a ManagedCluster leaves at once.
    """
    wanted = {entry.cluster for entry in clusters}
    leaving = [cluster for cluster in listed if cluster in groups and cluster not in wanted]
    leaving = [cluster for cluster in leaving if cluster not in snapshot.fleet.deleted_clusters]
    leaving.sort(key=lambda cluster: listed[cluster] in running)
    by_group = {groups[cluster]: cluster for cluster in leaving}  # the last one: jobs run there
    return {
        entry.cluster: ListableCluster(old, listed[old], None, entry.rank)
        for entry in clusters
        if entry.cluster not in listed and (old := by_group.get(groups.get(entry.cluster, "")))
    }
