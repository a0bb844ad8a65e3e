"""
Hold the last good list when too many clusters would go and nobody asked for that.

Pure. An edit of the Placement takes effect at once. If only OCM or vanished credentials take
clusters away, they are held for a while, as such losses are mostly a mistake and end by
themselves. A mistake may come in steps, as objects are written one after another: losses within
`loss_grace` of the first one count together, against the list as it was before it. A cluster that
another one replaces is no loss: that is the purpose of scores.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from placement_ac.core.api.constants import EDIT_WINDOW_SECONDS, HELD
from placement_ac.core.api.text import count_text, duration_text
from placement_ac.core.inputs.state import EventIntent, PlacementPolicy, Since, SinceKind, Snapshot
from placement_ac.core.selection.aliases import is_known_as
from placement_ac.core.selection.selection import ListableCluster, Selection, maintenance_of

FEW: Final = 4
"""With fewer clusters than this, only the loss of all of them is held."""

_GENERATION: Final = (SinceKind.PLACEMENT_NAMESPACE, SinceKind.PLACEMENT_GENERATION)
_HOLD: Final = Since(SinceKind.MASS_LOSS)


class MassLossHold(NamedTuple):
    """The clusters that are held, and why."""

    held: tuple[ListableCluster, ...] = ()
    """Those that would leave the list, and those that have left it since the first loss: they come back."""
    why: str = ""
    lasting: frozenset[Since] = frozenset()
    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None
    edited: bool = False
    """Whether someone has just changed the Placement."""
    order: tuple[str, ...] = ()
    """The clusters of the list before the first loss, if any comes back."""

    def with_held(self, listable: Iterable[ListableCluster]) -> tuple[ListableCluster, ...]:
        """Return these clusters and those that are held, in the order of before if any comes back."""
        places = {cluster: place for place, cluster in enumerate(self.order)}
        entries = (*listable, *self.held)
        return tuple(sorted(entries, key=lambda entry: places.get(entry.cluster, len(places))))


class _Losses(NamedTuple):
    """Clusters that were listed before, and those that are selected now."""

    before: Sequence[str]
    selected: frozenset[str]

    @property
    def lost(self) -> list[str]:
        return [cluster for cluster in self.before if cluster not in self.selected]

    @property
    def net(self) -> int:
        """How many more are lost than are new."""
        return len(self.lost) - len(self.selected.difference(self.before))

    def are_too_many(self, policy: PlacementPolicy) -> bool:
        net, before = self.net, len(self.before)
        if net <= 0 or policy.loss_grace <= 0:
            return False
        return net == before or (before >= FEW and net > before * policy.loss_share)


def hold_mass_loss(snapshot: Snapshot, selection: Selection, listed: Mapping[str, str]) -> MassLossHold:
    """Return the clusters to hold of those that `selection` would take away from `listed`, or has taken."""
    lasting, edited = _edits(snapshot)
    window = _open_window(snapshot)
    if edited:  # whoever edits the Placement accepts what has been lost
        return MassLossHold(lasting=lasting, edited=True)
    if not selection.is_conclusive:
        return MassLossHold(lasting=lasting.union(window))
    selected = frozenset([entry.cluster for entry in selection.listable if entry.source])
    at_once = _Losses(
        [name for name in listed if name in selected or not _left_before(snapshot, name, listed[name])],
        selected,
    )
    window = window or _new_window(snapshot, at_once.before)
    before = clusters_before(window)
    in_steps = _Losses(
        [name for name in before if name in selected or not _is_taken_away(snapshot, name)], selected
    )
    waiting = {entry.cluster for entry in selection.listable}.difference(selected)
    if in_steps.net > 0 or not waiting.isdisjoint(in_steps.lost):  # else others have replaced them all
        lasting = lasting.union(window)
    losses = next((some for some in (in_steps, at_once) if some.are_too_many(snapshot.policy)), None)
    if losses is None or not (_HOLD in snapshot.all_ages or _any_goes(snapshot, selection, listed, at_once)):
        return MassLossHold(lasting=lasting)
    age = snapshot.age(_HOLD)
    if age >= snapshot.policy.loss_grace:
        return MassLossHold(lasting=lasting.difference(window) | {_HOLD})
    why = (
        f"{len(losses.lost)} of {count_text(len(losses.before), 'cluster')} would go at once though the"
        f" Placement was not changed: held for {duration_text(snapshot.policy.loss_grace)}, or until the"
        " Placement is changed"
    )
    held = _held(snapshot, selection, listed, losses.lost)
    return MassLossHold(
        held=held,
        why=why,
        lasting=lasting | {_HOLD},
        events=(EventIntent(HELD, why),),
        requeue_after=snapshot.policy.loss_grace - age,
        order=before if any(entry.cluster not in listed for entry in held) else (),
    )


def clusters_before(ages: Iterable[Since]) -> tuple[str, ...]:
    """Return the clusters of the list as it was before the first of the losses that count together."""
    names = next((since.subject for since in ages if since.kind is SinceKind.LISTED_BEFORE), "")
    return tuple(filter(None, names.split(",")))


def _open_window(snapshot: Snapshot) -> frozenset[Since]:
    """Return the list before the first loss, while more may count with it: within the grace, or a hold."""
    is_held, grace = _HOLD in snapshot.all_ages, snapshot.policy.loss_grace
    windows = (since for since in snapshot.all_ages if since.kind is SinceKind.LISTED_BEFORE)
    return frozenset(since for since in windows if is_held or snapshot.age(since) < grace)


def _new_window(snapshot: Snapshot, before: Iterable[str]) -> frozenset[Since]:
    """Return the list before a first loss; another number than that of the last one makes it begin now."""
    over = [since.number for since in snapshot.all_ages if since.kind is SinceKind.LISTED_BEFORE]
    return frozenset({Since(SinceKind.LISTED_BEFORE, ",".join(before), 1 - max(over, default=1))})


def _any_goes(snapshot: Snapshot, selection: Selection, listed: Mapping[str, str], losses: _Losses) -> bool:
    """Whether one of the lost clusters goes now: one may wait instead, or drain since before a restart."""
    config, waiting = snapshot.objects.config, {entry.cluster for entry in selection.listable}
    draining = config.draining if config else ()
    return any(name not in waiting and listed[name] not in draining for name in losses.lost)


def _held(
    snapshot: Snapshot, selection: Selection, listed: Mapping[str, str], lost: Iterable[str]
) -> tuple[ListableCluster, ...]:
    """Return the entries of lost clusters that would not be listed, and can be."""
    waiting = {entry.cluster for entry in selection.listable}
    held = [ListableCluster(name, listed[name], None) for name in lost if name in listed.keys() - waiting]
    others = [*listed, *waiting]
    for cluster in lost:
        if cluster not in others and (name := _name_to_come_back(snapshot, cluster, others)):
            held.append(ListableCluster(cluster, name, None))
            others.append(cluster)
    return tuple(held)


def _name_to_come_back(snapshot: Snapshot, cluster: str, others: Iterable[str]) -> str:
    """Return the name of an unlisted cluster's MultiKueueCluster; "": it has none, or is one of `others`."""
    name = snapshot.hub.multikueue_cluster_name(snapshot.name, cluster)
    obj = snapshot.objects.clusters.get(name)
    if obj is None or not obj.ours or obj.meta.deleting or is_known_as(snapshot, cluster, obj, others):
        return ""
    return name if obj.placement in ("", snapshot.name) and obj.cluster in ("", cluster) else ""


def _is_taken_away(snapshot: Snapshot, cluster: str) -> bool:
    """Whether an admin takes a cluster away, for maintenance or for ever: it is no loss."""
    return bool(maintenance_of(snapshot, cluster)) or cluster in snapshot.fleet.deleted_clusters


def _left_before(snapshot: Snapshot, cluster: str, name: str) -> bool:
    """Whether a listed cluster was no longer selected before (it drains, settles, or stands by), or whether
    an admin takes it away for maintenance.

    Clusters that stand by are in no annotation: those that a new controller finds are not lost just now.
    Those that it finds draining are, if the annotation says so.
    """
    if maintenance_of(snapshot, cluster):
        return True
    config, is_first_look = snapshot.objects.config, not snapshot.ages(SinceKind.PLACEMENT_GENERATION)
    if config and name in config.draining:
        drained_for = (snapshot.now - config.draining[name]).total_seconds()
        return not is_first_look or drained_for >= snapshot.policy.loss_grace
    is_found_standing_by = is_first_look and snapshot.policy.unlist_after > 0
    return is_found_standing_by or Since(SinceKind.DESELECTED, cluster) in snapshot.all_ages


def _edits(snapshot: Snapshot) -> tuple[frozenset[Since], bool]:
    """Return the ages of the Placement's edits, and whether an edit is recent.

    The first generation that a controller sees is no edit: a restart must not end a hold. Nor is the
    generation of a Placement in another namespace, which takes over when one is created or deleted.
    """
    if (meta := snapshot.decisions.placement) is None:
        return frozenset(since for since in snapshot.all_ages if since.kind in _GENERATION), False
    namespace = Since(SinceKind.PLACEMENT_NAMESPACE, meta.namespace)
    generation = Since(SinceKind.PLACEMENT_GENERATION, meta.uid, meta.generation)
    edit = generation._replace(kind=SinceKind.PLACEMENT_EDITED)
    changed = generation not in snapshot.all_ages and namespace in snapshot.all_ages
    edited = changed or snapshot.all_ages.get(edit, inf) < EDIT_WINDOW_SECONDS
    return frozenset((namespace, generation, edit) if edited else (namespace, generation)), edited
