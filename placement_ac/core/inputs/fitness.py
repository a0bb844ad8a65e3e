"""
Judge whether a cluster is fit to be a worker of this hub's MultiKueue.

Pure. A problem keeps Kueue from connecting to the worker, or all jobs from running there; a warning keeps
some of them away. Each leads with the fix. They quote nothing of a worker's own text but versions, and
no names of its objects but those that this hub knows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import KUEUE, LABEL_RELEASE, WORKLOAD
from placement_ac.core.api.fields import Obj, get_list, get_str
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import PREEMPTION_RIGHT, JobKind, Right, parse_release

Queues = Mapping[str, frozenset[str]]
"""Namespace → the names of its LocalQueues."""
API_VERSION: Final = re.compile(r"v\d{1,4}((alpha|beta)\d{1,4})?")


class ServedKind(NamedTuple):
    """A kind in a version, as in a worker's discovery."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True)
class WorkerRequirements:
    """The needs of this hub: what each worker must have."""

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
    """Something that a worker did not answer, and why. `status` is the HTTP code."""

    why: str
    status: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFindings:
    """The answers of a worker with Kueue. `account`: the Secret or ClusterProfile whose account asked."""

    account: str
    served: frozenset[ServedKind]
    unknown_groups: Mapping[str, Unknown] = field(default_factory=dict)
    """API group → why the kinds that the worker serves of it are unknown."""
    rights: Mapping[Right, bool | Unknown] = field(default_factory=dict)
    kueue_version: str | Unknown = ""


@dataclass(frozen=True, slots=True)
class WorkerQueues:
    """The namespaces and the LocalQueues (namespace, name) of a worker."""

    namespaces: frozenset[str] | Unknown
    queues: frozenset[tuple[str, str]] | Unknown


@dataclass(frozen=True, slots=True)
class Fitness:
    """The judgement of a worker. Everything in it may be shown to an admin."""

    problems: tuple[str, ...] = ()
    """A cluster that has one, and is not listed yet, is not listed."""
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Questions that the worker did not answer, and why."""
    kueue_version: str = ""
    """Of the worker's Kueue; "": unknown."""
    asked_at: datetime | None = None


def evaluate(findings: WorkerFindings, needs: WorkerRequirements) -> Fitness:
    """Return the judgement of `findings`, LocalQueues aside."""
    version = findings.kueue_version
    return Fitness(
        problems=(
            *workload_problems(findings, needs),
            *kind_problems(findings, needs.kinds),
            *rights_problems(findings, needs.rights),
        ),
        warnings=tuple(preemption_warnings(findings)),
        unknown=tuple(unknowns(findings)),
        kueue_version="" if isinstance(version, Unknown) else version,
    )


def with_queues(fitness: Fitness, present: WorkerQueues, wanted: Queues) -> Fitness:
    """Return `fitness` with the warnings about the namespaces and LocalQueues that the hub has."""
    unknown = [
        f"{what} are not known: {answer.why}"
        for what, answer in (("its namespaces", present.namespaces), ("its LocalQueues", present.queues))
        if isinstance(answer, Unknown)
    ]
    return replace(
        fitness,
        warnings=(*fitness.warnings, *_queue_warnings(present, wanted)),
        unknown=(*fitness.unknown, *unknown),
    )


def workload_problems(findings: WorkerFindings, needs: WorkerRequirements) -> Iterator[str]:
    """Yield the problem with the worker's Workloads."""
    versions = {
        kind.version for kind in findings.served if kind.group == KUEUE and kind.plural == WORKLOAD.plural
    }
    if not versions:
        yield "install Kueue on the worker: it serves no Workloads"
    elif needs.version not in versions:
        yield (
            "update Kueue on the worker or on this hub: the worker serves Workloads in "
            f"{', '.join(sorted(versions))}, and this hub sends {needs.version}"
        )


def missing_kinds(findings: WorkerFindings, kinds: Iterable[JobKind]) -> list[JobKind]:
    """Return those that the worker does not serve."""
    return [
        kind
        for kind in kinds
        if kind.group not in findings.unknown_groups
        and ServedKind(kind.group, kind.version, kind.plural) not in findings.served
    ]


def kind_problems(findings: WorkerFindings, kinds: Iterable[JobKind]) -> Iterator[str]:
    """Kueue watches every job kind that is enabled, and does not connect where one cannot be watched."""
    if missing := missing_kinds(findings, kinds):
        kinds_text = joined(
            f"{_kind_label(kind.group, kind.plural, kind.version)} ({kind.framework})" for kind in missing
        )
        yield (
            f"install the CRDs of {kinds_text} on the worker, or remove these frameworks from the"
            " configurations of this hub's Kueue and of placement-ac: the worker does not serve them"
        )


def rights_problems(findings: WorkerFindings, rights: Iterable[Right]) -> Iterator[str]:
    """Yield the rights that the account lacks, in one sentence."""
    denied: dict[str, list[str]] = {}
    for right in rights:
        if findings.rights.get(right) is False and right != PREEMPTION_RIGHT:
            denied.setdefault(_kind_label(right.group, right.rule_resource), []).append(right.verb)
    if denied:
        rights_text = joined((f"{', '.join(verbs)} {what}" for what, verbs in denied.items()), "; ")
        yield (
            f"grant {rights_text} on the worker, in all namespaces, to the account of {findings.account}: "
            "it has no such rights"
        )


def preemption_warnings(findings: WorkerFindings) -> Iterator[str]:
    """Yield the warning that jobs of this hub cannot preempt there, if the account may not let them."""
    if findings.rights.get(PREEMPTION_RIGHT) is False:
        yield (
            f"grant update {_kind_label(KUEUE, PREEMPTION_RIGHT.rule_resource)} on the worker, in all"
            f" namespaces, to the account of {findings.account}: without it, a job of this hub that must"
            " preempt another there waits for ever (Kueue 0.20, or its gate MultiKueueOrchestratedPreemption)"
        )


def unknowns(findings: WorkerFindings) -> Iterator[str]:
    """Yield the questions that the worker did not answer, and why."""
    for group, answer in findings.unknown_groups.items():
        yield f"the kinds of {group or 'the core group'} are not known: {answer.why}"
    unanswered = [answer for answer in findings.rights.values() if isinstance(answer, Unknown)]
    if unanswered:
        yield f"{len(unanswered)} of {len(findings.rights)} rights are not known: {unanswered[0].why}"
    if isinstance(findings.kueue_version, Unknown):
        yield f"Kueue's version is not known: {findings.kueue_version.why}"


def missing_queues(present: WorkerQueues, wanted: Queues) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the namespaces that the worker lacks, and the LocalQueues that it lacks in the others."""
    shared = wanted.keys() if isinstance(present.namespaces, Unknown) else wanted.keys() & present.namespaces
    absent = sorted(wanted.keys() - shared)
    if isinstance(present.queues, Unknown):
        return absent, []
    names = sorted((namespace, name) for namespace in shared for name in wanted[namespace])
    return absent, [queue for queue in names if queue not in present.queues]


def _queue_warnings(present: WorkerQueues, wanted: Queues) -> Iterator[str]:
    absent, missing = missing_queues(present, wanted)
    if absent:
        yield f"create namespaces {joined(absent)} on the worker: jobs in them cannot run there"
    if missing:
        queues_text = joined(f"{namespace}/{name}" for namespace, name in missing)
        yield f"create LocalQueues {queues_text} on the worker: jobs in them cannot run there"


def _kind_label(group: str, plural: str, version: str = "") -> str:
    """Return the kind as kubectl takes it: plural[.version].group."""
    return ".".join(part for part in (plural, version, group) if part)


def tag_of(image: str) -> str:
    """Return the tag of an image; "" if it has none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def release_of(deployment: Obj) -> str:
    """Return the release in the tag of a Deployment's image, else in its label; "" when neither has one."""
    containers = get_list(deployment, "spec", "template", "spec", "containers")
    managers = [container for container in containers if container.get("name") == "manager"] or containers
    tags = (tag_of(get_str(manager, "image")) for manager in managers)
    return next(filter(parse_release, (*tags, get_str(deployment, "metadata", "labels", LABEL_RELEASE))), "")
