"""
Which running jobs would be moved now, and why not each of the others: the document of `plan --moves`.

Pure. The controller's own rules decide. How long a cluster has had room is not on the hub: it counts as long.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubectl_placement.hub.hub_view import HubView, all_elapsed_but
from kubectl_placement.jobs.worker_quota import WorkloadsByWorker, merged
from placement_ac.core.api.constants import ANNOTATION_MOVABLE
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.moves.planning import MovePlan
from placement_ac.core.plan.fact_questions import workloads_on
from placement_ac.core.plan.job_fit import job_fit
from placement_ac.core.plan.moving import moving
from placement_ac.core.plan.nomination import nominate

NOT_MOVABLE = (
    f'it does not say that it may be moved: annotate it, or its podSet template, {ANNOTATION_MOVABLE}: "true"'
)
IS_OFF = "the controller runs without --moves: it moves no job"
NOT_READ = "use --workers to read the quota of the workers: without it, no cluster is known to have room"


@dataclass(frozen=True, slots=True)
class JobMove:
    """A job that runs, and whether it would be moved."""

    namespace: str
    name: str
    check: str
    """The AdmissionCheck whose budget counts; "": none."""
    cluster: str
    target: str
    """The cluster to which it moves now; "": it does not."""
    why: str
    """Why it moves, or why it does not."""


@dataclass(frozen=True, slots=True)
class MovesReport:
    """The jobs of every check, those that move now first."""

    jobs: tuple[JobMove, ...]
    left: dict[str, int]
    """Check → how many moves its budget has left in this hour."""
    objections: dict[str, str]
    """Check → why none of its jobs moves now."""
    notes: tuple[str, ...]

    @property
    def moving(self) -> tuple[JobMove, ...]:
        return tuple(job for job in self.jobs if job.target)


def workers_for_moves(view: HubView) -> WorkloadsByWorker:
    """Return the workers whose queues matter: those that are listed."""
    snapshots = map(_with_moves(view).snapshot, _placements(view))
    return merged(
        workloads_on(seen, [n for n in seen.objects.listed if n in seen.objects.clusters])
        for seen in snapshots
    )


def planned_moves(view: HubView) -> MovesReport:
    """Return which jobs would be moved now."""
    with_moves = _with_moves(view)
    jobs: list[JobMove] = []
    left: dict[str, int] = {}
    objections: dict[str, str] = {}
    for placement in _placements(view):
        seen = replace(with_moves.snapshot(placement), all_ages=all_elapsed_but())
        plan = _plan(with_moves, placement, seen)
        left |= plan.left
        objections |= plan.objections
        jobs += _jobs(seen, plan)
    notes = (IS_OFF if not view.settings.moves else "", NOT_READ if view.queue_facts is None else "")
    jobs.sort(key=lambda job: (not job.target, job.namespace, job.name))
    return MovesReport(tuple(jobs), left, objections, tuple(filter(None, notes)))


def may_move(job: Workload) -> bool:
    """Whether a job runs, and says that it may be moved."""
    return bool(job.cluster) and job.movable and not job.finished


def move_text(view: HubView, job: Workload) -> str:
    """Return whether a job that may move would be moved now, and why."""
    report = planned_moves(view)
    found = (one for one in report.jobs if (one.namespace, one.name) == job.meta.id)
    if (one := next(found, None)) is None:
        return "it may be moved, but not now: its checks are not placement-ac's"
    does = f"it would be moved to {one.target} now" if one.target else "it may be moved, but not now"
    return "; ".join((f"{does}: {one.why}", *report.notes))


def _with_moves(view: HubView) -> HubView:
    return replace(view, settings=view.settings.model_copy(update={"moves": True}))


def _placements(view: HubView) -> list[str]:
    return sorted({check.placement for check in view.our_checks if check.placement})


def _plan(view: HubView, placement: str, seen: Snapshot) -> MovePlan:
    targets = view.targets(placement)
    fit = job_fit(seen, targets)
    nominate(seen, targets, fit)  # those that wait get room first
    return moving(seen, targets, fit, in_step=True).plan


def _jobs(seen: Snapshot, plan: MovePlan) -> Iterator[JobMove]:
    first: dict[str, str] = {}
    for candidate in plan.candidates():
        why = candidate.objection or plan.objections.get(candidate.check, "")
        if not why and (before := first.get(candidate.check)):
            why = f"{before} moves first: one at a time"
        if not why:
            first[candidate.check] = candidate.workload.label
        target = "" if why else _cluster(seen, candidate.target)
        yield _job(seen, candidate.workload, candidate.check, target, why or candidate.why)
    for workload in seen.workloads:
        if workload.cluster and not workload.movable:
            yield _job(seen, workload, "", "", NOT_MOVABLE)


def _job(seen: Snapshot, workload: Workload, check: str, target: str, why: str) -> JobMove:
    namespace, name = workload.meta.id
    return JobMove(namespace, name, check, _cluster(seen, workload.cluster), target, why)


def _cluster(seen: Snapshot, name: str) -> str:
    return seen.hub.cluster_of(seen.name, name, seen.objects.clusters.get(name))
