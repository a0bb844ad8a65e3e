"""
Which clusters of a Placement are to be listed, and what becomes of the others.

Pure. Select, hold, seat, and see to those that lose their seat.
"""

from collections.abc import Mapping
from typing import NamedTuple

from placement_ac.core.draining.drain import DrainPlan, plan_drain
from placement_ac.core.draining.state import ConfigWorkloads, group_workloads
from placement_ac.core.inputs.state import NOTHING, Snapshot
from placement_ac.core.selection.capacity import apply_cluster_limit
from placement_ac.core.selection.mass_loss import MassLossHold, hold_mass_loss
from placement_ac.core.selection.selection import Selection, UsableCluster, listed_clusters, select


class TargetClusters(NamedTuple):
    """Which clusters are to be listed, and what becomes of the others."""

    selection: Selection
    listed: Mapping[str, str] = NOTHING
    """The clusters that our config lists now → their MultiKueueClusters, in its order."""
    usable: tuple[UsableCluster, ...] = ()
    """Those that jobs may be sent to, in order."""
    beyond: tuple[str, ...] = ()
    """UsableCluster, but after the last seat."""
    queued: tuple[str, ...] = ()
    """UsableCluster, and next when a cluster that leaves has given up its seat."""
    mass_loss: MassLossHold = MassLossHold()
    drain: DrainPlan = DrainPlan()
    workloads: ConfigWorkloads = ConfigWorkloads(frozenset())


def select_targets(seen: Snapshot) -> TargetClusters:
    """Select, hold, seat: and see to those that lose their seat."""
    listed = listed_clusters(seen)
    selection = select(seen, listed)
    guarded = hold_mass_loss(seen, selection, listed)
    most = seen.hub.clusters_max
    seated = apply_cluster_limit(seen, (*selection.usable, *guarded.held), listed, most)
    jobs = group_workloads(seen)
    removal = plan_drain(seen, {entry.name for entry in seated.within}, jobs, listed)
    usable, queued = _with_room(seated.within, listed, most - len(removal.staying))
    return TargetClusters(
        listed=listed,
        selection=selection,
        usable=usable,
        beyond=seated.beyond,
        queued=queued,
        mass_loss=guarded,
        drain=removal,
        workloads=jobs,
    )


def _with_room(
    seated: tuple[UsableCluster, ...], listed: Mapping[str, str], most: int
) -> tuple[tuple[UsableCluster, ...], tuple[str, ...]]:
    """Return those who find room, as the ones that leave still have their seats, and who is next."""
    if len(seated) <= most:
        return seated, ()
    now = set(listed.values())
    new = [entry.cluster for entry in seated if entry.name not in now]
    queued = tuple(new[max(most - (len(seated) - len(new)), 0) :])
    return tuple([entry for entry in seated if entry.cluster not in queued]), queued
