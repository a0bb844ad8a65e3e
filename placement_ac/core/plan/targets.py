"""
Which clusters of a Placement are to be listed, and what becomes of the others.

Pure. Select, hold, seat, and see to those that lose their seat.
"""

from collections.abc import Mapping
from typing import NamedTuple

from placement_ac.core.draining.drain import Removal, remove
from placement_ac.core.draining.state import Jobs, jobs_of
from placement_ac.core.inputs.state import NOTHING, Snapshot
from placement_ac.core.selection.capacity import seat
from placement_ac.core.selection.mass_loss import Guarded, guard
from placement_ac.core.selection.selection import Selection, Usable, listed_now, select


class Course(NamedTuple):
    """Which clusters are to be listed, and what becomes of the others."""

    selection: Selection
    listed: Mapping[str, str] = NOTHING
    """The clusters that our config lists now → their MultiKueueClusters, in its order."""
    usable: tuple[Usable, ...] = ()
    """Those that jobs may be sent to, in order."""
    beyond: tuple[str, ...] = ()
    """Usable, but after the last seat."""
    queued: tuple[str, ...] = ()
    """Usable, and next when a cluster that leaves has given up its seat."""
    guarded: Guarded = Guarded()
    removal: Removal = Removal()
    jobs: Jobs = Jobs(frozenset())


def chart(seen: Snapshot) -> Course:
    """Select, hold, seat: and see to those that lose their seat."""
    listed = listed_now(seen)
    selection = select(seen, listed)
    guarded = guard(seen, selection, listed)
    most = seen.hub.clusters_max
    seated = seat(seen, (*selection.usable, *guarded.held), listed, most)
    jobs = jobs_of(seen)
    removal = remove(seen, {entry.name for entry in seated.seated}, jobs, listed)
    usable, queued = _with_room(seated.seated, listed, most - len(removal.staying))
    return Course(
        listed=listed,
        selection=selection,
        usable=usable,
        beyond=seated.beyond,
        queued=queued,
        guarded=guarded,
        removal=removal,
        jobs=jobs,
    )


def _with_room(
    seated: tuple[Usable, ...], listed: Mapping[str, str], most: int
) -> tuple[tuple[Usable, ...], tuple[str, ...]]:
    """Return those who find room, as the ones that leave still have their seats, and who is next."""
    if len(seated) <= most:
        return seated, ()
    now = set(listed.values())
    new = [entry.cluster for entry in seated if entry.name not in now]
    queued = tuple(new[max(most - (len(seated) - len(new)), 0) :])
    return tuple([entry for entry in seated if entry.cluster not in queued]), queued
