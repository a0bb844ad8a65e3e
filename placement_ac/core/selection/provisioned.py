"""
Choose the clusters of a Placement that get credentials from us.

Pure. Kueue takes `clusters_max` clusters, and credentials for all others would be unused. If a Placement
selects more than `provisioned_max`, these get credentials: the first `provisioned_max` in rank, and as many
more as it takes until `clusters_max` of them count. A cluster counts while it is usable, and for the first
`USABLE_WITHIN_SECONDS` in which it is not. So one that stays unusable, whatever the reason, does not block
those behind it: in the end there are `clusters_max` usable ones, or every cluster has been tried.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.selection.capacity import best_first
from placement_ac.core.selection.selection import Selection, soonest

USABLE_WITHIN_SECONDS: Final = 300.0
"""How long a cluster may take to become usable before another is tried as well (OCM: some seconds)."""


class ProvisionedClusters(NamedTuple):
    """The clusters that get credentials from us."""

    clusters: frozenset[str] | None = None
    """None: all that are selected."""
    lasting: frozenset[Since] = frozenset()
    """Those of them that are not usable."""
    requeue_after: float | None = None
    """Seconds until the first of these no longer counts; None: none is waited for."""


def choose_provisioned(
    snapshot: Snapshot, selection: Selection, listed: Collection[str], within: Collection[str]
) -> ProvisionedClusters:
    """Return the clusters that get credentials. Those that are listed, or `within` the limit, always do."""
    most = snapshot.hub.provisioned_max
    if len(selection.ranked) <= most:
        return ProvisionedClusters()
    usable = {entry.cluster for entry in selection.listable}
    waiting: dict[Since, float] = {}
    chosen: list[str] = []
    counted = 0
    for cluster in best_first(
        snapshot, {entry.cluster: entry for entry in snapshot.decisions.clusters}, listed
    ):
        if len(chosen) >= most and counted >= snapshot.hub.clusters_max:
            break
        chosen.append(cluster)
        if cluster not in usable:
            since = Since(SinceKind.PROVISIONED_UNUSABLE, cluster)
            waiting[since] = USABLE_WITHIN_SECONDS - snapshot.age(since)
        counted += cluster in usable or waiting[since] > 0
    return ProvisionedClusters(
        clusters=frozenset(selection.ranked) & {*chosen, *listed, *within},
        lasting=frozenset(waiting),
        requeue_after=soonest(seconds for seconds in waiting.values() if seconds > 0),
    )


def without_beyond(
    selection: Selection, provisioned: ProvisionedClusters
) -> tuple[Selection, tuple[str, ...]]:
    """Return the selection without the unusable clusters that get no credentials, and these, best first."""
    chosen = provisioned.clusters
    if chosen is None:
        return selection, ()
    left_out = {cluster: why for cluster, why in selection.left_out.items() if cluster in chosen}
    beyond = tuple(cluster for cluster in selection.left_out if cluster not in chosen)
    return selection._replace(left_out=left_out), beyond
