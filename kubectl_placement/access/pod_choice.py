"""The Pod and the containers that a command means, chosen and named as by kubectl. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str, name_of

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""kubectl: the annotation with the container that a command without `-c` means."""
_PHASES: Final = {"Unknown": 1, "Pending": 2}
_LATEST: Final = "9999"


class Container(NamedTuple):
    """A container of a Pod. `restarts`: how often it was restarted; `started`: whether it has a log."""

    pod: str
    uid: str
    name: str
    restarts: int
    started: bool


class NoSuchContainer(PlacementAcError):
    """The Pod has no container of that name."""


def first_pod(pods: Sequence[Object]) -> Object:
    """Return the Pod whose log is shown (kubectl: pkg/util/podutils, ByLogging)."""
    return min(pods, key=_rank)


def _rank(pod: Object) -> tuple[object, ...]:
    """Order: on a node, running, ready, ready for longer, restarted more often, older."""
    ready = condition_of(pod, "Ready")
    is_ready = ready.get("status") == "True"
    since = str(ready.get("lastTransitionTime") or "") or _LATEST
    restarts = max((status.restarts for status in containers_of(pod)), default=0)
    return (
        not get_str(pod, "spec", "nodeName"),
        _PHASES.get(get_str(pod, "status", "phase"), 0),
        not is_ready,
        since if is_ready else "",
        -restarts,
        get_str(pod, "metadata", "creationTimestamp") or _LATEST,
        name_of(pod),
    )


def containers_of(pod: Object) -> list[Container]:
    """Return all containers of a Pod: those that initialize it first, as kubectl shows them."""
    statuses = {
        get_str(status, "name"): status
        for part in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for status in get_list(pod, "status", part)
    }
    return [
        Container(name_of(pod), get_str(pod, "metadata", "uid"), name, *_state(statuses.get(name)))
        for part in ("initContainers", "containers", "ephemeralContainers")
        for name in [get_str(container, "name") for container in get_list(pod, "spec", part)]
    ]


def _state(status: object) -> tuple[int, bool]:
    state = get_dict(status, "state")
    started = any(part in state for part in ("running", "terminated")) or bool(get_dict(status, "lastState"))
    return get_int(status, "restartCount") or 0, started


def chosen_container(pod: Object, name: str) -> tuple[Container, str]:
    """Return the container of that name, or the default one, and kubectl's note on it.

    Raises NoSuchContainer.
    """
    by_name = {container.name: container for container in containers_of(pod)}
    if name:
        if name not in by_name:
            raise NoSuchContainer(f"container {name} is not valid for pod {name_of(pod)}")
        return by_name[name], ""
    default = get_dict(pod, "metadata", "annotations").get(DEFAULT_CONTAINER)
    if isinstance(default, str) and default in by_name:
        return by_name[default], ""
    regular = [get_str(container, "name") for container in get_list(pod, "spec", "containers")]
    if not regular:
        raise NoSuchContainer(f"pod {name_of(pod)} has no container")
    note = f'Defaulted container "{regular[0]}" out of: {_listed(pod)}' if len(regular) > 1 else ""
    return by_name[regular[0]], note


def _listed(pod: Object) -> str:
    """Return all names as kubectl lists them: the regular ones first."""
    parts = (("containers", ""), ("initContainers", " (init)"), ("ephemeralContainers", " (ephem)"))
    names = [f"{get_str(one, 'name')}{mark}" for part, mark in parts for one in get_list(pod, "spec", part)]
    return ", ".join(names)
