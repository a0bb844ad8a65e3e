"""
What becomes of a cluster that is listed and not wanted: it drains, passes the gate, or is lost.

Pure. The reason why it leaves counts, and so does the admin's policy; that no job is killed
or doubled counts more. Nothing goes at once but what no unfinished Workload can be on.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

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
from placement_ac.core.draining.gate import (
    AIRING,
    SOON,
    THEIRS,
    advance_dispatcher_drain,
    advance_drain,
    close_gate,
    drain_obstacle,
    waiting_grace,
)
from placement_ac.core.draining.state import ConfigWorkloads, DrainContext, DrainStep
from placement_ac.core.inputs.state import NOTHING, EventIntent, Snapshot, Timer, TimerKind
from placement_ac.core.selection.selection import listed_names, soonest

RUN: Final = "Workloads run there"
SHUT: Final = Timer(TimerKind.GATE_CLOSED)
AIRED: Final = Timer(TimerKind.GATE_REOPENED)


class DrainPlan(NamedTuple):
    """What becomes of all of them."""

    steps: tuple[DrainStep, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None
    held_back: Mapping[str, str] = NOTHING
    """Uid of a Workload that was sent back → the cluster that has not let go of it for sure."""
    ask_for_copies: tuple[str, ...] = ()
    """MultiKueueClusters whose clusters are to be asked."""
    staying: tuple[DrainStep, ...] = ()
    """Those of `leaving` that have a reason to stay for now."""

    @property
    def closed(self) -> str:
        """Why no Workload becomes Ready; "" when the gate is open."""
        names = {one.cluster for one in self.steps if one.gate_closed or not one.why}
        names |= {mark.subject for mark in self.timers if mark.kind == TimerKind.JUST_UNLISTED}
        return f"{joined(sorted(names))} is leaving: it takes a moment" if names else ""


def plan_drain(
    seen: Snapshot, wanted: Collection[str], jobs: ConfigWorkloads, listed: Mapping[str, str]
) -> DrainPlan:
    """Return what becomes of every listed MultiKueueCluster that is not `wanted`; `listed` by `listed_now`.

    Somebody else may have put it there: jobs may run on it all the same.
    """
    names = listed_names(seen)
    going = [name for name in names if name not in wanted]
    went = [mark.subject for mark in seen.timer_ages if mark.kind == TimerKind.BEING_UNLISTED]
    clusters = {name: cluster for cluster, name in listed.items()} if going or went else {}
    case = DrainContext(seen, jobs, _is_reopened(seen))
    leaving = tuple([_stranded(case, _leave(case, clusters.get(name, name), name)) for name in going])
    held, asking = _held_back(case, leaving) if seen.workloads else ({}, [])
    left = _left(seen, went, {clusters.get(name, name) for name in names} if went else ())
    marks = {Timer(TimerKind.BEING_UNLISTED, one.cluster) for one in leaving if not one.why} | left
    marks |= _gate_marks(case, leaving)
    if seen.workloads:
        marks |= _healed(case, leaving)
    waits = (*_waits(case, leaving, left), QUIET_SECONDS if held else None)
    return DrainPlan(
        leaving,
        frozenset(marks).union(*[one.timers for one in leaving]),
        soonest((*waits, *[one.recheck_after for one in leaving])),
        held,
        tuple(dict.fromkeys((*[one.name for one in leaving if one.ask_for_copies], *asking))),
        tuple([one for one in leaving if one.why]),
    )


def _leave(case: DrainContext, cluster: str, name: str) -> DrainStep:
    seen, here = case.seen, DrainStep(cluster, name)
    running = case.workloads.running.get(name, [])
    if cluster in seen.fleet.deleted_clusters and name == seen.hub.cluster_object(seen.name, cluster):
        return _lost(here, [*running, *case.workloads.waiting.get(name, [])])
    if cluster in seen.fleet.unreachable:
        return here._replace(why="OCM cannot reach it")
    if not seen.workloads:
        return _once_cleared(case, here)
    if running:
        return _drain(case, here, running)
    return advance_dispatcher_drain(case, here) if seen.policy.dispatcher else advance_drain(case, here)


def _once_cleared(case: DrainContext, here: DrainStep) -> DrainStep:
    """Give Kueue a moment to clear up where jobs have just ended: it does so while the cluster is listed."""
    mark = Timer(TimerKind.QUIET, here.cluster)
    left = QUIET_SECONDS - case.age(mark)
    config = case.seen.objects.config
    if config is None or here.name not in config.draining or left <= 0:
        return here
    return here._replace(why=SOON, timers=frozenset({mark}), recheck_after=left)


def _lost(here: DrainStep, workloads: Collection[Workload]) -> DrainStep:
    if not workloads:
        return here
    told = f"ManagedCluster {here.cluster} is gone, and with it"
    to_each = (
        f"cluster {here.cluster}, where it was, is lost with its ManagedCluster; it starts anew elsewhere"
    )
    notice = EventIntent(CLUSTER_LOST, told, "list", tuple(workloads), (CLUSTER_LOST, to_each))
    return here._replace(events=(notice,))


# -- while jobs run there


def _drain(case: DrainContext, here: DrainStep, running: list[Workload]) -> DrainStep:
    """Wait for what runs there; send it back if the policy or a deadline says so, while it is listed."""
    left = _deadline_left(case, here.name)
    if left is None or left > 0:
        return here._replace(why=RUN, recheck_after=left)
    if not all(map(case.workloads.gated, running)):
        return here._replace(why=THEIRS)
    if case.reopened:
        return here._replace(why=AIRING)
    here = close_gate(case, here)
    if not here.gate_closed:
        return here._replace(why=f"{RUN}; {here.why}" if drain_obstacle(case, here.name) else RUN)
    if Timer(TimerKind.GATE_CLOSED_FOR, here.cluster) not in case.seen.timer_ages:
        return here._replace(why=RUN, gate_closed=not case.seen.policy.dispatcher)
    send_back = tuple(w for w in running if not case.workloads.is_sent_back(w))
    return here._replace(
        why="its Workloads are sent back",
        gate_closed=not case.seen.policy.dispatcher,
        send_back=send_back,
        events=_told(case, here.cluster, send_back),
    )


def _told(case: DrainContext, cluster: str, send_back: tuple[Workload, ...]) -> tuple[EventIntent, ...]:
    if not send_back:
        return ()
    cause = "at once" if case.seen.policy.removal == IMMEDIATE else "as the deadline has passed"
    told = f"cluster {cluster} leaves {cause}; sent back"
    to_each = f"sent back from cluster {cluster}, which leaves {cause}; it starts anew elsewhere"
    return (EventIntent(WORKLOADS_SENT_BACK, told, "answers", send_back, (WORKLOAD_SENT_BACK, to_each)),)


def _deadline_left(case: DrainContext, name: str) -> float | None:
    """Return the seconds for which what runs there is still waited for; None: for ever."""
    policy, config = case.seen.policy, case.seen.objects.config
    if policy.removal == IMMEDIATE:
        return 0.0
    if policy.drain_deadline is None:
        return None
    since = config.draining.get(name) if config else None
    drained_for = (case.seen.now - since).total_seconds() if since else 0.0
    return max(0.0, policy.drain_deadline - drained_for)


# -- what was sent back


def _stranded(case: DrainContext, one: DrainStep) -> DrainStep:
    """Heal what was sent back from here though its copy was left, whatever else keeps the cluster."""
    if not one.why or not case.workloads.undecided:
        return one
    sent = [
        w for w in case.workloads.undecided if w.sent_back_from == one.cluster and w not in one.make_ready
    ]
    if not sent or drain_obstacle(case, one.name):
        return one
    heal = tuple(w for w in sent if case.workloads.is_back(w) and _still_holds(case, one, w))
    late = tuple(
        w
        for w in sent
        if case.workloads.is_ready(w)
        and case.age(Timer(TimerKind.MADE_READY, w.meta.uid)) >= MIN_READY_SECONDS
        if w not in one.send_back
    )
    return one._replace(make_ready=(*one.make_ready, *heal), send_back=(*one.send_back, *late))


def _held_back(case: DrainContext, leaving: Iterable[DrainStep]) -> tuple[dict[str, str], list[str]]:
    """Return the Workloads sent back from a cluster that may still run them, and whom to ask about it."""
    staying = {one.cluster: one for one in leaving if one.why}
    held, asking = {}, []
    for workload in filter(case.workloads.is_back, case.workloads.undecided):
        one = staying.get(workload.sent_back_from)
        if one is None or workload in one.make_ready or _has_let_go(case, one, workload):
            continue
        held[workload.meta.uid] = one.cluster
        if _word_is_old(case, one, workload):
            asking.append(one.name)
    return held, asking


def _has_let_go(case: DrainContext, one: DrainStep, workload: Workload) -> bool:
    """Whether the cluster, asked well after Kueue took the Workload back, holds no copy of it."""
    return (
        _asked_since(case, one, workload)
        and workload.meta.id not in case.seen.fleet.worker_copies[one.name].copies
    )


def _still_holds(case: DrainContext, one: DrainStep, workload: Workload) -> bool:
    return (
        _asked_since(case, one, workload)
        and workload.meta.id in case.seen.fleet.worker_copies[one.name].copies
    )


def _asked_since(case: DrainContext, one: DrainStep, workload: Workload) -> bool:
    asked = case.seen.fleet.worker_copies.get(one.name)
    if asked is None or asked.problem or workload.evicted_at is None:
        return False
    since = (case.seen.now - workload.evicted_at).total_seconds() - asked.age
    return since >= QUIET_SECONDS + 1.0  # the API tells whole seconds


def _word_is_old(case: DrainContext, one: DrainStep, workload: Workload) -> bool:
    asked = case.seen.fleet.worker_copies.get(one.name)
    if asked is None:
        return True
    early = not asked.problem and not _asked_since(case, one, workload)
    return asked.age > (QUIET_SECONDS if early else COPIES_RETRY_SECONDS)


# -- marks


def _is_reopened(seen: Snapshot) -> bool:
    """Whether the gate opens for a while: it has been closed for long, whoever closed it, and others wait."""
    aired = seen.timer_ages.get(AIRED)
    if aired is not None:
        return aired < GATE_CLOSED_MAX_SECONDS
    return seen.timer_ages.get(SHUT, 0.0) >= waiting_grace(seen) + GATE_CLOSED_MAX_SECONDS


def _gate_marks(case: DrainContext, leaving: Iterable[DrainStep]) -> set[Timer]:
    if case.reopened:
        return {AIRED}
    return {SHUT} if any(one.gate_closed for one in leaving) else set()


def _healed(case: DrainContext, leaving: Iterable[DrainStep]) -> set[Timer]:
    ready = {w.meta.uid for w in case.workloads.undecided if case.workloads.is_ready(w)}
    known = {
        mark for mark in case.seen.timer_ages if mark.kind == TimerKind.MADE_READY and mark.subject in ready
    }
    return known | {Timer(TimerKind.MADE_READY, w.meta.uid) for one in leaving for w in one.make_ready}


def _left(seen: Snapshot, went: Iterable[str], listed: Collection[str]) -> set[Timer]:
    """Return the clusters that were unlisted just now, from when the list was first seen without them.

    `went`: those that were to go when it was looked last.
    """
    gone = {Timer(TimerKind.JUST_UNLISTED, cluster) for cluster in went if cluster not in listed}
    return gone | {
        m
        for m, age in seen.timer_ages.items()
        if m.kind == TimerKind.JUST_UNLISTED and age < GATE_REOPEN_SECONDS
    }


def _waits(case: DrainContext, leaving: Collection[DrainStep], left: Iterable[Timer]) -> Iterable[float]:
    """Yield when the gate is to be looked at again, though nothing happens."""
    for mark in left if case.seen.workloads else ():  # one that comes later is looked at then
        yield GATE_REOPEN_SECONDS - case.age(mark)
    if case.reopened:
        yield GATE_CLOSED_MAX_SECONDS - case.age(AIRED)
    elif any(one.gate_closed for one in leaving):
        yield max(waiting_grace(case.seen) + GATE_CLOSED_MAX_SECONDS - case.age(SHUT), 0.0)
