"""
Hold the last good list when too many clusters would leave at once and nobody asked for that.

Pure. An edit of the Placement takes effect at once. If only OCM or vanished credentials take
clusters away, they are held for a while, as such losses are mostly a mistake and end by
themselves. A cluster that another one replaces is no loss: that is the purpose of scores.
"""

from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

from placement_ac.core.api.constants import EDIT_WINDOW_SECONDS, HELD
from placement_ac.core.api.text import count_text, duration_text
from placement_ac.core.inputs.state import EventIntent, Since, SinceKind, Snapshot
from placement_ac.core.selection.selection import ListableCluster, Selection, maintenance_of

FEW: Final = 4
"""With fewer clusters than this, only the loss of all of them is held."""

_GENERATION: Final = (SinceKind.PLACEMENT_NAMESPACE, SinceKind.PLACEMENT_GENERATION)


class MassLossHold(NamedTuple):
    """The clusters that are held, and why."""

    held: tuple[ListableCluster, ...] = ()
    why: str = ""
    lasting: frozenset[Since] = frozenset()
    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None
    edited: bool = False
    """Whether someone has just changed the Placement."""


def hold_mass_loss(snapshot: Snapshot, selection: Selection, listed: Mapping[str, str]) -> MassLossHold:
    """Return the clusters to hold of those that `selection` would take away from `listed`."""
    lasting, edited = _edits(snapshot)
    selected = {entry.cluster for entry in selection.listable}
    gone = [cluster for cluster in listed if cluster not in selected]
    lost = [cluster for cluster in gone if not _left_before(snapshot, cluster, listed[cluster])]
    if not lost or edited or not selection.is_conclusive:
        return MassLossHold(lasting=lasting, edited=edited)
    remaining = len(listed) - len(gone)
    if not _is_mass_loss(snapshot, len(lost), remaining, new=len(selected) - remaining):
        return MassLossHold(lasting=lasting)
    age = snapshot.age(Since(SinceKind.MASS_LOSS))
    if age >= snapshot.policy.loss_grace:
        return MassLossHold(lasting=lasting | {Since(SinceKind.MASS_LOSS)})
    listed_now = count_text(len(lost) + remaining, "cluster")
    why = (
        f"{len(lost)} of {listed_now} would go at once though the Placement was not"
        f" changed: held for {duration_text(snapshot.policy.loss_grace)}, or until the Placement is changed"
    )
    return MassLossHold(
        held=tuple(ListableCluster(cluster, listed[cluster], None) for cluster in lost),
        why=why,
        lasting=lasting | {Since(SinceKind.MASS_LOSS)},
        events=(EventIntent(HELD, why),),
        requeue_after=snapshot.policy.loss_grace - age,
    )


def _left_before(snapshot: Snapshot, cluster: str, name: str) -> bool:
    """Whether a listed cluster was no longer selected before (it drains, settles, or stands by), or whether
    an admin takes it away for maintenance.

    Clusters that stand by are in no annotation: those that a new controller finds are not lost just now.
    """
    if snapshot.objects.config and name in snapshot.objects.config.draining:
        return True
    if maintenance_of(snapshot, cluster):
        return True
    is_first_look = not snapshot.ages(SinceKind.PLACEMENT_GENERATION)
    is_found_standing_by = is_first_look and snapshot.policy.unlist_after > 0
    return is_found_standing_by or Since(SinceKind.DESELECTED, cluster) in snapshot.all_ages


def _is_mass_loss(snapshot: Snapshot, lost: int, remaining: int, new: int) -> bool:
    net = lost - new
    before = lost + remaining
    if net <= 0 or snapshot.policy.loss_grace <= 0:
        return False
    return net == before or (before >= FEW and net > before * snapshot.policy.loss_share)


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
