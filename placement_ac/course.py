"""
Which clusters of a Placement are to be listed, and what becomes of the others.

Pure. Select, hold, seat, and see to those that lose their seat.
"""

from dataclasses import dataclass, field

from placement_ac.guard import Guarded, guard
from placement_ac.removal import Removal, jobs_of, remove
from placement_ac.seats import seat
from placement_ac.selection import Selection, Usable, listed_now, select
from placement_ac.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Course:
    """Which clusters are to be listed, and what becomes of the others."""

    selection: Selection
    usable: tuple[Usable, ...] = ()
    """Those that jobs may be sent to, in order."""
    beyond: tuple[str, ...] = ()
    """Usable, but after the last seat."""
    queued: tuple[str, ...] = ()
    """Usable, and next when a cluster that leaves has given up its seat."""
    guarded: Guarded = field(default_factory=Guarded)
    removal: Removal = field(default_factory=Removal)


def chart(seen: Snapshot) -> Course:
    """Select, hold, seat: and see to those that lose their seat."""
    listed = listed_now(seen)
    selection = select(seen)
    guarded = guard(seen, selection, listed)
    most = seen.hub.clusters_max
    seated = seat(seen, (*selection.usable, *guarded.held), listed, most)
    removal = remove(seen, {entry.name for entry in seated.seated}, jobs_of(seen))
    room = most - len(removal.staying) - sum(entry.cluster in listed for entry in seated.seated)
    new = [entry.cluster for entry in seated.seated if entry.cluster not in listed]
    queued = tuple(new[max(room, 0) :])
    return Course(
        selection=selection,
        usable=tuple(entry for entry in seated.seated if entry.cluster not in queued),
        beyond=seated.beyond,
        queued=queued,
        guarded=guarded,
        removal=removal,
    )
