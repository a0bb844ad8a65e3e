"""
Which workers are asked for their queues, and for whose answer a nomination waits (our dispatcher).

Pure. Workers are asked only while a Workload is to be nominated to which their quota matters: at rest nobody
is asked.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import READABLE_SOURCES
from placement_ac.core.inputs.job_facts import NO_NEEDS, JobNeeds, job_needs
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest

FACTS_AGAIN_SECONDS: Final = 15.0
"""How often a worker is asked, unless other jobs run or wait there since."""
FACTS_WAIT_SECONDS: Final = 2.0
"""How long a nomination waits at most for a worker whose queues are not known."""
FACTS_BESIDE_ROOM_SECONDS: Final = 0.9
"""The same for a job for which another worker is known to have room."""
FACTS_AFTER_CHANGE_SECONDS: Final = 1.0
"""When a worker is asked again at the earliest because other jobs run there: more or less is free. Or because
others wait there: its answer says whether they have got quota."""


@dataclass(frozen=True, slots=True)
class FactQuestions:
    """The MultiKueueClusters whose workers are to be asked for their queues."""

    ask: tuple[str, ...] = ()
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def askable_workers(snapshot: Snapshot, targets: TargetClusters) -> frozenset[str]:
    """Return the MultiKueueClusters that get jobs and whose workers can be asked."""
    clusters, listed = snapshot.objects.clusters, set(snapshot.objects.listed)
    return frozenset(
        entry.name
        for entry in targets.to_list
        if entry.name in listed
        and entry.name in clusters
        and clusters[entry.name].active
        and clusters[entry.name].source[0] in READABLE_SOURCES
        and entry.cluster not in snapshot.fleet.unreachable
    )


def needs_of(snapshot: Snapshot) -> JobNeeds:
    """Return what the jobs of a snapshot need of a worker beside its queues."""
    return job_needs(snapshot.workloads)


def not_asked_enough(snapshot: Snapshot, needs: JobNeeds) -> frozenset[str]:
    """Return the MultiKueueClusters whose last answer was not about all of these needs."""
    facts = snapshot.fleet.queue_facts
    return frozenset(name for name, one in facts.items() if not needs.is_part_of(one.then.needs))


def seconds_awaited(snapshot: Snapshot, name: str, again: Collection[str] = ()) -> float | None:
    """Return how long the answer of a worker has been awaited that has not answered lately; None: it has.

    `again`: those of whose answers some do not count.
    """
    if _is_asked_soon(snapshot, name, again):
        return 0.0
    is_known = name not in again and has_answered(snapshot, name)
    return None if is_known else snapshot.age(_since(name))


def fact_questions(
    snapshot: Snapshot, names: Collection[str], again: Collection[str] = (), newcomers: Collection[str] = ()
) -> FactQuestions:
    """Return which of these MultiKueueClusters are to be asked now, and when to look again.

    `again`: those of whose answers some do not count: they are asked FACTS_WAIT_SECONDS after the last time.
    `newcomers`: those whose last answers do not count all Workloads that wait there.
    """
    soon = [name for name in names if _is_asked_soon(snapshot, name, again)]
    changed = _changed(snapshot, names).union(newcomers)
    asked = [name for name in names if name not in soon]
    unknown = [name for name in asked if name in again or not has_answered(snapshot, name)]
    ages = {name: snapshot.fleet.queue_facts[name].age for name in names if name not in unknown}
    lasts = {name: FACTS_AFTER_CHANGE_SECONDS if name in changed else FACTS_AGAIN_SECONDS for name in ages}
    due = [name for name, age in ages.items() if age >= lasts[name]]
    lasting = frozenset(map(_since, unknown))
    left = [FACTS_WAIT_SECONDS - snapshot.age(since) for since in lasting]
    left += [lasts[name] - age for name, age in ages.items() if name not in due]
    left += [FACTS_WAIT_SECONDS - ages[name] for name in soon]
    return FactQuestions(
        tuple(sorted([*unknown, *due])), lasting, soonest([seconds for seconds in left if seconds > 0])
    )


def workloads_on(snapshot: Snapshot, names: Collection[str]) -> dict[str, WorkloadsThere]:
    """Return MultiKueueCluster → the Workloads that it runs, those that wait for it, and what jobs need."""
    running: dict[str, set[str]] = {name: set() for name in names}
    waiting: dict[str, set[str]] = {name: set() for name in names}
    for workload in snapshot.workloads if names else ():
        for name in (workload.cluster,) if workload.cluster else workload.nominated:
            if name in running:
                (running if workload.cluster else waiting)[name].add(workload.meta.uid)
    needs = needs_of(snapshot) if names else NO_NEEDS  # one object for all
    return {name: WorkloadsThere(frozenset(running[name]), frozenset(waiting[name]), needs) for name in names}


def has_answered(snapshot: Snapshot, name: str) -> bool:
    """Return whether a worker has answered lately, so that nothing waits for its next answer.

    That it could not be asked is an answer, for longer than its queues are.
    """
    facts = snapshot.fleet.queue_facts.get(name)
    return facts is not None and (is_recent(facts) or (bool(facts.problem) and facts.is_fresh))


def is_recent(facts: WorkerFacts) -> bool:
    """Whether an answer says if there is room now: the next one is due no longer than a nomination waits."""
    return facts.known is not None and facts.age <= FACTS_AGAIN_SECONDS + FACTS_WAIT_SECONDS


def _changed(snapshot: Snapshot, names: Collection[str]) -> frozenset[str]:
    """Return those where other Workloads run than when they were asked."""
    running: dict[str, set[str]] = {name: set() for name in names}
    for workload in snapshot.workloads if names else ():
        if workload.cluster in running:
            running[workload.cluster].add(workload.meta.uid)
    facts = snapshot.fleet.queue_facts
    return frozenset(name for name in names if name in facts and facts[name].then.running != running[name])


def _is_asked_soon(snapshot: Snapshot, name: str, again: Collection[str]) -> bool:
    """Whether a worker is to be asked for more than it was, and was asked too short a time ago."""
    has_to_wait = name in again and has_answered(snapshot, name)
    return has_to_wait and snapshot.fleet.queue_facts[name].age < FACTS_WAIT_SECONDS


def _since(name: str) -> Since:
    return Since(SinceKind.FACTS_AWAITED, name)
