"""
Which of the jobs that run would be better elsewhere, and what speaks against moving each.

Pure. A job is moved because its cluster is to be emptied, or because another one has had room for it for a
while and is better by a margin. With Kueue's own dispatcher it may start on any listed cluster with room: so
each of them must be better, and its own one must have none, even without the job.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple
from zlib import crc32

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import Comparison
from placement_ac.core.draining.state import ConfigWorkloads
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.moves.history import CAUSES, WHY_EMPTIED, Cause, MoveHistory

COMPARED_MAX: Final = 100
"""So many different jobs are compared in one plan at most: the event loop waits for it."""
Key = tuple[str, int, str, str, str]
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Fleet:
    """The clusters of a Placement, and the jobs there."""

    snapshot: Snapshot
    history: MoveHistory
    workloads: ConfigWorkloads
    compare: Callable[[Workload, str], Comparison]
    """Compares a MultiKueueCluster that runs a job with the others."""
    has_namesake: Callable[[Workload], bool]
    """Whether a cluster has another job of the same name, so that the comparison is of this job alone."""
    clusters: Mapping[str, str]
    """Every listed MultiKueueCluster → its cluster."""
    targets: frozenset[str]
    """The MultiKueueClusters to which jobs may be sent."""
    emptied: Mapping[str, Cause]
    """The MultiKueueClusters that are to be emptied → the cause."""
    busy: frozenset[str]
    """Those from which jobs are sent back anyway."""
    avoids: Callable[[Workload, str], str]
    """Returns why a job comes to a MultiKueueCluster last; "": it does not."""
    compares_another: Callable[[Workload], bool]
    """Whether a job may be compared in this plan, too; counts it."""

    def since(self, job: Workload, name: str) -> Since:
        """Return since when a MultiKueueCluster has had room for jobs like this one."""
        return Since(SinceKind.HAS_ROOM, name, _asked(job))


class Candidate(NamedTuple):
    """A job that runs, and whether it would be moved now."""

    workload: Workload
    check: str = ""
    """Our check, whose budget counts."""
    cause: Cause = "better"
    target: str = ""
    """The best MultiKueueCluster for it."""
    why: str = ""
    """Why it is moved; "": it is not."""
    objection: str = ""
    """Why it is not moved; "": it is."""


class Compared(NamedTuple):
    """The movable jobs that run, and how their clusters compare with others."""

    running: tuple[Workload, ...] = ()
    """Those to be moved first come first: of a cause, the youngest, as they have the least work to lose."""
    comparisons: Mapping[Key, Comparison] = NOTHING
    has_room: frozenset[Since] = frozenset()
    next_one: str = ""
    """The uid of the job with which the next plan begins, if they are too many for this one."""


def compare_all(fleet: Fleet) -> Compared:
    """Compare each kind of job on each cluster once: as many as this plan judges, at least one."""
    running = [w for w in fleet.snapshot.workloads if w.cluster and w.movable]
    running.sort(key=lambda w: (w.placed_since or _NEVER, w.label), reverse=True)
    running.sort(key=lambda w: CAUSES.index(_cause(fleet, w)))
    comparisons: dict[Key, Comparison] = {}
    has_room = set[Since]()
    order = _in_turn(fleet, running)
    for key, job in order.items():
        if (not fleet.compares_another(job) and comparisons) or len(comparisons) == COMPARED_MAX:
            break
        comparisons[key] = fleet.compare(job, job.cluster)
        has_room.update(fleet.since(job, name) for name in comparisons[key].others)
    later = [*order.values()][len(comparisons) :]
    asked = {_asked(job) for job in later}
    ages = fleet.snapshot.all_ages if later else ()
    has_room.update(since for since in ages if since.kind is SinceKind.HAS_ROOM and since.number in asked)
    return Compared(tuple(running), comparisons, frozenset(has_room), later[0].meta.uid if later else "")


def _in_turn(fleet: Fleet, running: Sequence[Workload]) -> Mapping[Key, Workload]:
    """Return one job of each kind, beginning with the one at which the last plan has stopped."""
    (uid, *_) = (*fleet.snapshot.ages(SinceKind.COMPARED_NEXT), "")
    start = next((at for at, job in enumerate(running) if job.meta.uid == uid), 0)
    kinds: dict[Key, Workload] = {}
    for job in (*running[start:], *running[:start]):
        kinds.setdefault(_key(fleet, job), job)
    return kinds


def _asked(job: Workload) -> int:
    """Return a number for the queue of a job and what it asks for."""
    return crc32(repr((job.meta.namespace, job.job.queue, job.job.requests)).encode())


def candidates(fleet: Fleet, compared: Compared, check: str | None = None) -> Iterator[Candidate]:
    """Yield the movable jobs that run, those to be moved first first. `check`: only those of this check."""
    for job in compared.running:
        if check in (None, check_of(fleet, job)):
            yield _judge(fleet, job, compared.comparisons.get(_key(fleet, job)))


def check_of(fleet: Fleet, job: Workload) -> str:
    """Return our check that a job carries, whose budget counts; "": none."""
    return next((entry.check for entry in job.check_states if entry.check in fleet.workloads.checks), "")


def _key(fleet: Fleet, job: Workload) -> Key:
    """Return what jobs have in common that compare alike; equal specs are one object."""
    alone = job.meta.uid if fleet.has_namesake(job) else ""
    return job.meta.namespace, id(job.job), job.cluster, check_of(fleet, job), alone


def _cause(fleet: Fleet, job: Workload) -> Cause:
    return fleet.emptied.get(job.cluster, "better")


def _judge(fleet: Fleet, job: Workload, comparison: Comparison | None) -> Candidate:
    check, cause = check_of(fleet, job), _cause(fleet, job)
    candidate = Candidate(job, check, cause)
    if objection := next(_objections(fleet, job, check), ""):
        return candidate._replace(objection=objection)
    if comparison is None:
        return candidate._replace(objection="so many different jobs run that it is compared later")
    options = _options(fleet, job, comparison)
    if not options:
        return candidate._replace(objection="no other cluster is known to have room for it")
    if not fleet.snapshot.policy.dispatcher and (
        objection := _may_go_elsewhere(fleet, job, comparison, options)
    ):
        return candidate._replace(objection=objection)
    if why := WHY_EMPTIED.get(cause):
        return candidate._replace(target=max(options, key=lambda name: (options[name], name)), why=why)
    return _better(fleet, candidate, comparison.points, options)


def may_leave(fleet: Fleet, job: Workload) -> bool:
    """Whether a job whose move is recorded may still be sent back: it would start elsewhere now."""
    comparison = fleet.compare(job, job.cluster)
    options = _options(fleet, job, comparison)
    is_ours = fleet.snapshot.policy.dispatcher
    return bool(options) and (is_ours or not _may_go_elsewhere(fleet, job, comparison, options))


def _options(fleet: Fleet, job: Workload, comparison: Comparison) -> dict[str, float]:
    """Return the MultiKueueClusters to which a job may be moved → their points."""
    return {
        name: points
        for name, points in comparison.others.items()
        if name in fleet.targets and not fleet.avoids(job, name)
    }


def _objections(fleet: Fleet, job: Workload, check: str) -> Iterator[str]:
    """Yield what speaks against moving a job, wherever there is room."""
    if not check:
        yield "it does not carry a check of placement-ac, so it cannot be sent back"
    if not (job.active and job.has_quota) or fleet.workloads.is_sent_back(job) or job.cluster in fleet.busy:
        yield "it is being sent back, or is not active"
    if again := fleet.history.rests_until(job):
        yield f"it was moved before, and may be moved again from {again:%H:%M:%SZ} on"
    cluster = fleet.clusters.get(job.cluster, "")
    retry_at, placed = fleet.snapshot.fleet.retry_at.get(cluster), job.placed_since
    if retry_at and placed and placed >= retry_at:
        yield "it tries its cluster, which is quarantined"
    observed = fleet.snapshot.objects.clusters.get(job.cluster)
    if not cluster or observed is None or not observed.active or cluster in fleet.snapshot.fleet.unreachable:
        yield "its cluster is not listed, not connected to Kueue or not reachable: its end there is unknown"


def _may_go_elsewhere(
    fleet: Fleet, job: Workload, comparison: Comparison, options: Mapping[str, float]
) -> str:
    """Return why Kueue's own dispatcher might send the job to a cluster that is not better."""
    if comparison.has_room:
        return "Kueue's dispatcher might send it back to its cluster, which has room without it"
    others = (*comparison.others, *comparison.unknown, *sorted(comparison.refused))
    listed = (*others, *fleet.emptied, *fleet.busy)
    if worse := [name for name in listed if name not in options and name != job.cluster]:
        where = fleet.clusters.get(worse[0], worse[0])
        return f"Kueue's dispatcher might send it to {where}, which is no better"
    return ""


def _better(fleet: Fleet, candidate: Candidate, points: float, options: Mapping[str, float]) -> Candidate:
    """Return the candidate with the best cluster that has had room for long enough, if it is better."""
    policy, job = fleet.history.policy, candidate.workload
    better = {name: there - points for name, there in options.items() if there - points >= policy.margin}
    if not better:
        best = max(options, key=lambda name: options[name])
        more = f"{fleet.clusters[best]} has {options[best]:.0f} points, its own cluster {points:.0f}"
        return candidate._replace(objection=f"no cluster is better by {policy.margin:g} points: {more}")
    if not fleet.snapshot.policy.dispatcher and len(better) < len(options):
        worse = next(name for name in options if name not in better)
        where = fleet.clusters[worse]
        return candidate._replace(
            objection=f"Kueue's dispatcher might send it to {where}, which is no better"
        )
    ages = {name: fleet.snapshot.all_ages.get(fleet.since(job, name), 0.0) for name in better}
    due = [name for name, age in ages.items() if age >= policy.after]
    if not due:
        best = max(ages, key=lambda name: ages[name])
        has = f"{fleet.clusters[best]} is better, and has had room for {ages[best]:.0f} s"
        return candidate._replace(target=best, objection=f"{has}: it moves after {policy.after:.0f} s")
    target = max(due, key=lambda name: (better[name], name))
    why = f"{fleet.clusters[target]} has room, and {better[target]:.0f} points more"
    return candidate._replace(target=target, why=why)
