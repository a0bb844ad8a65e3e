"""
The gate: how a cluster on which nothing runs is unlisted, so that no job is killed or runs twice.

Pure. No Workload of the config becomes Ready, those that only wait are sent back, and the cluster
itself is asked for copies; then it is unlisted. Each step depends only on the API objects and on
the ages of timers, so a restarted controller continues from there.
Source: measured on Kueue main, with and without an external dispatcher.
"""

from collections.abc import Collection

from placement_ac.core.api.constants import (
    COPIES_FRESH_SECONDS,
    COPIES_RETRY_SECONDS,
    IMMEDIATE,
    MIN_READY_SECONDS,
    QUIET_SECONDS,
    READY,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.state import DrainContext, DrainState, DrainStep
from placement_ac.core.inputs.state import Snapshot, Timer, TimerKind, WorkerCopies
from placement_ac.core.selection.capacity import seconds_unchanged
from placement_ac.core.selection.selection import soonest


def advance_drain(context: DrainContext, step: DrainStep) -> DrainStep:
    """Take the next step of docs/draining.md, “The gate”, up to the removal from the list."""
    workloads = context.workloads
    if not all(map(workloads.gated, workloads.waiting.get(step.name, []))):
        return step._replace(state=DrainState.WITHOUT_OUR_CHECK)
    if context.reopened:
        return step._replace(state=DrainState.GATE_REOPENED)
    step = close_gate(context, step)
    if step.state is not DrainState.CLOSING or gate_timer(step.cluster) not in context.seen.timer_ages:
        return step
    ready = tuple(filter(workloads.is_ready, workloads.undecided))
    if ready:
        return _send_back(context, step, ready)
    if not all(workloads.is_pending(w) for w in workloads.undecided if workloads.gated(w)):
        return step._replace(state=DrainState.TAKING_BACK)
    return ask_when_quiet(context, step)


def close_gate(context: DrainContext, step: DrainStep) -> DrainStep:
    """Close the gate (state CLOSING) if the cluster answers: else it would be closed in vain."""
    timer = gate_timer(step.cluster)
    if obstacle := drain_obstacle(context, step):
        return obstacle
    if timer in context.seen.timer_ages:
        return step._replace(state=DrainState.CLOSING, timers=step.timers | {timer})
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported and (state := _other_copies(context, step, reported)):
        return _leave_open(step, reported, state)
    if reported is None or reported.age > COPIES_FRESH_SECONDS:
        return step._replace(state=DrainState.ASKING, ask_for_copies=True)
    return step._replace(state=DrainState.CLOSING, timers=step.timers | {timer}, requeue_after=0.0)


def gate_timer(cluster: str) -> Timer:
    """Return the timer that runs while the gate is closed for a cluster."""
    return Timer(TimerKind.GATE_CLOSED_FOR, cluster)


def drain_obstacle(context: DrainContext, step: DrainStep) -> DrainStep | None:
    """Return the step in the state that keeps its cluster listed for now: disconnected, or not answering."""
    cluster = context.seen.objects.clusters.get(step.name)
    if cluster is not None and cluster.active is False:
        return step._replace(state=DrainState.DISCONNECTED)
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported and reported.problem:
        step = step._replace(state=DrainState.NOT_ANSWERING, detail=reported.problem)
        return _ask_again_later(step, reported)
    return None


# -- step 2: Workloads that only wait


def _send_back(context: DrainContext, step: DrainStep, ready: Collection[Workload]) -> DrainStep:
    """Send back those whose grace is over; a Workload placed meanwhile is seen in time, or conflicts."""
    left = [_grace_left(context, step, workload) for workload in ready]
    due = tuple(workload for workload, seconds in zip(ready, left, strict=True) if seconds <= 0)
    later = soonest(seconds for seconds in left if seconds > 0)
    return step._replace(state=DrainState.WAITING, send_back=due, requeue_after=later)


def _grace_left(context: DrainContext, step: DrainStep, workload: Workload) -> float:
    made_ready = context.seen.timer_ages.get(Timer(TimerKind.MADE_READY, workload.meta.uid))
    if made_ready is not None:
        return MIN_READY_SECONDS - made_ready
    grace = waiting_grace(context.seen)
    if workload.sent_back_from:  # it gets a whole grace in which Kueue need not read another list
        undisturbed = min(_ready_for(context, workload), seconds_unchanged(context.seen))
        return max(grace, MIN_READY_SECONDS) - undisturbed
    closed_for = context.seen.age(gate_timer(step.cluster))
    return max(grace - closed_for, max(grace, MIN_READY_SECONDS) - _ready_for(context, workload))


def waiting_grace(seen: Snapshot) -> float:
    """Return how long a waiting Workload may still be placed. Unit: seconds."""
    return 0.0 if seen.policy.removal == IMMEDIATE else seen.policy.waiting_grace


def _ready_for(context: DrainContext, workload: Workload) -> float:
    since = [
        entry.since
        for entry in workload.check_states
        if entry.state == READY and entry.check in context.workloads.checks and entry.since
    ]
    return (context.seen.now - max(since)).total_seconds() if since else float("inf")


# -- step 3: nothing is there, and the cluster itself is asked


def ask_when_quiet(context: DrainContext, step: DrainStep) -> DrainStep:
    """Ask the cluster when nothing has been there for a while, and unlist it if it holds no copy.

    Only copies of unfinished Workloads of this config count.
    """
    timer = Timer(TimerKind.QUIET, step.cluster)
    quiet = context.seen.age(timer)
    step = step._replace(timers=step.timers | {timer}, state=DrainState.QUIET)
    if quiet < QUIET_SECONDS:
        return step._replace(requeue_after=QUIET_SECONDS - quiet)
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported is None or reported.age > quiet - QUIET_SECONDS:
        return step._replace(ask_for_copies=True)
    if state := _other_copies(context, step, reported):
        return _leave_open(step, reported, state)
    held = tuple(workload for workload in context.seen.workloads if workload.meta.id in reported.copies)
    if held:
        return step._replace(state=DrainState.COPY_FOUND, make_ready=held)
    return step._replace(state=DrainState.UNLISTED, timers=frozenset())


def _other_copies(context: DrainContext, step: DrainStep, reported: WorkerCopies) -> DrainState | None:
    """Return the state of a cluster that holds copies which Kueue alone can remove; None: it holds none."""
    held = [workload for workload in context.seen.workloads if workload.meta.id in reported.copies]
    if any(workload.cluster not in ("", step.name) for workload in held):
        return DrainState.PLACED_ELSEWHERE
    gated = all(context.workloads.gated(workload) for workload in held if not workload.cluster)
    return None if context.seen.policy.dispatcher or gated else DrainState.WITHOUT_OUR_CHECK


def _leave_open(step: DrainStep, reported: WorkerCopies, state: DrainState) -> DrainStep:
    """Stay with the gate open: it may take long."""
    step = step._replace(state=state, timers=step.timers - {gate_timer(step.cluster)})
    return _ask_again_later(step, reported)


def _ask_again_later(step: DrainStep, reported: WorkerCopies) -> DrainStep:
    left = COPIES_RETRY_SECONDS - reported.age
    return step._replace(requeue_after=left) if left > 0 else step._replace(ask_for_copies=True)
