"""
The consequences of a quarantine besides the choice of clusters (our dispatcher): jobs that wait there are
taken back, and the condition and events say so.

Pure. A job that runs is not touched.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from placement_ac.core.api.constants import CLUSTER_QUARANTINED, CLUSTER_RETURNED
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.filters import QUARANTINE
from placement_ac.core.draining.withdrawals import Withdrawn
from placement_ac.core.failures.quarantine import of_namespaces, wrong_annotations
from placement_ac.core.inputs.state import EventIntent, Since, SinceKind, Snapshot
from placement_ac.core.plan.event_intents import DueEvents
from placement_ac.core.plan.job_fit import JobFit, try_left, try_since
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.plan.turns import JUDGED_AGAIN_SECONDS
from placement_ac.core.selection.selection import soonest


def refused(
    snapshot: Snapshot, fit: JobFit, cluster: str, name: str, waiting: Sequence[Workload]
) -> Withdrawn:
    """Return those of the jobs that wait on a cluster which are withdrawn because it is quarantined."""
    if cluster not in snapshot.fleet.quarantined:
        return Withdrawn()
    judged = _judged_now(snapshot, fit, waiting)
    again = JUDGED_AGAIN_SECONDS if len(judged) < len(waiting) else None
    return Withdrawn(tuple([job for job in judged if _is_refused(fit, job, name)]), again)


def _judged_now(snapshot: Snapshot, fit: JobFit, waiting: Sequence[Workload]) -> list[Workload]:
    """Return those that this plan judges, at least one; another one comes first each second."""
    start = int(snapshot.now.timestamp()) % len(waiting) if waiting else 0
    judged: list[Workload] = []
    for job in (*waiting[start:], *waiting[:start]):
        if not fit.judges_another(job) and judged:
            break
        judged.append(job)
    return judged


def _is_refused(fit: JobFit, job: Workload, name: str) -> bool:
    refusal = fit.refusals(job)[0].get(name)
    return refusal is not None and refusal.filter == QUARANTINE


def quarantine_remarks(snapshot: Snapshot) -> Iterator[str]:
    """Yield what the condition says of listed clusters that are quarantined, and of wrong annotations."""
    if why := snapshot.fleet.quarantined:
        yield f"quarantined: {joined([f'{cluster} ({why[cluster]})' for cluster in why])}"
    listed, objects = snapshot.objects.listed, snapshot.objects.clusters
    yield from wrong_annotations([objects[name] for name in listed if name in objects])


def quarantine_events(snapshot: Snapshot, targets: TargetClusters) -> DueEvents:
    """Return the events about clusters that are quarantined, and about those that are no longer."""
    whose = snapshot.fleet.quarantined_for
    quarantined, before = snapshot.fleet.quarantined, snapshot.ages(SinceKind.QUARANTINED)
    events = [
        EventIntent(
            CLUSTER_QUARANTINED,
            f"no new job{of_namespaces(whose.get(cluster, ()))} is sent to {cluster}: {why}",
        )
        for cluster, why in quarantined.items()
    ]
    events += [
        EventIntent(CLUSTER_RETURNED, f"jobs are sent to {cluster} again: it is no longer quarantined")
        for cluster in sorted(before.keys() - quarantined.keys())
    ]
    lasting = {Since(SinceKind.QUARANTINED, cluster) for cluster in quarantined}
    lasting |= {try_since(cluster, job) for cluster, job in _trying(snapshot, targets)}
    return DueEvents(tuple(events), soonest(_left(snapshot, targets)), frozenset(lasting))


def _trying(snapshot: Snapshot, targets: TargetClusters) -> Iterator[tuple[str, Workload]]:
    """Yield the quarantined clusters that one job may try now, each with the jobs that wait there."""
    for cluster, retry_at in snapshot.fleet.retry_at.items() if snapshot.policy.dispatcher else ():
        name = targets.listed.get(cluster, "")
        for job in targets.workloads.waiting_only(name) if retry_at <= snapshot.now else ():
            yield cluster, job


def _left(snapshot: Snapshot, targets: TargetClusters) -> Iterator[float]:
    """Yield the seconds until one job may try a quarantined cluster, or has shown that it has recovered."""
    for cluster, retry_at in snapshot.fleet.retry_at.items():
        placed = [
            job.placed_since for job in targets.workloads.running.get(targets.listed.get(cluster, ""), ())
        ]
        well = timedelta(seconds=snapshot.policy.avoid_after_failure)
        for when in (retry_at, *(since + well for since in placed if since)):
            if when > snapshot.now:
                yield (when - snapshot.now).total_seconds()
    for cluster, job in _trying(snapshot, targets):
        if (left := try_left(snapshot, cluster, job)) > 0:
            yield left
