"""
Plan the drain of all clusters that are listed and no longer wanted: the state of each, and the gate.

Pure. `rules.RULES` decides the state; what concerns several clusters or any state of one is decided here.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from placement_ac.core.api.constants import (
    COPIES_RETRY_SECONDS,
    GATE_CLOSED_MAX_SECONDS,
    GATE_REOPEN_SECONDS,
    MIN_READY_SECONDS,
    QUIET_SECONDS,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined
from placement_ac.core.draining.leaving import NO_REPORT, LeavingCluster
from placement_ac.core.draining.rules import state_of, waiting_grace, withdraw_waiting
from placement_ac.core.draining.settling import seconds_left, settling
from placement_ac.core.draining.state import ConfigWorkloads, DrainState, DrainStep
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.selection.selection import listed_names, soonest

GATE_CLOSED_SINCE = Since(SinceKind.GATE_CLOSED)
GATE_REOPENED_SINCE = Since(SinceKind.GATE_REOPENED)


class DrainPlan(NamedTuple):
    """The steps of all clusters that leave, and what follows from them together."""

    steps: tuple[DrainStep, ...] = ()
    lasting: frozenset[Since] = frozenset()
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
    snapshot: Snapshot,
    wanted: Collection[str],
    workloads: ConfigWorkloads,
    listed: Mapping[str, str],
    *,
    edited: bool,
    renamed: Collection[str],
    other_names: Mapping[str, str] = NOTHING,
) -> DrainPlan:
    """Return a step for every listed MultiKueueCluster that is not `wanted`; `listed` by `listed_clusters`.

    It may have been listed by someone else: jobs may run on it nevertheless.
    `edited`: whether someone has just changed the Placement. `renamed`: clusters that get another name.
    `other_names`: cluster → the name of another connection to its worker, which is wanted.
    """
    names = listed_names(snapshot)
    clusters = {name: cluster for cluster, name in listed.items()}
    excess = len({*names, *wanted}) - snapshot.hub.clusters_max
    stands_by = snapshot.ages(SinceKind.STANDING_BY)
    longest_first = sorted(stands_by, key=lambda cluster: (-stands_by[cluster], cluster))
    replaced = {*renamed, *other_names, *longest_first[: max(excess, 0)]}
    reopened = _is_reopened(snapshot)
    wait, lasting_selection = settling(snapshot, wanted, edited=edited)
    leaving = [
        LeavingCluster(
            snapshot,
            workloads,
            cluster,
            name,
            seconds_left(snapshot, cluster, wait),
            reopened,
            cluster in replaced,
            other_names.get(cluster, ""),
        )
        for cluster, name in ((clusters.get(name, name), name) for name in names if name not in wanted)
    ]
    steps = tuple(map(_advance, leaving))
    held_back, unsure = _held_back(snapshot, workloads, steps)
    just_unlisted = _just_unlisted(snapshot, {clusters.get(name, name) for name in names})
    # With our dispatcher the gate is closed only while the config is written without a cluster.
    gated = () if snapshot.policy.dispatcher else steps
    closing = {step.cluster for step in gated if step.stays and step.state.closes_gate}
    being_unlisted = {step.cluster for step in steps if not step.stays}
    lasting = {
        Since(SinceKind.DESELECTED if step.stays else SinceKind.BEING_UNLISTED, step.cluster)
        for step in steps
    }
    lasting |= {GATE_REOPENED_SINCE} if reopened else {GATE_CLOSED_SINCE} if closing else set()
    lasting |= just_unlisted | _made_ready(snapshot, workloads, steps)
    waits = [step.requeue_after for step in steps] + [step.settles_in or None for step in steps]
    waits += [
        *_gate_waits(snapshot, closing, just_unlisted, reopened=reopened),
        QUIET_SECONDS if held_back else None,
    ]
    return DrainPlan(
        steps,
        lasting_selection.union(lasting, *[step.lasting for step in steps]),
        soonest(waits),
        held_back,
        tuple(dict.fromkeys((*[step.name for step in steps if step.ask_for_copies], *unsure))),
        tuple(sorted(closing | being_unlisted | {since.subject for since in just_unlisted})),
    )


def _advance(leaving: LeavingCluster) -> DrainStep:
    step = state_of(leaving)
    if not step.stays:
        return step
    if leaving.running and leaving.snapshot.policy.dispatcher and step.state is not DrainState.UNREACHABLE:
        step = withdraw_waiting(leaving, step)
    return _recover_copies(leaving, step)


# -- Workloads that were sent back


def _recover_copies(leaving: LeavingCluster, step: DrainStep) -> DrainStep:
    """Have Kueue record the Workloads that were sent back from here and left a copy, in any state.

    Each becomes Ready and then, with our dispatcher, is nominated here alone: Kueue records no other cluster.
    One that Kueue does not record is sent back once more.
    """
    snapshot, workloads = leaving.snapshot, leaving.workloads
    sent = [w for w in workloads.undecided if w.sent_back_from == step.cluster and w not in step.make_ready]
    if not sent or leaving.obstacle:
        return step
    made_ready = snapshot.ages(SinceKind.MADE_READY)
    left_copy = [
        w
        for w in sent
        if _holds_copy(snapshot, step, w)
        and (workloads.is_pending(w) or w.meta.uid in made_ready or _is_to_nominate(snapshot, workloads, w))
    ]
    not_recorded = [
        w
        for w in sent
        if workloads.is_ready(w)
        and snapshot.age(_made_ready_since(snapshot, w)) >= MIN_READY_SECONDS
        and (step.name in w.nominated or not snapshot.policy.dispatcher)
        and w not in step.send_back
    ]
    return step._replace(
        make_ready=(*step.make_ready, *left_copy), send_back=(*step.send_back, *not_recorded)
    )


def _is_to_nominate(snapshot: Snapshot, workloads: ConfigWorkloads, workload: Workload) -> bool:
    """Whether our dispatcher is to nominate it: after a restart it is not known why it became Ready."""
    return snapshot.policy.dispatcher and workloads.is_ready(workload) and not workload.nominated


def _held_back(
    snapshot: Snapshot, workloads: ConfigWorkloads, steps: Iterable[DrainStep]
) -> tuple[dict[str, str], list[str]]:
    """Return the Workloads sent back from a cluster that may still run them, and the clusters to ask.

    They neither become Ready nor are nominated.
    """
    staying = {step.cluster: step for step in steps if step.stays}
    held: dict[str, str] = {}
    ask: list[str] = []
    for workload in workloads.undecided:
        if not (workloads.is_pending(workload) or _is_to_nominate(snapshot, workloads, workload)):
            continue
        step = staying.get(workload.sent_back_from)
        if step is None or workload in step.make_ready or _holds_copy(snapshot, step, workload) is False:
            continue
        held[workload.meta.uid] = step.cluster
        if _is_report_due(snapshot, step, workload):
            ask.append(step.name)
    return held, ask


def _holds_copy(snapshot: Snapshot, step: DrainStep, workload: Workload) -> bool | None:
    """Whether the cluster holds a copy; None: it was not asked well after Kueue took the Workload back."""
    reported = snapshot.fleet.worker_copies.get(step.name)
    if reported is None or reported.problem or workload.evicted_at is None:
        return None
    since = (snapshot.now - workload.evicted_at).total_seconds() - reported.age
    if since < QUIET_SECONDS + 1.0:  # the API gives whole seconds
        return None
    return workload.meta.id in reported.copies


def _is_report_due(snapshot: Snapshot, step: DrainStep, workload: Workload) -> bool:
    reported = snapshot.fleet.worker_copies.get(step.name, NO_REPORT)
    early = not reported.problem and _holds_copy(snapshot, step, workload) is None
    return reported.age > (QUIET_SECONDS if early else COPIES_RETRY_SECONDS)


# -- the gate as a whole, and the ages


def _is_reopened(snapshot: Snapshot) -> bool:
    """Whether the gate opens for a while: it has been closed for too long, for any clusters."""
    reopened_for = snapshot.all_ages.get(GATE_REOPENED_SINCE)
    if reopened_for is not None:
        return reopened_for < GATE_CLOSED_MAX_SECONDS
    return snapshot.age(GATE_CLOSED_SINCE) >= waiting_grace(snapshot) + GATE_CLOSED_MAX_SECONDS


def _made_ready(snapshot: Snapshot, workloads: ConfigWorkloads, steps: Iterable[DrainStep]) -> set[Since]:
    ready = (
        [w for w in workloads.undecided if workloads.is_ready(w)] if not snapshot.policy.dispatcher else []
    )
    made_ready = snapshot.ages(SinceKind.MADE_READY)
    before = [w for w in ready if w.meta.uid in made_ready]
    now = [workload for step in steps for workload in step.make_ready]
    return {_made_ready_since(snapshot, workload) for workload in (*before, *now)}


def _made_ready_since(snapshot: Snapshot, workload: Workload) -> Since:
    """Return since when Kueue can record its copy: with our dispatcher, since its last nomination."""
    number = len(workload.nominated) if snapshot.policy.dispatcher else 0
    return Since(SinceKind.MADE_READY, workload.meta.uid, number)


def _just_unlisted(snapshot: Snapshot, still_listed: Collection[str]) -> set[Since]:
    """Return the clusters that were unlisted just now, from when the list was first seen without them."""
    now = snapshot.ages(SinceKind.BEING_UNLISTED).keys() - still_listed
    ages = snapshot.ages(SinceKind.JUST_UNLISTED)
    before = {cluster for cluster, age in ages.items() if age < GATE_REOPEN_SECONDS}
    return {Since(SinceKind.JUST_UNLISTED, cluster) for cluster in now | before}


def _gate_waits(
    snapshot: Snapshot, closing: Collection[str], just_unlisted: Iterable[Since], *, reopened: bool
) -> Iterable[float]:
    """Yield the seconds until the gate opens, closes again or reopens, though nothing else happens."""
    for since in just_unlisted if snapshot.workloads else ():  # a Workload that comes later is an event
        yield GATE_REOPEN_SECONDS - snapshot.age(since)
    if reopened:
        yield GATE_CLOSED_MAX_SECONDS - snapshot.age(GATE_REOPENED_SINCE)
    elif closing:
        longest = waiting_grace(snapshot) + GATE_CLOSED_MAX_SECONDS
        yield max(longest - snapshot.age(GATE_CLOSED_SINCE), 0.0)
