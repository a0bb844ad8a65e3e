"""
Decide what Kueue should see for one Placement.

Pure functions of a `Snapshot`: no clock, no I/O, no logging. Refusing is an
answer like any other; it reaches the user as a condition, not an exception.
A refusal leaves the objects as they are, save the two that say "there is no
cluster": then each cluster leaves as soon as no job is hurt by it, and with the
last one the config, as Kueue takes none that is empty.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    DISCONNECTED_RETENTION_SECONDS,
    NAME_CONFLICT_SECONDS,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    STUCK_READY_SECONDS,
    WORKLOAD_WRITES_AT_ONCE,
)
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.draining.drain import DrainPlan
from placement_ac.core.inputs.state import (
    CheckStateUpdate,
    EventIntent,
    Plan,
    Snapshot,
    Timer,
    TimerKind,
    Verdict,
    WantedCluster,
    WantedConfig,
)
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import claimed_elsewhere, is_taken, judge
from placement_ac.core.plan.event_intents import list_events, unusable_clusters
from placement_ac.core.plan.expiry_warnings import ExpiryWarnings, expiry_warnings
from placement_ac.core.plan.nomination import Nominations, nominate
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.plan.workload_states import (
    AnswerContext,
    check_state_updates,
    next_retry,
    stuck_for,
    stuck_timers,
)
from placement_ac.core.selection.capacity import order_names
from placement_ac.core.selection.probe_schedule import due_probes
from placement_ac.core.selection.selection import cluster_of, removable_clusters, soonest

UNDER_WAY: Final = (TimerKind.BEING_UNLISTED, TimerKind.JUST_UNLISTED)
"""Marks of clusters that leave: kept while nothing can be decided."""


class TargetObjects(NamedTuple):
    """What is to be there, and what lasts with it."""

    config: WantedConfig | None = None
    clusters: tuple[WantedCluster, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


@dataclass(frozen=True, slots=True)
class WorkloadAnswers:
    """What the Workloads are told."""

    updates: tuple[CheckStateUpdate, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


@dataclass(frozen=True, slots=True)
class RetainedClusters:
    """MultiKueueClusters that stay though they are needed no more: their marks, and until when."""

    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(mark.subject for mark in self.timers)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What is done next beside the objects: above all what Workloads are told."""

    answers: WorkloadAnswers
    drain: DrainPlan
    expiry: ExpiryWarnings = field(default_factory=ExpiryWarnings)
    dispatched: Nominations = field(default_factory=Nominations)
    list_events: Callable[[], tuple[EventIntent, ...]] = tuple


def plan(seen: Snapshot, course: TargetClusters | None = None) -> Plan:
    """Return the objects, the verdict on each check and the answers that `seen` calls for.

    `course`: what `chart` says of it, where that is known already.
    """
    if seen.checks.ours:
        return _planned(seen, course or select_targets(seen))
    if owners_of(seen):
        objects = _held(seen)
        return Plan(config=objects.config, clusters=objects.clusters)
    objects = TargetObjects(clusters=tuple(_needed_elsewhere(seen, ())))
    kept = _kept(seen, objects)
    return Plan(
        clusters=objects.clusters,
        retained=kept.names,
        timers=kept.timers,
        recheck_after=kept.recheck_after,
    )


def _planned(seen: Snapshot, course: TargetClusters) -> Plan:
    verdict = judge(seen, course)
    if keeps_objects(verdict):
        objects, step = _held(seen), _standstill(seen, verdict)
    else:
        objects = _listed(seen, course)
        step = _step(seen, course, objects, verdict)
    selection, guarded, removal = course.selection, course.mass_loss, step.drain
    asked, ask_again = due_probes(seen)
    complaint, kept = unusable_clusters(seen, course), _kept(seen, objects)
    lasting = (selection, guarded, complaint, removal, objects, step.answers, step.dispatched, kept)
    leaving = [notice for one in removal.steps for notice in one.events]
    waits = (ask_again, step.expiry.recheck_after, _rivals_may_go(seen, course))
    return Plan(
        selected=selection.ranked,
        unusable=tuple(cluster for cluster in selection.ranked if cluster in selection.left_out),
        verdicts={check.meta.name: verdict for check in seen.checks.ours},
        config=objects.config,
        clusters=objects.clusters,
        retained=kept.names,
        check_state_updates=step.answers.updates,
        nominations=step.dispatched.nominations,
        ask_for_copies=removal.ask_for_copies,
        probe_requests=asked,
        events=(*guarded.events, *complaint.events, *leaving, *step.expiry.events),
        list_events=step.list_events,
        timers=frozenset().union(*[part.timers for part in lasting]),
        recheck_after=soonest((*waits, *[part.recheck_after for part in lasting])),
    )


def _step(seen: Snapshot, course: TargetClusters, objects: TargetObjects, verdict: Verdict) -> PlanStep:
    return PlanStep(
        _told(seen, AnswerContext(verdict, _ready(course), course.drain)),
        course.drain,
        expiry_warnings(seen, objects.clusters),
        nominate(seen, course),
        partial(list_events, seen, course, objects.config),
    )


def _standstill(seen: Snapshot, verdict: Verdict) -> PlanStep:
    """Leave all as it is; what is under way goes on when the reason has gone."""
    under_way = frozenset(mark for mark in seen.timer_ages if mark.kind in UNDER_WAY)
    return PlanStep(_told(seen, AnswerContext(verdict, "")), DrainPlan(timers=under_way))


def keeps_objects(verdict: Verdict) -> bool:
    """Whether the objects stay as they are: a refusal, and not for want of clusters."""
    return verdict.status == "False" and verdict.reason not in (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE)


def _rivals_may_go(seen: Snapshot, course: TargetClusters) -> float | None:
    """Return when to look again at a name that another pair makes too."""
    blocked = seen.objects.name_conflicts and any(claimed_elsewhere(seen, entry) for entry in course.usable)
    return NAME_CONFLICT_SECONDS if blocked else None


def _told(seen: Snapshot, outlook: AnswerContext) -> WorkloadAnswers:
    """Return what the Workloads are told; what is too much for one go follows at once."""
    if not seen.workloads:
        return WorkloadAnswers()
    told = _by_turns(tuple(check_state_updates(seen, outlook)), seen)
    waiting = stuck_timers(seen, outlook)
    more = 0.0 if len(told) > WORKLOAD_WRITES_AT_ONCE else None
    stranded = [STUCK_READY_SECONDS - seconds for seconds in stuck_for(seen) if seconds < STUCK_READY_SECONDS]
    waits = (next_retry(seen, waiting), more, *stranded)
    return WorkloadAnswers(told[:WORKLOAD_WRITES_AT_ONCE], waiting, soonest(waits))


def _by_turns(told: tuple[CheckStateUpdate, ...], seen: Snapshot) -> tuple[CheckStateUpdate, ...]:
    """Begin somewhere else each second: those that cannot be written must not stand before all others."""
    at = (
        int(seen.now.timestamp()) * WORKLOAD_WRITES_AT_ONCE % len(told)
        if len(told) > WORKLOAD_WRITES_AT_ONCE
        else 0
    )
    return told[at:] + told[:at]


def _ready(course: TargetClusters) -> str:
    """Return what a Workload is told that may go: how many clusters there are for it, and which."""
    usable = [entry.cluster for entry in course.usable]
    others = (*course.selection.left_out, *course.beyond, *course.queued)
    if not usable:
        return ""
    return f"{len(usable)} of {len(usable) + len(others)} selected clusters usable: {joined(usable)}"


def owners_of(seen: Snapshot) -> dict[str, str]:
    """Return the AdmissionChecks that use the config, uid → name: as long as one lives, so does it."""
    return {
        check.meta.uid: check.meta.name
        for check in (*seen.checks.ours, *seen.checks.multikueue, *seen.checks.former)
    }


# -- the objects


def _listed(seen: Snapshot, course: TargetClusters) -> TargetObjects:
    """List every usable cluster, and after them those that leave and cannot go yet."""
    owners, staying = owners_of(seen), course.drain.staying
    ordered = order_names(seen, course.usable, [one.name for one in staying])
    clusters = [WantedCluster(entry.name, entry.cluster, entry.source, owners) for entry in course.usable]
    mine = course.listed.values()
    for one in staying:
        found = seen.credentials.selected.get(one.cluster) or seen.credentials.unselected.get(one.cluster)
        source = found if isinstance(found, CredentialSource) else None
        if one.name in mine and (source or one.name in seen.objects.clusters):
            clusters.append(WantedCluster(one.name, one.cluster, source, owners))
    return TargetObjects(
        _config(seen, course, ordered.names, owners),
        _shared(seen, clusters) if seen.objects.other_owners else tuple(clusters),
        ordered.timers,
        ordered.recheck_after,
    )


def _shared(seen: Snapshot, clusters: Iterable[WantedCluster]) -> tuple[WantedCluster, ...]:
    """Return these with all their owners, and those that only other Placements need."""
    mine = {one.name: one._replace(owners=_with_others(seen, one.name, one.owners)) for one in clusters}
    return *mine.values(), *_needed_elsewhere(seen, mine)


def _config(
    seen: Snapshot, course: TargetClusters, names: tuple[str, ...], owners: Mapping[str, str]
) -> WantedConfig | None:
    known = seen.objects.config.draining if seen.objects.config and seen.objects.config.ours else {}
    draining = {one.name: known.get(one.name, seen.now) for one in course.drain.staying}
    if len(names) > seen.hub.clusters_max and seen.objects.config:
        # The cap has shrunk: nothing can be written before enough of them could go together.
        names = seen.objects.config.listed
    return WantedConfig(seen.name, names, owners, draining) if names else None


def _kept(seen: Snapshot, objects: TargetObjects) -> RetainedClusters:
    """Keep MultiKueueClusters for a while that are needed no more: Kueue still clears up there."""
    wanted = {cluster.name for cluster in objects.clusters}
    wanted.update(objects.config.clusters if objects.config else ())
    marks = [
        Timer(TimerKind.RETAINED, obj.meta.name)
        for obj in removable_clusters(seen)
        if obj.meta.name not in wanted
    ]
    left = {mark: _retention(seen, mark.subject) - seen.timer_ages.get(mark, 0.0) for mark in marks}
    kept = {mark: seconds for mark, seconds in left.items() if seconds > 0}
    return RetainedClusters(frozenset(kept), soonest(kept.values()))


def _retention(seen: Snapshot, name: str) -> float:
    """Return how long a MultiKueueCluster is kept: longer where Kueue has yet to come back and clear up."""
    kept, lost = seen.policy.retention, seen.objects.clusters[name].active is False
    return max(kept, DISCONNECTED_RETENTION_SECONDS) if kept and lost else kept


def _held(seen: Snapshot) -> TargetObjects:
    """Keep what is there as it is; only its owners follow."""
    owners = owners_of(seen)
    config = None
    if seen.objects.config and not is_taken(seen.objects.config, seen.name, ""):
        config = WantedConfig(seen.name, seen.objects.config.listed, owners, seen.objects.config.draining)
    mine = [
        WantedCluster(name, cluster_of(seen, obj), None, _with_others(seen, name, owners))
        for name, obj in seen.objects.clusters.items()
        if obj.ours and (obj.placement == seen.name or _listed_without_placement(obj, config))
    ]
    kept = [cluster.name for cluster in mine]
    return TargetObjects(config, (*mine, *_needed_elsewhere(seen, kept)))


def _listed_without_placement(obj: KueueObject, config: WantedConfig | None) -> bool:
    """Whether it is listed here and shared, or its label was taken off."""
    return not obj.placement and config is not None and obj.meta.name in config.clusters


def _needed_elsewhere(seen: Snapshot, wanted: Container[str]) -> Iterator[WantedCluster]:
    """Yield shared MultiKueueClusters that only other Placements list: they stay as they are."""
    for name, obj in seen.objects.clusters.items() if seen.objects.other_owners else ():
        others = seen.objects.other_owners.get(name)
        if others and obj.ours and not obj.placement and name not in wanted:
            owners = {**others, **_own_claim(seen, name)}
            yield WantedCluster(name, cluster_of(seen, obj), None, owners)


def _own_claim(seen: Snapshot, name: str) -> dict[str, str]:
    """Return the owners that others see in this Placement, as it selects what it does not list.

    All Placements must come to the same owners of what they share, or they would write them for ever.
    """
    return (
        owners_of(seen)
        if seen.checks.ours and isinstance(seen.credentials.selected.get(name), CredentialSource)
        else {}
    )


def _with_others(seen: Snapshot, name: str, owners: Mapping[str, str]) -> Mapping[str, str]:
    """Return the owners of a MultiKueueCluster: those of this Placement, and of whoever shares it."""
    others = seen.objects.other_owners.get(name)
    return {**owners, **others} if others else owners
