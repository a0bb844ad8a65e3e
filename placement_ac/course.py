"""
Which clusters of a Placement are to be listed, and what becomes of the others.

Pure. Select, hold, seat, and see to those that lose their seat.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from placement_ac.guard import Guarded, guard
from placement_ac.leaving import Jobs, jobs_of
from placement_ac.removal import Removal, remove
from placement_ac.seats import seat
from placement_ac.selection import Selection, Usable, listed_now, select
from placement_ac.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Course:
    """Which clusters are to be listed, and what becomes of the others."""

    selection: Selection
    listed: Mapping[str, str] = field(default_factory=dict)
    """The clusters that our config lists now → their MultiKueueClusters, in its order."""
    usable: tuple[Usable, ...] = ()
    """Those that jobs may be sent to, in order."""
    beyond: tuple[str, ...] = ()
    """Usable, but after the last seat."""
    queued: tuple[str, ...] = ()
    """Usable, and next when a cluster that leaves has given up its seat."""
    guarded: Guarded = field(default_factory=Guarded)
    removal: Removal = field(default_factory=Removal)
    jobs: Jobs = field(default_factory=lambda: Jobs(frozenset()))


def chart(seen: Snapshot) -> Course:
    """Select, hold, seat: and see to those that lose their seat."""
    listed = listed_now(seen)
    selection = select(seen, listed)
    guarded = guard(seen, selection, listed)
    most = seen.hub.clusters_max
    seated = seat(seen, (*selection.usable, *guarded.held), listed, most)
    jobs = jobs_of(seen)
    removal = remove(seen, {entry.name for entry in seated.seated}, jobs, listed)
    now = set(listed.values())
    new = [entry.cluster for entry in seated.seated if entry.name not in now]
    room = most - len(removal.staying) - (len(seated.seated) - len(new))
    queued = tuple(new[max(room, 0) :])
    return Course(
        listed=listed,
        selection=selection,
        usable=tuple([entry for entry in seated.seated if entry.cluster not in queued]),
        beyond=seated.beyond,
        queued=queued,
        guarded=guarded,
        removal=removal,
        jobs=jobs,
    )
