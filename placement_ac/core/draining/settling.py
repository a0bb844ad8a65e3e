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
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot

WAITS_MAX: Final = 10.0
"""A multiple of the setting `settle`."""


def settling(snapshot: Snapshot, wanted: Collection[str], *, edited: bool) -> tuple[float, frozenset[Since]]:
    """Return how long removals still wait because decisions flap, and the ages by which that is known.

    0: they do not wait, or there are no jobs. `wanted`: the MultiKueueClusters of the selection.
    """
    if snapshot.policy.dispatcher or snapshot.policy.removal == IMMEDIATE:
        return 0.0, frozenset()
    names = ",".join(sorted(wanted))
    selection, flapping = Since(SinceKind.SELECTION, names), Since(SinceKind.FLAPPING, names)
    left = _flapping_seconds(snapshot, selection, flapping, edited=edited)
    lasting = frozenset({selection, flapping} if left > 0 else {selection})
    return left if snapshot.workloads else 0.0, lasting


def _flapping_seconds(snapshot: Snapshot, selection: Since, flapping: Since, *, edited: bool) -> float:
    """Return how long decisions must still be the same; only what began after an edit counts."""
    settle = snapshot.policy.settle
    since_edit = min(snapshot.ages(SinceKind.PLACEMENT_EDITED).values(), default=0.0) if edited else inf
    ages = {since: age for since, age in snapshot.all_ages.items() if age < since_edit}
    if selection in snapshot.all_ages:
        return max(settle - ages[flapping], 0.0) if flapping in ages else 0.0
    kinds = (SinceKind.SELECTION, SinceKind.FLAPPING)
    is_soon = any(since.kind in kinds and age < settle for since, age in ages.items())
    return settle if is_soon else 0.0


def seconds_left(snapshot: Snapshot, cluster: str, wait: float) -> float:
    """Return how long the removal of one cluster waits, of the `wait` seconds for all of them."""
    longest = snapshot.policy.settle * WAITS_MAX - snapshot.age(Since(SinceKind.DESELECTED, cluster))
    return max(min(wait, longest), 0.0)
