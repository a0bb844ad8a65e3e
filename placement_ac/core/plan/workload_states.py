"""
What each Workload is told in its entry for our check: Ready, or why not yet, or to come back.

Pure. Never `Rejected`, and never from Ready back because a Placement changed: only what a
cluster that leaves gives up is sent back, and Kueue resets the entry after every eviction.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import PENDING, READY, RETRY, SENT_AGAIN, SENT_BACK, STRANDED_SECONDS
from placement_ac.core.api.objects import Answer, Workload
from placement_ac.core.draining.drain import Removal
from placement_ac.core.inputs.state import Mark, Reply, Snapshot, Verdict

MESSAGE_MAX: Final = 1024
"""Characters of what a Workload is told: there may be thousands of them."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a Workload of this config may hope for."""

    verdict: Verdict
    ready: str
    """What is said when it may go; "": no selected cluster can take it."""
    removal: Removal = field(default_factory=Removal)


def replies(seen: Snapshot, outlook: Outlook) -> Iterator[Reply]:
    """Yield what is to be written, and nothing that stands there already."""
    ours = {check.meta.name for check in seen.checks}
    sent = {w.meta.uid: one.cluster for one in outlook.removal.leaving for w in one.send_back}
    for workload in seen.workloads:
        for answer in workload.answers:
            if answer.check in ours and (reply := _reply(seen, outlook, workload, answer, sent)):
                yield reply


def stuck(seen: Snapshot, outlook: Outlook) -> frozenset[Mark]:
    """Return a mark for every Workload that holds quota and that no cluster could take."""
    if seen.policy.retry_after is None or outlook.ready:
        return frozenset()
    ours = {check.meta.name for check in seen.checks}
    return frozenset(
        _stuck(workload)
        for workload in seen.workloads
        if workload.quota and not workload.cluster and any(a.check in ours for a in workload.answers)
    )


def next_retry(seen: Snapshot, marks: Iterable[Mark]) -> float | None:
    """Return the seconds until the first of them is sent back."""
    after = seen.policy.retry_after
    left = (after - seen.ages.get(mark, 0.0) for mark in marks) if after is not None else ()
    return min((seconds for seconds in left if seconds > 0), default=None)


def _stuck(workload: Workload) -> Mark:
    return Mark("stuck", workload.meta.uid)


def _reply(
    seen: Snapshot, outlook: Outlook, workload: Workload, answer: Answer, sent: dict[str, str]
) -> Reply | None:
    uid = workload.meta.uid
    if uid in sent and answer.state != RETRY:
        return Reply(workload, answer.check, RETRY, SENT_BACK.format(sent[uid]))
    if answer.state == READY and not workload.quota and not workload.cluster and outlook.removal.closed:
        return Reply(workload, answer.check, PENDING, outlook.removal.closed)
    if _is_stuck(seen, workload, answer):
        return Reply(workload, answer.check, RETRY, SENT_AGAIN.format(workload.sent_from))
    if answer.state != PENDING or not workload.quota or not workload.active:
        return None
    if workload.cluster:
        return Reply(workload, answer.check, READY, f"it runs on {workload.cluster}")
    why = _why_not(outlook, workload)
    if not why:
        return Reply(workload, answer.check, READY, outlook.ready)
    if not outlook.ready and (retry := _comes_back(seen, workload, answer, why)):
        return retry
    return Reply(workload, answer.check, PENDING, why) if answer.message != why else None


def stuck_for(seen: Snapshot) -> Iterator[float]:
    """Yield for how long each Workload is Ready, and sent nowhere, that was sent back once. Unit: seconds."""
    ours = {check.meta.name for check in seen.checks}
    for workload in seen.workloads:
        for answer in workload.answers if workload.sent_from else ():
            if answer.check in ours and (seconds := _stuck_for(seen, workload, answer)) is not None:
                yield seconds


def _is_stuck(seen: Snapshot, workload: Workload, answer: Answer) -> bool:
    if not workload.sent_from:
        return False
    seconds = _stuck_for(seen, workload, answer)
    return seconds is not None and seconds >= STRANDED_SECONDS


def _stuck_for(seen: Snapshot, workload: Workload, answer: Answer) -> float | None:
    """Kueue (by its code) sends nowhere what has an admitted copy left that is not nominated."""
    if answer.state != READY or answer.since is None or seen.policy.dispatcher:
        return None
    if workload.cluster or workload.nominated or not (workload.quota and workload.active):
        return None
    theirs = {check.meta.name for check in seen.users}
    others = [entry.state for entry in workload.answers if entry.check not in theirs]
    if not theirs or any(state != READY for state in others):
        return None
    return (seen.now - answer.since).total_seconds()


def _why_not(outlook: Outlook, workload: Workload) -> str:
    removal = outlook.removal
    healed = {w.meta.uid for one in removal.leaving for w in one.heal}
    if workload.meta.uid in healed:
        return ""
    if not outlook.ready:
        return f"{outlook.verdict.reason}: {outlook.verdict.message}"[:MESSAGE_MAX]
    if cluster := removal.held_back.get(workload.meta.uid):
        return f"waits until cluster {cluster} has let go of it"
    return f"waits: {removal.closed}" if removal.closed else ""


def _comes_back(seen: Snapshot, workload: Workload, answer: Answer, why: str) -> Reply | None:
    """Give the hub's quota back after a long wait; optional."""
    after = seen.policy.retry_after
    if after is None or seen.ages.get(_stuck(workload), 0.0) < after:
        return None
    return Reply(workload, answer.check, RETRY, why, seen.policy.requeue_after)
