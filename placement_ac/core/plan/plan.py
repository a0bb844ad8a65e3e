"""
Decide what Kueue should see for one Placement.

Pure functions of a `Snapshot`: no clock, no I/O, no logging. If a check cannot be
served, its verdict says why, and it reaches the user as a condition; nothing is
raised. The objects then stay as they are. The two reasons that mean "there is no
cluster" are the exception: each cluster leaves as soon as that hurts no job, and the
MultiKueueConfig is deleted with the last one, because Kueue accepts no empty list.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    NAME_CONFLICT_SECONDS,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    PLACEMENT_NOT_FOUND,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity.planning import CapacityPlan, ListedClusters, no_check, plan_capacity
from placement_ac.core.dispatch.ignored import ignored
from placement_ac.core.draining.drain import DrainPlan
from placement_ac.core.draining.left_behind import left_behind
from placement_ac.core.draining.state import DrainState
from placement_ac.core.inputs.state import Plan, SinceKind, Snapshot, Verdict
from placement_ac.core.plan.conditions import (
    has_name_conflict,
    judge,
    missing_placement,
    refused_checks,
    usable_message,
)
from placement_ac.core.plan.disconnected import connection_events
from placement_ac.core.plan.event_intents import (
    DueEvents,
    config_events,
    expiry_warnings,
    lacking_clusters,
    maintenance_events,
    unusable_clusters,
)
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.plan.lacking_queues import LackingQueues, lacking_queues
from placement_ac.core.plan.nomination import Nominations, nominate
from placement_ac.core.plan.objects import (
    TargetObjects,
    retained_clusters,
    target_objects,
    unchanged_objects,
)
from placement_ac.core.plan.quarantine import quarantine_events
from placement_ac.core.plan.silent_workers import SilentWorkers, silent_workers
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.plan.waiting import held_workloads
from placement_ac.core.plan.workload_states import AnswerContext, WorkloadAnswers, answer_workloads
from placement_ac.core.selection.probe_schedule import due_probes
from placement_ac.core.selection.selection import maintenance_of, soonest

LEAVING: Final = (
    SinceKind.BEING_UNLISTED,
    SinceKind.JUST_UNLISTED,
    SinceKind.DESELECTED,
    SinceKind.STANDING_BY,
    SinceKind.SELECTION,
    SinceKind.FLAPPING,
)
"""The ages of clusters that come, leave or stand by: kept while nothing can be decided."""


def plan(snapshot: Snapshot, targets: TargetClusters | None = None) -> Plan:
    """Return the objects, the verdict on each check and the answers to Workloads that `snapshot` calls for.

    `targets`: the result of `select_targets(snapshot)`, where the caller has it already.
    """
    if snapshot.checks.ours:
        return _plan_checks(snapshot, targets or select_targets(snapshot))
    capacities = _capacity(snapshot).wanted
    remaining = left_behind(snapshot)
    # Only Kueue's checks, or ours with unusable parameters, use it, or jobs are still there: nothing changes.
    if snapshot.checks.multikueue or snapshot.checks.former or remaining.stays:
        objects = unchanged_objects(snapshot)
        return Plan(
            config=objects.config,
            clusters=objects.clusters,
            capacities=capacities,
            ask_for_copies=remaining.ask_for_copies,
            lasting=remaining.lasting,
            requeue_after=remaining.requeue_after,
        )
    retained = retained_clusters(
        snapshot, TargetObjects()
    )  # No check uses it: everything of ours is deleted.
    return Plan(
        retained=retained.names,
        capacities=capacities,
        lasting=retained.lasting,
        requeue_after=retained.requeue_after,
    )


class _Objects(NamedTuple):
    """The objects that are planned, and the clusters that leave."""

    planned: TargetObjects
    ready: str
    """The message of Ready; "": no selected cluster can take a Workload."""
    drain: DrainPlan


class _Jobs(NamedTuple):
    """The writes to Workloads that are planned, and what decides on them."""

    fit: JobFit | None
    nominations: Nominations
    context: AnswerContext
    answers: WorkloadAnswers


def _plan_checks(snapshot: Snapshot, targets: TargetClusters) -> Plan:
    verdict = judge(snapshot, targets)
    paused = keeps_objects(verdict)  # changes resume when the reason is fixed
    objects = _objects(snapshot, targets, paused=paused)
    jobs = _jobs(snapshot, targets, objects, verdict, paused=paused)
    return _whole_plan(snapshot, targets, objects, jobs, paused=paused)


def _objects(snapshot: Snapshot, targets: TargetClusters, *, paused: bool) -> _Objects:
    if paused:
        leaving = frozenset(since for since in snapshot.all_ages if since.kind in LEAVING)
        return _Objects(unchanged_objects(snapshot), "", DrainPlan(lasting=leaving))
    return _Objects(target_objects(snapshot, targets), usable_message(targets), targets.drain)


def _jobs(
    snapshot: Snapshot, targets: TargetClusters, objects: _Objects, verdict: Verdict, *, paused: bool
) -> _Jobs:
    fit = JobFit(snapshot, targets) if snapshot.policy.dispatcher and not paused else None
    nominations = nominate(snapshot, targets, fit) if fit else Nominations()
    context = AnswerContext(
        verdict,
        objects.ready,
        objects.drain,
        fit,
        nominations.awaiting,
        nominations.messages,
        refused_checks(snapshot),
    )
    return _Jobs(fit, nominations, context, answer_workloads(snapshot, context))


def _whole_plan(
    snapshot: Snapshot, targets: TargetClusters, decided: _Objects, jobs: _Jobs, *, paused: bool
) -> Plan:
    (objects, _, drain), (fit, nominations, context, answers) = decided, jobs
    selection, mass_loss, provisioned = targets.selection, targets.mass_loss, targets.provisioned
    expiry = DueEvents() if paused else expiry_warnings(snapshot, objects.clusters)
    retained, unusable = retained_clusters(snapshot, objects), unusable_clusters(snapshot, targets)
    connections = connection_events(snapshot, targets)
    lacking = lacking_clusters(snapshot, targets) if snapshot.policy.probe else DueEvents()
    dispatches = snapshot.policy.dispatcher
    queues = lacking_queues(snapshot, targets) if dispatches else LackingQueues()
    silent = silent_workers(snapshot, targets) if dispatches else SilentWorkers()
    remembers = bool(snapshot.policy.avoid_after_failure)
    quarantines = quarantine_events(snapshot, targets) if remembers else DueEvents()
    verdicts = _verdicts(snapshot, targets, context.verdict)
    capacity = _capacity(snapshot, context.verdict, targets) if verdicts else CapacityPlan()
    probe_requests, next_probe = due_probes(snapshot) if snapshot.policy.probe else ((), None)
    parts = (
        *(selection, mass_loss, unusable, drain, objects, answers, nominations, retained, expiry),
        *(provisioned, nominations.questions, connections, quarantines, lacking, queues, silent, capacity),
        *(targets.identity, targets.unknown_copies),
    )
    name_conflict = any(has_name_conflict(snapshot, entry) for entry in targets.to_list)
    waits = (next_probe, NAME_CONFLICT_SECONDS if name_conflict else None)
    drain_events = [event for step in drain.steps for event in step.events]
    return Plan(
        selected=selection.ranked,
        unusable=tuple([name for name in selection.left_out if not maintenance_of(snapshot, name)]),
        drain_states={step.cluster: step.state.name.lower() for step in drain.steps},
        verdicts={**verdicts, **context.refused},
        config=objects.config,
        clusters=objects.clusters,
        to_provision=provisioned.clusters,
        retained=retained.names,
        check_state_updates=answers.updates,
        held=held_workloads(snapshot, context),
        nominations=nominations.nominations,
        unfit=nominations.unfit,
        ignored=tuple(_ignored(targets, fit)),
        refusals=nominations.refusals,
        ask_for_copies=_once(drain.ask_for_copies, nominations.ask_for_copies),
        capacities=capacity.wanted,
        ask_for_facts=_once(nominations.questions.ask, queues.ask, capacity.ask),
        probe_requests=probe_requests,
        ask_for_identity=targets.identity.ask,
        ask_for_unknown_copies=targets.unknown_copies.ask,
        events=(
            *(*mass_loss.events, *unusable.events, *drain_events),
            *(*connections.events, *quarantines.events, *expiry.events, *lacking.events),
            *maintenance_events(snapshot),
        ),
        config_events=tuple if paused else partial(config_events, snapshot, targets, objects.config),
        lasting=frozenset().union(*[part.lasting for part in parts]),
        requeue_after=soonest((*waits, *[part.requeue_after for part in parts])),
    )


def _verdicts(snapshot: Snapshot, targets: TargetClusters, verdict: Verdict) -> dict[str, Verdict]:
    """Return the verdict on each check; none yet while the first clusters wait for their answers."""
    if targets.waits_for_answers and not (targets.to_list or snapshot.objects.listed):
        return {}
    return {check.meta.name: verdict for check in snapshot.checks.ours}


def _once(*names: Iterable[str]) -> tuple[str, ...]:
    """Return all names in their order, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _capacity(
    snapshot: Snapshot, verdict: Verdict | None = None, targets: TargetClusters | None = None
) -> CapacityPlan:
    """Return the status of the CapacityProviders; without `targets`, no check of ours names the Placement."""
    if not snapshot.capacity.providers:
        return CapacityPlan()
    placement = snapshot.decisions.placement
    if verdict is None or targets is None:
        missing = missing_placement(snapshot) or no_check(
            f"{placement.namespace}/{snapshot.name}" if placement else ""
        )
        return plan_capacity(snapshot, ListedClusters(), misconfigured=missing if snapshot.name else "")
    stays = verdict.message if keeps_objects(verdict) else ""
    is_admins = verdict.reason == PLACEMENT_NOT_FOUND or (stays and snapshot.decisions.malformed)
    # While decisions flap, jobs are still sent to a cluster that may leave.
    leaving = {
        step.cluster: "stands by" if step.state is DrainState.STANDING_BY else "drains"
        for step in targets.drain.staying
        if not step.settles_in
    }
    settling = {step.cluster: step.name for step in targets.drain.staying if step.settles_in}
    counted = {entry.cluster: entry.name for entry in targets.to_list if entry.cluster not in leaving}
    return plan_capacity(
        snapshot,
        ListedClusters(counted | settling, leaving),
        misconfigured=stays if is_admins else "",
        paused="" if is_admins else stays,
    )


def _ignored(targets: TargetClusters, fit: JobFit | None) -> Iterator[tuple[Workload, str]]:
    if fit is None:
        return
    for workload in targets.workloads.undecided:
        if not (workload.has_quota and workload.active) or fit.defers(workload):
            continue
        if text := "; ".join(ignored(workload.job)):
            yield workload, text


def keeps_objects(verdict: Verdict) -> bool:
    """Whether the objects stay as they are: a refusal for any reason but a lack of clusters."""
    return verdict.status == "False" and verdict.reason not in (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE)
