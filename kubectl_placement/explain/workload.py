"""
Explain where a Workload goes: its state, and for each of its Placements the clusters with their points.

Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubectl_placement.explain.subject import owner_names
from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.choice import PlacementChoice, choices
from kubectl_placement.jobs.not_managed import never_starts
from kubectl_placement.jobs.queue_path import QueuePath, queue_path
from kubectl_placement.jobs.queue_position import QueuePosition, cluster_queue_position
from kubectl_placement.jobs.worker_quota import claims_note, quota_notes
from kubectl_placement.status.kueue_failures import sync_failure
from kubectl_placement.status.taken_up import taken_up
from kubectl_placement.status.unnamed_resources import never_here
from placement_ac.core.api.constants import LOCAL_QUEUE
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.fields import get_str, namespace_of
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.ignored import ignored

FINISHED: Final = "it has finished"
NOW: Final = "filters and points are of now, and not of when it was nominated"
PLACED: Final = f"{NOW}; the job itself counts where it runs"


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """An entry of the Workload's `status.admissionChecks`."""

    check: str
    state: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class WorkloadExplanation:
    """A Workload, and the clusters that it may go to."""

    namespace: str
    name: str
    owners: tuple[str, ...]
    """The names of the objects that own it: of its Job."""
    queue: str
    cluster_queue: str
    """"": unknown."""
    active: bool
    finished: bool
    quota_since: datetime | None
    """None: it has no quota, or the time cannot be read."""
    has_quota: bool
    checks: tuple[CheckEntry, ...]
    nominated: tuple[str, ...]
    """MultiKueueClusters."""
    nominated_since: datetime | None
    """When the last of them was nominated; None: `managedFields` does not say."""
    placed_on: str
    """The MultiKueueCluster that it was placed on; "": none."""
    placements: tuple[PlacementChoice, ...]
    notes: tuple[str, ...]
    position: QueuePosition | None
    """In its ClusterQueue; None: it does not wait, or that is unknown."""


def explain_workload(view: HubView, raw: Object, notes: Iterable[str] = ()) -> WorkloadExplanation:
    """Return the explanation of a Workload on the hub, with these notes about its Job and the workers."""
    job = workload_with_job(raw)
    queue = get_str(raw, "spec", "queueName")
    path = (
        queue_path(view, job.meta.namespace, queue)
        if queue
        else QueuePath("", problem="it names no LocalQueue")
    )
    placements = () if job.finished or not job.check_states else choices(view, job)
    return WorkloadExplanation(
        namespace=job.meta.namespace,
        name=job.meta.name,
        owners=owner_names(raw),
        queue=queue,
        cluster_queue=get_str(raw, "status", "admission", "clusterQueue") or path.cluster_queue,
        active=job.active,
        finished=job.finished,
        quota_since=job.quota_since,
        has_quota=job.has_quota,
        checks=tuple(
            CheckEntry(state.check, state.state, state.message, state.since) for state in job.check_states
        ),
        nominated=job.nominated,
        nominated_since=job.nominated_since,
        placed_on=job.cluster,
        placements=placements,
        notes=(
            *_never(view, raw),
            *_elsewhere(view, raw),
            *_without_quota(raw, job, path),
            *_notes(job, placements, path.problem),
            *_failures(view, raw, job),
            *notes,
            *quota_notes(view, placements),
            *(() if job.finished else claims_note(job)),
            *_ignored(view, job, placements),
        ),
        position=cluster_queue_position(view, raw) if job.check_states else None,
    )


def _never(view: HubView, raw: Object) -> Iterator[str]:
    """Yield that MultiKueue never starts it, with the fix."""
    queue = view.dump.find(LOCAL_QUEUE, get_str(raw, "spec", "queueName"), namespace_of(raw))
    if never := never_starts(raw, queue):
        yield f"Kueue never starts it: {never.why}; {never.fix}"


def _elsewhere(view: HubView, raw: Object) -> Iterator[str]:
    """Yield where it runs other than Kueue's record says."""
    if taken := taken_up(view, raw):
        yield f"it {taken.sentence}"


def _without_quota(raw: Object, job: Workload, path: QueuePath) -> Iterator[str]:
    """Yield why Kueue gives it no quota on the hub, in Kueue's words.

    Whether it ever does, too. They call a queue inactive that does not exist: then the note says so.
    """
    message = get_str(condition_of(raw, "QuotaReserved"), "message")
    if message and not (job.has_quota or job.finished or path.is_missing):
        yield f"Kueue gives it no quota on the hub: {message}"
        never, fix = never_here(message, path.cluster_queue)
        if never:
            yield f"it asks for {never}: {fix}"


def _failures(view: HubView, raw: Object, job: Workload) -> Iterator[str]:
    """Yield why Kueue sends it again, and how it goes on if Kueue does not (issue 14521)."""
    failure = "" if job.finished else sync_failure(raw, view.managed_cluster_of)
    if failure and job.has_quota and not job.nominated:
        yield f"{failure}; if it is nominated nowhere for a minute, delete its finished copy there"
    elif failure:
        yield failure


def _ignored(view: HubView, job: Workload, placements: tuple[PlacementChoice, ...]) -> Iterator[str]:
    if any(choice.dispatcher for choice in placements):
        yield from ignored(job.job, taints=bool(view.settings.job_taints))


def _notes(job: Workload, placements: tuple[PlacementChoice, ...], problem: str) -> tuple[str, ...]:
    if job.finished:
        return (FINISHED,)
    if not placements:
        return (problem or "Kueue has not set its checks yet",)
    if not any(choice.dispatcher for choice in placements):
        return ()
    if job.cluster:
        return (PLACED,)
    return (NOW,) if job.nominated else ()
