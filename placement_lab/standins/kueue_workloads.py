"""Facts about Kueue's objects that the stand-in for its manager needs. Pure."""

from dataclasses import fields, replace

from placement_ac.core.api.constants import JOB, LABEL_JOB_UID, LABEL_QUEUE, RETRY, Kind
from placement_ac.kube.client import Object
from placement_lab.standins.kueue_jobs import PODS_READY, pods_ready
from placement_lab.standins.multikueue import KueueSettings, WorkloadInputs, has_quota
from placement_lab.standins.multikueue.objects import (
    EVICTED,
    condition,
    format_time,
    is_condition_true,
    is_deleted,
)
from placement_lab.standins.multikueue.objects import checks_of as states_of


def scaled(settings: KueueSettings, speed: float) -> KueueSettings:
    """Return the settings with all their times divided by `speed`."""
    times = [field.name for field in fields(settings) if field.name.endswith("_seconds")]
    return replace(settings, **{name: getattr(settings, name) / speed for name in times})


def config_of(check: Object) -> str:
    """Return the name in the check's parameters, that of its MultiKueueConfig."""
    return str((check["spec"].get("parameters") or {}).get("name", ""))


def as_deleted(last: Object, now: float) -> Object:
    """Return a deleted Workload for the engine: with deletionTimestamp and without finalizers."""
    return last | {"metadata": last["metadata"] | {"deletionTimestamp": format_time(now), "finalizers": []}}


def with_type(item: Object, kind: Kind, version: str) -> Object:
    """Return the object with apiVersion and kind, which items of a list lack."""
    return {"apiVersion": kind.at(version).api_version, "kind": kind.kind} | item


def queue_label(job: Object) -> str:
    """Return the LocalQueue that a Job names, "" if it names none."""
    return str((job["metadata"].get("labels") or {}).get(LABEL_QUEUE, ""))


def owners_of(workload: Object | None) -> list[str]:
    """Return the names of the Jobs that own a Workload."""
    references = ((workload or {}).get("metadata") or {}).get("ownerReferences") or ()
    return [reference["name"] for reference in references if reference["kind"] == JOB.kind]


def owned_by(copy: Object, job: Object) -> bool:
    """Return whether a worker's Job is the owner of a copy."""
    references = copy["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == job["metadata"]["uid"] for reference in references)


def ownership(copy: Object, job: Object) -> Object:
    """Return the metadata by which the worker's Kueue makes its Job the owner of a copy.

    Source: Kueue's `EnsurePrebuiltWorkloadOwnership`. So Kubernetes deletes the copy with the Job.
    """
    metadata = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": JOB.kind, "name": metadata["name"], "uid": metadata["uid"]}
    labels = (copy["metadata"].get("labels") or {}) | {LABEL_JOB_UID: metadata["uid"]}
    return {"labels": labels, "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}]}


def has_quota_in(queue: str, workload: Object) -> bool:
    """Return whether the Workload has quota in this ClusterQueue."""
    admission = (workload.get("status") or {}).get("admission") or {}
    return has_quota(workload) and admission.get("clusterQueue") == queue


def is_retried(workload: Object) -> bool:
    """Return whether the Workload is evicted, or a check asks for that."""
    return is_condition_true(workload, EVICTED) or any(s["state"] == RETRY for s in states_of(workload))


def pods_ready_is_outdated(inputs: WorkloadInputs) -> bool:
    """Return whether PodsReady differs from the hub's Job; False before Kueue has set the checks."""
    if is_deleted(inputs.workload) or not states_of(inputs.workload):
        return False
    wanted, present = (
        pods_ready(inputs.workload, inputs.job, inputs.now),
        condition(inputs.workload, PODS_READY),
    )
    return present is None or present["reason"] != wanted["reason"]
