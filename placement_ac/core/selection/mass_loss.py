"""
Hold the last good list when too much of it would go at once and nobody asked for that.

Pure. Whoever edits a Placement gets it at once; what only OCM or vanished credentials
take away is held for a while, as such losses are mostly a mistake and end by themselves.
A cluster that another one replaces is no loss: that is what scores are for.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import EDIT_WINDOW_SECONDS, HELD
from placement_ac.core.api.objects import Placement
from placement_ac.core.api.text import duration_text
from placement_ac.core.inputs.state import EventIntent, Snapshot, Timer, TimerKind
from placement_ac.core.selection.selection import Selection, UsableCluster

FEW: Final = 4
"""With fewer clusters than this only the loss of all of them is held."""


class MassLossHold(NamedTuple):
    """Which clusters are held, and why."""

    held: tuple[UsableCluster, ...] = ()
    why: str = ""
    timers: frozenset[Timer] = frozenset()
    events: tuple[EventIntent, ...] = ()
    recheck_after: float | None = None


def hold_mass_loss(seen: Snapshot, selection: Selection, listed: Mapping[str, str]) -> MassLossHold:
    """Return what is to be held of what `selection` would take away from `listed`."""
    marks, edited = _edits(seen)
    selected = {entry.cluster for entry in selection.usable}
    leaving = seen.objects.config.draining if seen.objects.config else {}
    gone = [cluster for cluster in listed if cluster not in selected]
    lost = [cluster for cluster in gone if listed[cluster] not in leaving]
    if not lost or edited or not selection.decided:
        return MassLossHold(timers=marks)
    staying = len(listed) - len(gone)
    if not _too_much(seen, len(lost), staying, new=len(selected) - staying):
        return MassLossHold(timers=marks)
    age = seen.timer_ages.get(Timer(TimerKind.MASS_LOSS), 0.0)
    if age >= seen.policy.loss_grace:
        return MassLossHold(timers=marks | {Timer(TimerKind.MASS_LOSS)})
    why = (
        f"{len(lost)} of {len(lost) + staying} clusters would go at once though the Placement was not"
        f" changed: held for {duration_text(seen.policy.loss_grace)}, or until the Placement is changed"
    )
    return MassLossHold(
        held=tuple(UsableCluster(cluster, listed[cluster], None) for cluster in lost),
        why=why,
        timers=marks | {Timer(TimerKind.MASS_LOSS)},
        events=(EventIntent(HELD, why),),
        recheck_after=seen.policy.loss_grace - age,
    )


def _too_much(seen: Snapshot, lost: int, staying: int, new: int) -> bool:
    net = lost - new
    before = lost + staying
    if net <= 0 or seen.policy.loss_grace <= 0:
        return False
    return net == before or (before >= FEW and net > before * seen.policy.loss_share)


def _edits(seen: Snapshot) -> tuple[frozenset[Timer], bool]:
    """Return what is known of the Placement's changes, and whether one is recent.

    The generation that is found at the start is none: a restart must not open the guard. Nor is that of
    a Placement in another namespace, which counts as one there has come or gone: nobody changed it.
    """
    if seen.decision.placement is None:
        return frozenset(
            mark for mark in seen.timer_ages if mark.kind == TimerKind.PLACEMENT_GENERATION
        ), False
    now = _generation(seen.decision.placement)
    here = f"{seen.decision.placement.meta.namespace}/"
    changed = now not in seen.timer_ages and any(
        mark.kind == TimerKind.PLACEMENT_GENERATION and mark.subject.startswith(here)
        for mark in seen.timer_ages
    )
    mark = Timer(TimerKind.PLACEMENT_EDITED, now.subject)
    edited = changed or seen.timer_ages.get(mark, EDIT_WINDOW_SECONDS) < EDIT_WINDOW_SECONDS
    return frozenset((now, mark) if edited else (now,)), edited


def _generation(placement: Placement) -> Timer:
    meta = placement.meta
    return Timer(TimerKind.PLACEMENT_GENERATION, f"{meta.namespace}/{meta.uid}/{meta.generation}")
