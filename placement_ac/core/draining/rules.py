"""
The states of a cluster that drains, as one ordered table: state, when, what it asks for, and when it ends.

Pure. The first rule that holds counts; each snapshot alone decides. docs/draining.md shows
the same table, with the gate and the reason in the condition from `DrainState`. It matters most that no job
is killed or runs twice. Source: measured on Kueue main, with and without an external dispatcher.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    CLUSTER_LOST,
    COPIES_RETRY_SECONDS,
    IMMEDIATE,
    MIN_READY_SECONDS,
    QUIET_SECONDS,
    READY,
    WORKLOAD_SENT_BACK,
    WORKLOADS_SENT_BACK,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.state import DrainState, DrainStep
from placement_ac.core.inputs.state import EventIntent, Since, SinceKind, Snapshot
from placement_ac.core.selection.capacity import seconds_unchanged
from placement_ac.core.selection.selection import soonest


def state_of(leaving: LeavingCluster) -> DrainStep:
    """Return the state of the cluster, and what it asks for."""
    rule = next(rule for rule in RULES if rule.holds(leaving))
    detail = leaving.obstacle if leaving.running else leaving.report.problem
    return rule.ask(leaving, DrainStep(leaving.cluster, leaving.name, rule.state, detail, leaving.settles_in))


# -- what it asks for


def nothing(_: LeavingCluster, step: DrainStep) -> DrainStep:
    return step


def report_loss(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Post events on the check and on each Workload that was there."""
    name = it.cluster
    message = f"ManagedCluster {name} is gone, and with it"
    to_each = f"cluster {name}, where it was, is lost with its ManagedCluster; it starts again elsewhere"
    lost = (*it.running, *it.waiting)
    event = EventIntent(CLUSTER_LOST, message, "list", lost, (CLUSTER_LOST, to_each))
    return step._replace(events=(event,)) if lost else step


def ask_later(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Ask a cluster that cannot be left again after a while, with the gate open: it may take long."""
    if it.is_disconnected:
        return step
    left = COPIES_RETRY_SECONDS - it.report.age
    return _again(step, left) if left > 0 else ask(it, step)


def leave_gate_open(it: LeavingCluster, step: DrainStep) -> DrainStep:
    lasting = frozenset() if it.nears_gate else frozenset({it.since(SinceKind.QUIET)})
    return ask_later(it, step._replace(lasting=lasting))


def wait_for_jobs(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Wait for their end or the deadline; ask the cluster if they are to be sent back."""
    if not it.sends_back:
        return step._replace(requeue_after=it.deadline_left)
    return ask_later(it, step) if it.is_held_by_copies else ask(it, step)


def ask(_: LeavingCluster, step: DrainStep) -> DrainStep:
    return step._replace(ask_for_copies=True)


def keep_gate_closed(it: LeavingCluster, step: DrainStep) -> DrainStep:
    return step._replace(lasting=step.lasting | {it.since(SinceKind.GATE_CLOSED_FOR)})


def close_gate(it: LeavingCluster, step: DrainStep) -> DrainStep:
    return keep_gate_closed(it, step)._replace(requeue_after=0.0)


def send_back_running(it: LeavingCluster, step: DrainStep) -> DrainStep:
    step = keep_gate_closed(it, step)
    send_back = tuple([w for w in it.running if not it.workloads.is_sent_back(w)])
    if not send_back:
        return step
    cause = "for maintenance" if it.is_forced else "as the deadline has passed"
    cause = "at once" if it.snapshot.policy.removal == IMMEDIATE else cause
    message = f"cluster {it.cluster} leaves {cause}; sent back"
    to_each = f"sent back from cluster {it.cluster}, which leaves {cause}; it starts again elsewhere"
    event = EventIntent(WORKLOADS_SENT_BACK, message, "answers", send_back, (WORKLOAD_SENT_BACK, to_each))
    return step._replace(send_back=send_back, events=(event,))


def take_back_waiting(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Send back those whose grace is over; one placed meanwhile is seen in time, or conflicts."""
    if it.snapshot.policy.dispatcher:
        return _take_out(it, step, it.workloads.waiting_only(it.name))
    left = [(w, _grace_left(it, w)) for w in it.to_take_back]
    due = tuple([workload for workload, seconds in left if seconds <= 0])
    later = soonest(seconds for _, seconds in left if seconds > 0)
    return keep_gate_closed(it, step)._replace(send_back=due, requeue_after=later)


def confirm_quiet(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Ask the cluster when nothing has been there for a while."""
    step = step._replace(lasting=step.lasting | {it.since(SinceKind.QUIET)})
    step = keep_gate_closed(it, step) if it.passes_gate else step
    left = QUIET_SECONDS - it.age(SinceKind.QUIET)
    return step._replace(requeue_after=left) if left > 0 else ask(it, step)


def make_ready(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Make Ready the Workloads of which it holds copies, so that Kueue records them."""
    return confirm_quiet(it, step)._replace(ask_for_copies=False, make_ready=tuple(it.copies))


def keep_standby(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Keep the ages of a cluster that stands by, also while it is unlisted: the write may fail."""
    kinds = (SinceKind.STANDING_BY, SinceKind.QUIET) if it.snapshot.workloads else (SinceKind.STANDING_BY,)
    return step._replace(lasting=frozenset(map(it.since, kinds if it.snapshot.policy.unlist_after else ())))


def stand_by(it: LeavingCluster, step: DrainStep) -> DrainStep:
    step = keep_standby(it, step)
    if not it.is_confirmed_quiet:
        return confirm_quiet(it, step)._replace(unconfirmed=it.was_draining)
    return step._replace(requeue_after=it.standby_left) if it.standby_left > 0 else ask(it, step)


class Rule(NamedTuple):
    """A state, when a cluster is in it, and what it asks for: questions, ages and writes.

    The texts are those of docs/draining.md; like the conditions, they assume that no rule above holds.
    """

    state: DrainState
    when: str
    holds: Callable[[LeavingCluster], object]
    ask: Callable[[LeavingCluster, DrainStep], DrainStep]
    ends_when: str


# Order matters: a rule may assume that none above it holds.
RULES: Final = (
    Rule(
        DrainState.UNLISTED,
        "its ManagedCluster is deleted",
        lambda it: it.is_lost,
        report_loss,
        "the list is written without it; a second later the gate opens",
    ),
    Rule(
        DrainState.UNREACHABLE,
        "OCM cannot reach it (taint `unreachable`)",
        lambda it: it.is_unreachable,
        nothing,
        "OCM takes the taint `unreachable` away, or the ManagedCluster is deleted",
    ),
    Rule(
        DrainState.SETTLING,
        "no job runs there, and the selection changed again within `--settle`",
        lambda it: it.settles_in and not it.running,
        nothing,
        "the selection has been the same for `--settle`; then the gate is closed",
    ),
    Rule(
        DrainState.WITHOUT_OUR_CHECK,
        "a job that is to be sent back, or one that waits there, does not carry placement-ac's check",
        lambda it: it.needs_gate and not it.is_gated,
        nothing,
        "they have finished",
    ),
    Rule(
        DrainState.GATE_REOPENED,
        "the gate was closed for too long",
        lambda it: it.needs_gate and it.reopened,
        nothing,
        "a minute has passed",
    ),
    Rule(
        DrainState.CANNOT_SEND_BACK,
        "jobs are to be sent back (deadline, or `Immediate`), but the cluster does not answer, or Kueue is"
        " not connected to it",
        lambda it: it.sends_back and it.obstacle,
        ask_later,
        "the cluster answers, and Kueue is connected to it",
    ),
    Rule(
        DrainState.SENDING_BACK,
        "jobs are to be sent back, and the gate is closed",
        lambda it: it.sends_back and it.passes_gate,
        send_back_running,
        "Kueue has taken them back",
    ),
    Rule(
        DrainState.SEND_BACK_DUE,
        "jobs are to be sent back, and the cluster has reported its copies",
        lambda it: it.sends_back and not it.must_be_asked,
        close_gate,
        "the gate has been closed; then they are sent back",
    ),
    Rule(
        DrainState.RUNNING,
        "jobs run there",
        lambda it: it.running,
        wait_for_jobs,
        "the last of them ends, the deadline passes, or the policy is `Immediate`",
    ),
    Rule(
        DrainState.CLEANING_UP,
        "the last Workload of the config has just ended (without the stable list)",
        lambda it: it.is_just_idle,
        confirm_quiet,
        "2 s have passed since the last Workload of the config ended",
    ),
    Rule(
        DrainState.DISCONNECTED,
        "Kueue is not connected to it",
        lambda it: it.snapshot.workloads and it.is_disconnected,
        nothing,
        "Kueue is connected to it",
    ),
    Rule(
        DrainState.NOT_ANSWERING,
        "it could not be asked for its copies",
        lambda it: it.snapshot.workloads and it.report.problem,
        ask_later,
        "it reports its copies; it is asked every 15 s",
    ),
    Rule(
        DrainState.WAITING,
        "the gate is closed, and Workloads are `Ready`; with the dispatcher: Workloads are nominated there",
        lambda it: it.to_take_back,
        take_back_waiting,
        "they are placed, or sent back after `--waiting-grace`",
    ),
    Rule(
        DrainState.TAKING_BACK,
        "the gate is closed, and a Workload that was sent back is not yet `Pending`",
        lambda it: it.passes_gate and not it.is_taken_back,
        keep_gate_closed,
        "Kueue has set every Workload that was sent back to `Pending`",
    ),
    Rule(
        DrainState.PLACED_ELSEWHERE,
        "it holds copies of Workloads that run elsewhere",
        lambda it: it.copies_placed_elsewhere,
        leave_gate_open,
        "Kueue has removed these copies",
    ),
    Rule(
        DrainState.WITHOUT_OUR_CHECK,
        "it holds copies of Workloads without placement-ac's check",
        lambda it: it.copies_without_our_check,
        leave_gate_open,
        "they have finished",
    ),
    Rule(
        DrainState.ASKING,
        "the gate is open, and the cluster has not reported its copies lately",
        lambda it: it.nears_gate and it.must_be_asked,
        ask,
        "the cluster has reported its copies; then the gate is closed",
    ),
    Rule(
        DrainState.CLOSING,
        "the gate is open, and the cluster has reported its copies",
        lambda it: it.nears_gate,
        close_gate,
        "the gate has been closed",
    ),
    Rule(
        DrainState.COPY_FOUND,
        "it holds copies of Workloads that run nowhere",
        lambda it: it.copies,
        make_ready,
        "Kueue records the Workload, which is `Ready` for 3 s, or it is sent back once more",
    ),
    Rule(
        DrainState.STANDING_BY,
        "with the stable list: it may stand by",
        lambda it: it.stands_by,
        stand_by,
        "it is selected again, `--unlist-after` has passed, its slot is needed, or its credentials are gone",
    ),
    Rule(
        DrainState.QUIET,
        "nothing has been there for less than 2 s, or it has not reported its copies since",
        lambda it: not it.is_confirmed_quiet,
        confirm_quiet,
        "after 2 s the cluster is asked again, and reports no copy",
    ),
    Rule(
        DrainState.UNLISTED,
        "otherwise",
        lambda _: True,
        keep_standby,
        "the list is written without it; a second later the gate opens",
    ),
)


def _grace_left(it: LeavingCluster, workload: Workload) -> float:
    made_ready = it.snapshot.all_ages.get(Since(SinceKind.MADE_READY, workload.meta.uid))
    if made_ready is not None:
        return MIN_READY_SECONDS - made_ready
    grace, ready_for = waiting_grace(it.snapshot), _ready_for(it, workload)
    longer = max(grace, MIN_READY_SECONDS)
    if workload.sent_back_from:  # it gets a whole grace in which Kueue need not read another list
        return longer - min(ready_for, seconds_unchanged(it.snapshot))
    return max(grace - it.age(SinceKind.GATE_CLOSED_FOR), longer - ready_for)


def waiting_grace(snapshot: Snapshot) -> float:
    """Return how long a waiting Workload may still be placed. Unit: seconds."""
    return 0.0 if snapshot.policy.removal == IMMEDIATE else snapshot.policy.waiting_grace


def _ready_for(it: LeavingCluster, workload: Workload) -> float:
    ours = [entry for entry in workload.check_states if entry.check in it.workloads.checks]
    since = [entry.since for entry in ours if entry.state == READY and entry.since]
    return (it.snapshot.now - max(since)).total_seconds() if since else float("inf")


# -- our dispatcher: Kueue records an admission on a worker a second after it happens, and only while the
# cluster is nominated. So a withdrawal asks the cluster before, and again 2 s after; what has quota there
# stays nominated, or is nominated again, until it is recorded.


def withdraw_waiting(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Withdraw what waits on a cluster where Workloads run, if it can be asked."""
    return withdraw(it, step, it.workloads.waiting_only(it.name))


def withdraw(it: LeavingCluster, step: DrainStep, waiting: Collection[Workload]) -> DrainStep:
    """Withdraw these Workloads, which wait there, or confirm that none has quota there nevertheless."""
    if not it.workloads.undecided:
        return step
    if it.obstacle:
        return ask_later(it, step)
    return _take_out(it, step, waiting) if waiting else _confirm(it, step)


def _take_out(it: LeavingCluster, step: DrainStep, waiting: Iterable[Workload]) -> DrainStep:
    """Take the cluster out of the nominations of those that have no quota there, by a fresh report."""
    if not it.has_report(QUIET_SECONDS):
        return ask(it, step)
    without_quota = tuple([w for w in waiting if not it.report.copies.get(w.meta.id)])
    return _again(step._replace(denominate=without_quota), QUIET_SECONDS)


def _confirm(it: LeavingCluster, step: DrainStep) -> DrainStep:
    """Ask once more, 2 s after nothing waits there, and nominate again what has quota there nevertheless."""
    since = it.age(SinceKind.WITHDRAWN)
    step = step._replace(lasting=step.lasting | {it.since(SinceKind.WITHDRAWN)})
    if since < QUIET_SECONDS:
        return _again(step, QUIET_SECONDS - since)
    if not it.has_report(since - QUIET_SECONDS):
        return ask(it, step)
    copies = [w for w in it.workloads.undecided if it.report.copies.get(w.meta.id)]
    held = [w for w in copies if _is_of_now(it, w)]
    if len(held) < len(copies):
        step = ask_later(it, step)
    return step._replace(make_ready=(*step.make_ready, *held))


def _is_of_now(it: LeavingCluster, job: Workload) -> bool:
    """Whether the report of its copy is about the quota that the job has now, not about an earlier try."""
    since, evicted = job.quota_since, job.evicted_at
    if since is None:
        return job.has_quota
    if evicted is not None and evicted > since:
        return False
    reported = it.snapshot.now - timedelta(seconds=it.report.age)
    return reported > since + timedelta(seconds=1)  # the API gives whole seconds


def _again(step: DrainStep, seconds: float) -> DrainStep:
    return step._replace(requeue_after=soonest((step.requeue_after, seconds)))
