"""
The decisions of a worker's Kueue about a copy and its Job.

Pure. A copy requests quota with or without a Job; the Job starts when the copy is admitted. Simplified: the
steps of a deactivation (recorded 30 ms apart) are one step here.
"""

from placement_lab.standins.multikueue import queues
from placement_lab.standins.multikueue import transitions as step
from placement_lab.standins.multikueue.inputs import QueueState
from placement_lab.standins.multikueue.objects import (
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REQUEUED,
    Obj,
    condition,
    condition_field,
    deep_copy,
    is_active,
    is_condition_true,
    is_suspended,
    job_is_busy,
    job_is_finished,
    remove_condition,
    set_condition,
)
from placement_lab.standins.multikueue.operations import (
    NO_OPERATIONS,
    Operation,
    ReconcileResult,
    SetActive,
    SuspendJob,
    WriteStatus,
)


def reconcile_copy(
    copy: Obj | None,
    job: Obj | None,
    *,
    queue: QueueState,
    now: float,
) -> ReconcileResult:
    """Return the next step of the worker's Kueue for a copy and its Job, each of which may be missing."""
    if copy is None:
        return ReconcileResult((SuspendJob(True),)) if job and runs(job) else NO_OPERATIONS
    if is_condition_true(copy, FINISHED):  # out of sync with its Job, if that still runs
        return ReconcileResult((SuspendJob(True),)) if job and runs(job) else NO_OPERATIONS
    if job and job_is_finished(job):
        return _finish(copy, job, now)
    if is_condition_true(copy, DEACTIVATION_TARGET) or (
        not is_active(copy) and not is_condition_true(copy, EVICTED)
    ):
        return _deactivate(copy, now)
    if is_condition_true(copy, EVICTED) and is_condition_true(copy, QUOTA_RESERVED):
        return _stop(copy, job, now)
    if not is_condition_true(copy, QUOTA_RESERVED):
        return _admit(copy, job, queue, now)
    if after := queues.stopped(copy, queue, now):
        return ReconcileResult((WriteStatus(after["status"]),))
    left = queues.seconds_left(copy, now)
    if left is not None and left <= 0:
        return ReconcileResult((WriteStatus(queues.too_long(copy, now)["status"]),))
    return ReconcileResult((SuspendJob(False),) if job and is_suspended(job) else (), left)


def runs(job: Obj) -> bool:
    """Return whether a Job runs: neither suspended nor finished."""
    return not is_suspended(job) and not job_is_finished(job)


def has_quota(copy: Obj) -> bool:
    """Return whether the copy uses quota on its worker."""
    return is_condition_true(copy, QUOTA_RESERVED) and not is_condition_true(copy, FINISHED)


def preempted_status(copy: Obj, now: float) -> Obj:
    """Return the status of a copy after its preemption by the worker's Kueue."""
    after = deep_copy(copy)
    step.evict(after, step.BY_PREEMPTION, "Preempted to accommodate a workload of the worker", now)
    return dict(after["status"])


def timed_out_status(copy: Obj, now: float) -> Obj:
    """Return the status of a copy that the worker's Kueue evicts: its Pods were not ready in time."""
    after = deep_copy(copy)
    message = "Exceeded the PodsReady timeout"
    step.evict(after, step.BY_PODS_READY_TIMEOUT, message, now)
    return dict(after["status"])


def _finish(copy: Obj, job: Obj, now: float) -> ReconcileResult:
    failed = is_condition_true(job, "Failed")
    reason, kind = ("Failed", "Failed") if failed else ("Succeeded", "Complete")
    after = deep_copy(copy)
    step.finish(after, reason, condition_field(job, kind) or "Job finished successfully", now)
    return ReconcileResult((WriteStatus(after["status"]),))


def _deactivate(copy: Obj, now: float) -> ReconcileResult:
    """Evict a deactivated copy (cluster-unlisted-while-running.log, 10.90 to 10.93)."""
    after = deep_copy(copy)
    target = condition(copy, DEACTIVATION_TARGET) or {"reason": "", "message": ""}
    cause = f"DueTo{target['reason']}" if target["reason"] else ""
    because = f" due to {target['message']}" if target["message"] else ""
    remove_condition(after, DEACTIVATION_TARGET)
    step.evict(after, f"{step.BY_DEACTIVATION}{cause}", f"The workload is deactivated{because}", now)
    return ReconcileResult((SetActive(False), WriteStatus(after["status"])))


def _stop(copy: Obj, job: Obj | None, now: float) -> ReconcileResult:
    """Suspend the Job, then release the quota; without a Job, the quota stays reserved (12.02)."""
    if job and not is_suspended(job):
        return ReconcileResult((SuspendJob(True),))
    if job is None or job_is_busy(job):
        return NO_OPERATIONS
    after = deep_copy(copy)
    step.clear_after_eviction(after, now)
    return ReconcileResult((WriteStatus(after["status"]),))


def _admit(copy: Obj, job: Obj | None, queue: QueueState, now: float) -> ReconcileResult:
    if again := is_active(copy) and queues.requeued(copy, queue, now):
        return ReconcileResult((WriteStatus(again["status"]),))
    blocked = queues.blocker(copy, queue)
    waits = not is_active(copy) or condition_field(copy, REQUEUED, "status") == "False"
    if waits or blocked or not queue.has_room:
        inactive = ("Deactivated", "The workload is deactivated")
        why = (blocked or ("Pending", queue.lacks)) if is_active(copy) else inactive
        return _keep_pending(copy, job, why, now)
    after = deep_copy(copy)
    step.reserve(after, queue.name, now, queue.flavors)
    step.sync_admitted(after, now)
    return ReconcileResult((WriteStatus(after["status"]),))


def _keep_pending(copy: Obj, job: Obj | None, why: tuple[str, str], now: float) -> ReconcileResult:
    stop: list[Operation] = [SuspendJob(True)] if job and runs(job) else []
    if is_condition_true(copy, EVICTED):
        return ReconcileResult(tuple(stop))
    after = deep_copy(copy)
    set_condition(after, QUOTA_RESERVED, False, *why, now)
    step.sync_admitted(after, now)
    if after.get("status") == copy.get("status"):
        return ReconcileResult(tuple(stop))
    return ReconcileResult((*stop, WriteStatus(after["status"])))
