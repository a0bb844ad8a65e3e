"""
What each Workload is told in its entry for our check: Ready, or why not yet, or to come back.

Pure. Never `Rejected`, and never from Ready back because a Placement changed: only what a
cluster that leaves gives up is sent back, and Kueue resets the entry after every eviction.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import (
    PENDING,
    READY,
    RETRY,
    SENT_AGAIN,
    SENT_BACK,
    STUCK_READY_SECONDS,
    WORKLOAD_WRITES_AT_ONCE,
)
from placement_ac.core.api.objects import AdmissionCheckState, Workload
from placement_ac.core.draining.drain import DrainPlan
from placement_ac.core.inputs.state import CheckStateUpdate, Snapshot, Timer, TimerKind, Verdict
from placement_ac.core.selection.selection import soonest

MESSAGE_MAX: Final = 1024
"""Characters of what a Workload is told: there may be thousands of them."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What a Workload of this config may hope for."""

    verdict: Verdict
    ready: str
    """What is said when it may go; "": no selected cluster can take it."""
    drain: DrainPlan = field(default_factory=DrainPlan)


@dataclass(frozen=True, slots=True)
class WorkloadAnswers:
    """The entries to write into Workloads, at most WORKLOAD_WRITES_AT_ONCE."""

    updates: tuple[CheckStateUpdate, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


def answer_workloads(seen: Snapshot, context: AnswerContext) -> WorkloadAnswers:
    """Return the entries to write now; if there are too many for one go, the rest follows at once."""
    if not seen.workloads:
        return WorkloadAnswers()
    updates = _rotated(tuple(_check_state_updates(seen, context)), seen)
    timers = _no_cluster_timers(seen, context)
    more = 0.0 if len(updates) > WORKLOAD_WRITES_AT_ONCE else None
    stuck = [STUCK_READY_SECONDS - age for age in _stuck_ages(seen) if age < STUCK_READY_SECONDS]
    waits = (_next_retry(seen, timers), more, *stuck)
    return WorkloadAnswers(updates[:WORKLOAD_WRITES_AT_ONCE], timers, soonest(waits))


def _rotated(updates: tuple[CheckStateUpdate, ...], seen: Snapshot) -> tuple[CheckStateUpdate, ...]:
    """Begin at another place each second: writes that fail must not block all others."""
    if len(updates) <= WORKLOAD_WRITES_AT_ONCE:
        return updates
    start = int(seen.now.timestamp()) * WORKLOAD_WRITES_AT_ONCE % len(updates)
    return updates[start:] + updates[:start]


def _check_state_updates(seen: Snapshot, context: AnswerContext) -> Iterator[CheckStateUpdate]:
    """Yield the entries that differ from those that are there."""
    ours = {check.meta.name for check in seen.checks.ours}
    sent = {w.meta.uid: one.cluster for one in context.drain.steps for w in one.send_back}
    for workload in seen.workloads:
        for answer in workload.check_states:
            if answer.check in ours and (reply := _update(seen, context, workload, answer, sent)):
                yield reply


def _no_cluster_timers(seen: Snapshot, context: AnswerContext) -> frozenset[Timer]:
    """Return a mark for every Workload that holds quota and that no cluster could take."""
    if seen.policy.retry_after is None or context.ready:
        return frozenset()
    ours = {check.meta.name for check in seen.checks.ours}
    return frozenset(
        _no_cluster_timer(workload)
        for workload in seen.workloads
        if workload.has_quota and not workload.cluster and any(a.check in ours for a in workload.check_states)
    )


def _next_retry(seen: Snapshot, marks: Iterable[Timer]) -> float | None:
    """Return the seconds until the first of them is sent back."""
    after = seen.policy.retry_after
    left = (after - seen.timer_ages.get(mark, 0.0) for mark in marks) if after is not None else ()
    return min((seconds for seconds in left if seconds > 0), default=None)


def _no_cluster_timer(workload: Workload) -> Timer:
    return Timer(TimerKind.NO_CLUSTER, workload.meta.uid)


def _update(
    seen: Snapshot,
    context: AnswerContext,
    workload: Workload,
    answer: AdmissionCheckState,
    sent: dict[str, str],
) -> CheckStateUpdate | None:
    uid = workload.meta.uid
    if uid in sent and answer.state != RETRY:
        return CheckStateUpdate(workload, answer.check, RETRY, SENT_BACK.format(sent[uid]))
    if (
        answer.state == READY
        and not workload.has_quota
        and not workload.cluster
        and context.drain.gate_message
    ):
        return CheckStateUpdate(workload, answer.check, PENDING, context.drain.gate_message)
    if _is_stuck(seen, workload, answer):
        return CheckStateUpdate(workload, answer.check, RETRY, SENT_AGAIN.format(workload.sent_back_from))
    if answer.state != PENDING or not workload.has_quota or not workload.active:
        return None
    if workload.cluster:
        return CheckStateUpdate(workload, answer.check, READY, f"it runs on {workload.cluster}")
    why = _why_not(context, workload)
    if not why:
        return CheckStateUpdate(workload, answer.check, READY, context.ready)
    if not context.ready and (retry := _comes_back(seen, workload, answer, why)):
        return retry
    return CheckStateUpdate(workload, answer.check, PENDING, why) if answer.message != why else None


def _stuck_ages(seen: Snapshot) -> Iterator[float]:
    """Yield for how long each Workload is Ready, and sent nowhere, that was sent back once. Unit: seconds."""
    ours = {check.meta.name for check in seen.checks.ours}
    for workload in seen.workloads:
        for answer in workload.check_states if workload.sent_back_from else ():
            if answer.check in ours and (seconds := _stuck_age(seen, workload, answer)) is not None:
                yield seconds


def _is_stuck(seen: Snapshot, workload: Workload, answer: AdmissionCheckState) -> bool:
    if not workload.sent_back_from:
        return False
    seconds = _stuck_age(seen, workload, answer)
    return seconds is not None and seconds >= STUCK_READY_SECONDS


def _stuck_age(seen: Snapshot, workload: Workload, answer: AdmissionCheckState) -> float | None:
    """Kueue (by its code) sends nowhere what has an admitted copy left that is not nominated."""
    if answer.state != READY or answer.since is None or seen.policy.dispatcher:
        return None
    if workload.cluster or workload.nominated or not (workload.has_quota and workload.active):
        return None
    theirs = {check.meta.name for check in seen.checks.multikueue}
    others = [entry.state for entry in workload.check_states if entry.check not in theirs]
    if not theirs or any(state != READY for state in others):
        return None
    return (seen.now - answer.since).total_seconds()


def _why_not(context: AnswerContext, workload: Workload) -> str:
    removal = context.drain
    healed = {w.meta.uid for one in removal.steps for w in one.make_ready}
    if workload.meta.uid in healed:
        return ""
    if not context.ready:
        return f"{context.verdict.reason}: {context.verdict.message}"[:MESSAGE_MAX]
    if cluster := removal.held_back.get(workload.meta.uid):
        return f"waits until cluster {cluster} has let go of it"
    return f"waits: {removal.gate_message}" if removal.gate_message else ""


def _comes_back(
    seen: Snapshot, workload: Workload, answer: AdmissionCheckState, why: str
) -> CheckStateUpdate | None:
    """Give the hub's quota back after a long wait; optional."""
    after = seen.policy.retry_after
    if after is None or seen.timer_ages.get(_no_cluster_timer(workload), 0.0) < after:
        return None
    return CheckStateUpdate(workload, answer.check, RETRY, why, seen.policy.requeue_after)
