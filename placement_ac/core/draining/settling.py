"""
While decisions flap, removals wait: the gate stays open, and only clusters that are new change the list.

Pure. Each removal would close the gate, and each change of the list costs Kueue seconds. Decisions flap if
the selection changes again within `settle` seconds; removals then wait until it has been the same for that
long, but no cluster waits for more than WAITS_MAX times as long. Not with our own dispatcher (it has no
gate), not for `Immediate`, and not for the change that follows when someone has changed the Placement.
"""

from collections.abc import Collection
from math import inf
from typing import Final

from placement_ac.core.api.constants import IMMEDIATE
from placement_ac.core.inputs.state import Snapshot, Timer, TimerKind

WAITS_MAX: Final = 10.0
"""A multiple of the setting `settle`."""


def selection_timers(seen: Snapshot, wanted: Collection[str], *, edited: bool) -> frozenset[Timer]:
    """Return the timers of the selection (`wanted`: MultiKueueClusters), and of its flapping."""
    if not _applies(seen):
        return frozenset()
    kinds = [TimerKind.SELECTION]
    if _flapping_seconds(seen, wanted, _since_edit(seen, edited=edited)) > 0:
        kinds.append(TimerKind.FLAPPING)
    return frozenset(Timer(kind, _key(wanted)) for kind in kinds)


def settling_seconds(seen: Snapshot, wanted: Collection[str], *, edited: bool) -> float:
    """Return how long removals still wait because decisions flap; 0: they do not, or there are no jobs."""
    if not seen.workloads:
        return 0.0
    return _flapping_seconds(seen, wanted, _since_edit(seen, edited=edited))


def _since_edit(seen: Snapshot, *, edited: bool) -> float:
    """Return the seconds since someone changed the Placement; infinity: not in the last minute."""
    ages = [age for timer, age in seen.timer_ages.items() if timer.kind == TimerKind.PLACEMENT_EDITED]
    return min(ages, default=0.0) if edited else inf


def _flapping_seconds(seen: Snapshot, wanted: Collection[str], since_edit: float) -> float:
    """Return how long decisions must still be the same; only what began after an edit counts."""
    settle = seen.policy.settle
    ages = {timer: age for timer, age in seen.timer_ages.items() if age < since_edit}
    if not settle or not _applies(seen):
        return 0.0
    flapping = Timer(TimerKind.FLAPPING, _key(wanted))
    if Timer(TimerKind.SELECTION, _key(wanted)) in seen.timer_ages:
        return max(settle - ages[flapping], 0.0) if flapping in ages else 0.0
    kinds = (TimerKind.SELECTION, TimerKind.FLAPPING)
    is_soon = any(timer.kind in kinds and age < settle for timer, age in ages.items())
    return settle if is_soon else 0.0


def seconds_left(seen: Snapshot, cluster: str, settling: float) -> float:
    """Return how long the removal of one cluster waits, of the `settling` seconds for all of them."""
    longest = seen.policy.settle * WAITS_MAX - seen.age(Timer(TimerKind.DESELECTED, cluster))
    return max(min(settling, longest), 0.0)


def _key(names: Collection[str]) -> str:
    return ",".join(sorted(names))


def _applies(seen: Snapshot) -> bool:
    return not seen.policy.dispatcher and seen.policy.removal != IMMEDIATE
