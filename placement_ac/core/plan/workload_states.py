"""
What each Workload is told in its entry for our check: Ready, or why not yet, or to come back.

Pure. Never `Rejected`, and never from Ready back because a Placement changed: only what a
cluster that leaves gives up is sent back, and Kueue resets the entry after every eviction.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import PENDING, READY, RETRY, SENT_AGAIN, SENT_BACK, STUCK_READY_SECONDS
from placement_ac.core.api.objects import AdmissionCheckState, Workload
from placement_ac.core.draining.drain import DrainPlan
from placement_ac.core.inputs.state import CheckStateUpdate, Snapshot, Timer, TimerKind, Verdict

MESSAGE_MAX: Final = 1024
"""Characters of what a Workload is told: there may be thousands of them."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What a Workload of this config may hope for."""

    verdict: Verdict
    ready: str
    """What is said when it may go; "": no selected cluster can take it."""
    drain: DrainPlan = field(default_factory=DrainPlan)


def check_state_updates(seen: Snapshot, outlook: AnswerContext) -> Iterator[CheckStateUpdate]:
    """Yield what is to be written, and nothing that stands there already."""
    ours = {check.meta.name for check in seen.checks.ours}
    sent = {w.meta.uid: one.cluster for one in outlook.drain.steps for w in one.send_back}
    for workload in seen.workloads:
        for answer in workload.check_states:
            if answer.check in ours and (reply := _update(seen, outlook, workload, answer, sent)):
                yield reply


def stuck_timers(seen: Snapshot, outlook: AnswerContext) -> frozenset[Timer]:
    """Return a mark for every Workload that holds quota and that no cluster could take."""
    if seen.policy.retry_after is None or outlook.ready:
        return frozenset()
    ours = {check.meta.name for check in seen.checks.ours}
    return frozenset(
        _stuck(workload)
        for workload in seen.workloads
        if workload.has_quota and not workload.cluster and any(a.check in ours for a in workload.check_states)
    )


def next_retry(seen: Snapshot, marks: Iterable[Timer]) -> float | None:
    """Return the seconds until the first of them is sent back."""
    after = seen.policy.retry_after
    left = (after - seen.timer_ages.get(mark, 0.0) for mark in marks) if after is not None else ()
    return min((seconds for seconds in left if seconds > 0), default=None)


def _stuck(workload: Workload) -> Timer:
    return Timer(TimerKind.NO_CLUSTER, workload.meta.uid)


def _update(
    seen: Snapshot,
    outlook: AnswerContext,
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
        and outlook.drain.gate_message
    ):
        return CheckStateUpdate(workload, answer.check, PENDING, outlook.drain.gate_message)
    if _is_stuck(seen, workload, answer):
        return CheckStateUpdate(workload, answer.check, RETRY, SENT_AGAIN.format(workload.sent_back_from))
    if answer.state != PENDING or not workload.has_quota or not workload.active:
        return None
    if workload.cluster:
        return CheckStateUpdate(workload, answer.check, READY, f"it runs on {workload.cluster}")
    why = _why_not(outlook, workload)
    if not why:
        return CheckStateUpdate(workload, answer.check, READY, outlook.ready)
    if not outlook.ready and (retry := _comes_back(seen, workload, answer, why)):
        return retry
    return CheckStateUpdate(workload, answer.check, PENDING, why) if answer.message != why else None


def stuck_for(seen: Snapshot) -> Iterator[float]:
    """Yield for how long each Workload is Ready, and sent nowhere, that was sent back once. Unit: seconds."""
    ours = {check.meta.name for check in seen.checks.ours}
    for workload in seen.workloads:
        for answer in workload.check_states if workload.sent_back_from else ():
            if answer.check in ours and (seconds := _stuck_for(seen, workload, answer)) is not None:
                yield seconds


def _is_stuck(seen: Snapshot, workload: Workload, answer: AdmissionCheckState) -> bool:
    if not workload.sent_back_from:
        return False
    seconds = _stuck_for(seen, workload, answer)
    return seconds is not None and seconds >= STUCK_READY_SECONDS


def _stuck_for(seen: Snapshot, workload: Workload, answer: AdmissionCheckState) -> float | None:
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


def _why_not(outlook: AnswerContext, workload: Workload) -> str:
    removal = outlook.drain
    healed = {w.meta.uid for one in removal.steps for w in one.make_ready}
    if workload.meta.uid in healed:
        return ""
    if not outlook.ready:
        return f"{outlook.verdict.reason}: {outlook.verdict.message}"[:MESSAGE_MAX]
    if cluster := removal.held_back.get(workload.meta.uid):
        return f"waits until cluster {cluster} has let go of it"
    return f"waits: {removal.gate_message}" if removal.gate_message else ""


def _comes_back(
    seen: Snapshot, workload: Workload, answer: AdmissionCheckState, why: str
) -> CheckStateUpdate | None:
    """Give the hub's quota back after a long wait; optional."""
    after = seen.policy.retry_after
    if after is None or seen.timer_ages.get(_stuck(workload), 0.0) < after:
        return None
    return CheckStateUpdate(workload, answer.check, RETRY, why, seen.policy.requeue_after)
