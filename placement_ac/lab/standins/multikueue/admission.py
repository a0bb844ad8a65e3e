"""
What Kueue does to a Workload of the hub without MultiKueue: queue, quota, checks, eviction, the hub's Job.

Pure. Three controllers of Kueue, each with its own look: `look_at_workload`, `look_at_job`, `schedule`.
Each makes one write, as the real ones do; what lies between two writes others may see. Source:
Kueue's workload_controller.go, jobframework/reconciler.go, scheduler.go, and shared/kueue.
"""

from collections.abc import Callable
from typing import Final

from placement_ac.lab.standins.multikueue import transitions as step
from placement_ac.lab.standins.multikueue.inputs import Seen
from placement_ac.lab.standins.multikueue.objects import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    PENDING,
    QUOTA_RESERVED,
    REJECTED,
    REQUEUED,
    RETRY,
    Obj,
    checks_of,
    condition,
    drop_condition,
    holds,
    is_active,
    is_deleted,
    is_suspended,
    job_is_busy,
    own,
    put_condition,
    said,
    seconds,
    stamp,
)
from placement_ac.lab.standins.multikueue.operations import (
    NOTHING,
    Decision,
    Operation,
    Release,
    SetActive,
    SuspendJob,
    WriteStatus,
)


def look_at_workload(seen: Seen) -> Decision:
    """Return what Kueue's Workload controller does next."""
    if is_deleted(seen.workload) or holds(seen.workload, FINISHED):
        return NOTHING
    for rule in RULES:
        decision = rule(seen)
        if decision is not None:
            return decision
    return NOTHING


def _write(workload: Obj) -> Decision:
    return Decision((WriteStatus(workload["status"]),))


def _a_check_asks_to_wait(seen: Seen) -> Decision | None:
    """`requeueAfterSeconds` of a check in Retry (second-check-unanswered-then-ready.log, 236.88)."""
    until = max((_waits_until(check) for check in checks_of(seen.workload)), default=0.0)
    before = _requeue_at(seen.workload)
    if until <= seen.now or (before is not None and before >= until):
        return None
    workload = own(seen.workload)
    state = workload["status"].get("requeueState") or {}
    workload["status"]["requeueState"] = state | {"requeueAt": stamp(until)}
    return _write(workload)


def _waits_until(check: Obj) -> float:
    if check["state"] != RETRY or "requeueAfterSeconds" not in check or "lastTransitionTime" not in check:
        return 0.0
    return seconds(check["lastTransitionTime"]) + float(check["requeueAfterSeconds"])


def _requeue_at(workload: Obj) -> float | None:
    state = (workload.get("status") or {}).get("requeueState") or {}
    return seconds(state["requeueAt"]) if "requeueAt" in state else None


def _it_is_to_be_deactivated(seen: Seen) -> Decision | None:
    if is_active(seen.workload) and holds(seen.workload, DEACTIVATION_TARGET):
        return Decision((SetActive(False),))
    return None


def _it_waits(seen: Seen) -> Decision | None:
    """Until `requeueAt` nothing happens, not even the eviction (second-check-…log, 236.88 to 241.11)."""
    at = _requeue_at(seen.workload)
    if at is None or not is_active(seen.workload):
        return None
    if at > seen.now:
        return Decision(again_after=at - seen.now)
    if holds(seen.workload, QUOTA_RESERVED):
        return None
    workload = own(seen.workload)
    del workload["status"]["requeueState"]["requeueAt"]
    if not workload["status"]["requeueState"]:
        del workload["status"]["requeueState"]
    return _write(workload)


def _it_may_come_back(seen: Seen) -> Decision | None:
    """Evicted by a check, or deactivated and activated again: back into the queue."""
    requeued = condition(seen.workload, REQUEUED)
    if not is_active(seen.workload) or requeued is None or requeued["status"] == "True":
        return None
    workload = own(seen.workload)
    if requeued["reason"] == step.BY_CHECK:
        step.requeue(workload, "BackoffFinished", "The workload backoff was finished", seen.now)
    else:
        step.requeue(workload, "Reactivated", "The workload was reactivated", seen.now)
    return _write(workload)


def _it_is_deactivated(seen: Seen) -> Decision | None:
    if is_active(seen.workload) or holds(seen.workload, EVICTED):
        return None
    workload = own(seen.workload)
    target = condition(workload, DEACTIVATION_TARGET)
    reason, message = step.BY_DEACTIVATION, "The workload is deactivated"
    if target:
        reason, message = f"{reason}DueTo{target['reason']}", f"{message} due to {target['message']}"
    drop_condition(workload, DEACTIVATION_TARGET)
    workload.setdefault("status", {}).pop("requeueState", None)
    step.evict(workload, reason, message, seen.now)
    return _write(workload)


def _its_checks_are_not_those_of_the_queue(seen: Seen) -> Decision | None:
    has = [check["name"] for check in checks_of(seen.workload)]
    if set(has) == set(seen.queue.checks):
        return None
    workload = own(seen.workload)
    kept = [check for check in checks_of(workload) if check["name"] in seen.queue.checks]
    fresh = [
        {"name": name, "state": PENDING, "message": "", "lastTransitionTime": stamp(seen.now)}
        for name in seen.queue.checks
        if name not in has
    ]
    workload.setdefault("status", {})["admissionChecks"] = kept + fresh
    return _write(workload)


def _its_conditions_are_behind(seen: Seen) -> Decision | None:
    """An admitted Workload stays admitted, whatever its checks say: eviction alone ends that."""
    if holds(seen.workload, ADMITTED):
        return None
    workload = own(seen.workload)
    workload.setdefault("status", {})
    if not holds(workload, QUOTA_RESERVED):
        _say_why_there_is_no_quota(workload, seen)
    step.sync_admitted(workload, seen.now)
    return _write(workload) if workload["status"] != (seen.workload.get("status") or {}) else None


def _say_why_there_is_no_quota(workload: Obj, seen: Seen) -> None:
    if not is_active(workload):
        message = "The workload is deactivated"
        put_condition(workload, QUOTA_RESERVED, False, "Deactivated", message, seen.now)
    elif not seen.queue.active:
        message = f"ClusterQueue {seen.queue.name} is inactive"
        put_condition(workload, QUOTA_RESERVED, False, "Suspended", message, seen.now)


def _a_check_objects(seen: Seen) -> Decision | None:
    """Rejected deactivates; Retry evicts, and all checks are Pending again."""
    if not holds(seen.workload, QUOTA_RESERVED) or holds(seen.workload, EVICTED):
        return None
    workload = own(seen.workload)
    if rejected := _told(workload, REJECTED):
        put_condition(workload, DEACTIVATION_TARGET, True, step.BY_CHECK, rejected, seen.now)
        return _write(workload)
    if retried := _told(workload, RETRY):
        step.evict(workload, step.BY_CHECK, f"Evicted due to {retried}", seen.now)
        return _write(workload)
    return None


def _told(workload: Obj, state: str) -> str:
    checks = sorted(
        (one for one in checks_of(workload) if one["state"] == state), key=lambda one: one["name"]
    )
    parts = [f'"{one["name"]}"' + (f" ({one['message']})" if one.get("message") else "") for one in checks]
    noun = "AdmissionChecks" if len(parts) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {'; '.join(parts)}" if parts else ""


# Order matters, it is Kueue's: a check's delay comes before everything, the eviction last.
RULES: Final[tuple[Callable[[Seen], Decision | None], ...]] = (
    _a_check_asks_to_wait,
    _it_is_to_be_deactivated,
    _it_waits,
    _it_may_come_back,
    _it_is_deactivated,
    _its_checks_are_not_those_of_the_queue,
    _its_conditions_are_behind,
    _a_check_objects,
)


def look_at_job(seen: Seen) -> Decision:
    """Return what Kueue's Job controller on the hub does next: suspend, start, give the quota back."""
    workload = seen.workload
    if is_deleted(workload):
        return Decision((Release(),)) if workload["metadata"].get("finalizers") else NOTHING
    if holds(workload, FINISHED):
        return NOTHING
    if holds(workload, EVICTED):
        return Decision(tuple(_after_eviction(seen)))
    suspend = not holds(workload, ADMITTED)
    if seen.job and is_suspended(seen.job) != suspend:
        return Decision((SuspendJob(suspend),))
    return NOTHING


def _after_eviction(seen: Seen) -> list[Operation]:
    """The quota stays while the hub's Job counts active Pods (cluster-unlisted-while-running.log, 12.97)."""
    done: list[Operation] = []
    if seen.job and not is_suspended(seen.job):
        done.append(SuspendJob(True))
    if holds(seen.workload, QUOTA_RESERVED) and not job_is_busy(seen.job):
        workload = own(seen.workload)
        step.clear_after_eviction(workload, seen.now)
        done.append(WriteStatus(workload["status"]))
    return done


def schedule(seen: Seen) -> Decision:
    """Return what Kueue's scheduler does next: reserve quota for a Workload that may have it."""
    workload, at = seen.workload, _requeue_at(seen.workload)
    if is_deleted(workload) or holds(workload, FINISHED) or not is_active(workload):
        return NOTHING
    if holds(workload, QUOTA_RESERVED) or said(workload, REQUEUED, "status") == "False":
        return NOTHING
    if not (seen.queue.active and seen.queue.has_room) or (at is not None and at > seen.now):
        return NOTHING
    after = own(workload)
    step.reserve(after, seen.queue.name, seen.now)
    if {check["name"] for check in checks_of(after)} == set(seen.queue.checks):
        step.sync_admitted(after, seen.now)
    return _write(after)
