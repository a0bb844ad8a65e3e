"""
Decide which clusters of a Placement are listed, and how the others leave.

Pure. Select the clusters, hold a mass loss, apply Kueue's limit, and drain what is no longer wanted.
"""

from collections.abc import Mapping
from typing import NamedTuple

from placement_ac.core.draining.drain import DrainPlan, plan_drain
from placement_ac.core.draining.state import ConfigWorkloads, group_workloads
from placement_ac.core.inputs.state import NOTHING, Snapshot
from placement_ac.core.selection.capacity import apply_cluster_limit
from placement_ac.core.selection.mass_loss import MassLossHold, hold_mass_loss
from placement_ac.core.selection.provisioned import (
    ProvisionedClusters,
    choose_provisioned,
    without_beyond,
)
from placement_ac.core.selection.renaming import begin_renaming, finish_renaming
from placement_ac.core.selection.selection import ListableCluster, Selection, listed_clusters, select


class TargetClusters(NamedTuple):
    """The clusters to list, and the drain of those that leave."""

    selection: Selection
    listed: Mapping[str, str] = NOTHING
    """The clusters that our config lists now → their MultiKueueClusters, in its order."""
    to_list: tuple[ListableCluster, ...] = ()
    """Those to list and send jobs to, in order; those that drain are not among them."""
    over_limit: tuple[str, ...] = ()
    """Clusters for which Kueue's limit leaves no slot: usable ones, and those that get no credentials."""
    waiting_for_slot: tuple[str, ...] = ()
    """Usable clusters that get the slot of a draining cluster."""
    renaming: tuple[ListableCluster, ...] = ()
    """Those of `to_list` that are listed by an old name, under their new one."""
    mass_loss: MassLossHold = MassLossHold()
    drain: DrainPlan = DrainPlan()
    provisioned: ProvisionedClusters = ProvisionedClusters()
    workloads: ConfigWorkloads = ConfigWorkloads(frozenset())


def select_targets(snapshot: Snapshot) -> TargetClusters:
    """Return the clusters that the config is to list, and how the others leave."""
    listed = listed_clusters(snapshot)
    selection = select(snapshot, listed)
    mass_loss = hold_mass_loss(snapshot, selection, listed)
    within, over_limit = apply_cluster_limit(snapshot, mass_loss.with_held(selection.listable), listed)
    provisioned = choose_provisioned(snapshot, selection, listed, [entry.cluster for entry in within])
    selection, beyond = without_beyond(selection, provisioned)
    workloads = group_workloads(snapshot)
    renaming = begin_renaming(snapshot, within, listed, workloads.running)
    wanted = {entry.name for entry in renaming.wanted}
    renamed = [entry.cluster for entry in renaming.pending]
    drain = plan_drain(snapshot, wanted, workloads, listed, edited=mass_loss.edited, renamed=renamed)
    leaving = {step.name for step in drain.staying}
    named = finish_renaming(renaming, listed, leaving)
    slots = snapshot.hub.clusters_max - len(leaving.difference(entry.name for entry in named))
    to_list, waiting = _with_free_slot(named, listed, slots)
    return TargetClusters(
        selection=selection,
        listed=listed,
        to_list=to_list,
        over_limit=(*over_limit, *beyond),
        waiting_for_slot=waiting,
        renaming=renaming.pending,
        mass_loss=mass_loss,
        drain=drain,
        provisioned=provisioned,
        workloads=workloads,
    )


def _with_free_slot(
    clusters: tuple[ListableCluster, ...], listed: Mapping[str, str], slots: int
) -> tuple[tuple[ListableCluster, ...], tuple[str, ...]]:
    """Return those that get one of the `slots`, listed clusters first, and the names of the others."""
    if len(clusters) <= slots:
        return clusters, ()
    already = set(listed.values())
    new = [entry.cluster for entry in clusters if entry.name not in already]
    waiting = tuple(new[max(slots - (len(clusters) - len(new)), 0) :])
    return tuple([entry for entry in clusters if entry.cluster not in waiting]), waiting
