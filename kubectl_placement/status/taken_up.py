"""
Where a job probably runs whose worker was lost and came back, and whether it ran twice. Pure.

Kueue sends a job again when its worker was not connected for `workerLostTimeout`. When that worker comes
back with its copy, Kueue keeps the older copy and deletes the newer one, but `status.clusterName` cannot
change: it names the cluster of the deleted one (seen on real Kueue). The facts that show it: the message of
the eviction, the events of earlier placements (kept for an hour), since when a MultiKueueCluster is
connected, and the copies on the workers, where they were asked.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.record import was_lost
from placement_ac.core.api.constants import EVENT, LABEL_PLACEMENT
from placement_ac.core.api.fields import format_time, get_str, get_time, key_of
from placement_ac.core.api.text import enumeration, joined
from placement_ac.core.inputs.state import WorkerCopies

_ADMITTED_ON: Final = re.compile(r'The workload was admitted on "([^"]{1,253})"')
"""Kueue: the message of its event about a job that a worker has admitted."""

Copies = Mapping[str, WorkerCopies]
"""MultiKueueCluster → its answer about the copies there."""
NOT_ASKED: Final[Copies] = {}


class Placement(NamedTuple):
    """A MultiKueueCluster that a job was placed on, and when."""

    cluster_object: str
    time: datetime | None


class TakenUp(NamedTuple):
    """Where a job runs other than Kueue's record says."""

    cluster_objects: tuple[str, ...]
    """MultiKueueClusters; several: one of them, it is not known which."""
    clusters: tuple[str, ...]
    """Their managed clusters."""
    recorded: str
    """The managed cluster that Kueue's record names."""
    why: str
    """The facts that show it."""
    certain: bool = False
    """Whether the workers themselves say so."""

    @property
    def sentence(self) -> str:
        """Return where it runs, and the facts that show it, without a subject."""
        probably = "" if self.certain else "probably "
        where = enumeration(self.clusters, "or")
        return f"{probably}runs on {where}, not on {self.recorded} as Kueue's record says: {self.why}"


def placement_of_event(event: Object) -> Placement | None:
    """Return the placement that an event of Kueue reports, with its first time; None: it reports none."""
    match = _ADMITTED_ON.search(get_str(event, "message"))
    if match is None:
        return None
    first = get_time(event, "firstTimestamp") or get_time(event, "eventTime")
    return Placement(match[1], first or get_time(event, "lastTimestamp"))


def taken_up(view: HubView, workload: Object, copies: Copies = NOT_ASKED) -> TakenUp | None:
    """Return where an unfinished job runs other than Kueue's record says; None: nothing shows that."""
    here = get_str(workload, "status", "clusterName")
    if not here or condition_of(workload, "Finished").get("status") == "True":
        return None
    holders = tuple(name for name, answer in copies.items() if answer.copies.get(key_of(workload)))
    recorded = view.managed_cluster_of(here)
    if here in holders:
        return None
    if holders:
        clusters = tuple(map(view.managed_cluster_of, holders))
        is_gone = here in copies and not copies[here].problem
        why = f"its copy on {joined(clusters)} has quota" + (f", and {recorded} has none" if is_gone else "")
        return TakenUp(holders, clusters, recorded, why, certain=True)
    back = _back(view, workload)
    names = tuple(name for name in back if name not in copies or copies[name].problem)
    if not names:
        return None
    clusters = tuple(map(view.managed_cluster_of, names))
    since = format_time(max(back[name] for name in names))
    why = (
        f"it was sent again because its cluster was lost, {enumeration(clusters, 'or')} is connected again"
        f" since {since}, and Kueue keeps the older copy"
    )
    return TakenUp(names, clusters, recorded, why)


def ran_twice(view: HubView, workload: Object, copies: Copies = NOT_ASKED) -> str:
    """Return the answer to "did it run twice?"; "": nothing says so."""
    here, key = get_str(workload, "status", "clusterName"), key_of(workload)
    now = [view.managed_cluster_of(name) for name, answer in copies.items() if answer.copies.get(key)]
    if len(now) > 1:
        return f"It runs {len(now)} times now: its copies on {enumeration(now, 'and')} have quota"
    if not here or not was_lost(workload):
        return ""
    recorded, back = view.managed_cluster_of(here), _back(view, workload)
    lost = view.managed_cluster_of(before) if (before := _before(view, workload)) else "the lost cluster"
    if here in copies and copies[here].copies.get(key):
        return f"Perhaps it ran twice: {lost} had a copy, too; now the one on {recorded} alone is seen"
    finished = condition_of(workload, "Finished")
    if finished.get("status") == "True":
        ended = get_time(finished, "lastTransitionTime")
        back = {name: since for name, since in back.items() if ended and since <= ended}
    if not back:
        return f"Perhaps it ran twice: {lost} may have gone on with its copy, beside the one on {recorded}"
    placed = get_time(condition_of(workload, "Admitted"), "lastTransitionTime")
    since, until = format_time(placed) if placed else "", format_time(max(back.values()))
    others = enumeration([*map(view.managed_cluster_of, back)], "or")
    return (
        f"It probably ran twice for a time: on {others}, which Kueue had lost, and on {recorded} from {since}"
        f" until {until}, when Kueue was connected again and kept the older copy"
    )


def _back(view: HubView, workload: Object) -> dict[str, datetime]:
    """Return the clusters that may be the lost one and came back after the job was placed → since when.

    Events name the lost one for an hour. After that it is one of those that came back, if none is away.
    """
    placed = get_time(condition_of(workload, "Admitted"), "lastTransitionTime")
    here = get_str(workload, "status", "clusterName")
    known = view.cluster_objects
    if placed is None or here not in known or not was_lost(workload):
        return {}
    label = known[here].meta.labels.get(LABEL_PLACEMENT)
    others = {
        name: cluster
        for name, cluster in known.items()
        if name != here and cluster.meta.labels.get(LABEL_PLACEMENT) == label
    }
    if before := _before(view, workload):
        others = {name: cluster for name, cluster in others.items() if name == before}
    elif not all(cluster.active for cluster in others.values()):
        return {}
    return {
        name: cluster.active_since
        for name, cluster in others.items()
        if cluster.active and cluster.active_since and cluster.active_since > placed
    }


def _before(view: HubView, workload: Object) -> str:
    """Return the MultiKueueCluster that the job was on before, by events; "": they do not say."""
    here = get_str(workload, "status", "clusterName")
    earlier = [one for one in placements(view.dump.of(EVENT), workload) if one.cluster_object != here]
    return earlier[-1].cluster_object if earlier else ""


def placements(events: Iterable[Object], workload: Object) -> list[Placement]:
    """Return the placements of a Workload that events report, oldest first."""
    uid = get_str(workload, "metadata", "uid")
    own = (event for event in events if get_str(event, "involvedObject", "uid") == uid)
    found = [placement for placement in map(placement_of_event, own) if placement and placement.time]
    return sorted(found, key=lambda one: one.time.timestamp() if one.time else 0.0)
