"""
Move one job after the other: ask its cluster, record the move on the hub, then send the job back.

Pure. The order makes it safe: a move is only recorded while its cluster has just reported the job's copy, so
that it can be asked whether the copy is gone before the job is dispatched again; and a job is only sent back
when the move is recorded, so that no restart forgets it. Source: docs/draining.md, for what Kueue does then.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    COPIES_FRESH_SECONDS,
    COPIES_RETRY_SECONDS,
    IN_STEP_SECONDS,
    MOVE_BEGINS_SECONDS,
    MOVE_GIVEN_UP_SECONDS,
    MOVED,
    MOVED_FROM,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.leaving import NO_REPORT
from placement_ac.core.inputs.state import NOTHING, BegunMove, EventIntent, Since, SinceKind
from placement_ac.core.moves.candidates import Candidate, Fleet, candidates, compare_all, may_leave
from placement_ac.core.moves.history import WHY_EMPTIED, Move

IN_STEP_SINCE = Since(SinceKind.IN_STEP)
COMPARED_AGAIN_SECONDS: Final = 2.0
"""When the next jobs are compared, if they are too many for one plan."""


class MovePlan(NamedTuple):
    """The moves that begin now, and what is to be asked and written before others begin."""

    begun: tuple[BegunMove, ...] = ()
    record: str = ""
    """The annotation with the moves that come next; "": there are none."""
    ask_for_copies: tuple[str, ...] = ()
    events: tuple[EventIntent, ...] = ()
    left: Mapping[str, int] = NOTHING
    """Check → how many jobs may still be moved in this hour."""
    lasting: frozenset[Since] = frozenset()
    candidates: Callable[[], list[Candidate]] = list
    """Returns each movable job that runs, and why it is moved or not."""
    objections: Mapping[str, str] = NOTHING
    """Check → why none of its jobs is moved now."""
    requeue_after: float | None = None


def plan_moves(
    fleet: Fleet, sent_again: Iterable[Workload] = (), *, in_step: bool, mass_loss: bool
) -> MovePlan:
    """Return which jobs are moved now.

    `sent_again`: those that are sent back once more, as Kueue does not record the copy that a move has left:
    the budget counts them, and keeps none of them. `in_step`: whether the list on the hub is as planned.
    `mass_loss`: whether clusters are held.
    """
    compared = compare_all(fleet)
    lasting = compared.has_room | ({IN_STEP_SINCE} if in_step else set())
    is_idle = not (compared.running or fleet.history.moves)
    by_uid = {workload.meta.uid: workload for workload in fleet.snapshot.workloads if not is_idle}
    begun, ask, objections = [], [], {}
    new = list(fleet.history.again(sent_again))
    chosen = list[str]()
    for check in sorted(fleet.workloads.checks):
        last = fleet.history.last_of(check)
        if objection := _objection(fleet, check, last, by_uid, in_step=in_step, mass_loss=mass_loss):
            objections[check] = objection
        job = _to_begin(fleet, last, by_uid) if last and not mass_loss else None
        if last and job and may_leave(fleet, job):
            if _is_reported(fleet, job):
                begun.append(_begun(fleet, last, job))
            elif _may_be_asked(fleet, job):
                ask.append(job.cluster)
        for one in candidates(fleet, compared, check) if not objection else ():
            if one.why and _is_reported(fleet, one.workload):
                new.append(_move(fleet, one))
            elif one.why and _may_be_asked(fleet, one.workload):
                ask.append(one.workload.cluster)
            else:
                continue
            chosen.append(one.workload.meta.uid)
            break
    if compared.next_one:  # the one that is chosen is compared again when its cluster has answered
        lasting |= {Since(SinceKind.COMPARED_NEXT, (*chosen, compared.next_one)[0])}
    return MovePlan(
        tuple(begun),
        fleet.history.extended(new, by_uid) if new else "",
        tuple(ask),
        tuple(map(_event, begun)),
        {check: fleet.history.left(check) for check in fleet.workloads.checks},
        frozenset(lasting),
        lambda: list(candidates(fleet, compared)),
        objections,
        COMPARED_AGAIN_SECONDS if compared.next_one else None,
    )


def _objection(
    fleet: Fleet,
    check: str,
    last: Move | None,
    by_uid: Mapping[str, Workload],
    *,
    in_step: bool,
    mass_loss: bool,
) -> str:
    """Return why no job of a check is moved now; "": one may be."""
    history, waits = fleet.history, IN_STEP_SECONDS - fleet.snapshot.age(IN_STEP_SINCE)
    if mass_loss:
        return "too many clusters would leave at once, so the list is held"
    if not in_step or waits > 0:
        return f"the list on the hub has not been as planned for {IN_STEP_SECONDS:.0f} s"
    if last and (job := _under_way(fleet, last, by_uid)):
        return f"{job.label} moves from cluster {last.cluster}"
    if not history.left(check):
        per_hour = history.policy.per_hour
        return (
            f"{per_hour} of {per_hour} moves in this hour; the next one at {history.free_at(check):%H:%M:%SZ}"
        )
    return ""


def _under_way(fleet: Fleet, move: Move, by_uid: Mapping[str, Workload]) -> Workload | None:
    """Return the job of a move that has not ended: it runs nowhere, or has not been sent back yet."""
    job = by_uid.get(move.uid)
    if job is None:
        return None
    if job.cluster and fleet.workloads.is_sent_back(job):  # Kueue does not work: others would only queue up
        return job
    if fleet.history.age(move) >= MOVE_GIVEN_UP_SECONDS:
        return None
    return job if not job.cluster or _to_begin(fleet, move, by_uid) else None


def _to_begin(fleet: Fleet, move: Move, by_uid: Mapping[str, Workload]) -> Workload | None:
    """Return the job of a recorded move that is still to be sent back."""
    job = by_uid.get(move.uid)
    is_late = fleet.history.age(move) > MOVE_BEGINS_SECONDS
    if job is None or not job.movable or is_late or not move.target:
        return None
    came_back = job.evicted_at is not None and job.evicted_at >= move.at
    is_there = fleet.clusters.get(job.cluster) == move.cluster and job.active and job.has_quota
    return job if is_there and not came_back else None


def _is_reported(fleet: Fleet, job: Workload) -> bool:
    """Whether its cluster has just reported its copy, with quota."""
    reported = fleet.snapshot.fleet.worker_copies.get(job.cluster, NO_REPORT)
    is_fresh = not reported.problem and reported.age <= COPIES_FRESH_SECONDS
    return is_fresh and bool(reported.copies.get(job.meta.id))


def _may_be_asked(fleet: Fleet, job: Workload) -> bool:
    """Whether its cluster has not answered lately: an answer without the job's copy is one, too."""
    reported = fleet.snapshot.fleet.worker_copies.get(job.cluster, NO_REPORT)
    return reported.age > (COPIES_RETRY_SECONDS if reported.problem else COPIES_FRESH_SECONDS)


def _move(fleet: Fleet, chosen: Candidate) -> Move:
    job, clusters = chosen.workload, fleet.clusters
    target = clusters.get(chosen.target, chosen.target)
    at = fleet.snapshot.now.replace(microsecond=0)
    return Move(chosen.check, job.meta.uid, clusters[job.cluster], target, chosen.cause, at)


def _begun(fleet: Fleet, move: Move, job: Workload) -> BegunMove:
    why = WHY_EMPTIED.get(move.cause, f"{move.target} has room and is better")
    number, per_hour = len(fleet.history.in_budget(move.check)), fleet.history.policy.per_hour
    which = f"move {number} of {per_hour} in this hour"
    return BegunMove(job, move.cause, f"{MOVED_FROM.format(move.cluster)} {why}; {which}")


def _event(move: BegunMove) -> EventIntent:
    message = f"a movable job is {move.message}"
    return EventIntent(MOVED, message, "answers", (move.workload,), (MOVED, move.message))
