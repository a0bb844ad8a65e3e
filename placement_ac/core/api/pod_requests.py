"""
The resources that the Pods of a Workload ask for.

Pure. Source: Kubernetes' resource-helpers `PodRequests`, and Kueue's `AdjustResources`: a limit counts where
a container requests nothing. Kueue counts the Pods, too, where a ClusterQueue has a quota of `pods`.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from placement_ac.core.api.fields import Obj, get_dict, get_list
from placement_ac.core.api.quantities import milli

Requests = tuple[tuple[str, int], ...]
"""Resources and how much of each, in thousandths, sorted; without those that are 0."""
MAX_COUNT: Final = 2**31 - 1
PODS: Final = "pods"
"""The resource of which each Pod is one."""


def podset_requests(podset: Obj, counted: Collection[str] = ()) -> Requests:
    """Return what all Pods of a podSet ask for; whatever has another shape counts as absent.

    `counted`: the resources that Kueue counts, if that is known; a configuration of it may exclude others.
    The Pods are among the resources of a podSet that asks for any, or whose Pods are counted.
    """
    pod = get_dict(podset, "template", "spec")
    count = _count(podset)
    total = {name: amount * count for name, amount in _pod_requests(pod).items()}
    wanted = {k: v for k, v in total.items() if v > 0 and (not counted or k in counted)}
    if count and (wanted or PODS in counted):
        wanted[PODS] = count * 1000
    return tuple(sorted(wanted.items()))


def _count(podset: Obj) -> int:
    """Return the number of Pods; the smallest with which it may be admitted, if it may be with fewer."""
    counts = [podset.get("count", 1), podset.get("minCount")]
    valid = [count for count in counts if isinstance(count, int) and 0 <= count <= MAX_COUNT]
    return min(valid, default=1)


def _pod_requests(pod: Obj) -> dict[str, int]:
    """Return the larger of all containers together and of each init container, plus the overhead."""
    total: dict[str, int] = {}
    for container in get_list(pod, "containers"):
        _add(total, _requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in get_list(pod, "initContainers"):
        own = dict(_requests(container))
        if container.get("restartPolicy") == "Always":  # a sidecar: it goes on
            _add(sidecars, own.items())
            own = {}
        _raise(peak, {name: own.get(name, 0) + sidecars.get(name, 0) for name in {*own, *sidecars}})
    _add(total, sidecars.items())
    _raise(total, peak)
    total |= dict(_requests(pod))  # of the whole Pod
    _add(total, _quantities(get_dict(pod, "overhead")))
    return total


def _requests(holder: Obj) -> Iterator[tuple[str, int]]:
    yield from _quantities(
        {**get_dict(holder, "resources", "limits"), **get_dict(holder, "resources", "requests")}
    )


def _quantities(texts: Obj) -> Iterator[tuple[str, int]]:
    for name, text in texts.items():
        amount = milli(text)
        if amount is not None:
            yield name, amount


def _add(total: dict[str, int], more: Any) -> None:
    for name, amount in more:
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], least: dict[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)
