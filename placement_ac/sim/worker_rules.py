"""
What a worker's Kueue does next with one Workload, and its Job controller with one Job.

Pure functions of what is seen: the first rule that has something to say gives the one step to take, and
the echo of that step asks again. Order, reasons and messages are those of shared/kueue/*.log, except the
message of a full queue, which is from Kueue's code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from placement_ac.kube import Object
from placement_ac.sim.kueue_workload import (
    FLAVOR,
    NO_RESERVATION,
    OWNER_NOT_FOUND,
    Condition,
    condition_of,
    is_over,
    is_running,
    is_suspended,
    is_true,
    job_finished,
    stamp,
)

QUEUE: Final = "cluster-queue"
"""The one ClusterQueue of a worker, as in the recordings."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One Workload, the Job that was put there for it, and the ClusterQueue's state."""

    workload: Object
    job: Object | None
    held: bool
    """The ClusterQueue is stopped (stopPolicy Hold): who has quota keeps it."""
    room: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Say:
    """Write conditions, and take those of the types in `drop` away."""

    conditions: tuple[Condition, ...]
    drop: tuple[str, ...] = ()
    reserve: bool | None = None
    """Give quota (True), take it away (False), leave that as it is (None)."""


@dataclass(frozen=True, slots=True)
class Deactivate:
    """Set `spec.active` to false."""


@dataclass(frozen=True, slots=True)
class Own:
    """Make the Job the Workload's owner."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend the Job, or let it run."""

    suspend: bool


Step = Rest | Say | Deactivate | Own | Suspend


def step_for(seen: Seen) -> Step:
    """Return what Kueue on the worker does next."""
    return next((step for rule in RULES if (step := rule(seen)) is not None), Rest())


def has_quota(workload: Object) -> bool:
    """Return whether the Workload takes up room in its ClusterQueue."""
    return is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")


def _finished(seen: Seen) -> Step | None:
    return Rest() if is_true(seen.workload, "Finished") else None


def _job_is_over(seen: Seen) -> Step | None:
    return Say((job_finished(seen.job),)) if seen.job and is_over(seen.job) else None


def _owner_has_gone(seen: Seen) -> Step | None:
    if seen.job or not seen.workload["metadata"].get("ownerReferences"):
        return None
    return Say((Condition("Finished", True, "OwnerNotFound", OWNER_NOT_FOUND),))


def _job_is_new(seen: Seen) -> Step | None:
    if seen.job is None:
        return None
    owners = seen.workload["metadata"].get("ownerReferences") or ()
    owned = any(one["uid"] == seen.job["metadata"]["uid"] for one in owners)
    return None if owned else Own()


def _is_to_be_deactivated(seen: Seen) -> Step | None:
    asked = is_true(seen.workload, "DeactivationTarget") and _is_active(seen.workload)
    return Deactivate() if asked else None


def _is_inactive(seen: Seen) -> Step | None:
    if _is_active(seen.workload) or is_true(seen.workload, "Evicted"):
        return None
    target = condition_of(seen.workload, "DeactivationTarget")
    if target is None:
        evicted = Condition("Evicted", True, "Deactivated", "The workload is deactivated")
    else:
        message = f"The workload is deactivated due to {target['message']}"
        evicted = Condition("Evicted", True, f"DeactivatedDueTo{target['reason']}", message)
    return Say((evicted,), drop=("DeactivationTarget",))


def _is_evicted(seen: Seen) -> Step | None:
    """Kueue gives the quota back once the Job has stopped, and so not before there is a Job at all."""
    evicted = condition_of(seen.workload, "Evicted")
    if not is_true(seen.workload, "Evicted") or evicted is None or not has_quota(seen.workload):
        return None
    if seen.job is None:
        return Rest()
    if not is_suspended(seen.job):
        return Suspend(True)
    return Say(
        (
            Condition("QuotaReserved", False, "PendingEvaluation", evicted["message"]),
            Condition("Admitted", False, "NoReservation", NO_RESERVATION),
            Condition("Requeued", False, evicted["reason"], evicted["message"]),
        ),
        reserve=False,
    )


def _has_no_quota(seen: Seen) -> Step | None:
    if has_quota(seen.workload):
        return None
    if seen.job and is_running(seen.job):
        return Suspend(True)
    if _is_active(seen.workload) and not seen.held and seen.room:
        return _admit(seen.workload)
    return _unless_said(seen.workload, _why_not(seen), _NOT_ADMITTED) or Rest()


_NOT_ADMITTED: Final = Condition("Admitted", False, "NoReservation", NO_RESERVATION)


def _why_not(seen: Seen) -> Condition:
    if not _is_active(seen.workload):
        return Condition("QuotaReserved", False, "Deactivated", "The workload is deactivated")
    if seen.held:
        return Condition("QuotaReserved", False, "Suspended", f"ClusterQueue {QUEUE} is inactive")
    short = f"insufficient unused quota for cpu in flavor {FLAVOR}, 1 more needed"
    return Condition("QuotaReserved", False, "Pending", f"couldn't assign flavors to pod set main: {short}")


def _admit(workload: Object) -> Step:
    conditions = [
        Condition("QuotaReserved", True, "QuotaReserved", f"Quota reserved in ClusterQueue {QUEUE}"),
        Condition("Admitted", True, "Admitted", "The workload is admitted"),
    ]
    evicted = condition_of(workload, "Evicted")
    if evicted:
        message = evicted["message"].removeprefix("Previously: ")
        conditions.append(Condition("Evicted", False, "QuotaReserved", f"Previously: {message}"))
    return Say(tuple(conditions), reserve=True)


def _job_may_run(seen: Seen) -> Step | None:
    if seen.job is None:
        return Rest()
    return Suspend(False) if is_suspended(seen.job) else None


def _pods_are_ready(seen: Seen) -> Step | None:
    started = bool(((seen.job or {}).get("status") or {}).get("startTime"))
    return _unless_said(seen.workload, pods_ready(started))


def pods_ready(started: bool) -> Condition:
    """Return what Kueue says of the Pods of an admitted Workload."""
    if started:
        message = "All pods reached readiness and the workload is running"
        return Condition("PodsReady", True, "Started", message)
    return Condition("PodsReady", False, "WaitForStart", "Not all pods are ready or succeeded")


def _unless_said(workload: Object, *conditions: Condition) -> Step | None:
    return None if all(one.is_said_by(workload) for one in conditions) else Say(conditions)


def _is_active(workload: Object) -> bool:
    return (workload.get("spec") or {}).get("active") is not False


# Order matters: a rule may assume that those above it had nothing to say.
RULES: tuple[Callable[[Seen], Step | None], ...] = (
    _finished,
    _job_is_over,
    _owner_has_gone,
    _job_is_new,
    _is_to_be_deactivated,
    _is_inactive,
    _is_evicted,
    _has_no_quota,
    _job_may_run,
    _pods_are_ready,
)


def job_status(job: Object) -> Object | None:
    """Return the patch of its status that the Job controller makes; None when it is right.

    A Job has one Pod here, which is ready at once and goes at once.
    """
    status = job.get("status") or {}
    if is_over(job) or is_suspended(job) == (not status.get("startTime")):
        return None
    if is_suspended(job):
        return {"startTime": None, "active": 0, "ready": 0}
    return {"startTime": stamp(), "active": 1, "ready": 1}


def completed() -> Object:
    """Return the status of a Job whose Pod has ended well."""
    now = stamp()
    done = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": ""}
    conditions = [done | {"lastTransitionTime": now}]
    return {"conditions": conditions, "completionTime": now, "succeeded": 1, "active": 0, "ready": 0}
