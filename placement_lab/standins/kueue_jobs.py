"""
The decisions of Kueue and the Job controller about Jobs. Pure.

Source: shared/kueue (there "running" means that the worker Job's status was set by hand), and Kubernetes.
"""

import re
from hashlib import sha1
from typing import Final

from placement_ac.kube.client import Object
from placement_lab.standins.multikueue.builders import TTL, pods_of
from placement_lab.standins.multikueue.objects import (
    format_time,
    is_suspended,
    job_is_finished,
    parse_time,
    set_condition,
)

PODS_READY: Final = "PodsReady"
_SLEEP: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def job_status(job: Object, now: float) -> Object | None:
    """Return the Job controller's patch of the status, None if nothing changes.

    All Pods that a Job runs at once become ready and terminate immediately.
    """
    started = bool((job.get("status") or {}).get("startTime"))
    if job_is_finished(job) or is_suspended(job) != started:
        return None
    if started:
        return {"startTime": None, "active": 0, "ready": 0}
    return {"startTime": format_time(now), "active": pods_of(job), "ready": pods_of(job)}


def end_of_sleep(job: Object) -> float | None:
    """Return when a running Job ends whose container sleeps (`sleep 30s`); None if it does not end."""
    started = (job.get("status") or {}).get("startTime")
    container: Object = next(iter(job["spec"]["template"]["spec"].get("containers") or ()), {})
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    slept = _SLEEP.fullmatch(words[1]) if len(words) == 2 and words[0] == "sleep" else None
    if slept is None or not started or job_is_finished(job):
        return None
    return parse_time(started) + float(slept[1]) * _UNITS[slept[2]]


def removed_at(job: Object) -> float | None:
    """Return when a finished Job is removed (`ttlSecondsAfterFinished`); None if it is not."""
    ttl, end = job["spec"].get(TTL), (job.get("status") or {}).get("completionTime")
    return None if ttl is None or not end or not job_is_finished(job) else parse_time(end) + ttl


def completed(job: Object, now: float) -> Object:
    """Return the status of a Job whose Pods have succeeded.

    A real API server refuses Complete without SuccessCriteriaMet (Kubernetes: validation of a Job's status).
    """
    item: Object = {"metadata": {}}
    for condition in ("SuccessCriteriaMet", "Complete"):
        message = "Reached expected number of succeeded pods"
        set_condition(item, condition, True, "CompletionsReached", message, now)
    succeeded = job["spec"].get("completions") or pods_of(job)
    done = {"completionTime": format_time(now), "succeeded": succeeded, "active": 0, "ready": 0}
    return dict(item["status"]) | done


def failed(_: Object, now: float) -> Object:
    """Return the status of a Job whose Pods have failed more often than its backoffLimit."""
    item: Object = {"metadata": {}}
    for condition in ("FailureTarget", "Failed"):
        message = "Job has reached the specified backoff limit"
        set_condition(item, condition, True, "BackoffLimitExceeded", message, now)
    return dict(item["status"]) | {"failed": 1, "active": 0, "ready": 0}


def started_at(job: Object) -> float | None:
    """Return when a Job began that runs now; None if none does."""
    started = (job.get("status") or {}).get("startTime")
    return parse_time(started) if started and not job_is_finished(job) else None


def pods_ready(workload: Object, job: Object | None, now: float) -> Object:
    """Return the condition PodsReady that Kueue sets on the Job's Workload."""
    item: Object = {"metadata": workload["metadata"], "status": {"conditions": []}}
    before = (workload.get("status") or {}).get("conditions") or ()
    item["status"]["conditions"] = [entry for entry in before if entry["type"] == PODS_READY]
    if ((job or {}).get("status") or {}).get("startTime"):
        message = "All pods reached readiness and the workload is running"
        set_condition(item, PODS_READY, True, "Started", message, now)
    else:
        set_condition(item, PODS_READY, False, "WaitForStart", "Not all pods are ready or succeeded", now)
    return dict(item["status"]["conditions"][0])


def workload_name(job: Object) -> str:
    """Return the name of a Job's Workload: job-NAME-HHHHH, where HHHHH is a hash of its uid."""
    metadata = job["metadata"]
    return f"job-{metadata['name']}-{sha1(metadata['uid'].encode()).hexdigest()[:5]}"  # noqa: S324  # a name
