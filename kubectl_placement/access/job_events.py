"""The events of a job: its own and its Workload's on the hub, its copy's and Pods' on its cluster. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.place import JobPlace
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import get_int, get_list, get_str, get_time, name_of

HUB = "hub"
Named = tuple[str, str]
"""Kind and name."""


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


def objects_of(place: JobPlace, pods: Iterable[Object] = ()) -> frozenset[Named]:
    """Return the objects whose events are the job's: itself, its Workload, its Pods and their owners."""
    found = {(WORKLOAD.kind, place.workload), (place.job.kind, place.job.name)}
    for pod in pods:
        found.add(("Pod", name_of(pod)))
        owners = get_list(pod, "metadata", "ownerReferences")
        found |= {(get_str(owner, "kind"), get_str(owner, "name")) for owner in owners}
    return frozenset(found)


def events_on(cluster: str, events: Iterable[Object], of: frozenset[Named]) -> list[JobEvent]:
    """Return the events that a cluster has of these objects."""
    return [_event(cluster, event) for event in events if _object(event) in of]


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
