"""
Kueue's controllers of a hub's Workload without MultiKueue: queue, quota, checks, eviction, and the hub's Job.

Pure. Three controllers: `reconcile_workload`, `reconcile_job` and `schedule`. Each step makes one write, as
in Kueue, so that other controllers see the states in between. Source: Kueue's workload_controller.go,
jobframework/reconciler.go, scheduler.go, and shared/kueue.
"""

from collections.abc import Callable
from typing import Final

from placement_ac.core.api.constants import PENDING, RETRY
from placement_lab.standins.multikueue import queues
from placement_lab.standins.multikueue import transitions as step
from placement_lab.standins.multikueue.inputs import WorkloadInputs
from placement_lab.standins.multikueue.objects import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REJECTED,
    REQUEUED,
    Obj,
    checks_of,
    condition,
    condition_field,
    deep_copy,
    format_time,
    is_active,
    is_condition_true,
    is_deleted,
    is_suspended,
    job_is_busy,
    parse_time,
    remove_condition,
    set_condition,
)
from placement_lab.standins.multikueue.operations import (
    NO_OPERATIONS,
    Operation,
    ReconcileResult,
    RemoveFinalizer,
    SetActive,
    SuspendJob,
    WriteStatus,
)


def reconcile_workload(inputs: WorkloadInputs) -> ReconcileResult:
    """Return the next step of Kueue's Workload controller."""
    if is_deleted(inputs.workload) or is_condition_true(inputs.workload, FINISHED):
        return NO_OPERATIONS
    for rule in RULES:
        decision = rule(inputs)
        if decision is not None:
            return decision
    return NO_OPERATIONS


def _write(workload: Obj) -> ReconcileResult:
    return ReconcileResult((WriteStatus(workload["status"]),))


def _check_requests_delay(inputs: WorkloadInputs) -> ReconcileResult | None:
    """`requeueAfterSeconds` of a check in Retry (second-check-unanswered-then-ready.log, 236.88)."""
    until = max((_waits_until(check) for check in checks_of(inputs.workload)), default=0.0)
    before = _requeue_at(inputs.workload)
    if until <= inputs.now or (before is not None and before >= until):
        return None
    workload = deep_copy(inputs.workload)
    state = workload["status"].get("requeueState") or {}
    workload["status"]["requeueState"] = state | {"requeueAt": format_time(until)}
    return _write(workload)


def _waits_until(check: Obj) -> float:
    if check["state"] != RETRY or "requeueAfterSeconds" not in check or "lastTransitionTime" not in check:
        return 0.0
    return parse_time(check["lastTransitionTime"]) + float(check["requeueAfterSeconds"])


def _requeue_at(workload: Obj) -> float | None:
    state = (workload.get("status") or {}).get("requeueState") or {}
    return parse_time(state["requeueAt"]) if "requeueAt" in state else None


def _deactivation_is_requested(inputs: WorkloadInputs) -> ReconcileResult | None:
    if is_active(inputs.workload) and is_condition_true(inputs.workload, DEACTIVATION_TARGET):
        return ReconcileResult((SetActive(False),))
    return None


def _requeue_is_delayed(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Wait until `requeueAt`, even with the eviction (second-check-…log, 236.88 to 241.11)."""
    at = _requeue_at(inputs.workload)
    if at is None or not is_active(inputs.workload):
        return None
    if at > inputs.now:
        return ReconcileResult(requeue_after=at - inputs.now)
    if is_condition_true(inputs.workload, QUOTA_RESERVED):
        return None
    workload = deep_copy(inputs.workload)
    del workload["status"]["requeueState"]["requeueAt"]
    if not workload["status"]["requeueState"]:
        del workload["status"]["requeueState"]
    return _write(workload)


def _requeue_is_allowed(inputs: WorkloadInputs) -> ReconcileResult | None:
    after = queues.requeued(inputs.workload, inputs.queue, inputs.now)
    return _write(after) if after and is_active(inputs.workload) else None


def _workload_is_deactivated(inputs: WorkloadInputs) -> ReconcileResult | None:
    if is_active(inputs.workload) or is_condition_true(inputs.workload, EVICTED):
        return None
    workload = deep_copy(inputs.workload)
    target = condition(workload, DEACTIVATION_TARGET)
    reason, message = step.BY_DEACTIVATION, "The workload is deactivated"
    if target:
        reason, message = f"{reason}DueTo{target['reason']}", f"{message} due to {target['message']}"
    remove_condition(workload, DEACTIVATION_TARGET)
    workload.setdefault("status", {}).pop("requeueState", None)
    step.evict(workload, reason, message, inputs.now)
    return _write(workload)


def _checks_differ_from_queue(inputs: WorkloadInputs) -> ReconcileResult | None:
    has = [check["name"] for check in checks_of(inputs.workload)]
    if set(has) == set(inputs.queue.checks):
        return None
    workload = deep_copy(inputs.workload)
    kept = [check for check in checks_of(workload) if check["name"] in inputs.queue.checks]
    fresh = [
        {"name": name, "state": PENDING, "message": "", "lastTransitionTime": format_time(inputs.now)}
        for name in inputs.queue.checks
        if name not in has
    ]
    workload.setdefault("status", {})["admissionChecks"] = kept + fresh
    return _write(workload)


def _conditions_are_outdated(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Update the conditions. An admitted Workload stays admitted until it is evicted."""
    if is_condition_true(inputs.workload, ADMITTED):
        return None
    workload = deep_copy(inputs.workload)
    workload.setdefault("status", {})
    if not is_condition_true(workload, QUOTA_RESERVED):
        _explain_missing_quota(workload, inputs)
    step.sync_admitted(workload, inputs.now)
    return _write(workload) if workload["status"] != (inputs.workload.get("status") or {}) else None


def _explain_missing_quota(workload: Obj, inputs: WorkloadInputs) -> None:
    if not is_active(workload):
        message = "The workload is deactivated"
        set_condition(workload, QUOTA_RESERVED, False, "Deactivated", message, inputs.now)
    elif blocked := queues.blocker(workload, inputs.queue):
        set_condition(workload, QUOTA_RESERVED, False, *blocked, inputs.now)
    elif inputs.queue.lacks and condition_field(workload, REQUEUED, "status") != "False":
        set_condition(workload, QUOTA_RESERVED, False, "Pending", inputs.queue.lacks, inputs.now)


def _check_rejects_or_retries(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Deactivate after Rejected; evict after Retry, which resets all checks to Pending."""
    if not is_condition_true(inputs.workload, QUOTA_RESERVED) or is_condition_true(inputs.workload, EVICTED):
        return None
    rejected, retried = (_checks_in_state(inputs.workload, state) for state in (REJECTED, RETRY))
    if not rejected and not retried:
        return None
    workload = deep_copy(inputs.workload)
    if rejected:
        set_condition(workload, DEACTIVATION_TARGET, True, step.BY_CHECK, rejected, inputs.now)
    else:
        step.evict(workload, step.BY_CHECK, f"Evicted due to {retried}", inputs.now)
    return _write(workload)


def _checks_in_state(workload: Obj, state: str) -> str:
    checks = sorted(
        (check for check in checks_of(workload) if check["state"] == state), key=lambda check: check["name"]
    )
    parts = [
        f'"{check["name"]}"' + (f" ({check['message']})" if check.get("message") else "") for check in checks
    ]
    noun = "AdmissionChecks" if len(parts) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {'; '.join(parts)}" if parts else ""


def _queue_is_stopped(inputs: WorkloadInputs) -> ReconcileResult | None:
    after = queues.stopped(inputs.workload, inputs.queue, inputs.now)
    return _write(after) if after else None


def _runs_too_long(inputs: WorkloadInputs) -> ReconcileResult | None:
    left = queues.seconds_left(inputs.workload, inputs.now)
    if left is None or is_condition_true(inputs.workload, DEACTIVATION_TARGET):
        return None
    if left > 0:
        return ReconcileResult(requeue_after=left)
    return _write(queues.too_long(inputs.workload, inputs.now))


# The order is Kueue's: a check's delay comes first, evictions last.
RULES: Final[tuple[Callable[[WorkloadInputs], ReconcileResult | None], ...]] = (
    _check_requests_delay,
    _deactivation_is_requested,
    _requeue_is_delayed,
    _requeue_is_allowed,
    _workload_is_deactivated,
    _checks_differ_from_queue,
    _conditions_are_outdated,
    _check_rejects_or_retries,
    _queue_is_stopped,
    _runs_too_long,
)


def reconcile_job(inputs: WorkloadInputs) -> ReconcileResult:
    """Return the next step of Kueue's Job reconciler on the hub: suspend, start, or release quota."""
    workload = inputs.workload
    if is_deleted(workload):
        return (
            ReconcileResult((RemoveFinalizer(),)) if workload["metadata"].get("finalizers") else NO_OPERATIONS
        )
    if is_condition_true(workload, FINISHED):
        return NO_OPERATIONS
    if is_condition_true(workload, EVICTED):
        return ReconcileResult(tuple(_after_eviction(inputs)))
    suspend = not is_condition_true(workload, ADMITTED)
    if inputs.job and is_suspended(inputs.job) != suspend:
        return ReconcileResult((SuspendJob(suspend),))
    return NO_OPERATIONS


def _after_eviction(inputs: WorkloadInputs) -> list[Operation]:
    """The quota stays while the hub's Job counts active Pods (cluster-unlisted-while-running.log, 12.97)."""
    done: list[Operation] = []
    if inputs.job and not is_suspended(inputs.job):
        done.append(SuspendJob(True))
    if is_condition_true(inputs.workload, QUOTA_RESERVED) and not job_is_busy(inputs.job):
        workload = deep_copy(inputs.workload)
        step.clear_after_eviction(workload, inputs.now)
        done.append(WriteStatus(workload["status"]))
    return done


def schedule(inputs: WorkloadInputs) -> ReconcileResult:
    """Return the next step of Kueue's scheduler: reserve quota if there is any."""
    workload, at = inputs.workload, _requeue_at(inputs.workload)
    if is_deleted(workload) or is_condition_true(workload, FINISHED) or not is_active(workload):
        return NO_OPERATIONS
    if (
        is_condition_true(workload, QUOTA_RESERVED)
        or condition_field(workload, REQUEUED, "status") == "False"
    ):
        return NO_OPERATIONS
    if queues.blocker(workload, inputs.queue) or not inputs.queue.has_room:
        return NO_OPERATIONS
    if at is not None and at > inputs.now:
        return NO_OPERATIONS
    after = deep_copy(workload)
    step.reserve(after, inputs.queue.name, inputs.now, inputs.queue.flavors)
    if {check["name"] for check in checks_of(after)} == set(inputs.queue.checks):
        step.sync_admitted(after, inputs.now)
    return _write(after)
