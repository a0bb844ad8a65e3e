"""
The listed workers whose queues give no quota to a Placement's jobs, by their answers (our dispatcher).

Pure. Workers are asked for the jobs that are to be nominated. One that lacks a queue then is asked again, and
reported once that has lasted, until it has the queue; of a queue that no job uses any more, for an hour at
most: the condition does not change with each job.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import NO_QUOTA_THERE
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.facts import queue_of
from placement_ac.core.inputs.queue_facts import FACTS_VALID_SECONDS, Queue, QueueFacts
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.fact_questions import FACTS_AGAIN_SECONDS, askable_workers
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest

LACKS_SECONDS: Final = 30.0
"""How long a worker lacks a queue before it is reported: queues are often made together with the jobs."""
KEPT_SECONDS: Final = 3600.0
"""How long that is kept of a queue that no job uses any more."""


class LackingQueues(NamedTuple):
    """The queues that workers lack, the MultiKueueClusters to ask again, and when to look again."""

    ask: tuple[str, ...] = ()
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def lacking_queues(snapshot: Snapshot, targets: TargetClusters) -> LackingQueues:
    """Return the workers that lack a queue, reported or not."""
    lacking = [(name, _since(name, queue)) for name, queue, _ in _lacking(snapshot, targets)]
    if not lacking:
        return LackingQueues()
    facts, askable = snapshot.fleet.queue_facts, askable_workers(snapshot, targets)
    due: set[str] = set()
    left: list[float] = []
    for name, since in lacking:
        unreported = LACKS_SECONDS - snapshot.age(since)
        wait = (FACTS_AGAIN_SECONDS if unreported > 0 else FACTS_VALID_SECONDS) - facts[name].age
        if wait <= 0 and name in askable:
            due.add(name)
        left += [unreported, wait]
    lasting = frozenset(since for _, since in lacking)
    return LackingQueues(tuple(sorted(due)), lasting, soonest([seconds for seconds in left if seconds > 0]))


def queue_remarks(snapshot: Snapshot, targets: TargetClusters) -> Mapping[str, str]:
    """Return the clusters that have lacked queues for a while → which queues, and why."""
    problems: dict[str, list[str]] = {}
    clusters = {entry.name: entry.cluster for entry in targets.to_list}
    for name, queue, problem in _lacking(snapshot, targets):
        if snapshot.age(_since(name, queue)) >= LACKS_SECONDS:
            problems.setdefault(clusters[name], []).append(f"{'/'.join(queue)} ({problem})")
    return {cluster: f"{NO_QUOTA_THERE}{joined(sorted(texts))}" for cluster, texts in problems.items()}


def _lacking(snapshot: Snapshot, targets: TargetClusters) -> Iterator[tuple[str, Queue, str]]:
    """Yield listed MultiKueueClusters, each queue that they lack, and why it gives no quota there."""
    facts, listed = snapshot.fleet.queue_facts, set(snapshot.objects.listed)
    names = [entry.name for entry in targets.to_list if entry.name in facts and entry.name in listed]
    if not names:
        return
    used = {queue_of(workload) for workload in snapshot.workloads if workload.job.queue}
    noted = snapshot.ages(SinceKind.QUEUE_LACKING)
    for name in names:
        parts = (subject.split(" ") for subject, age in noted.items() if age < KEPT_SECONDS)
        before = {(namespace, queue) for of, namespace, queue in parts if of == name}
        there = facts[name]
        # An answer that is a problem says nothing new.
        for queue in sorted(before if there.problem else used | before):
            if problem := "not known now" if there.problem else _problem(there.queues.get(queue)):
                yield name, queue, problem


def _problem(there: QueueFacts | None) -> str:
    if there is None:
        return "there is no such LocalQueue"
    if not there.exists:
        return f"there is no ClusterQueue {there.cluster_queue}"
    if there.selects_no_namespace:
        return f"ClusterQueue {there.cluster_queue} has no namespaceSelector"
    return "" if there.active else f"it or ClusterQueue {there.cluster_queue} is stopped or not active"


def _since(name: str, queue: Queue) -> Since:
    return Since(SinceKind.QUEUE_LACKING, f"{name} {queue[0]} {queue[1]}")
