"""
Hold the last good list when too many clusters would leave at once and nobody asked for that.

Pure. An edit of the Placement takes effect at once. If only OCM or vanished credentials take
clusters away, they are held for a while, as such losses are mostly a mistake and end by
themselves. A cluster that another one replaces is no loss: that is the purpose of scores.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import EDIT_WINDOW_SECONDS, HELD
from placement_ac.core.api.text import count_text, duration_text
from placement_ac.core.inputs.state import EventIntent, Snapshot, Timer, TimerKind
from placement_ac.core.selection.selection import ListableCluster, Selection

FEW: Final = 4
"""With fewer clusters than this, only the loss of all of them is held."""


class MassLossHold(NamedTuple):
    """The clusters that are held, and why."""

    held: tuple[ListableCluster, ...] = ()
    why: str = ""
    timers: frozenset[Timer] = frozenset()
    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None
    edited: bool = False
    """Whether someone has just changed the Placement."""


def hold_mass_loss(seen: Snapshot, selection: Selection, listed: Mapping[str, str]) -> MassLossHold:
    """Return the clusters to hold of those that `selection` would take away from `listed`."""
    timers, edited = _edits(seen)
    selected = {entry.cluster for entry in selection.listable}
    gone = [cluster for cluster in listed if cluster not in selected]
    lost = [cluster for cluster in gone if not _left_before(seen, cluster, listed[cluster])]
    if not lost or edited or not selection.is_conclusive:
        return MassLossHold(timers=timers, edited=edited)
    remaining = len(listed) - len(gone)
    if not _is_mass_loss(seen, len(lost), remaining, new=len(selected) - remaining):
        return MassLossHold(timers=timers)
    age = seen.age(Timer(TimerKind.MASS_LOSS))
    if age >= seen.policy.loss_grace:
        return MassLossHold(timers=timers | {Timer(TimerKind.MASS_LOSS)})
    listed_now = count_text(len(lost) + remaining, "cluster")
    why = (
        f"{len(lost)} of {listed_now} would go at once though the Placement was not"
        f" changed: held for {duration_text(seen.policy.loss_grace)}, or until the Placement is changed"
    )
    return MassLossHold(
        held=tuple(ListableCluster(cluster, listed[cluster], None) for cluster in lost),
        why=why,
        timers=timers | {Timer(TimerKind.MASS_LOSS)},
        events=(EventIntent(HELD, why),),
        requeue_after=seen.policy.loss_grace - age,
    )


def _left_before(seen: Snapshot, cluster: str, name: str) -> bool:
    """Whether a listed cluster was no longer selected before: it drains, settles, or stands by.

    Clusters that stand by are in no annotation: those that a new controller finds are not lost just now.
    """
    if seen.objects.config and name in seen.objects.config.draining:
        return True
    is_first_look = not seen.ages(TimerKind.PLACEMENT_GENERATION)
    is_found_standing_by = is_first_look and seen.policy.unlist_after > 0
    return is_found_standing_by or Timer(TimerKind.DESELECTED, cluster) in seen.timer_ages


def _is_mass_loss(seen: Snapshot, lost: int, remaining: int, new: int) -> bool:
    net = lost - new
    before = lost + remaining
    if net <= 0 or seen.policy.loss_grace <= 0:
        return False
    return net == before or (before >= FEW and net > before * seen.policy.loss_share)


def _edits(seen: Snapshot) -> tuple[frozenset[Timer], bool]:
    """Return the timers of the Placement's edits, and whether an edit is recent.

    The first generation that a controller sees is no edit: a restart must not end a hold. Nor is the
    generation of a Placement in another namespace, which takes over when one is created or deleted.
    """
    known = frozenset(timer for timer in seen.timer_ages if timer.kind == TimerKind.PLACEMENT_GENERATION)
    if (meta := seen.decisions.placement) is None:
        return known, False
    now = Timer(TimerKind.PLACEMENT_GENERATION, f"{meta.namespace}/{meta.uid}/{meta.generation}")
    changed = now not in known and any(timer.subject.startswith(f"{meta.namespace}/") for timer in known)
    timer = Timer(TimerKind.PLACEMENT_EDITED, now.subject)
    age = seen.timer_ages.get(timer)
    edited = changed or (age is not None and age < EDIT_WINDOW_SECONDS)
    return frozenset((now, timer) if edited else (now,)), edited
