"""
Decide what Kueue should see for one Placement.

Pure functions of a `Snapshot`: no clock, no I/O, no logging. If a check cannot be
served, its verdict says why, and it reaches the user as a condition; nothing is
raised. The objects then stay as they are. The two reasons that mean "there is no
cluster" are the exception: each cluster leaves as soon as that hurts no job, and the
MultiKueueConfig is deleted with the last one, because Kueue accepts no empty list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from placement_ac.core.api.constants import NAME_CONFLICT_SECONDS, NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE
from placement_ac.core.draining.drain import DrainPlan
from placement_ac.core.inputs.state import EventIntent, Plan, Snapshot, TimerKind, Verdict
from placement_ac.core.plan.conditions import has_name_conflict, judge, usable_message
from placement_ac.core.plan.event_intents import list_events, unusable_clusters
from placement_ac.core.plan.expiry_warnings import ExpiryWarnings, expiry_warnings
from placement_ac.core.plan.nomination import Nominations, nominate
from placement_ac.core.plan.objects import (
    TargetObjects,
    objects_of_others,
    owners_of,
    retained_clusters,
    target_objects,
    unchanged_objects,
)
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.plan.workload_states import AnswerContext, WorkloadAnswers, answer_workloads
from placement_ac.core.selection.probe_schedule import due_probes
from placement_ac.core.selection.selection import soonest

UNLISTING: Final = (TimerKind.BEING_UNLISTED, TimerKind.JUST_UNLISTED)
"""Timers of clusters on their way out: kept while nothing can be decided."""


@dataclass(frozen=True, slots=True)
class CheckEffects:
    """What follows from the verdict beside the objects: above all the answers to Workloads."""

    answers: WorkloadAnswers
    drain: DrainPlan
    expiry: ExpiryWarnings = field(default_factory=ExpiryWarnings)
    nominations: Nominations = field(default_factory=Nominations)
    list_events: Callable[[], tuple[EventIntent, ...]] = tuple


def plan(seen: Snapshot, targets: TargetClusters | None = None) -> Plan:
    """Return the objects, the verdict on each check and the answers to Workloads that `seen` calls for.

    `targets`: the result of `select_targets(seen)`, where the caller has it already.
    """
    if seen.checks.ours:
        return _plan_checks(seen, targets or select_targets(seen))
    if owners_of(seen):  # Only checks that are being deleted use it: nothing changes.
        objects = unchanged_objects(seen)
        return Plan(config=objects.config, clusters=objects.clusters)
    objects = objects_of_others(seen)  # No check uses it: everything else of ours goes.
    retained = retained_clusters(seen, objects)
    return Plan(
        clusters=objects.clusters,
        retained=retained.names,
        timers=retained.timers,
        recheck_after=retained.recheck_after,
    )


def _plan_checks(seen: Snapshot, targets: TargetClusters) -> Plan:
    verdict = judge(seen, targets)
    if keeps_objects(verdict):
        objects, step = unchanged_objects(seen), _effects_while_paused(seen, verdict)
    else:
        objects = target_objects(seen, targets)
        step = _effects(seen, targets, objects, verdict)
    retained, unusable = retained_clusters(seen, objects), unusable_clusters(seen, targets)
    probe_requests, next_probe = due_probes(seen)
    selection, mass_loss, drain = targets.selection, targets.mass_loss, step.drain
    parts = (selection, mass_loss, unusable, drain, objects, step.answers, step.nominations, retained)
    waits = (next_probe, step.expiry.recheck_after, _name_conflict_recheck(seen, targets))
    drain_events = [event for drain_step in drain.steps for event in drain_step.events]
    return Plan(
        selected=selection.ranked,
        unusable=tuple(cluster for cluster in selection.ranked if cluster in selection.left_out),
        verdicts={check.meta.name: verdict for check in seen.checks.ours},
        config=objects.config,
        clusters=objects.clusters,
        retained=retained.names,
        check_state_updates=step.answers.updates,
        nominations=step.nominations.nominations,
        ask_for_copies=drain.ask_for_copies,
        probe_requests=probe_requests,
        events=(*mass_loss.events, *unusable.events, *drain_events, *step.expiry.events),
        list_events=step.list_events,
        timers=frozenset().union(*[part.timers for part in parts]),
        recheck_after=soonest((*waits, *[part.recheck_after for part in parts])),
    )


def _effects(
    seen: Snapshot, targets: TargetClusters, objects: TargetObjects, verdict: Verdict
) -> CheckEffects:
    context = AnswerContext(verdict, usable_message(targets), targets.drain)
    return CheckEffects(
        answer_workloads(seen, context),
        targets.drain,
        expiry_warnings(seen, objects.clusters),
        nominate(seen, targets),
        partial(list_events, seen, targets, objects.config),
    )


def _effects_while_paused(seen: Snapshot, verdict: Verdict) -> CheckEffects:
    """Change nothing; what was begun goes on when the reason has gone."""
    unlisting = frozenset(timer for timer in seen.timer_ages if timer.kind in UNLISTING)
    return CheckEffects(answer_workloads(seen, AnswerContext(verdict, "")), DrainPlan(timers=unlisting))


def keeps_objects(verdict: Verdict) -> bool:
    """Whether the objects stay as they are: a refusal for any reason but a lack of clusters."""
    return verdict.status == "False" and verdict.reason not in (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE)


def _name_conflict_recheck(seen: Snapshot, targets: TargetClusters) -> float | None:
    """Return the seconds until a name may be free that another Placement and cluster use."""
    conflict = any(has_name_conflict(seen, entry) for entry in targets.usable)
    return NAME_CONFLICT_SECONDS if conflict else None
