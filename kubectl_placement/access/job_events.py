"""The events of a job: its own and its Workload's on the hub, its copy's and Pods' on its cluster. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.place import JobPlace
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import get_int, get_list, get_str, get_time, name_of

HUB = "hub"
Named = tuple[str, str]
"""Kind and name."""
Uids = Mapping[Named, frozenset[str]]
"""Objects, and the uids that each may have; none: its uid is unknown, and its name counts."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event. `cluster`: "hub", or the managed cluster; `object`: as `pod/train-abcde`."""

    cluster: str
    last_seen: datetime | None
    type: str
    reason: str
    object: str
    message: str
    count: int


def objects_on_hub(workload: Object) -> Uids:
    """Return the objects whose events on the hub are the job's: its Workload and that Workload's owners."""
    return _uids([_identity(WORKLOAD.kind, workload), *_owners(workload)])


def objects_on_cluster(place: JobPlace, copy: Object | None, pods: Iterable[Object]) -> Uids:
    """Return those on its cluster: its copy, its Workload's copy, its Pods and their owners."""
    found = [(WORKLOAD.kind, place.workload, ""), (place.job.kind, place.job.name, _uid(copy))]
    for pod in pods:
        found += [_identity("Pod", pod), *_owners(pod)]
    return _uids(found)


def _identity(kind: str, obj: Object) -> tuple[str, str, str]:
    return kind, name_of(obj), _uid(obj)


def _uid(obj: Object | None) -> str:
    return get_str(obj, "metadata", "uid")


def _owners(obj: Object) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the name and the uid of each owner."""
    for owner in get_list(obj, "metadata", "ownerReferences"):
        yield get_str(owner, "kind"), get_str(owner, "name"), get_str(owner, "uid")


def _uids(objects: Iterable[tuple[str, str, str]]) -> Uids:
    found: dict[Named, set[str]] = {}
    for kind, name, uid in objects:
        found.setdefault((kind, name), set()).update(filter(None, (uid,)))
    return {named: frozenset(uids) for named, uids in found.items()}


def events_on(cluster: str, events: Iterable[Object], of: Uids) -> list[JobEvent]:
    """Return the events that a cluster has of these objects: not those of others of the same names."""
    return [_event(cluster, event) for event in events if _is_of(event, of)]


def _is_of(event: Object, of: Uids) -> bool:
    uids, uid = of.get(_object(event)), get_str(event, "involvedObject", "uid")
    return uids is not None and (not uids or not uid or uid in uids)


def in_order(events: Iterable[JobEvent]) -> list[JobEvent]:
    """Return events by the time when they were last seen, as kubectl; those without a time first."""
    return sorted(events, key=lambda event: (event.last_seen is not None, str(event.last_seen), event.object))


def _object(event: Object) -> Named:
    return get_str(event, "involvedObject", "kind"), get_str(event, "involvedObject", "name")


def _event(cluster: str, event: Object) -> JobEvent:
    kind, name = _object(event)
    times = (
        get_time(event, "series", "lastObservedTime"),
        get_time(event, "lastTimestamp"),
        get_time(event, "eventTime"),
        get_time(event, "firstTimestamp"),
        get_time(event, "metadata", "creationTimestamp"),
    )
    return JobEvent(
        cluster,
        next(filter(None, times), None),
        get_str(event, "type"),
        get_str(event, "reason"),
        f"{kind.lower()}/{name}",
        get_str(event, "message"),
        get_int(event, "series", "count") or get_int(event, "count") or 1,
    )
