"""The line of a job in a list, and which of them are wanted. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.waiting_jobs import owner_of
from kubectl_placement.status.taken_up import NOT_ASKED, Copies, taken_up
from kubectl_placement.story.hub_jobs import HubJobs
from kubectl_placement.story.model import FINISHED, JobLine, JobState
from kubectl_placement.story.waits import OneJob, wait_of
from placement_ac.core.api.constants import READY, WORKLOAD
from placement_ac.core.api.fields import get_list, get_str, get_time

STATES: Final = (*JobState, "finished")
"""The states to choose from; `finished`: succeeded or failed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The jobs to list; an empty field: all."""

    queue: str = ""
    """A LocalQueue."""
    cluster: str = ""
    """A managed cluster or a MultiKueueCluster."""
    states: tuple[str, ...] = ()

    def includes(self, line: JobLine) -> bool:
        return (
            self.queue in ("", line.queue)
            and self.cluster in ("", line.cluster, line.cluster_object, *line.elsewhere)
            and (not self.states or bool({line.state, *_groups(line.state)}.intersection(self.states)))
        )


def _groups(state: JobState) -> tuple[str, ...]:
    return ("finished",) if state in FINISHED else ()


ALL: Final = Wanted()


def job_lines(view: HubView, wanted: Wanted = ALL, namespace: str = "") -> tuple[JobLine, ...]:
    """Return the jobs that are wanted, by namespace, kind and name; `namespace` "": of all."""
    hub = HubJobs(view)
    raws = (raw for raw in view.dump.of(WORKLOAD) if namespace in ("", get_str(raw, "metadata", "namespace")))
    jobs = (job for job in (OneJob(raw, hub) for raw in raws) if not job.is_replaced)
    lines = filter(wanted.includes, map(job_line, jobs))
    return tuple(sorted(lines, key=lambda line: (line.namespace, line.kind, line.name, line.workload)))


def job_line(job: OneJob, copies: Copies = NOT_ASKED) -> JobLine:
    """Return the line of one job; `copies`: those of the workers that were asked."""
    taken = taken_up(job.hub.view, job.raw, copies)
    owner, (namespace, workload), wait = owner_of(job.raw), job.key, wait_of(job)
    return JobLine(
        namespace=namespace,
        kind=get_str(owner, "kind") or WORKLOAD.kind,
        name=get_str(owner, "name") or workload,
        workload=workload,
        queue=job.queue,
        cluster_queue=job.cluster_queue,
        state=job.state,
        cluster=job.cluster,
        cluster_object=job.cluster_object,
        since=_since(job),
        waits_for=wait.waits_for,
        fix=wait.fix,
        elsewhere=taken.clusters if taken else (),
        elsewhere_why=taken.sentence if taken else "",
    )


def _since(job: OneJob) -> datetime | None:
    if job.state in FINISHED:
        return get_time(job.condition("Finished"), "lastTransitionTime")
    if job.state == JobState.STOPPED:
        stopped = stopped_by(job)[1] or get_time(job.condition("Evicted"), "lastTransitionTime")
        return stopped or get_time(job.raw, "metadata", "creationTimestamp")
    if job.state == JobState.RUNNING:
        return placed_at(job)
    evicted = get_time(job.condition("Evicted"), "lastTransitionTime")
    return evicted or get_time(job.raw, "metadata", "creationTimestamp")


def placed_at(job: OneJob) -> datetime | None:
    """Return since when it is on its cluster: Kueue's check is the last to be Ready."""
    ready = (entry for entry in job.entries if get_str(entry, "state") == READY)
    times = [get_time(entry, "lastTransitionTime") for entry in ready]
    admitted = get_time(job.condition("Admitted"), "lastTransitionTime") if job.has("Admitted") else None
    return max(filter(None, times), default=None) or admitted


def stopped_by(job: OneJob) -> tuple[str, datetime | None]:
    """Return who wrote `spec.active` last, and when, by managedFields; ("", None): unknown."""
    writes = ((get_str(entry, "time"), entry) for entry in _writers(job))
    entry = max(writes, key=lambda write: write[0], default=("", {}))[1]
    return get_str(entry, "manager"), get_time(entry, "time")


def _writers(job: OneJob) -> Iterator[dict[str, object]]:
    for entry in get_list(job.raw, "metadata", "managedFields"):
        spec = entry.get("fieldsV1", {}).get("f:spec") if isinstance(entry.get("fieldsV1"), dict) else None
        if isinstance(spec, dict) and "f:active" in spec:
            yield dict(entry)


def name_of(line: JobLine) -> str:
    """Return `kind/name` of a job, as kubectl prints names."""
    return f"{line.kind.lower()}/{line.name}"
