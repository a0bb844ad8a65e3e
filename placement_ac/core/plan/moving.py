"""
Which jobs of a Placement are moved now: gives `core.moves` the clusters, and asks workers for their queues.

Pure. Workers are asked only while a movable job runs, and all together, as nothing waits for their answers.
"""

from typing import NamedTuple

from placement_ac.core.draining.state import DrainState
from placement_ac.core.inputs.state import Since, Snapshot
from placement_ac.core.moves.candidates import Fleet
from placement_ac.core.moves.history import Cause, MoveHistory, move_history
from placement_ac.core.moves.planning import MovePlan, plan_moves
from placement_ac.core.plan.fact_questions import FactQuestions, fact_questions
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.plan.nomination import eligible_clusters
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest


class Moving(NamedTuple):
    """The moves of a Placement, and the workers that are asked for their queues."""

    plan: MovePlan = MovePlan()
    questions: FactQuestions = FactQuestions()

    @property
    def lasting(self) -> frozenset[Since]:
        return self.plan.lasting | self.questions.lasting

    @property
    def requeue_after(self) -> float | None:
        return soonest((self.questions.requeue_after, self.plan.requeue_after))


def moving(snapshot: Snapshot, targets: TargetClusters, fit: JobFit | None, *, in_step: bool) -> Moving:
    """Return the moves; `fit` knows the nominations of this plan, None: Kueue's own dispatcher nominates.

    `in_step`: whether the list on the hub is as planned.
    """
    history = move_history(snapshot)
    if history is None:
        return Moving()
    fit = fit or JobFit(snapshot, targets)
    fleet = _fleet(snapshot, targets, history, fit)
    movable = [w for w in snapshot.workloads if w.cluster and w.movable and w.job.requests]
    asked = {name for job in movable[:1] for name in fit.askable(job, fleet.clusters)}
    left_copies = [
        job for step in targets.drain.releases for job in step.send_back if job.moved and not job.cluster
    ]
    return Moving(
        plan_moves(fleet, left_copies, in_step=in_step, mass_loss=bool(targets.mass_loss.held)),
        fact_questions(snapshot, asked, waits=False),
    )


def _fleet(snapshot: Snapshot, targets: TargetClusters, history: MoveHistory, fit: JobFit) -> Fleet:
    names = {name: cluster for cluster, name in targets.listed.items()}
    steps = targets.drain.steps
    draining = {step.name for step in steps if step.state is DrainState.RUNNING and step.drains}
    causes: dict[Cause, set[str]] = {
        "quarantine": {*snapshot.fleet.quarantined},
        "maintenance": {*snapshot.fleet.maintenance},
        "drain": {names[name] for name in draining if name in names},
    }
    emptied = {name: cause for cause, those in causes.items() for name, one in names.items() if one in those}
    return Fleet(
        snapshot,
        history,
        targets.workloads,
        fit.compare,
        fit.has_namesake,
        names,
        eligible_clusters(snapshot, targets) - emptied.keys(),
        emptied,
        frozenset(step.name for step in steps) - draining,
        fit.avoids,
        fit.judges_another,
    )
