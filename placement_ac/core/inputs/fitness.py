"""
Whether a cluster is fit to be a worker of this hub's MultiKueue: what was found there, judged.

Pure. A problem is what keeps Kueue from connecting to the worker, or its jobs from running there; a warning
is what keeps some of them away. Each names what is wrong and the cure. Of a worker's own text nothing is
quoted but versions, and of its objects nothing that this hub has not named.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import KUEUE, WORKLOAD
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import JobKind, Right, parse_release

Queues = Mapping[str, frozenset[str]]
"""Namespace → the names of its LocalQueues."""
API_VERSION: Final = re.compile(r"v\d{1,4}((alpha|beta)\d{1,4})?")


class ServedKind(NamedTuple):
    """A kind in a version, as a worker's discovery tells it."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True)
class WorkerRequirements:
    """What this hub needs of its workers."""

    version: str
    """The version of the Workloads that the hub's Kueue sends: the newest that the hub serves."""
    kinds: tuple[JobKind, ...] = ()
    """Of jobs."""
    rights: tuple[Right, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The API groups to be looked at, Kueue's own aside."""
        return tuple(sorted({kind.group for kind in self.kinds} - {KUEUE}))


@dataclass(frozen=True, slots=True)
class Unknown:
    """What a worker did not tell, and why. `status` is the HTTP code."""

    why: str
    status: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFindings:
    """What a worker with Kueue told. `account`: the Secret or ClusterProfile by which it was entered."""

    account: str
    served: frozenset[ServedKind]
    silent: Mapping[str, Unknown] = field(default_factory=dict)
    """API group → why it is not known what is served of it."""
    rights: Mapping[Right, bool | Unknown] = field(default_factory=dict)
    kueue_version: str | Unknown = ""


@dataclass(frozen=True, slots=True)
class WorkerQueues:
    """The namespaces and the LocalQueues (namespace, name) of a worker."""

    namespaces: frozenset[str] | Unknown
    queues: frozenset[tuple[str, str]] | Unknown


@dataclass(frozen=True, slots=True)
class Fitness:
    """What is to be said of a worker. Everything in it may be shown to an admin."""

    problems: tuple[str, ...] = ()
    """A cluster with one is not fit to be listed anew."""
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What could not be asked."""
    kueue_version: str = ""
    """Of the worker's Kueue; "": unknown."""
    asked_at: datetime | None = None


def evaluate(found: WorkerFindings, needs: WorkerRequirements) -> Fitness:
    """Return what `found` comes to, LocalQueues aside."""
    version = found.kueue_version
    return Fitness(
        problems=(
            *workload_problems(found, needs),
            *kind_problems(found, needs.kinds),
            *rights_problems(found, needs.rights),
        ),
        unknown=tuple(unknowns(found)),
        kueue_version="" if isinstance(version, Unknown) else version,
    )


def with_queues(fitness: Fitness, places: WorkerQueues, wanted: Queues) -> Fitness:
    """Return `fitness` with what is to be said of the namespaces and LocalQueues that the hub has."""
    unknown = [
        f"{what} are not known: {answer.why}"
        for what, answer in (("its namespaces", places.namespaces), ("its LocalQueues", places.queues))
        if isinstance(answer, Unknown)
    ]
    return replace(
        fitness,
        warnings=(*fitness.warnings, *_of_places(places, wanted)),
        unknown=(*fitness.unknown, *unknown),
    )


def workload_problems(found: WorkerFindings, needs: WorkerRequirements) -> Iterator[str]:
    """Yield what is wrong with the worker's Workloads."""
    versions = {one.version for one in found.served if one.group == KUEUE and one.plural == WORKLOAD.plural}
    if not versions:
        yield "the worker serves no Workloads: install Kueue there"
    elif needs.version not in versions:
        yield (
            f"Kueue on the worker speaks {', '.join(sorted(versions))}, and not the {needs.version} of this"
            " hub: bring both to versions of Kueue that speak the same"
        )


def missing_kinds(found: WorkerFindings, kinds: Iterable[JobKind]) -> list[JobKind]:
    """Return those that the worker does not serve."""
    return [
        kind
        for kind in kinds
        if kind.group not in found.silent
        and ServedKind(kind.group, kind.version, kind.plural) not in found.served
    ]


def kind_problems(found: WorkerFindings, kinds: Iterable[JobKind]) -> Iterator[str]:
    """Kueue watches every job kind that is enabled, and does not connect where one cannot be watched."""
    if missing := missing_kinds(found, kinds):
        told = joined(
            f"{_kind(kind.group, kind.plural, kind.version)} ({kind.framework})" for kind in missing
        )
        yield (
            f"the worker does not serve {told}: install the CRDs there, or leave these frameworks out of"
            " the configurations of this hub's Kueue and of placement-ac"
        )


def rights_problems(found: WorkerFindings, rights: Iterable[Right]) -> Iterator[str]:
    """Yield which rights the account lacks."""
    denied: dict[str, list[str]] = {}
    for right in rights:
        if found.rights.get(right) is False:
            subresource = f"/{right.subresource}" if right.subresource else ""
            denied.setdefault(_kind(right.group, right.resource + subresource), []).append(right.verb)
    if denied:
        told = joined((f"{', '.join(verbs)} {what}" for what, verbs in denied.items()), "; ")
        yield f"the account of {found.account} may not {told}: grant it that on the worker, in all namespaces"


def unknowns(found: WorkerFindings) -> Iterator[str]:
    """Yield what the worker did not tell."""
    for group, answer in found.silent.items():
        yield f"the kinds of {group or 'the core group'} are not known: {answer.why}"
    untold = [answer for answer in found.rights.values() if isinstance(answer, Unknown)]
    if untold:
        yield f"{len(untold)} of {len(found.rights)} rights are not known: {untold[0].why}"
    if isinstance(found.kueue_version, Unknown):
        yield f"Kueue's version is not known: {found.kueue_version.why}"


def missing_queues(places: WorkerQueues, wanted: Queues) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the namespaces that the worker lacks, and the LocalQueues that it lacks in the others."""
    here = wanted.keys() if isinstance(places.namespaces, Unknown) else wanted.keys() & places.namespaces
    away = sorted(wanted.keys() - here)
    if isinstance(places.queues, Unknown):
        return away, []
    names = sorted((namespace, name) for namespace in here for name in wanted[namespace])
    return away, [one for one in names if one not in places.queues]


def _of_places(places: WorkerQueues, wanted: Queues) -> Iterator[str]:
    away, missing = missing_queues(places, wanted)
    if away:
        yield f"the worker has no namespaces {joined(away)}: jobs in them cannot run there until made"
    if missing:
        told = joined(f"{namespace}/{name}" for namespace, name in missing)
        yield f"the worker has no LocalQueues {told}: jobs in them cannot run there until made"


def _kind(group: str, plural: str, version: str = "") -> str:
    """As kubectl takes it: plural[.version].group."""
    return ".".join(part for part in (plural, version, group) if part)


def release_of(image: object, label: object) -> str:
    """Return the release that the tag of a container's image tells, else the label; "" when neither does."""
    tag = str(image).partition("@")[0].rpartition("/")[2].partition(":")[2]
    return next((text for text in (tag, str(label)) if parse_release(text)), "")
