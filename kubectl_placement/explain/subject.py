"""Find the object to explain: TYPE NAME, TYPE/NAME or NAME, as kubectl accepts them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kubectl_placement.explain.steps import PlacementView
from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kind_names import names_of_kind
from kubectl_placement.jobs.lookup import SubjectNotFound
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    LABEL_JOB_UID,
    MANAGED_CLUSTER,
    PLACEMENT,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.errors import UnusableArgument
from placement_ac.core.api.fields import get_dict, get_list, get_str, key_of
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import did_you_mean, joined

Type = Literal["cluster", "check", "placement", "workload"]
KINDS: Final[dict[Type, Kind]] = {
    "cluster": MANAGED_CLUSTER,
    "check": ADMISSION_CHECK,
    "placement": PLACEMENT,
    "workload": WORKLOAD,
}
UNTYPED: Final[tuple[Type, ...]] = ("cluster", "check", "placement")
"""The types of objects that are found by their name alone: there may be 100,000 Workloads."""
TYPE_NAMES: Final[dict[str, Type]] = {
    name: type_ for type_, kind in KINDS.items() for name in names_of_kind(kind, type_)
}
"""Every name of a type that kubectl accepts."""


class UnknownType(UnusableArgument):
    """There are no objects of this type to explain."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object to explain. `namespace`: of a Placement or a Workload."""

    type: Type
    name: str
    namespace: str = ""


def names_workload(words: Sequence[str]) -> bool:
    """Whether the words on the command line name a Workload: then `-n` is its namespace."""
    return TYPE_NAMES.get(words[0].partition("/")[0].lower()) == "workload" and (
        len(words) > 1 or "/" in words[0]
    )


def parse_subject(words: Sequence[str], view: HubView) -> Subject:
    """Return the object that the words on the command line name. Raises SubjectNotFound, UnknownType."""
    if len(words) == 1 and "/" not in words[0]:
        return Subject(_type_of(words[0], view), words[0])
    type_, name = words[0].split("/", 1) if len(words) == 1 else (words[0], words[1])
    if type_.lower() not in TYPE_NAMES:
        known = f"use one of the types {', '.join(KINDS)}: {type_!r} is unknown"
        raise UnknownType(known + did_you_mean(type_.lower(), TYPE_NAMES))
    return Subject(TYPE_NAMES[type_.lower()], name)


def _type_of(name: str, view: HubView) -> Type:
    """Return the type of the object of that name; a Placement only if no cluster or check has the name."""
    is_check = view.dump.find(ADMISSION_CHECK, name) is not None
    if name in known_clusters(view):
        if not is_check:
            return "cluster"
        message = f"use `explain cluster {name}` or `explain check {name}`: {name} is a cluster and a check"
        raise SubjectNotFound(message)
    if is_check:
        return "check"
    if any(key_of(placement)[1] == name for placement in view.dump.of(PLACEMENT)):
        return "placement"
    kinds = [KINDS[type_] for type_ in UNTYPED]
    unknown = _unknown_kinds_text(view.dump, *kinds)
    names = {key_of(obj)[1] for kind in kinds for obj in view.dump.of(kind)}
    raise SubjectNotFound(
        f'no cluster, check or Placement "{name}" found{unknown}{did_you_mean(name, names)}'
    )


def _unknown_kinds_text(dump: Dump, *kinds: Kind) -> str:
    """Return which of these kinds are unknown: the object may be one of them."""
    unknown = [str(kind) for kind in kinds if dump.why_unknown(kind)]
    return f"; unknown: {joined(unknown)}" if unknown else ""


def known_clusters(view: HubView) -> frozenset[str]:
    """Return the existing clusters, and those that a decision or one of our objects still names."""
    existing = {key_of(cluster)[1] for cluster in view.dump.of(MANAGED_CLUSTER)}
    ours = {cluster_object.cluster for cluster_object in view.cluster_objects.values() if cluster_object.ours}
    decided = {name for items in view.decisions.values() for decision in items for name in decision.clusters}
    return frozenset(existing.union(ours, decided) - {""})


def find_cluster(view: HubView, name: str) -> str:
    """Return the name if the cluster is known. Raises SubjectNotFound."""
    if name not in known_clusters(view):
        raise _not_found(view, MANAGED_CLUSTER, name)
    return name


def find_check(view: HubView, name: str) -> Check:
    """Return a check of ours. Raises SubjectNotFound, which names the check of ours to use instead."""
    check = next((check for check in view.checks if check.meta.name == name), None)
    if check is None:
        raise _not_found(view, ADMISSION_CHECK, name)
    if check.ours:
        return check
    message = f"AdmissionCheck {name} is not ours: its spec.controllerName is {check.controller!r}"
    ours = [other.meta.name for other in view.our_checks if check.config and other.placement == check.config]
    if ours:
        message = f"use `explain check {ours[0]}`: {message}; its MultiKueueConfig is that of {joined(ours)}"
    raise SubjectNotFound(message)


def find_placement(view: HubView, name: str, namespaces: Sequence[str]) -> Object:
    """Return the Placement of that name: in these namespaces, else the one in use, else the only one.

    NAMESPACE/NAME as well. Raises SubjectNotFound.
    """
    space, slash, name = name.rpartition("/")
    namespaces = (space,) if slash else namespaces
    placements = [placement for placement in view.dump.of(PLACEMENT) if key_of(placement)[1] == name]
    if namespaces:
        placements = [placement for placement in placements if key_of(placement)[0] in namespaces]
    elif (used := view.placement(name)) is not None:
        return used
    if not placements:
        raise _not_found(view, PLACEMENT, name)
    if len(placements) > 1:
        spaces = sorted(key_of(placement)[0] for placement in placements)
        raise SubjectNotFound(f"choose a namespace with -n: Placement {name} exists in {joined(spaces)}")
    return placements[0]


def find_workload(view: HubView, name: str, namespaces: Sequence[str]) -> Object:
    """Return the Workload of that name, or the newest one of the Job of that name; NAMESPACE/NAME as well.

    In these namespaces, if any are given. Raises SubjectNotFound.
    """
    space, slash, name = name.rpartition("/")
    spaces = (space,) if slash else namespaces
    there = [workload for workload in view.dump.of(WORKLOAD) if not spaces or key_of(workload)[0] in spaces]
    matches = [obj for obj in there if key_of(obj)[1] == name] or [obj for obj in there if _is_of(obj, name)]
    if not matches:
        raise _not_found(view, WORKLOAD, name)
    if len({key_of(obj)[0] for obj in matches}) > 1:
        where = joined(sorted({key_of(obj)[0] for obj in matches}))
        raise SubjectNotFound(f"choose a namespace with -n: Workload {name} exists in {where}")
    return max(matches, key=lambda obj: get_str(obj, "metadata", "creationTimestamp"))


def owner_names(workload: Object) -> tuple[str, ...]:
    """Return the Jobs, or other objects, that own a Workload."""
    return tuple(
        get_str(owner_reference, "name")
        for owner_reference in get_list(workload, "metadata", "ownerReferences")
    )


def _is_of(workload: Object, job: str) -> bool:
    """Whether a Job of that name or uid owns the Workload."""
    return job in owner_names(workload) or get_dict(workload, "metadata", "labels").get(LABEL_JOB_UID) == job


def placement_views(view: HubView, check: str, namespaces: Sequence[str]) -> tuple[PlacementView, ...]:
    """Return the Placements to explain a cluster for: those with checks first, by name.

    On a hub, those in watched namespaces; in a dump, all; unless `namespaces` are given. Only that of `check`
    if it is not "". Raises SubjectNotFound.
    """
    if check:
        admission_check = find_check(view, check)
        raw = view.placement(admission_check.placement) if admission_check.placement else None
        if raw is None:
            raise SubjectNotFound(f"AdmissionCheck {check} has no Placement: see `explain check {check}`")
        return (PlacementView(view, raw),)
    if unknown := view.dump.why_unknown(PLACEMENT):
        raise SubjectNotFound(f"Placements are {unknown}")
    spaces = namespaces or (view.settings.placement_namespace if view.dump.live else ())
    cases = (PlacementView(view, placement) for placement in view.dump.of(PLACEMENT))
    chosen = (case for case in cases if not spaces or case.namespace in spaces)
    return tuple(sorted(chosen, key=lambda case: (not case.checks, case.namespace, case.name)))


def _not_found(view: HubView, kind: Kind, name: str) -> SubjectNotFound:
    meant = did_you_mean(name, (key_of(obj)[1] for obj in view.dump.of(kind)))
    return SubjectNotFound(f'{kind} "{name}" not found{_unknown_kinds_text(view.dump, kind)}{meant}')
