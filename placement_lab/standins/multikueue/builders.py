"""
The objects that Kueue creates: the Workload of a Job, its copy on a worker, and the worker's Job.

Pure. The API server adds uid, resourceVersion, creationTimestamp and generation.
"""

from collections.abc import Mapping
from typing import Any, Final

from placement_ac.core.api.constants import (
    ANNOTATION_ORIGIN_UID,
    JOB,
    LABEL_JOB_UID,
    LABEL_MAX_SECONDS,
    LABEL_ORIGIN,
    LABEL_QUEUE,
    MULTIKUEUE_CONTROLLER,
    PREBUILT_WORKLOAD,
)
from placement_lab.standins.multikueue.objects import Obj, deep_copy

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
TTL: Final = "ttlSecondsAfterFinished"
_NAMELESS: Final = "LeaderWorkerSet"
"""The kind of a copy that names no Workload, because it has one for each replica."""
_WITH_UID: Final = (_NAMELESS, "StatefulSet")
"""The kinds of copies that name the uid of the original."""


_JOB_LABELS: Final = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")


def hub_job(name: str, namespace: str, queue: str, requests: Mapping[str, str] | None = None) -> Obj:
    """Return a user's Job after Kueue's webhook: suspended, and managed by MultiKueue.

    `requests`: of its Pod, by default 1 CPU. The limits are the same: an API server refuses a Job that
    requests an extended resource, such as a GPU, without them.
    """
    amounts = dict(requests or {"cpu": "1"})
    resources = {"requests": amounts, "limits": dict(amounts)}
    container = {"name": "main", "image": "registry.example/job", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL_QUEUE: queue}},
        "spec": {
            "suspend": True,
            "managedBy": MULTIKUEUE_CONTROLLER,
            "parallelism": 1,
            "completions": 1,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        },
    }


def pods_of(job: Mapping[str, Any]) -> int:
    """Return the number of Pods that a Job runs at once (Kueue: `podsCount`)."""
    parallelism, completions = (job["spec"].get(field) for field in ("parallelism", "completions"))
    count = 1 if parallelism is None else int(parallelism)
    return count if completions is None else min(count, completions)


def workload_of(job: Obj) -> Obj:
    """Return the Workload that Kueue creates for a Job of the hub."""
    metadata = job["metadata"]
    limit = metadata["labels"].get(LABEL_MAX_SECONDS)
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": f"job-{metadata['name']}",
            "namespace": metadata["namespace"],
            "labels": {LABEL_JOB_UID: metadata.get("uid", "")},
            "ownerReferences": [owner],
        },
        "spec": {
            **({"maximumExecutionTimeSeconds": int(limit)} if limit else {}),
            "active": True,
            "queueName": metadata["labels"][LABEL_QUEUE],
            "priority": 0,
            "podSets": [
                {
                    "name": "main",
                    "count": pods_of(job),
                    "template": _without_job_labels(job["spec"]["template"]),
                }
            ],
        },
    }


def copy_of(workload: Mapping[str, Any], origin: str) -> Obj:
    """Return the copy of a Workload that MultiKueue creates on a worker: same name and spec, no owner."""
    metadata = _metadata(workload, origin)
    metadata["labels"].pop(LABEL_JOB_UID, None)
    spec = {field: value for field, value in workload["spec"].items() if field != "preemptionGates"}
    return {
        "apiVersion": workload["apiVersion"],
        "kind": "Workload",
        "metadata": metadata,
        "spec": deep_copy(spec),
    }


def worker_job(
    job: Mapping[str, Any], workload: Mapping[str, Any], origin: str, *, clears_ttl: bool = False
) -> Obj:
    """Return the Job that MultiKueue creates on the worker: suspended.

    It names its Workload as Kueue does from 0.18 on (SetMultiKueueMeta, and the adapters of these kinds).
    """
    metadata = _metadata(job, origin)
    annotations = metadata.setdefault("annotations", {})
    if job["kind"] != _NAMELESS:
        annotations[PREBUILT_WORKLOAD] = workload["metadata"]["name"]
    if job["kind"] in _WITH_UID:
        annotations[ANNOTATION_ORIGIN_UID] = job["metadata"]["uid"]
    left_out = ("managedBy", "selector", *([TTL] if clears_ttl else ()))
    spec = {field: value for field, value in job["spec"].items() if field not in left_out}
    is_job = job["kind"] == JOB.kind
    template = {"template": _without_job_labels(spec["template"])} if is_job else {}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": metadata,
        "spec": deep_copy(spec) | {"suspend": True, **template},
    }


def _without_job_labels(template: Mapping[str, Any]) -> Obj:
    """Return a Pod template without labels that an API server put on for its Job (Kueue: `cleanLabels`)."""
    copied = deep_copy(template)
    for name in _JOB_LABELS:
        (copied.get("metadata", {}).get("labels") or {}).pop(name, None)
    return copied


def _metadata(item: Mapping[str, Any], origin: str) -> Obj:
    metadata = item["metadata"]
    labels = dict(metadata.get("labels") or {}) | {LABEL_ORIGIN: origin}
    made: Obj = {"name": metadata["name"], "namespace": metadata["namespace"], "labels": labels}
    if metadata.get("annotations"):
        made["annotations"] = dict(metadata["annotations"])
    return made
