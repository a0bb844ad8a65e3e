"""
The Pods of a job on its cluster: phase, readiness, restarts, and why one does not start. Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str
from placement_ac.core.api.text import count_text


@dataclass(frozen=True, slots=True)
class PodRow:
    """One Pod."""

    name: str
    phase: str
    ready: str
    """Ready containers of all, as `1/2`."""
    restarts: int
    node: str
    """"": it is on none."""
    why: str = ""
    """Why it does not run, as `ImagePullBackOff: …` or `Unschedulable: …`; "" if it runs."""
    event: str = ""
    """Its last event, as `Pulling: pulling image …`; "": there is none, or events cannot be read."""


@dataclass(frozen=True, slots=True)
class PodsThere:
    """The Pods of a job on its cluster; `problem` says why they are unknown, with what opens them."""

    cluster: str
    pods: tuple[PodRow, ...] = ()
    problem: str = ""


def pods_there(cluster: str, pods: Iterable[Object], events: Iterable[Object] = ()) -> PodsThere:
    """Return the rows of Pods, by name, each with its last event."""
    last = {get_str(event, "involvedObject", "uid"): event for event in sorted(events, key=_event_time)}
    rows = (_row(pod, last.get(get_str(pod, "metadata", "uid"))) for pod in pods)
    return PodsThere(cluster, tuple(sorted(rows, key=lambda row: row.name)))


def pods_wait(there: PodsThere) -> str:
    """Return what keeps Pods from running, as `ImagePullBackOff: … (2 Pods)`; "" if all run.

    One that has failed stays beside the one in its place, so it counts only if there is no other.
    """
    whys: dict[str, list[str]] = {}
    for row in [row for row in there.pods if row.phase != "Failed"] or there.pods:
        if row.why:
            whys.setdefault(row.why, []).append(row.name)
    parts = (
        f"{why} ({names[0] if len(names) == 1 else count_text(len(names), 'Pod')})"
        for why, names in whys.items()
    )
    return "; ".join(parts)


def _row(pod: Object, event: Object | None) -> PodRow:
    statuses = [*_statuses(pod, "containerStatuses")]
    spec = len(get_list(pod, "spec", "containers"))
    ready = sum(status.get("ready") is True for status in statuses)
    row = PodRow(
        name=get_str(pod, "metadata", "name"),
        phase=get_str(pod, "status", "phase") or "Unknown",
        ready=f"{ready}/{max(spec, len(statuses))}",
        restarts=sum(get_int(status, "restartCount") or 0 for status in statuses),
        node=get_str(pod, "spec", "nodeName"),
        event=_reason(get_str(event, "reason"), get_str(event, "message")),
    )
    return row if row.phase == "Succeeded" else replace(row, why=_why(pod))


def _why(pod: Object) -> str:
    """Return the reason of the first container that waits or has failed, else why it is on no node."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in _statuses(pod, field):
            waiting, ended = (get_dict(status, "state", state) for state in ("waiting", "terminated"))
            reason = get_str(waiting, "reason")
            if reason and reason != "PodInitializing":
                return _reason(reason, get_str(waiting, "message"))
            if get_int(ended, "exitCode"):
                return _reason(get_str(ended, "reason") or "Error", f"exit code {get_int(ended, 'exitCode')}")
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return _reason(get_str(scheduled, "reason"), get_str(scheduled, "message"))
    return _reason(get_str(pod, "status", "reason"), get_str(pod, "status", "message"))


def _statuses(pod: Object, field: str) -> Iterator[Any]:
    yield from get_list(pod, "status", field)


def _reason(reason: str, message: str) -> str:
    return ": ".join(filter(None, (reason, message)))


def _event_time(event: Object) -> str:
    series = get_str(event, "series", "lastObservedTime")
    return series or get_str(event, "lastTimestamp") or get_str(event, "eventTime")
