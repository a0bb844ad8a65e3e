"""
State transitions of a Workload, on a hub and on a worker.

Each function changes its argument, which must be the caller's copy. Source: Kueue's
pkg/workload and pkg/workload/evict at the commit of the recordings, and shared/kueue.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from placement_ac.core.api.constants import PENDING, READY, RETRY
from placement_lab.standins.multikueue.objects import (
    ADMITTED,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REQUEUED,
    Obj,
    checks_of,
    condition,
    condition_field,
    format_time,
    is_condition_true,
    parse_time,
    set_condition,
)

BY_CHECK: Final = "AdmissionCheck"
BY_PREEMPTION: Final = "Preempted"
BY_PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"
BY_DEACTIVATION: Final = "Deactivated"
PAST_SECONDS: Final = "accumulatedPastExecutionTimeSeconds"
NO_FLAVORS: Final[Mapping[str, Obj]] = MappingProxyType({})


def evict(workload: Obj, reason: str, message: str, now: float) -> None:
    """Evict: clear nominations and cluster, and reset every check to Pending."""
    set_condition(workload, EVICTED, True, reason, message, now)
    status = workload["status"]
    status.pop("clusterName", None)
    status.pop("nominatedClusterNames", None)
    if checks := checks_of(workload):
        status["admissionChecks"] = [_reset(check, now) for check in checks]


def _reset(check: Obj, now: float) -> Obj:
    if check["state"] == PENDING:
        return check
    after = {
        "name": check["name"],
        "state": PENDING,
        "message": f"Reset to Pending after eviction. Previously: {check['state']}",
        "lastTransitionTime": format_time(now),
    }
    if "requeueAfterSeconds" in check:
        after["requeueAfterSeconds"] = check["requeueAfterSeconds"]
    if check["state"] == RETRY:
        after["retryCount"] = check.get("retryCount", 0) + 1
    return after


def reserve(workload: Obj, queue: str, now: float, flavors: Mapping[str, Obj] = NO_FLAVORS) -> None:
    """Reserve quota in the ClusterQueue `queue`, and end an earlier eviction.

    `flavors`: podSet → `flavors` and `resourceUsage` of its assignment.
    """
    pods = workload["spec"].get("podSets") or [{"name": "main", "count": 1}]
    assignments: list[Obj] = [{"name": pod.get("name", "main"), "count": pod["count"]} for pod in pods]
    assignments = [assignment | flavors.get(assignment["name"], {}) for assignment in assignments]
    workload.setdefault("status", {})["admission"] = {
        "clusterQueue": queue,
        "podSetAssignments": assignments,
    }
    message = f"Quota reserved in ClusterQueue {queue}"
    set_condition(workload, QUOTA_RESERVED, True, "QuotaReserved", message, now)
    for kind in (EVICTED, "Preempted"):
        if is_condition_true(workload, kind):
            set_condition(
                workload, kind, False, "QuotaReserved", f"Previously: {condition_field(workload, kind)}", now
            )


def release_quota(workload: Obj, reason: str, message: str, now: float) -> None:
    """Release the quota, or set the reason why there is none; the Workload is no longer admitted."""
    set_condition(workload, QUOTA_RESERVED, False, reason, message, now)
    workload["status"].pop("admission", None)
    sync_admitted(workload, now)


def sync_admitted(workload: Obj, now: float) -> None:
    """Set condition Admitted according to the quota and the checks."""
    if condition(workload, QUOTA_RESERVED) is None and condition(workload, ADMITTED) is None:
        return
    was_admitted = is_condition_true(workload, ADMITTED)
    since = condition_field(workload, ADMITTED, "lastTransitionTime")
    if not is_condition_true(workload, QUOTA_RESERVED):
        set_condition(workload, ADMITTED, False, "NoReservation", "The workload has no reservation", now)
    elif any(check["state"] != READY for check in checks_of(workload)):
        message = "The workload has not all checks ready"
        set_condition(workload, ADMITTED, False, "UnsatisfiedAdmissionChecks", message, now)
    else:
        set_condition(workload, ADMITTED, True, "Admitted", "The workload is admitted", now)
    if was_admitted and not is_condition_true(workload, ADMITTED):
        past = workload["status"].get(PAST_SECONDS, 0)
        workload["status"][PAST_SECONDS] = past + int(now - parse_time(since))


def requeue(workload: Obj, reason: str, message: str, now: float, *, value: bool = True) -> None:
    set_condition(workload, REQUEUED, value, reason, message, now)


def clear_after_eviction(workload: Obj, now: float) -> None:
    """Release the quota of an evicted Workload whose Job has stopped."""
    reason, message = condition_field(workload, EVICTED, "reason"), condition_field(workload, EVICTED)
    requeue(workload, reason, message, now, value=reason == BY_PREEMPTION)
    release_quota(workload, "PendingEvaluation", message, now)


def finish(workload: Obj, reason: str, message: str, now: float) -> None:
    set_condition(workload, FINISHED, True, reason, message, now)
