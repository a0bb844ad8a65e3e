"""
Decide about each cluster that is listed and no longer wanted: it drains, passes the gate, or is lost.

Pure. The cause for which it leaves matters, and so does the admin's policy; it matters more that no
job is killed or runs twice. A cluster is unlisted at once only if no unfinished Workload can be there.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from placement_ac.core.api.constants import (
    CLUSTER_LOST,
    COPIES_RETRY_SECONDS,
    GATE_CLOSED_MAX_SECONDS,
    GATE_REOPEN_SECONDS,
    IMMEDIATE,
    MIN_READY_SECONDS,
    QUIET_SECONDS,
    WORKLOAD_SENT_BACK,
    WORKLOADS_SENT_BACK,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined
from placement_ac.core.draining import gate, standby, withdrawal
from placement_ac.core.draining.settling import seconds_left, settling
from placement_ac.core.draining.state import ConfigWorkloads, DrainContext, DrainState, DrainStep
from placement_ac.core.inputs.state import NOTHING, EventIntent, Snapshot, Timer, TimerKind
from placement_ac.core.selection.selection import listed_names, soonest

GATE_CLOSED_TIMER = Timer(TimerKind.GATE_CLOSED)
GATE_REOPENED_TIMER = Timer(TimerKind.GATE_REOPENED)


class DrainPlan(NamedTuple):
    """The steps of all clusters that leave, and what follows from them together."""

    steps: tuple[DrainStep, ...] = ()
    timers: frozenset[Timer] = frozenset()
    requeue_after: float | None = None
    held_back: Mapping[str, str] = NOTHING
    """Uid of a Workload that was sent back → the cluster that may still hold a copy of it."""
    ask_for_copies: tuple[str, ...] = ()
    """MultiKueueClusters whose clusters are to be asked."""
    gate_closed_for: tuple[str, ...] = ()
    """The clusters for which no Workload becomes Ready; empty when the gate is open."""

    @property
    def staying(self) -> tuple[DrainStep, ...]:
        """The steps of the clusters that stay listed for now."""
        return tuple([step for step in self.steps if step.stays])

    @property
    def gate_message(self) -> str:
        """Why no Workload becomes Ready; "" when the gate is open."""
        names = joined(self.gate_closed_for)
        return f"{names} is leaving: it takes a moment" if names else ""


def plan_drain(
    seen: Snapshot,
    wanted: Collection[str],
    workloads: ConfigWorkloads,
    listed: Mapping[str, str],
    *,
    edited: bool,
    renamed: Collection[str],
) -> DrainPlan:
    """Return a step for every listed MultiKueueCluster that is not `wanted`; `listed` by `listed_clusters`.

    It may have been listed by someone else: jobs may run on it nevertheless.
    `edited`: whether someone has just changed the Placement. `renamed`: clusters that get another name.
    """
    names = listed_names(seen)
    clusters = {name: cluster for cluster, name in listed.items()}
    excess = len({*names, *wanted}) - seen.hub.clusters_max
    must_leave = _longest_standing_by(seen, excess).union(renamed)
    context = DrainContext(seen, workloads, _is_reopened(seen), must_leave)
    wait, selection_timers = settling(seen, wanted, edited=edited)
    unwanted = [
        DrainStep(cluster, name, DrainState.UNLISTED, settles_in=seconds_left(seen, cluster, wait))
        for name in names
        if name not in wanted
        for cluster in [clusters.get(name, name)]
    ]
    steps = tuple([_recover_copies(context, _advance(context, step)) for step in unwanted])
    held_back, unsure = _held_back(context, steps)
    just_unlisted = _just_unlisted(seen, {clusters.get(name, name) for name in names})
    closing = {step.cluster for step in steps if step.stays and step.state.closes_gate}
    if seen.policy.dispatcher:  # the gate is closed only while the config is written without a cluster
        closing = set()
    being_unlisted = {step.cluster for step in steps if not step.stays}
    waits = (*_gate_waits(context, closing, just_unlisted), QUIET_SECONDS if held_back else None)
    return DrainPlan(
        steps,
        _timers(context, steps, just_unlisted, closing) | selection_timers,
        soonest((*waits, *[step.requeue_after for step in steps], *[s.settles_in or None for s in steps])),
        held_back,
        tuple(dict.fromkeys((*[step.name for step in steps if step.ask_for_copies], *unsure))),
        tuple(sorted(closing | being_unlisted | {timer.subject for timer in just_unlisted})),
    )


def _advance(context: DrainContext, step: DrainStep) -> DrainStep:
    seen, cluster = context.seen, step.cluster
    running = context.workloads.running.get(step.name, [])
    has_our_name = step.name == seen.hub.multikueue_cluster_name(seen.name, cluster)
    if has_our_name and cluster in seen.fleet.deleted_clusters:
        return _lose(step, [*running, *context.workloads.waiting.get(step.name, [])])
    if cluster in seen.fleet.unreachable:
        return step._replace(state=DrainState.UNREACHABLE)
    if running:
        step = _drain(context, step, running)
        return withdrawal.withdraw_waiting(context, step) if seen.policy.dispatcher else step
    if step.settles_in:
        return step._replace(state=DrainState.SETTLING, requeue_after=step.settles_in)
    if not seen.workloads:
        return standby.stand_by(context, step) if seen.policy.unlist_after else _finish(context, step)
    if seen.policy.dispatcher:
        return _advance_with_dispatcher(context, step)
    return gate.advance_drain(context, step)


def _advance_with_dispatcher(context: DrainContext, step: DrainStep) -> DrainStep:
    """Withdraw the nominations, and ask the cluster before and after; then it leaves, or stands by."""
    if obstacle := gate.drain_obstacle(context, step):
        return obstacle
    if context.workloads.waiting.get(step.name):
        return withdrawal.withdraw(context, step._replace(state=DrainState.WAITING))
    stays = context.seen.policy.unlist_after > 0
    return standby.stand_by(context, step) if stays else gate.ask_when_quiet(context, step)


def _finish(context: DrainContext, step: DrainStep) -> DrainStep:
    """Give Kueue a moment to clean up where jobs have just ended: it does so while the cluster is listed."""
    timer = Timer(TimerKind.QUIET, step.cluster)
    left = QUIET_SECONDS - context.seen.age(timer)
    config = context.seen.objects.config
    if config is None or step.name not in config.draining or left <= 0:
        return step
    return step._replace(state=DrainState.CLEANING_UP, timers=frozenset({timer}), requeue_after=left)


def _lose(step: DrainStep, workloads: Collection[Workload]) -> DrainStep:
    if not workloads:
        return step
    message = f"ManagedCluster {step.cluster} is gone, and with it"
    to_each = (
        f"cluster {step.cluster}, where it was, is lost with its ManagedCluster; it starts again elsewhere"
    )
    lost = EventIntent(CLUSTER_LOST, message, "list", tuple(workloads), (CLUSTER_LOST, to_each))
    return step._replace(events=(lost,))


def _longest_standing_by(seen: Snapshot, count: int) -> frozenset[str]:
    """Return up to `count` of the clusters that stand by, those that have done so for the longest time."""
    ages = seen.ages(TimerKind.STANDING_BY)
    return frozenset(sorted(ages, key=lambda cluster: (-ages[cluster], cluster))[: max(count, 0)])


# -- while jobs run there


def _drain(context: DrainContext, step: DrainStep, running: list[Workload]) -> DrainStep:
    """Wait for the running jobs; while the cluster is listed, send them back if policy or deadline say so."""
    left = _deadline_left(context, step.name)
    if left is None or left > 0:
        return step._replace(state=DrainState.RUNNING, requeue_after=left)
    if not all(map(context.workloads.gated, running)):
        return step._replace(state=DrainState.WITHOUT_OUR_CHECK)
    if context.reopened:
        return step._replace(state=DrainState.GATE_REOPENED)
    step = gate.close_gate(context, step)
    if step.state in (DrainState.DISCONNECTED, DrainState.NOT_ANSWERING):
        return step._replace(state=DrainState.CANNOT_SEND_BACK, detail=step.message)
    if step.state is not DrainState.CLOSING:
        return step._replace(state=DrainState.RUNNING)
    if gate.gate_timer(step.cluster) not in context.seen.timer_ages:
        return step._replace(state=DrainState.SEND_BACK_DUE)
    send_back = tuple(w for w in running if not context.workloads.is_sent_back(w))
    return step._replace(
        state=DrainState.SENDING_BACK,
        send_back=send_back,
        events=_sent_back_events(context, step.cluster, send_back),
    )


def _sent_back_events(
    context: DrainContext, cluster: str, send_back: tuple[Workload, ...]
) -> tuple[EventIntent, ...]:
    if not send_back:
        return ()
    cause = "at once" if context.seen.policy.removal == IMMEDIATE else "as the deadline has passed"
    message = f"cluster {cluster} leaves {cause}; sent back"
    to_each = f"sent back from cluster {cluster}, which leaves {cause}; it starts again elsewhere"
    return (EventIntent(WORKLOADS_SENT_BACK, message, "answers", send_back, (WORKLOAD_SENT_BACK, to_each)),)


def _deadline_left(context: DrainContext, name: str) -> float | None:
    """Return the seconds until running Workloads are sent back; None: they are never sent back."""
    policy, config = context.seen.policy, context.seen.objects.config
    if policy.removal == IMMEDIATE:
        return 0.0
    if policy.drain_deadline is None:
        return None
    since = config.draining.get(name) if config else None
    drained_for = (context.seen.now - since).total_seconds() if since else 0.0
    return max(0.0, policy.drain_deadline - drained_for)


# -- Workloads that were sent back


def _recover_copies(context: DrainContext, step: DrainStep) -> DrainStep:
    """Make Ready the Workloads that were sent back from here and left a copy, in any state of the cluster."""
    workloads = context.workloads
    if not step.stays or not workloads.undecided:
        return step
    sent = [w for w in workloads.undecided if w.sent_back_from == step.cluster and w not in step.make_ready]
    if not sent or gate.drain_obstacle(context, step):
        return step
    left_copy = tuple(w for w in sent if workloads.is_pending(w) and _holds_copy(context, step, w))
    not_recorded = tuple(
        w
        for w in sent
        if workloads.is_ready(w)
        and context.seen.age(Timer(TimerKind.MADE_READY, w.meta.uid)) >= MIN_READY_SECONDS
        and w not in step.send_back
    )
    return step._replace(
        make_ready=(*step.make_ready, *left_copy), send_back=(*step.send_back, *not_recorded)
    )


def _held_back(context: DrainContext, steps: Iterable[DrainStep]) -> tuple[dict[str, str], list[str]]:
    """Return the Workloads sent back from a cluster that may still run them, and the clusters to ask."""
    staying = {step.cluster: step for step in steps if step.stays}
    held: dict[str, str] = {}
    ask: list[str] = []
    for workload in filter(context.workloads.is_pending, context.workloads.undecided):
        step = staying.get(workload.sent_back_from)
        if step is None or workload in step.make_ready or _holds_copy(context, step, workload) is False:
            continue
        held[workload.meta.uid] = step.cluster
        if _is_report_due(context, step, workload):
            ask.append(step.name)
    return held, ask


def _holds_copy(context: DrainContext, step: DrainStep, workload: Workload) -> bool | None:
    """Whether the cluster holds a copy; None: it was not asked well after Kueue took the Workload back."""
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported is None or reported.problem or workload.evicted_at is None:
        return None
    since = (context.seen.now - workload.evicted_at).total_seconds() - reported.age
    if since < QUIET_SECONDS + 1.0:  # the API gives whole seconds
        return None
    return workload.meta.id in reported.copies


def _is_report_due(context: DrainContext, step: DrainStep, workload: Workload) -> bool:
    reported = context.seen.fleet.worker_copies.get(step.name)
    if reported is None:
        return True
    early = not reported.problem and _holds_copy(context, step, workload) is None
    return reported.age > (QUIET_SECONDS if early else COPIES_RETRY_SECONDS)


# -- the gate as a whole, and the timers


def _is_reopened(seen: Snapshot) -> bool:
    """Whether the gate opens for a while: it has been closed for too long, for any clusters."""
    reopened_for = seen.timer_ages.get(GATE_REOPENED_TIMER)
    if reopened_for is not None:
        return reopened_for < GATE_CLOSED_MAX_SECONDS
    return seen.age(GATE_CLOSED_TIMER) >= gate.waiting_grace(seen) + GATE_CLOSED_MAX_SECONDS


def _timers(
    context: DrainContext, steps: Collection[DrainStep], just_unlisted: set[Timer], closing: Collection[str]
) -> frozenset[Timer]:
    unlisting = {Timer(TimerKind.BEING_UNLISTED, step.cluster) for step in steps if not step.stays}
    unlisting |= {Timer(TimerKind.DESELECTED, step.cluster) for step in steps if step.stays}
    running = {GATE_REOPENED_TIMER} if context.reopened else {GATE_CLOSED_TIMER} if closing else set()
    made_ready = _made_ready(context, steps)
    return frozenset(just_unlisted | unlisting | running | made_ready).union(*[step.timers for step in steps])


def _made_ready(context: DrainContext, steps: Iterable[DrainStep]) -> set[Timer]:
    ready = {w.meta.uid for w in context.workloads.undecided if context.workloads.is_ready(w)}
    before = ready & context.seen.ages(TimerKind.MADE_READY).keys()
    now = {workload.meta.uid for step in steps for workload in step.make_ready}
    return {Timer(TimerKind.MADE_READY, uid) for uid in before | now}


def _just_unlisted(seen: Snapshot, still_listed: Collection[str]) -> set[Timer]:
    """Return the clusters that were unlisted just now, from when the list was first seen without them."""
    now = seen.ages(TimerKind.BEING_UNLISTED).keys() - still_listed
    ages = seen.ages(TimerKind.JUST_UNLISTED)
    before = {cluster for cluster, age in ages.items() if age < GATE_REOPEN_SECONDS}
    return {Timer(TimerKind.JUST_UNLISTED, cluster) for cluster in now | before}


def _gate_waits(
    context: DrainContext, closing: Collection[str], just_unlisted: Iterable[Timer]
) -> Iterable[float]:
    """Yield the seconds until the gate opens, closes again or reopens, though nothing else happens."""
    for timer in just_unlisted if context.seen.workloads else ():  # a Workload that comes later is an event
        yield GATE_REOPEN_SECONDS - context.seen.age(timer)
    if context.reopened:
        yield GATE_CLOSED_MAX_SECONDS - context.seen.age(GATE_REOPENED_TIMER)
    elif closing:
        longest = gate.waiting_grace(context.seen) + GATE_CLOSED_MAX_SECONDS
        yield max(longest - context.seen.age(GATE_CLOSED_TIMER), 0.0)
