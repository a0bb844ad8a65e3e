"""
The requests that Kueue adds to those of a job: defaults of LimitRanges, and the overhead of a RuntimeClass.

Pure. Source: Kueue `pkg/workload/resources.go`, `AdjustResources`: of several LimitRanges, the first default
of a resource counts; an overhead that the Pods have already stays.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_placement.hub.dump import Dump
from placement_ac.core.api.constants import LIMIT_RANGE, RUNTIME_CLASS
from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, namespace_of
from placement_ac.core.api.text import joined

_CONTAINERS: Final = ("initContainers", "containers")
_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
"""The resources of which LimitRanges have defaults, as a rule."""


def runtime_class_of(podset: Obj) -> str:
    """Return the RuntimeClass whose overhead counts for a podSet; "": none does."""
    pod = get_dict(podset, "template", "spec")
    return "" if get_dict(pod, "overhead") else get_str(pod, "runtimeClassName")


def without_requests(podset: Obj) -> frozenset[str]:
    """Return the resources of which a LimitRange may set a default: a container has no request or limit."""
    pod = get_dict(podset, "template", "spec")
    asked = [
        {*get_dict(one, "resources", "limits"), *get_dict(one, "resources", "requests")}
        for field in _CONTAINERS
        for one in get_list(pod, field)
    ]
    return frozenset(name for name in _DEFAULTED if any(name not in names for names in asked))


def adjusted(dump: Dump, namespace: str, podset: Obj) -> Obj:
    """Return a podSet with what Kueue adds to its requests, as far as the dump has it."""
    pod = dict(get_dict(podset, "template", "spec"))
    limits, requests = _defaults(dump, namespace)
    for field in _CONTAINERS if limits or requests else ():
        if field in pod:
            pod[field] = [_with_defaults(one, limits, requests) for one in get_list(pod, field)]
    runtime_class = dump.find(RUNTIME_CLASS, runtime_class_of(podset))
    if overhead := get_dict(runtime_class, "overhead", "podFixed"):
        pod["overhead"] = overhead
    template = dict(get_dict(podset, "template"))
    return {**podset, "template": template | {"spec": pod}} if pod else podset


def not_adjusted(dump: Dump, podset: Obj, covered: frozenset[str]) -> Iterator[str]:
    """Yield what was not read, where Kueue may add it; `covered`: the resources of the hub's ClusterQueue."""
    may_get = [name for name in _DEFAULTED if name in without_requests(podset) & covered]
    if may_get and not dump.knows(LIMIT_RANGE):
        yield (
            f"LimitRanges were not read ({dump.why_not_read(LIMIT_RANGE)}): Kueue adds their defaults of"
            f" {joined(may_get)} where a container asks for none"
        )
    name = runtime_class_of(podset)
    if name and not dump.knows(RUNTIME_CLASS):
        why = dump.why_not_read(RUNTIME_CLASS)
        yield f"RuntimeClass {name} was not read ({why}): Kueue adds its overhead to what each Pod asks for"


def _defaults(dump: Dump, namespace: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the default limits and requests of containers in a namespace."""
    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    for raw in dump.of(LIMIT_RANGE):
        for item in get_list(raw, "spec", "limits") if namespace_of(raw) == namespace else ():
            if get_str(item, "type") == "Container":
                limits = {**get_dict(item, "default"), **limits}
                requests = {**get_dict(item, "defaultRequest"), **requests}
    return limits, requests


def _with_defaults(container: Obj, limits: Mapping[str, Any], requests: Mapping[str, Any]) -> Obj:
    resources = dict(get_dict(container, "resources"))
    resources["limits"] = {**limits, **get_dict(resources, "limits")}
    resources["requests"] = {**requests, **get_dict(resources, "requests")}
    return {**container, "resources": resources}
