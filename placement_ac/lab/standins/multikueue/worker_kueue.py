"""
What a worker's own Kueue does with a copy, and with the Job that MultiKueue made beside it.

Pure. A copy asks for quota like any Workload, Job or no Job; the Job starts when the copy is admitted.
Not modelled: several steps of a deactivation (recorded 30 ms apart) are one look here.
"""

from placement_ac.lab.standins.multikueue import transitions as step
from placement_ac.lab.standins.multikueue.objects import (
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REQUEUED,
    Obj,
    condition,
    drop_condition,
    holds,
    is_active,
    is_suspended,
    job_is_busy,
    job_is_finished,
    own,
    put_condition,
    said,
)
from placement_ac.lab.standins.multikueue.operations import (
    NOTHING,
    Decision,
    Operation,
    SetActive,
    SuspendJob,
    WriteStatus,
)


def look_at_copy(copy: Obj | None, job: Obj | None, *, queue: str, room: bool, now: float) -> Decision:
    """Return what the worker's Kueue does next with a copy and its Job (either may be missing).

    `room`: whether its ClusterQueue `queue` is active and has quota for this copy. A copy that has quota
    already keeps it, whatever `room` says.
    """
    if copy is None:
        return Decision((SuspendJob(True),)) if job and runs(job) else NOTHING
    if holds(copy, FINISHED):
        return NOTHING
    if job and job_is_finished(job):
        return _finish(copy, job, now)
    if holds(copy, DEACTIVATION_TARGET) or (not is_active(copy) and not holds(copy, EVICTED)):
        return _deactivate(copy, now)
    if holds(copy, EVICTED) and holds(copy, QUOTA_RESERVED):
        return _stop(copy, job, now)
    if not holds(copy, QUOTA_RESERVED):
        return _admit(copy, job, queue, now) if room else _let_wait(copy, job, queue, now)
    return Decision((SuspendJob(False),)) if job and is_suspended(job) else NOTHING


def runs(job: Obj) -> bool:
    """Return whether a Job runs: neither suspended nor finished."""
    return not is_suspended(job) and not job_is_finished(job)


def has_quota(copy: Obj) -> bool:
    """Return whether the copy takes up room on its worker."""
    return holds(copy, QUOTA_RESERVED) and not holds(copy, FINISHED)


def preempted(copy: Obj, now: float) -> Obj:
    """Return the status of a copy that the worker's Kueue has just preempted."""
    after = own(copy)
    step.evict(after, step.BY_PREEMPTION, "Preempted to accommodate a workload of the worker", now)
    return dict(after["status"])


def _finish(copy: Obj, job: Obj, now: float) -> Decision:
    failed = holds(job, "Failed")
    reason, kind = ("Failed", "Failed") if failed else ("Succeeded", "Complete")
    after = own(copy)
    step.finish(after, reason, said(job, kind) or "Job finished successfully", now)
    return Decision((WriteStatus(after["status"]),))


def _deactivate(copy: Obj, now: float) -> Decision:
    """A deactivated copy is evicted for good (cluster-unlisted-while-running.log, 10.90 to 10.93)."""
    after = own(copy)
    target = condition(copy, DEACTIVATION_TARGET) or {"reason": "", "message": ""}
    cause = f"DueTo{target['reason']}" if target["reason"] else ""
    because = f" due to {target['message']}" if target["message"] else ""
    drop_condition(after, DEACTIVATION_TARGET)
    step.evict(after, f"{step.BY_DEACTIVATION}{cause}", f"The workload is deactivated{because}", now)
    return Decision((SetActive(False), WriteStatus(after["status"])))


def _stop(copy: Obj, job: Obj | None, now: float) -> Decision:
    """The Job stops, then the quota goes; without a Job there is nothing to stop, and it stays (12.02)."""
    if job and not is_suspended(job):
        return Decision((SuspendJob(True),))
    if job is None or job_is_busy(job):
        return NOTHING
    after = own(copy)
    step.clear_after_eviction(after, now)
    return Decision((WriteStatus(after["status"]),))


def _admit(copy: Obj, job: Obj | None, queue: str, now: float) -> Decision:
    if not is_active(copy) or said(copy, REQUEUED, "status") == "False":
        return _let_wait(copy, job, queue, now)
    after = own(copy)
    step.reserve(after, queue, now)
    step.sync_admitted(after, now)
    return Decision((WriteStatus(after["status"]),))


def _let_wait(copy: Obj, job: Obj | None, queue: str, now: float) -> Decision:
    stop: list[Operation] = [SuspendJob(True)] if job and runs(job) else []
    if holds(copy, EVICTED):
        return Decision(tuple(stop))
    after = own(copy)
    put_condition(after, QUOTA_RESERVED, False, "Suspended", f"ClusterQueue {queue} is inactive", now)
    step.sync_admitted(after, now)
    if after.get("status") == copy.get("status"):
        return Decision(tuple(stop))
    return Decision((*stop, WriteStatus(after["status"])))
