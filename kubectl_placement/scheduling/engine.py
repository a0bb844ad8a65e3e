"""
Schedule one Placement as OCM's placement controller does.

A pure function of the objects and the time: no I/O, no clock, no logging.
Whatever is wrong with an object becomes a condition or a reason to leave
everything as it is, never an exception. Source: ocm `pkg/placement`, read in
August 2026.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kubectl_placement.scheduling import conditions
from kubectl_placement.scheduling.fleet import Fleet, own_decisions
from kubectl_placement.scheduling.groups import Group, group_decisions, grouped
from kubectl_placement.scheduling.outcome import ClusterVerdict, FilterStep, SchedulingResult
from kubectl_placement.scheduling.predicates import passing, predicate_objections
from kubectl_placement.scheduling.prioritizers import (
    PrioritizerInput,
    Scored,
    prioritizers_for,
    run_prioritizer,
)
from kubectl_placement.scheduling.score_limit import limited
from kubectl_placement.scheduling.selectors import UnsupportedError
from kubectl_placement.scheduling.sets import BrokenSetError, Pool, pool_for
from kubectl_placement.scheduling.tolerations import taint_objections, tolerated_until
from placement_ac.core.api import fields
from placement_ac.core.api.constants import OCM_CLUSTER
from placement_ac.core.api.fields import Obj

DISABLE_ANNOTATION = f"{OCM_CLUSTER}/experimental-scheduling-disable"


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The clusters that the filters dropped; those that passed, best first, and their scores."""

    unfit: Mapping[str, Obj]
    """Clusters that no predicate matches; the reasons are computed only on demand."""
    dropped: Mapping[str, ClusterVerdict]
    ranked: tuple[str, ...] = ()
    score: Mapping[str, int] = field(default_factory=dict)
    scored: tuple[Scored, ...] = ()
    objection: conditions.MisconfiguredError | None = None


def schedule(placement: Obj, fleet: Fleet, now: datetime, *, write_scores: bool = False) -> SchedulingResult:
    """Return what OCM decides for `placement` on a hub that holds `fleet`, at the time `now` (aware).

    `write_scores`: behave as the change proposed upstream (ocm pull request
    1436): decisions carry scores, `sortBy: Score` and `scoreRateLimit` count.
    """
    if fields.is_terminating(placement):
        return SchedulingResult(hold="the Placement is being deleted")
    if fields.get_value(placement, "metadata", "annotations", DISABLE_ANNOTATION) == "true":
        return SchedulingResult(hold=f"the Placement is annotated {DISABLE_ANNOTATION}")
    try:
        pool = pool_for(placement, fleet)
        outcome = _decide(placement, fleet, pool, now, write_scores)
    except BrokenSetError as error:
        return SchedulingResult(hold=str(error))
    except UnsupportedError as error:
        return SchedulingResult(unsupported=str(error))
    if not write_scores:
        return outcome
    return limited(placement, own_decisions(placement, fleet), outcome, now)


def _decide(placement: Obj, fleet: Fleet, pool: Pool, now: datetime, write_scores: bool) -> SchedulingResult:
    ranking = _rank(placement, pool, fleet, now)
    number = fields.get_int(placement, "spec", "numberOfClusters")
    chosen = ranking.ranked if number is None else ranking.ranked[: max(number, 0)]
    by_score = write_scores and fields.get_str(placement, "spec", "sortBy") == "Score"
    ordered = chosen if by_score else sorted(chosen)
    groups, objection = grouped(placement, [pool.members[name] for name in ordered])
    entries = {name: _entry(name, ranking.score[name] if write_scores else 0) for name in chosen}
    decisions, statuses = group_decisions(placement, groups, entries)
    # After an objection nothing counts as unscheduled.
    unscheduled = 0 if number is None or ranking.objection else number - len(chosen)
    wanted = [
        conditions.misconfigured(objection or ranking.objection),
        conditions.satisfied(
            fields.get_strs(placement, "spec", "clusterSets"), pool, len(chosen), unscheduled
        ),
    ]
    return SchedulingResult(
        make_verdicts=lambda: _verdicts(placement, fleet, pool, ranking, chosen, groups),
        ranked=ranking.ranked,
        prioritizers=ranking.scored,
        decisions=decisions,
        status={
            **fields.get_dict(placement, "status"),
            "numberOfSelectedClusters": len(chosen),
            "decisionGroups": statuses,
            "conditions": conditions.merged(fields.get_list(placement, "status", "conditions"), wanted, now),
        },
        warnings=(
            *(
                f"{prioritizer.name}: the score of {name} has expired"
                for prioritizer in ranking.scored
                for name in prioritizer.expired
            ),
            *(
                f"{prioritizer.name}: no cluster has this score, so it counts 0 for all"
                for prioritizer in ranking.scored
                if prioritizer.missing and ranking.ranked
            ),
        ),
        reschedule_at=tolerated_until(placement, fleet, now),
    )


def _rank(placement: Obj, pool: Pool, fleet: Fleet, now: datetime) -> _Ranking:
    """Filter the clusters, then score the rest. After an objection nothing is ranked."""
    left, unfit = dict(pool.members), {}
    dropped: dict[str, ClusterVerdict] = {}
    try:
        left = passing(placement, pool, fleet)
        unfit = {name: cluster for name, cluster in pool.members.items() if name not in left}
        for name, why in taint_objections(placement, pool, left, fleet, now).items():
            dropped[name] = ClusterVerdict(FilterStep.TAINT, why)
            del left[name]
        prioritizers = prioritizers_for(placement)
    except conditions.MisconfiguredError as objection:
        dropped |= dict.fromkeys(left, ClusterVerdict(FilterStep.MISCONFIGURED, str(objection)))
        return _Ranking(unfit, dropped, objection=objection)
    view = PrioritizerInput(placement, left, fleet, now)
    scored = [run_prioritizer(prioritizer, view) for prioritizer in prioritizers]
    score = {name: sum(term.weight * term.scores.get(name, 0) for term in scored) for name in left}
    ranked = sorted(score, key=score.__getitem__, reverse=True)  # ties are broken by name
    return _Ranking(unfit, dropped, tuple(ranked), score, tuple(scored))


def _entry(name: str, score: int) -> Obj:
    entry = {"clusterName": name, "reason": ""}
    return {**entry, "score": score} if score else entry  # Go leaves a zero out (`omitempty`)


def _verdicts(
    placement: Obj, fleet: Fleet, pool: Pool, ranking: _Ranking, chosen: Sequence[str], groups: list[Group]
) -> dict[str, ClusterVerdict]:
    group_of = {name: index for index, group in enumerate(groups) for name in group.clusters}
    outside = ClusterVerdict(FilterStep.CLUSTER_SET, f"in none of the sets [{', '.join(pool.eligible)}]")
    verdicts = {name: outside for _, name in fleet.clusters}
    verdicts |= dict.fromkeys(pool.terminating, ClusterVerdict(FilterStep.TERMINATING, "is being deleted"))
    objections = predicate_objections(placement, ranking.unfit, fleet)
    verdicts |= {name: ClusterVerdict(FilterStep.PREDICATE, why) for name, why in objections.items()}
    verdicts |= ranking.dropped
    picked = frozenset(chosen)
    for rank, name in enumerate(ranking.ranked, start=1):
        scores = {prioritizer.name: prioritizer.scores.get(name, 0) for prioritizer in ranking.scored}
        if name in picked:
            verdicts[name] = ClusterVerdict(
                score=ranking.score[name], scores=scores, group=group_of.get(name)
            )
        else:
            why = f"rank {rank} of {len(ranking.ranked)}, and numberOfClusters is {len(chosen)}"
            verdicts[name] = ClusterVerdict(FilterStep.NUMBER, why, ranking.score[name], scores)
    return verdicts
