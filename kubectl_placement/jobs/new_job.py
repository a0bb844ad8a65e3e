"""
Where a job of a manifest would go, if it were created now and had quota.

Pure. The job becomes a Workload on a copy of the hub, as Kueue would make it; the controller's own rules
decide on it. Each job of the manifests is judged alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.dump_files import kind_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.adjusted import adjusted, not_adjusted, runtime_class_of, without_requests
from kubectl_placement.jobs.choice import PlacementChoice, choices
from kubectl_placement.jobs.podsets import admission, covered, job_podset, not_covered, not_on_hub
from kubectl_placement.jobs.queue_path import QueuePath, queue_path
from kubectl_placement.jobs.worker_quota import (
    WorkloadsByWorker,
    claims_note,
    merged,
    quota_notes,
    workers_to_ask,
)
from placement_ac.core.api.constants import (
    JOB,
    KUEUE_VERSIONS,
    LABEL_MAX_SECONDS,
    LABEL_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONTROLLER,
    PENDING,
    READY,
    WORKLOAD,
)
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str
from placement_ac.core.api.job_spec import JOB_ANNOTATIONS
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.ignored import ignored

DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of jobs without the label, if their namespace has it (Kueue: LocalQueueDefaulting)."""
DEFAULT_NAMESPACE: Final = "default"
MANAGED_BY_KUEUE: Final = ("", MULTIKUEUE_CONTROLLER, "kubernetes.io/job-controller")
"""The values of a Job's `managedBy` with which MultiKueue sends it (Kueue: `IsJobManagedByKueue`)."""
_INTEGER: Final = re.compile(r"\+?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job of the manifests, and where it would go."""

    kind: str
    namespace: str
    name: str
    """With `…` at the end if it is generated."""
    queue: str
    """The LocalQueue; "" if it has none."""
    cluster_queue: str
    placements: tuple[PlacementChoice, ...]
    """Empty if `problem` says why no preview is possible."""
    problem: str
    notes: tuple[str, ...]


def is_job(manifest: Object) -> bool:
    """Whether a manifest is a Job or a Workload."""
    api = manifest.get("apiVersion"), manifest.get("kind")
    return api == ("batch/v1", "Job") or kind_of(manifest)[0] == WORKLOAD


def new_job(view: HubView, manifest: Object) -> NewJob:
    """Return where the job of a manifest would go on a hub."""
    job, metadata = _queued(view, manifest), manifest["metadata"]
    submitted = None if job.path.problem else _submitted(view, manifest, job)
    entries = choices(*submitted) if submitted else ()
    return NewJob(
        kind=manifest["kind"],
        namespace=job.namespace,
        name=metadata.get("name") or f"{metadata['generateName']}…",
        queue=job.path.queue,
        cluster_queue=job.path.cluster_queue,
        placements=entries,
        problem=job.path.problem,
        notes=(
            *_unknown(view),
            *not_covered(view, job.path.cluster_queue, job.spec),
            *_not_adjusted(view, job),
            *_notes(manifest),
            *_managed_by(manifest),
            *(not_on_hub(view, submitted[1]) if submitted else ()),
            *(entry.profile_problem for entry in entries if entry.profile_problem),
            *quota_notes(view, entries),
            *(claims_note(submitted[1]) if submitted else ()),
            *(
                ignored(submitted[1].job, taints=bool(view.settings.job_taints))
                if submitted and any(entry.dispatcher for entry in entries)
                else ()
            ),
        ),
    )


def workers_of_jobs(view: HubView, manifests: Iterable[Object]) -> WorkloadsByWorker:
    """Return the workers whose quota matters to the jobs of manifests."""
    queued = ((manifest, _queued(view, manifest)) for manifest in manifests if is_job(manifest))
    return merged(workers_to_ask(*_submitted(view, raw, job)) for raw, job in queued if not job.path.problem)


class _QueuedJob(NamedTuple):
    """`spec`: of its Workload, with what Kueue adds to the requests of the podSets as they are `given`."""

    namespace: str
    spec: Object
    path: QueuePath
    given: Sequence[Obj]


def _queued(view: HubView, manifest: Object) -> _QueuedJob:
    is_workload = manifest["kind"] == WORKLOAD.kind
    namespace = manifest["metadata"].get("namespace") or DEFAULT_NAMESPACE
    spec = get_dict(manifest, "spec") if is_workload else _workload_spec(view, manifest, namespace)
    queue = get_str(spec, "queueName")
    path = queue_path(view, namespace, queue) if queue else QueuePath("", problem=_without_queue(is_workload))
    if not is_workload and (why := view.unmanaged.get(namespace)):
        path = QueuePath(queue, problem=why)
    podsets = get_list(spec, "podSets")
    return _QueuedJob(
        namespace,
        {**spec, "podSets": [adjusted(view.dump, namespace, one) for one in podsets]},
        path,
        podsets,
    )


def _without_queue(is_workload: bool) -> str:
    where = "spec.queueName" if is_workload else f"the label {LABEL_QUEUE}"
    return f"name a LocalQueue in {where}: without it, Kueue does not manage the job"


def needs_defaults(manifest: Object) -> tuple[bool, frozenset[str]]:
    """Return whether LimitRanges may add to the requests of a job, and the RuntimeClasses that do."""
    is_workload = manifest["kind"] == WORKLOAD.kind
    podsets = get_list(manifest, "spec", "podSets") if is_workload else [job_podset(manifest)]
    classes = frozenset(filter(None, map(runtime_class_of, podsets)))
    return any(map(without_requests, podsets)), classes


def _not_adjusted(view: HubView, job: _QueuedJob) -> tuple[str, ...]:
    names = covered(view, job.path.cluster_queue)
    return tuple(dict.fromkeys(note for one in job.given for note in not_adjusted(view.dump, one, names)))


def _unknown(view: HubView) -> Iterator[str]:
    if why := view.dump.why_unknown(WORKLOAD):
        yield f"the jobs on the clusters do not count: Workloads are {why}"


def _notes(job: Object) -> Iterator[str]:
    annotations = {} if job["kind"] == WORKLOAD.kind else get_dict(job, "metadata", "annotations")
    for name in JOB_ANNOTATIONS:
        if name in annotations:
            yield f"move the annotation {name} to the Pod template: Kueue does not copy it from the Job"


def _managed_by(job: Object) -> Iterator[str]:
    """Yield a note on a Job that is another controller's: Kueue's webhook sets the field for the others."""
    if job["kind"] == JOB.kind and get_str(job, "spec", "managedBy") not in MANAGED_BY_KUEUE:
        yield f"set spec.managedBy to {MULTIKUEUE_CONTROLLER}, or remove it: else Kueue rejects the Job"


def _workload_spec(view: HubView, job: Object, namespace: str) -> Object:
    """Return the spec of the Workload that Kueue makes for a Job."""
    queue = get_str(job, "metadata", "labels", LABEL_QUEUE)
    if not queue and view.dump.find(LOCAL_QUEUE, DEFAULT_QUEUE, namespace):
        queue = DEFAULT_QUEUE
    seconds = get_str(job, "metadata", "labels", LABEL_MAX_SECONDS)
    limit = {"maximumExecutionTimeSeconds": int(seconds)} if _INTEGER.fullmatch(seconds) else {}
    return {"active": True, "queueName": queue, "podSets": [job_podset(job)], **limit}


def _submitted(view: HubView, manifest: Object, job: _QueuedJob) -> tuple[HubView, Workload]:
    """Return a copy of the hub with the job, on which it has quota and waits for a cluster."""
    namespace = job.namespace
    since = {"lastTransitionTime": f"{view.now:%Y-%m-%dT%H:%M:%SZ}"}
    multikueue = {check.meta.name for check in view.checks if check.multikueue}
    states = [
        {"name": name, "state": PENDING if name in multikueue else READY, "message": ""} | since
        for name in job.path.checks
    ]
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""} | since
    given = manifest["metadata"]
    name = f"new-{given.get('name') or given['generateName']}"
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid of the new Workload {namespace}/{name}",
    }
    if manifest["kind"] == WORKLOAD.kind:
        kept = ("labels", "annotations", "ownerReferences")
        metadata |= {key: given[key] for key in kept if given.get(key)}
    else:
        owner = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
        metadata["ownerReferences"] = [owner | {"name": given.get("name") or given["generateName"]}]
    raw: Object = {
        "apiVersion": WORKLOAD.at(KUEUE_VERSIONS[0]).api_version,
        "kind": WORKLOAD.kind,
        "metadata": metadata,
        "spec": job.spec | {"active": True},
        "status": {
            "conditions": [reserved],
            "admission": admission(view, job.path.cluster_queue, job.spec),
            "admissionChecks": states,
        },
    }
    after, _ = view.with_changes({WORKLOAD: {(namespace, name): raw}})
    return after, workload_with_job(raw)
