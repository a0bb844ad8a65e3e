"""The columns of `kubectl get pods`, computed as an API server does (pkg/printers/internalversion). Pure."""

from datetime import datetime
from typing import NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.fields import (
    get_dict,
    get_int,
    get_list,
    get_str,
    get_time,
    is_terminating,
    name_of,
)


class PodColumns(NamedTuple):
    """The cells of one Pod; times are None if they are unknown."""

    name: str
    ready: str
    status: str
    restarts: int
    restarted: datetime | None
    created: datetime | None
    ip: str
    node: str


def pod_columns(pod: Object) -> PodColumns:
    """Return the columns of a Pod."""
    containers = get_list(pod, "spec", "containers")
    statuses = get_list(pod, "status", "containerStatuses")
    ready = sum(status.get("ready") is True for status in statuses)
    ends = [get_time(status, "lastState", "terminated", "finishedAt") for status in statuses]
    return PodColumns(
        name_of(pod),
        f"{ready}/{len(containers)}",
        _status(pod),
        sum(get_int(status, "restartCount") or 0 for status in statuses),
        max(filter(None, ends), default=None),
        get_time(pod, "metadata", "creationTimestamp"),
        get_str(pod, "status", "podIP") or "<none>",
        get_str(pod, "spec", "nodeName") or "<none>",
    )


def _status(pod: Object) -> str:
    if is_terminating(pod):
        return "Unknown" if get_str(pod, "status", "reason") == "NodeLost" else "Terminating"
    return (
        _initializing(pod)
        or _of_containers(pod)
        or get_str(pod, "status", "reason")
        or get_str(pod, "status", "phase")
    )


def _initializing(pod: Object) -> str:
    """Return the state of the first init container that has not succeeded; "": all have."""
    statuses = get_list(pod, "status", "initContainerStatuses")
    for number, status in enumerate(statuses):
        ended = get_dict(status, "state", "terminated")
        if ended and get_int(ended, "exitCode") == 0:
            continue
        if status.get("started") is True:  # a sidecar
            continue
        waiting = get_str(status, "state", "waiting", "reason")
        if ended:
            return f"Init:{_ended(ended)}"
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{number}/{len(get_list(pod, 'spec', 'initContainers'))}"
    return ""


def _of_containers(pod: Object) -> str:
    """Return the reason of the first container that waits or has ended; "": none says one, or one runs."""
    found, running = "", False
    for status in reversed(get_list(pod, "status", "containerStatuses")):
        ended = get_dict(status, "state", "terminated")
        if waiting := get_str(status, "state", "waiting", "reason"):
            found = waiting
        elif ended:
            found = _ended(ended)
        elif status.get("ready") is True and "running" in get_dict(status, "state"):
            running = True
    if found == "Completed" and running:
        return "Running" if condition_of(pod, "Ready").get("status") == "True" else "NotReady"
    return found


def _ended(state: object) -> str:
    if reason := get_str(state, "reason"):
        return reason
    signal = get_int(state, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{get_int(state, 'exitCode') or 0}"
