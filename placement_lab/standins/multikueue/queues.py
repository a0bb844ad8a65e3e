"""
The effects of a Workload's queues and of its time limit, on a hub and on a worker.

Pure. Source: Kueue's workload_controller.go: `getQueueBlocker`, `reconcileOnLocalQueueActiveState`,
`reconcileOnClusterQueueActiveState`, `reconcileMaxExecutionTime`.
"""

from typing import Final

from placement_lab.standins.multikueue import transitions as step
from placement_lab.standins.multikueue.inputs import NO_STOP, QueueState
from placement_lab.standins.multikueue.objects import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    QUOTA_RESERVED,
    REQUEUED,
    Obj,
    condition,
    condition_field,
    deep_copy,
    is_condition_true,
    parse_time,
    set_condition,
)

DRAIN: Final = "HoldAndDrain"
MISCONFIGURED: Final = "Misconfigured"
SUSPENDED: Final = "Suspended"
BY_CLUSTER_QUEUE: Final = "ClusterQueueStopped"
BY_LOCAL_QUEUE: Final = "LocalQueueStopped"
TOO_LONG: Final = "MaximumExecutionTimeExceeded"


def blocker(workload: Obj, queue: QueueState) -> tuple[str, str] | None:
    """Return reason and message of the queue that gives this Workload no quota, None if there is none."""
    local = f"LocalQueue {workload['spec'].get('queueName', '')}"
    if not queue.local_exists:
        return MISCONFIGURED, f"{local} doesn't exist"
    if queue.local_stop != NO_STOP:
        return SUSPENDED, f"{local} is inactive"
    if not queue.exists:
        return MISCONFIGURED, f"ClusterQueue {queue.name} doesn't exist"
    return None if queue.active else (SUSPENDED, f"ClusterQueue {queue.name} is inactive")


def stopped(workload: Obj, queue: QueueState, now: float) -> Obj | None:
    """Return a Workload with quota after a queue that is stopped or gone, None if it keeps the quota.

    Hold takes the quota from what is not admitted yet, HoldAndDrain evicts what is.
    """
    if not is_condition_true(workload, QUOTA_RESERVED):
        return None
    local = f"LocalQueue {workload['spec'].get('queueName', '')}"
    after = deep_copy(workload)
    if is_condition_true(workload, ADMITTED):
        drained = (
            (queue.local_stop, BY_LOCAL_QUEUE, "LocalQueue"),
            (queue.stop, BY_CLUSTER_QUEUE, "ClusterQueue"),
        )
        reason, kind = next(((reason, kind) for policy, reason, kind in drained if policy == DRAIN), ("", ""))
        if not reason or is_condition_true(workload, EVICTED):
            return None
        step.evict(after, reason, f"The {kind} is stopped", now)
        return after
    lost = (
        (not queue.local_exists, MISCONFIGURED, f"{local} is terminating or missing"),
        (queue.local_stop != NO_STOP, SUSPENDED, f"{local} is stopped"),
        (not queue.exists, MISCONFIGURED, f"ClusterQueue {queue.name} is terminating or missing"),
        (queue.stop != NO_STOP, SUSPENDED, f"ClusterQueue {queue.name} is stopped"),
    )
    for is_lost, reason, message in lost:
        if is_lost:
            step.release_quota(after, reason, message, now)
            return after
    return None


def requeued(workload: Obj, queue: QueueState, now: float) -> Obj | None:
    """Return an evicted Workload that may get quota again, None if nothing allows it.

    After an eviction by a check, or by the timeout of its Pods, it may at once; after another one when its
    cause is gone. One that Kueue deactivated itself, `DeactivatedDueTo…`, never may (by its code).
    """
    reason = condition_field(workload, REQUEUED, "reason")
    again = {
        step.BY_DEACTIVATION: ("Reactivated", "The workload was reactivated"),
        step.BY_CHECK: ("BackoffFinished", "The workload backoff was finished"),
        step.BY_PODS_READY_TIMEOUT: ("BackoffFinished", "The workload backoff was finished"),
    }
    restarted = "was restarted after being stopped"
    if queue.local_exists and queue.local_stop == NO_STOP:
        again[BY_LOCAL_QUEUE] = "LocalQueueRestarted", f"The LocalQueue {restarted}"
    if queue.exists and queue.stop == NO_STOP:
        again[BY_CLUSTER_QUEUE] = "ClusterQueueRestarted", f"The ClusterQueue {restarted}"
    if condition_field(workload, REQUEUED, "status") != "False" or reason not in again:
        return None
    after = deep_copy(workload)
    step.requeue(after, *again[reason], now)
    return after


def seconds_left(workload: Obj, now: float) -> float | None:
    """Return how long an admitted Workload may still run (`maximumExecutionTimeSeconds`), None: for ever."""
    limit = workload["spec"].get("maximumExecutionTimeSeconds")
    admitted = condition(workload, ADMITTED)
    if limit is None or admitted is None or admitted["status"] != "True":
        return None
    past = (workload.get("status") or {}).get(step.PAST_SECONDS, 0)
    return float(limit - past - (now - parse_time(admitted["lastTransitionTime"])))


def too_long(workload: Obj, now: float) -> Obj:
    """Return a Workload that has run too long: Kueue deactivates it next."""
    after = deep_copy(workload)
    message = "exceeding the maximum execution time"
    set_condition(after, DEACTIVATION_TARGET, True, TOO_LONG, message, now)
    after["status"].pop(step.PAST_SECONDS, None)
    return after
