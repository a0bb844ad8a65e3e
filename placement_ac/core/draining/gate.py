"""
The gate: how a cluster goes on which nothing runs any more, without a job being killed or doubled.

Pure. No Workload of the config becomes Ready, what only waits is sent back, and the cluster
itself is asked for copies; then it goes. Every step is told by what the API says and by the
ages of marks, so that whoever comes next can go on from anywhere.
Source: shared/kueue/gate.txt and external-dispatcher.txt.
"""

from collections.abc import Collection
from typing import Final

from placement_ac.core.api.constants import (
    COPIES_FRESH_SECONDS,
    COPIES_RETRY_SECONDS,
    IMMEDIATE,
    MIN_READY_SECONDS,
    QUIET_SECONDS,
    READY,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.state import DrainContext, DrainStep
from placement_ac.core.inputs.state import Snapshot, Timer, TimerKind, WorkerCopies
from placement_ac.core.selection.selection import soonest

WAIT: Final = "Workloads wait there"
SOON: Final = "nothing runs there any more"
"""Told through all the short steps at the end: a condition is not written for each of them."""
AIRING: Final = "it could not be cleared in time, and others waited: tried again in a minute"
THEIRS: Final = "Workloads are there that do not carry our check: they are waited for"
ELSEWHERE: Final = "it holds copies of Workloads that are placed elsewhere"
NOT_CONNECTED: Final = "Kueue is not connected to it"


def advance_drain(case: DrainContext, here: DrainStep) -> DrainStep:
    """Go through DESIGN.md, “The gate”, steps 1 to 3; 4 is that no cluster closes it any more."""
    waiting = case.workloads.waiting.get(here.name, [])
    if not all(map(case.workloads.gated, waiting)):
        return here._replace(why=THEIRS)
    if case.reopened:
        return here._replace(why=AIRING)
    here = close_gate(case, here)
    if not here.gate_closed or Timer(TimerKind.GATE_CLOSED_FOR, here.cluster) not in case.seen.timer_ages:
        return here
    ready = tuple(filter(case.workloads.is_ready, case.workloads.undecided))
    if ready:
        return _send_back(case, here, ready)
    if not all(case.workloads.is_back(w) for w in case.workloads.undecided if case.workloads.gated(w)):
        return here._replace(why=SOON)  # Kueue takes back what was sent back
    return _ask(case, here)


def close_gate(case: DrainContext, here: DrainStep) -> DrainStep:
    """Close the gate, if the cluster answers: else it would be closed in vain, for who knows how long."""
    mark = Timer(TimerKind.GATE_CLOSED_FOR, here.cluster)
    if problem := drain_obstacle(case, here.name):
        return _not_asked(case, here, problem)
    asked = case.seen.fleet.worker_copies.get(here.name)
    if mark not in case.seen.timer_ages:
        if asked and (why := _others(case, here, asked)):
            return _left_open(here, asked, why)
        if asked is None or asked.age > COPIES_FRESH_SECONDS:
            return here._replace(why=SOON, ask_for_copies=True)
    again = None if mark in case.seen.timer_ages else 0.0
    return here._replace(why=SOON, gate_closed=True, timers=here.timers | {mark}, recheck_after=again)


def advance_dispatcher_drain(case: DrainContext, here: DrainStep) -> DrainStep:
    """With our own dispatcher: out of the nominations, and the cluster is asked before and after."""
    if problem := drain_obstacle(case, here.name):
        return _not_asked(case, here, problem)
    waiting = case.workloads.waiting.get(here.name, [])
    if not waiting:
        return _ask(case, here)
    asked = case.seen.fleet.worker_copies.get(here.name)
    if asked is None or asked.age > QUIET_SECONDS:
        return here._replace(why=WAIT, ask_for_copies=True)
    free = tuple(w for w in waiting if not asked.copies.get(w.meta.id))
    return here._replace(why=WAIT, denominate=free, recheck_after=QUIET_SECONDS)


def drain_obstacle(case: DrainContext, name: str) -> str:
    """Return why nothing can be done about a cluster now: it does not answer, or not to Kueue."""
    cluster = case.seen.objects.clusters.get(name)
    if cluster is not None and cluster.active is False:
        return NOT_CONNECTED
    asked = case.seen.fleet.worker_copies.get(name)
    return f"it cannot be asked for copies: {asked.problem}" if asked and asked.problem else ""


def _not_asked(case: DrainContext, here: DrainStep, problem: str) -> DrainStep:
    asked = case.seen.fleet.worker_copies.get(here.name)
    if problem == NOT_CONNECTED or asked is None:
        return here._replace(why=problem)
    left = COPIES_RETRY_SECONDS - asked.age
    return here._replace(why=problem, ask_for_copies=left <= 0, recheck_after=left if left > 0 else None)


# -- step 2: what only waits


def _send_back(case: DrainContext, here: DrainStep, ready: Collection[Workload]) -> DrainStep:
    """Send back what has had its grace; what has just been placed there is seen in time, or conflicts."""
    left = [_grace_left(case, here, workload) for workload in ready]
    due = tuple(workload for workload, seconds in zip(ready, left, strict=True) if seconds <= 0)
    later = soonest(seconds for seconds in left if seconds > 0)
    return here._replace(why=WAIT, send_back=due, recheck_after=later)


def _grace_left(case: DrainContext, here: DrainStep, workload: Workload) -> float:
    healed = case.seen.timer_ages.get(Timer(TimerKind.MADE_READY, workload.meta.uid))
    if healed is not None:
        return MIN_READY_SECONDS - healed
    grace = waiting_grace(case.seen)
    closed_for = case.age(Timer(TimerKind.GATE_CLOSED_FOR, here.cluster))
    return max(grace - closed_for, max(grace, MIN_READY_SECONDS) - _ready_for(case, workload))


def waiting_grace(seen: Snapshot) -> float:
    """Return how long what only waits may still be placed. Unit: seconds."""
    return 0.0 if seen.policy.removal == IMMEDIATE else seen.policy.waiting_grace


def _ready_for(case: DrainContext, workload: Workload) -> float:
    since = [
        a.since
        for a in workload.check_states
        if a.state == READY and a.check in case.workloads.checks and a.since
    ]
    return (case.seen.now - max(since)).total_seconds() if since else float("inf")


# -- step 3: nothing there, and the cluster itself is asked


def _ask(case: DrainContext, here: DrainStep) -> DrainStep:
    mark = Timer(TimerKind.QUIET, here.cluster)
    quiet = case.age(mark)
    here = here._replace(timers=here.timers | {mark}, why=SOON)
    if quiet < QUIET_SECONDS:
        return here._replace(recheck_after=QUIET_SECONDS - quiet)
    asked = case.seen.fleet.worker_copies.get(here.name)
    if asked is None or asked.age > quiet - QUIET_SECONDS:
        return here._replace(ask_for_copies=True)
    return _told(case, here, asked)


def _told(case: DrainContext, here: DrainStep, asked: WorkerCopies) -> DrainStep:
    """Let it go if it holds no copy of any unfinished Workload of this config."""
    if why := _others(case, here, asked):
        return _left_open(here, asked, why)
    held = tuple(workload for workload in case.seen.workloads if workload.meta.id in asked.copies)
    return (
        here._replace(make_ready=held)
        if held
        else here._replace(why="", gate_closed=False, timers=frozenset())
    )


def _others(case: DrainContext, here: DrainStep, asked: WorkerCopies) -> str:
    """Return whose copies keep the cluster that are not ours to heal: it is Kueue that clears them."""
    held = [workload for workload in case.seen.workloads if workload.meta.id in asked.copies]
    if any(workload.cluster not in ("", here.name) for workload in held):
        return ELSEWHERE
    ours = case.seen.policy.dispatcher or all(case.workloads.gated(w) for w in held if not w.cluster)
    return "" if ours else THEIRS


def _left_open(here: DrainStep, asked: WorkerCopies, why: str) -> DrainStep:
    """Stay, with the gate open, and ask again later: it may take long."""
    left = COPIES_RETRY_SECONDS - asked.age
    marks = here.timers - {Timer(TimerKind.GATE_CLOSED_FOR, here.cluster)}
    here = here._replace(why=why, gate_closed=False, timers=marks)
    return here._replace(recheck_after=left) if left > 0 else here._replace(ask_for_copies=True)
