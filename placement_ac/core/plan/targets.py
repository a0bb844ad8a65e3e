"""
Decide which clusters of a Placement are listed, and how the others leave.

Pure. Select the clusters, hold a mass loss, apply Kueue's limit, and drain what is no longer wanted.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from placement_ac.core.draining.drain import DrainPlan, plan_drain
from placement_ac.core.draining.state import ConfigWorkloads, group_workloads
from placement_ac.core.inputs.state import NOTHING, Snapshot
from placement_ac.core.selection.aliases import other_name
from placement_ac.core.selection.capacity import apply_cluster_limit
from placement_ac.core.selection.identity_questions import IdentityQuestions, identity_questions
from placement_ac.core.selection.mass_loss import MassLossHold, hold_mass_loss
from placement_ac.core.selection.provisioned import (
    ProvisionedClusters,
    choose_provisioned,
    without_beyond,
)
from placement_ac.core.selection.renaming import Renaming, begin_renaming, finish_renaming
from placement_ac.core.selection.selection import (
    ListableCluster,
    Selection,
    has_left,
    listed_clusters,
    select,
)
from placement_ac.core.selection.unknown_copies import UnknownCopiesQuestions, unknown_copies_questions

_TAKES_OVER: Final = "it takes over from {}, the same worker, as soon as that is no longer listed"


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
    identity: IdentityQuestions = IdentityQuestions()
    unknown_copies: UnknownCopiesQuestions = UnknownCopiesQuestions()

    @property
    def waits_for_answers(self) -> bool:
        """Whether a cluster is not listed yet because workers are asked."""
        return bool(self.identity.waiting or self.unknown_copies.waiting)


def select_targets(snapshot: Snapshot) -> TargetClusters:
    """Return the clusters that the config is to list, and how the others leave."""
    listed = listed_clusters(snapshot)
    selection = select(snapshot, listed)
    mass_loss = hold_mass_loss(snapshot, selection, listed)
    within, over_limit = apply_cluster_limit(snapshot, mass_loss.with_held(selection.listable), listed)
    provisioned, beyond = ProvisionedClusters(), tuple[str, ...]()
    if snapshot.credentials.provisioned:
        provisioned = choose_provisioned(snapshot, selection, listed, [entry.cluster for entry in within])
        selection, beyond = without_beyond(selection, provisioned)
    new = [entry.cluster for entry in within if entry.cluster not in listed]
    identity = identity_questions(snapshot, listed, new, selection.second_names)
    unknown_copies = unknown_copies_questions(snapshot, listed, new)
    waiting_for_answer = {**identity.waiting, **unknown_copies.waiting}
    within = _while_some_wait(snapshot, within, selection, listed, waiting_for_answer)
    workloads = group_workloads(snapshot)
    renaming = begin_renaming(snapshot, within, listed, workloads.running, selection.groups)
    wanted = {entry.name for entry in renaming.wanted}
    drain = plan_drain(
        snapshot,
        wanted,
        workloads,
        listed,
        edited=mass_loss.edited,
        renamed=[entry.cluster for entry in renaming.former.values()],
        other_names=_other_names(snapshot, selection, listed, renaming.wanted),
    )
    leaving = {step.name for step in drain.staying}
    named = finish_renaming(renaming, leaving)
    blocked = _behind_other_names(renaming, named, listed, leaving, selection.groups)
    named = tuple([entry for entry in named if entry.cluster not in blocked])
    slots = snapshot.hub.clusters_max - len(leaving.difference(entry.name for entry in named))
    to_list, waiting = _with_free_slot(named, listed, slots)
    why = {cluster: _TAKES_OVER.format(other) for cluster, other in blocked.items()}
    selection = selection._replace(
        left_out={**selection.left_out, **waiting_for_answer, **why},
        second_names={**selection.second_names, **blocked},
    )
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
        identity=identity,
        unknown_copies=unknown_copies,
    )


def _while_some_wait(
    snapshot: Snapshot,
    within: tuple[ListableCluster, ...],
    selection: Selection,
    listed: Mapping[str, str],
    waiting: Collection[str],
) -> tuple[ListableCluster, ...]:
    """Return those that do not wait; as long as any does, those stay that it might replace."""
    if not waiting:
        return within
    known = {*selection.left_out, *[entry.cluster for entry in within], *snapshot.fleet.deleted_clusters}
    staying = [
        ListableCluster(cluster, name, None)
        for cluster, name in listed.items()
        if cluster not in known and not has_left(snapshot, cluster, name)
    ]
    return (*[entry for entry in within if entry.cluster not in waiting], *staying)


def _other_names(
    snapshot: Snapshot, selection: Selection, listed: Mapping[str, str], wanted: Iterable[ListableCluster]
) -> dict[str, str]:
    """Return, of the listed clusters that leave: cluster → another connection of Kueue to its worker."""
    if not selection.groups:
        return {}
    names = {entry.cluster: entry.name for entry in wanted}
    others = {
        cluster: other_name(snapshot, selection.groups, cluster, names)
        for cluster in listed
        if cluster in selection.groups and cluster not in names
    }
    return {cluster: name for cluster, name in others.items() if name}


def _behind_other_names(
    renaming: Renaming,
    named: Iterable[ListableCluster],
    listed: Mapping[str, str],
    leaving: Collection[str],
    groups: Mapping[str, str],
) -> dict[str, str]:
    """Return, of the clusters that come: cluster → the one that stays listed for now and is the same worker.

    A list never has two names of one worker, for whichever reason the other one is there.
    """
    if not groups:
        return {}
    names = {*leaving, *[entry.name for entry in named]}
    staying = [cluster for cluster, name in listed.items() if name in names and cluster in groups]
    there = {groups[cluster]: cluster for cluster in staying}
    coming = [entry.cluster for entry in (*named, *renaming.pending) if entry.cluster not in listed]
    return {cluster: there[group] for cluster in coming if (group := groups.get(cluster, "")) in there}


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
