"""
Find the Workload of a job by the words on the command line: NAME, TYPE/NAME or TYPE NAME. Pure.

TYPE is any name that kubectl accepts for the kind of the job (`job`, `jobs.batch`,
`pytorchjob.kubeflow.org`), or for a Workload. Short names are those of the published CRDs.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.kind_names import names_of_kind
from placement_ac.core.api.constants import LABEL_QUEUE, WORKLOAD
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.fields import Obj, get_list, get_str, key_of
from placement_ac.core.api.text import did_you_mean, enumeration
from placement_ac.core.inputs.rights import parse_external

WORKLOAD_TYPES: Final = frozenset(names_of_kind(WORKLOAD, "workload"))
SHORT_NAMES: Final = {
    ("", "Pod"): ("po",),
    ("apps", "Deployment"): ("deploy",),
    ("apps", "StatefulSet"): ("sts",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("lws",),
    ("tekton.dev", "PipelineRun"): ("pr", "prs"),
}
"""The `shortNames` of kinds that Kueue manages, by group and kind."""


class SubjectNotFound(PlacementAcError):
    """The object does not exist, is not ours, or its name is ambiguous."""


class JobId(NamedTuple):
    """The identity of a job: that of the owner of a Workload, or of the Workload itself if it has none."""

    namespace: str
    api_version: str
    kind: str
    name: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def type(self) -> str:
        """The type as kubectl takes it without doubt: `job.batch`, `pod`."""
        return ".".join(filter(None, (self.kind.lower(), self.group)))


def find_workloads(workloads: Iterable[Object], words: Sequence[str], namespace: str) -> Object:
    """Return the Workload of the job that the words name, in `namespace` ("": in any).

    If a job had several: the unfinished one, else the newest; of an elastic job that grows, the slice that
    runs, until the one that replaces it does. A bare NAME is that of a job, else of a
    Workload. Raises SubjectNotFound, with what to type if the name is ambiguous.
    """
    there = [workload for workload in workloads if namespace in ("", key_of(workload)[0])]
    type_, name = _split(words)
    by_job: dict[JobId, list[Object]] = {}
    for workload in there:
        for job in jobs_of(workload):
            if job.name == name and (not type_ or type_ in type_names(job)):
                by_job.setdefault(job, []).append(workload)
    if not by_job and type_ in ("", *WORKLOAD_TYPES):
        by_job = {
            JobId(key_of(obj)[0], _WORKLOAD_VERSION, WORKLOAD.kind, name): [obj]
            for obj in there
            if key_of(obj)[1] == name
        }
    if not by_job:
        raise _not_found(there, type_, name, namespace)
    if len(by_job) > 1:
        raise SubjectNotFound(_ambiguous(name, [*by_job]))
    [found] = by_job.values()
    return max(found, key=_rank)


_NO_WORKLOAD: Final = f"; does it have the label {LABEL_QUEUE}?"
"""Without it, Kueue makes no Workload of a job."""
_WORKLOAD_VERSION: Final = WORKLOAD.at(WORKLOAD.versions[0]).api_version


def jobs_of(workload: Object) -> tuple[JobId, ...]:
    """Return the jobs of a Workload: one, or the Pods of a group."""
    return tuple(
        _job_id(key_of(workload)[0], owner) for owner in get_list(workload, "metadata", "ownerReferences")
    )


def _job_id(namespace: str, owner: Obj) -> JobId:
    return JobId(namespace, *(get_str(owner, field) for field in ("apiVersion", "kind", "name")))


def type_names(job: JobId) -> frozenset[str]:
    """Return every name that kubectl accepts for the kind of a job, in lower case."""
    version = job.api_version.rpartition("/")[2]
    known = parse_external(f"{job.kind}.{version}.{job.group or 'core'}")
    singular = job.kind.lower()
    plural = f"{singular}s" if isinstance(known, str) else known.plural
    names = {singular, plural, *SHORT_NAMES.get((job.group, job.kind), ())}
    if job.group:
        names |= {f"{name}{part}.{job.group}" for name in (singular, plural) for part in ("", f".{version}")}
    return frozenset(names)


def _split(words: Sequence[str]) -> tuple[str, str]:
    """Return the type in lower case ("": none), and the name."""
    if len(words) > 1:
        return words[0].lower(), words[1]
    type_, slash, name = words[0].partition("/")
    return (type_.lower(), name) if slash else ("", type_)


def _rank(workload: Object) -> tuple[bool, bool, str]:
    finished, admitted = (
        condition_of(workload, kind).get("status") == "True" for kind in ("Finished", "Admitted")
    )
    return not finished, admitted and not finished, get_str(workload, "metadata", "creationTimestamp")


def _ambiguous(name: str, jobs: Sequence[JobId]) -> str:
    """Return the words to type for each of these jobs of one name."""
    several = len({job.namespace for job in jobs}) > 1
    kinds = {job.type for job in jobs}
    words = sorted(
        (f"-n {job.namespace} " if several else "") + (f"{job.type}/{name}" if len(kinds) > 1 else name)
        for job in jobs
    )
    where = f"exists in {len({job.namespace for job in jobs})} namespaces" if several else "is ambiguous"
    return f"use {enumeration([f'`{word}`' for word in words], 'or')}: {name} {where}"


def _job_of_pod(name: str, jobs: Iterable[JobId]) -> JobId | None:
    """Return the job whose controller may have given a Pod this name: `train-0-x7k2p` for `train`."""
    candidates = (job for job in jobs if name.startswith(f"{job.name}-"))
    return max(candidates, key=lambda job: (len(job.name), job), default=None)


_POD_TYPES: Final = ("pod", "pods", "po")


def _not_found(there: Sequence[Object], type_: str, name: str, namespace: str) -> SubjectNotFound:
    jobs = {job for workload in there for job in jobs_of(workload)}
    types = {word for job in jobs for word in type_names(job)} | WORKLOAD_TYPES
    where = f" in namespace {namespace}" if namespace else ""
    if "/" in type_ or type_ in {job.name for job in jobs} - types:
        return SubjectNotFound(f'name one job, as NAME, TYPE/NAME or TYPE NAME: "{type_}" is no type')
    if (owner := _job_of_pod(name, jobs)) and type_ in ("", *_POD_TYPES):
        return SubjectNotFound(
            f'use `{owner.type}/{owner.name}`: "{name}"{where} is no job, but perhaps a Pod of it'
        )
    if not type_:
        names = {job.name for job in jobs} | {key_of(workload)[1] for workload in there}
        return SubjectNotFound(f'no job "{name}" found{where}{did_you_mean(name, names) or _NO_WORKLOAD}')
    if type_ in WORKLOAD_TYPES:
        names = {key_of(workload)[1] for workload in there}
    else:
        names = {job.name for job in jobs if type_ in type_names(job)}
    meant = did_you_mean(name, names) if type_ in types else did_you_mean(type_, types)
    meant = meant or ("" if type_ in WORKLOAD_TYPES else _NO_WORKLOAD)
    return SubjectNotFound(f'no Workload of {type_} "{name}" found{where}{meant}')
