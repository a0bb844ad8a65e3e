"""
Decide the state of our entry in each Workload: Ready, Pending with the reason, or Retry.

Pure. Never `Rejected`. A change of a Placement alone takes no Ready back: only a cluster that
leaves sends Workloads back, and Kueue resets the entry after every eviction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import (
    NO_CLUSTER_FITS,
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
from placement_ac.core.inputs.state import CheckStateUpdate, Since, SinceKind, Snapshot, Verdict
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.selection.selection import soonest

REQUEUE_SECONDS: Final = 60
"""How long Kueue waits before a job gets quota again that waited too long (its `backoffBaseSeconds`: 60)."""
MESSAGE_MAX: Final = 1024
"""Characters of a message in a Workload: there may be thousands of them."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The data that the answers to all Workloads of a config depend on."""

    verdict: Verdict
    ready: str
    """The message of Ready; "": no selected cluster can take a Workload."""
    drain: DrainPlan
    fit: JobFit | None = None
    """Ranks the clusters for a Workload; None: Kueue's own dispatcher does, or nothing can be decided."""
    awaiting: frozenset[str] = frozenset()
    """Uids of Workloads that wait for a worker's answer (our dispatcher)."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Uid of a nominated Workload → the message of our entry: where to, or why it waits there."""
    refused: Mapping[str, Verdict] = field(default_factory=dict)
    """Checks that have a verdict of their own → this verdict: no Workload is dispatched by them."""


@dataclass(frozen=True, slots=True)
class WorkloadAnswers:
    """The entries to write into Workloads, at most WORKLOAD_WRITES_AT_ONCE."""

    updates: tuple[CheckStateUpdate, ...] = ()
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def answer_workloads(snapshot: Snapshot, context: AnswerContext) -> WorkloadAnswers:
    """Return the entries to write now; if there are too many for one go, the rest follows at once."""
    if not snapshot.workloads:
        return WorkloadAnswers()
    updates = _rotated(tuple(_check_state_updates(snapshot, context)), snapshot)
    lasting = _without_cluster(snapshot, context)
    more = 0.0 if len(updates) > WORKLOAD_WRITES_AT_ONCE else None
    left = [(snapshot.policy.retry_waiting_after or 0.0) - snapshot.age(since) for since in lasting]
    stuck_ages = [_stuck_age(snapshot, workload, entry) for workload, entry in our_entries(snapshot)]
    left += [STUCK_READY_SECONDS - age for age in stuck_ages if age is not None]
    waits = (more, *[seconds for seconds in left if seconds > 0])
    return WorkloadAnswers(updates[:WORKLOAD_WRITES_AT_ONCE], lasting, soonest(waits))


def _rotated(updates: tuple[CheckStateUpdate, ...], snapshot: Snapshot) -> tuple[CheckStateUpdate, ...]:
    """Begin at another place each second: writes that fail must not block all others."""
    if len(updates) <= WORKLOAD_WRITES_AT_ONCE:
        return updates
    start = int(snapshot.now.timestamp()) * WORKLOAD_WRITES_AT_ONCE % len(updates)
    return updates[start:] + updates[:start]


def our_entries(snapshot: Snapshot) -> Iterator[tuple[Workload, AdmissionCheckState]]:
    """Yield each Workload with each of its entries that is of a check of ours."""
    ours = {check.meta.name for check in snapshot.checks.ours}
    for workload in snapshot.workloads:
        for entry in workload.check_states:
            if entry.check in ours:
                yield workload, entry


def _check_state_updates(snapshot: Snapshot, context: AnswerContext) -> Iterator[CheckStateUpdate]:
    """Yield the entries that differ from the observed ones."""
    drain = context.drain
    sent_back = {w.meta.uid: SENT_BACK.format(step.cluster) for step in drain.steps for w in step.send_back}
    for workload, entry in our_entries(snapshot):
        if update := _update(snapshot, context, workload, entry, sent_back):
            yield update


def _without_cluster(snapshot: Snapshot, context: AnswerContext) -> frozenset[Since]:
    """Return every Workload that holds quota and that no cluster can take."""
    if snapshot.policy.retry_waiting_after is None or (context.ready and not context.fit):
        return frozenset()
    waiting = (
        workload for workload, _ in our_entries(snapshot) if workload.has_quota and not workload.cluster
    )
    return frozenset([_no_cluster_since(w) for w in waiting if _has_no_cluster(snapshot, context, w)])


def _has_no_cluster(snapshot: Snapshot, context: AnswerContext, workload: Workload) -> bool:
    if context.ready and context.fit and context.fit.defers(workload):  # as it was when it was judged
        return _no_cluster_since(workload) in snapshot.all_ages
    return not context.ready or bool(_no_fit(context, workload))


def _no_cluster_since(workload: Workload) -> Since:
    return Since(SinceKind.NO_CLUSTER, workload.meta.uid)


def _update(
    snapshot: Snapshot,
    context: AnswerContext,
    workload: Workload,
    entry: AdmissionCheckState,
    sent_back: dict[str, str],
) -> CheckStateUpdate | None:
    if update := _taken_back(snapshot, context, workload, entry, sent_back):
        return update
    if entry.state == READY and (message := context.messages.get(workload.meta.uid)):
        return CheckStateUpdate(workload, entry.check, READY, message[:MESSAGE_MAX])
    if entry.state != PENDING or not workload.has_quota or not workload.active:
        return None
    if workload.cluster:
        return CheckStateUpdate(workload, entry.check, READY, f"it runs on {workload.cluster}")
    if (
        context.ready
        and workload.meta.uid in context.awaiting
        and not _is_made_ready(context.drain, workload)
    ):
        return None  # it will soon be known where it fits
    reason = _pending_reason(context, workload, entry.check)
    if not reason:
        return CheckStateUpdate(workload, entry.check, READY, context.ready)
    no_cluster = not context.ready or reason == _no_fit(context, workload)
    if no_cluster and (retry := _give_quota_back(snapshot, workload, entry, reason)):
        return retry
    if entry.message == reason:
        return None
    return CheckStateUpdate(workload, entry.check, PENDING, reason)


def _taken_back(
    snapshot: Snapshot,
    context: AnswerContext,
    workload: Workload,
    entry: AdmissionCheckState,
    sent_back: dict[str, str],
) -> CheckStateUpdate | None:
    """Return the answer to a Workload that leaves a cluster, lost its quota at the gate, or is stuck."""
    uid = workload.meta.uid
    if uid in sent_back and entry.state != RETRY:
        return CheckStateUpdate(workload, entry.check, RETRY, sent_back[uid])
    is_unplaced = not (workload.has_quota or workload.cluster)
    if entry.state == READY and is_unplaced and context.drain.gate_message:
        return CheckStateUpdate(workload, entry.check, PENDING, context.drain.gate_message)
    if (_stuck_age(snapshot, workload, entry) or 0.0) >= STUCK_READY_SECONDS:
        return CheckStateUpdate(workload, entry.check, RETRY, SENT_AGAIN.format(workload.sent_back_from))
    return None


def _stuck_age(snapshot: Snapshot, workload: Workload, entry: AdmissionCheckState) -> float | None:
    """Return the seconds for which a Workload that was sent back once is Ready and not dispatched, if it is.

    Kueue (by its code) does not dispatch a Workload that left an admitted copy and is not nominated.
    """
    if (
        not workload.sent_back_from
        or entry.state != READY
        or entry.since is None
        or snapshot.policy.dispatcher
    ):
        return None
    if workload.cluster or workload.nominated or not (workload.has_quota and workload.active):
        return None
    multikueue = {check.meta.name for check in snapshot.checks.multikueue}
    others = [entry.state for entry in workload.check_states if entry.check not in multikueue]
    if not multikueue or any(state != READY for state in others):
        return None
    return (snapshot.now - entry.since).total_seconds()


def _pending_reason(context: AnswerContext, workload: Workload, check: str) -> str:
    """Return why a Workload may not be dispatched yet; "" if it may."""
    drain = context.drain
    if _is_made_ready(drain, workload):
        return ""
    if not context.ready or check in context.refused:
        verdict = context.refused.get(check, context.verdict)
        return f"{verdict.reason}: {verdict.message}"[:MESSAGE_MAX]
    if cluster := drain.held_back.get(workload.meta.uid):
        return f"waits until cluster {cluster} holds no copy of it"
    return f"waits: {drain.gate_message}" if drain.gate_message else _no_fit(context, workload)


def _no_fit(context: AnswerContext, workload: Workload) -> str:
    """Return why none of the clusters fits the Workload; "" if one does."""
    problem = context.fit.problem(workload) if context.fit and context.ready else ""
    return f"{NO_CLUSTER_FITS}: {problem}"[:MESSAGE_MAX] if problem else ""


def awaited_clusters(drain: DrainPlan, workload: Workload) -> tuple[str, ...]:
    """Return the leaving clusters for which a Workload may not be dispatched yet."""
    if _is_made_ready(drain, workload):
        return ()
    cluster = drain.held_back.get(workload.meta.uid)
    return (cluster,) if cluster else drain.gate_closed_for


def _is_made_ready(drain: DrainPlan, workload: Workload) -> bool:
    return any(workload in step.make_ready for step in drain.steps)


def _give_quota_back(
    snapshot: Snapshot, workload: Workload, entry: AdmissionCheckState, reason: str
) -> CheckStateUpdate | None:
    """Send a Workload back after a long wait for a cluster (a setting), so that its quota is free."""
    after = snapshot.policy.retry_waiting_after
    if after is None or snapshot.age(_no_cluster_since(workload)) < after:
        return None
    return CheckStateUpdate(workload, entry.check, RETRY, reason, REQUEUE_SECONDS)
