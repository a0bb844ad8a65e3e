"""
Give a listed cluster the name that the setting `cluster_names` wants, without harm to running jobs.

Pure. Both names lead to one worker, and Kueue deletes a job's copy through every listed name but the one
that it recorded (by its code: `reconcileGroup` in workload.go). So a list never holds both: a cluster keeps
its old name until nothing runs there, then the old name leaves through the gate, and the new one takes its
place in the same write. Its MultiKueueCluster exists before that, so that Kueue is connected.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.selection.selection import ListableCluster


class Renaming(NamedTuple):
    """The clusters to list, under the names that they have for now."""

    wanted: tuple[ListableCluster, ...]
    """Under the old name as long as it must not leave."""
    pending: tuple[ListableCluster, ...] = ()
    """Those that have their old name in the list, under the new one."""


def begin_renaming(
    snapshot: Snapshot,
    clusters: Sequence[ListableCluster],
    listed: Mapping[str, str],
    running: Collection[str],
) -> Renaming:
    """Return each cluster under its old name while anything runs there, or Kueue lacks the new connection.

    `listed`: cluster → the name in the list; `running`: the MultiKueueClusters that run Workloads.
    """
    pending = tuple([entry for entry in clusters if listed.get(entry.cluster, entry.name) != entry.name])
    if not pending:
        return Renaming(tuple(clusters))
    kept = {
        entry.cluster
        for entry in pending
        if listed[entry.cluster] in running or not _is_connected(snapshot, entry.name, listed[entry.cluster])
    }
    return Renaming(_with_old_names(clusters, kept, listed), pending)


def finish_renaming(
    renaming: Renaming, listed: Mapping[str, str], staying: Collection[str]
) -> tuple[ListableCluster, ...]:
    """Return the clusters, under their old names while these stay listed; `staying`: names that drain."""
    kept = {entry.cluster for entry in renaming.pending if listed[entry.cluster] in staying}
    return _with_old_names(renaming.wanted, kept, listed)


def _with_old_names(
    clusters: Sequence[ListableCluster], kept: Collection[str], listed: Mapping[str, str]
) -> tuple[ListableCluster, ...]:
    return tuple(
        [entry._replace(name=listed[entry.cluster]) if entry.cluster in kept else entry for entry in clusters]
    )


def _is_connected(snapshot: Snapshot, new: str, old: str) -> bool:
    """Whether Kueue is connected by the new name, or by neither."""
    now, before = snapshot.objects.clusters.get(new), snapshot.objects.clusters.get(old)
    return now is not None and (bool(now.active) or not (before and before.active))
