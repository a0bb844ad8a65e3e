"""
Decisions of OCM: a Placement, its PlacementDecisions and AddOnPlacementScores.

Pure: no clock, no I/O; time is an argument. The order is the Placement's own: by the decisions'
scores when OCM gives any, else by the AddOn prioritizers recomputed from AddOnPlacementScores, else by
decision group; ties by name. OCM writes its objects one by one, and others can write some, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Final

from placement_ac.core.api.constants import (
    LABEL_GROUP_INDEX,
    LABEL_PLACEMENT,
    OCM_CLUSTER,
    PLACEMENT,
    PLACEMENT_DECISION,
    REGROUP_SECONDS,
    SETTLE_SECONDS,
)
from placement_ac.core.api.decode import created_at, meta_of
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.objects import AddOnPrioritizer, Placement, Scores
from placement_ac.core.api.schemas import Condition
from placement_ac.core.api.shapes import ApiModel, ListOf, validate
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.decisions.source import (
    DecidedCluster,
    Decision,
    Decisions,
    DecisionSource,
    Doubt,
    DoubtAge,
    RankedBy,
    RankedCluster,
    ScoreTable,
)

_FIXES: Final[Mapping[str, str]] = {
    "NoManagedClusterSetBindings": "bind a ManagedClusterSet in namespace {}",
    "NoIntersection": "bind a ManagedClusterSet of spec.clusterSets in namespace {}",
    "AllManagedClusterSetsEmpty": "add clusters to the ManagedClusterSets bound in namespace {}",
}
"""Reason of OCM's condition PlacementSatisfied → the fix, formatted with the Placement's namespace."""
NONE_MATCHED: Final = "NoManagedClusterMatched"
"""OCM's reason whatever left out all clusters of the sets."""
MISCONFIGURED: Final = "PlacementMisconfigured"
_PROBLEMS: Final = (("PlacementSatisfied", "False"), (MISCONFIGURED, "True"))


class DecisionStatus(ApiModel):
    """`PlacementDecision.status`."""

    decisions: ListOf[DecidedCluster] = ()


def read(raw: Obj) -> Decision:
    """Read a PlacementDecision."""
    meta = meta_of(raw)
    status, problem = validate(DecisionStatus, raw, "status")
    decided = status.decisions if status and raw.get("status") else None
    index = meta.labels.get(LABEL_GROUP_INDEX, "0")
    return Decision(
        meta=meta,
        placement=meta.labels.get(LABEL_PLACEMENT, ""),
        group=int(index) if index.isdecimal() else 0,
        decided=decided,
        clusters=tuple(entry.cluster_name for entry in decided or ()),
        problem=problem,
        owner=_owning_placement(raw),
        created=created_at(raw),
    )


def _owning_placement(raw: Obj) -> str:
    """Return the uid of the owner that is an OCM Placement; "" if there is none."""
    owners = (raw.get("metadata") or {}).get("ownerReferences") or ()
    uids = [
        owner.get("uid")
        for owner in owners
        if owner.get("kind") == PLACEMENT.kind and str(owner.get("apiVersion")).startswith(f"{OCM_CLUSTER}/")
    ]
    return str(uids[0] or "") if uids else ""


def decide(
    placement: Placement | None,
    labelled: Sequence[Decision],
    scores: ScoreTable,
    now: datetime,
    age: DoubtAge,
) -> Decisions:
    """Return the decisions on a Placement by those of `labelled` that count.

    Where the Placement is gone, those that it left behind count for a moment.
    """
    owned = [decision for decision in labelled if placement is None or decision.belongs_to(placement)]
    sure = confirmed(placement, owned)
    unnamed = [decision for decision in owned if decision not in sure]
    ignored = [decision for decision in unnamed if _is_ignored(decision, now, age)]
    decisions = [decision for decision in owned if decision not in ignored]
    prioritizers = placement.prioritizers if placement else ()
    clusters = rank(sure, prioritizers, scores, now)
    has_scores = any(entry.score for decision in sure for entry in decision.decided or ())
    by: RankedBy = "scores" if has_scores else "placement scores" if prioritizers else "groups"
    foreign = [decision for decision in labelled if decision not in owned]
    agree = _agree(placement, decisions)
    return Decisions(
        placement=placement.meta if placement else None,
        by=OCM.name,
        clusters=clusters,
        ranked_by=by,
        scored=frozenset(
            cluster.cluster
            for cluster in clusters
            if has_scores or any((cluster.cluster, each.resource_name) in scores for each in prioritizers)
        ),
        is_decided=_is_decided(placement, sure, agree=agree),
        settle_seconds=_settle_seconds(placement, decisions, now, agree=agree),
        malformed="; ".join(
            f"{_label(decision)} {decision.problem}" for decision in decisions if decision.problem
        ),
        unreadable={
            _label(decision): why
            for decision in decisions
            if (why := decision.problem or _without_name(decision))
        },
        doubts=(
            *_foreign(placement, foreign),
            *(() if agree else _disagreement(placement, decisions)),
            *(Doubt(decision.meta.name) for decision in unnamed),
        ),
        remarks=tuple(_ignored(placement, ignored)),
        says=_problems(placement),
        says_none=_problems(placement, {*_FIXES, NONE_MATCHED}),
        fix=_fix(placement),
    )


# -- which decisions count


def confirmed(placement: Placement | None, decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return the decisions that `status.decisionGroups` names; all, if OCM does not fill it.

    Whoever may create PlacementDecisions can copy an owner and a label, but only OCM writes the Placement's
    status. OCM writes a decision first and the status a moment later, so another one adds no cluster before
    it is named; for SETTLE_SECONDS it keeps those that are listed, as the two disagree (`_agree`).
    """
    named = {name for group in placement.groups for name in group.decisions} if placement else set()
    return [decision for decision in decisions if decision.meta.name in named] if named else decisions


def _is_ignored(decision: Decision, now: datetime, age: DoubtAge) -> bool:
    """Whether a decision that is not named counts no more.

    By its age as well: after a restart it must not count again. API servers give times in whole seconds.
    """
    if age(decision.meta.name) >= SETTLE_SECONDS:
        return True
    return decision.created is not None and (now - decision.created).total_seconds() >= SETTLE_SECONDS + 1


def _ignored(placement: Placement | None, ignored: Sequence[Decision]) -> Iterator[str]:
    """Yield which decisions are ignored because the Placement's status does not name them."""
    if placement and ignored:
        names = joined(["/".join(decision.meta.id) for decision in ignored])
        yield (
            f"delete PlacementDecision {names}: status.decisionGroups of Placement "
            f"{'/'.join(placement.meta.id)} does not name it, so it is ignored"
        )


def _foreign(placement: Placement | None, foreign: Sequence[Decision]) -> Iterator[Doubt]:
    """Yield which decisions are of no use; of a Placement that is made again, the old ones stay a moment."""
    if placement and foreign:
        names, owner = joined(["/".join(decision.meta.id) for decision in foreign]), placement.meta.name
        why = f"Placement {owner} does not own it, so it is ignored"
        yield Doubt(remark=f"delete PlacementDecision {names}: {why}")


def _label(decision: Decision) -> str:
    return f"{PLACEMENT_DECISION.kind} {'/'.join(decision.meta.id)}"


def _without_name(decision: Decision) -> str:
    count = decision.clusters.count("")
    return f"{count} of its entries {'has' if count == 1 else 'have'} no clusterName" if count else ""


# -- whether they are whole


def _is_decided(placement: Placement | None, decisions: Sequence[Decision], *, agree: bool) -> bool:
    """Whether OCM has decided what this Placement selects.

    "None" is only in the Placement's status: a new decision that holds no cluster never gets a status.
    """
    if any(decision.decided is not None for decision in decisions):
        return True
    return placement is not None and placement.selected == 0 and agree


def _agree(placement: Placement | None, decisions: Sequence[Decision]) -> bool:
    """Whether the decisions are whole: they are what the Placement's status counts."""
    if placement is None or placement.problem or any(decision.problem for decision in decisions):
        return False
    if placement.selected is None:
        # Nobody writes that status: nothing can disagree with it, and nothing can replace decisions.
        return all(decision.decided is not None for decision in decisions)
    names = list(chain.from_iterable([decision.clusters for decision in decisions]))
    if len(names) != placement.selected or len(set(names)) < len(names):
        return False  # a duplicate: OCM is regrouping, and it has displaced another cluster
    sizes = {decision.meta.name: len(decision.clusters) for decision in decisions}
    named = {name for group in placement.groups for name in group.decisions}
    return not named or (
        named == sizes.keys()
        and all(
            sum([sizes[name] for name in group.decisions]) == group.cluster_count
            for group in placement.groups
        )
    )


def _disagreement(placement: Placement | None, decisions: Sequence[Decision]) -> Iterator[Doubt]:
    """Yield how the two, which do not agree, disagree, unless one of them cannot be read."""
    if placement is None or placement.selected is None:
        return
    if placement.problem or any(decision.problem for decision in decisions):
        return
    held = len(set(chain.from_iterable(decision.clusters for decision in decisions)))
    counted, held_text = count_text(placement.selected, "cluster"), f"its PlacementDecisions hold {held}"
    if held == placement.selected:
        held_text = "its PlacementDecisions hold as many in other groups, or one of them twice"
    yield Doubt(remark=f"the Placement's status counts {counted}, {held_text}", passes=True)


def _settle_seconds(
    placement: Placement | None, decisions: Sequence[Decision], now: datetime, *, agree: bool
) -> float:
    """Return how long a cluster stays that no decision holds any more. Unit: seconds.

    OCM writes one decision after another: one that moves to the next is in none for a moment, while
    all the numbers agree (another one came, and a third went).
    """
    if placement is None or not agree or _is_new(placement, now):
        return SETTLE_SECONDS
    return REGROUP_SECONDS if placement.grouped or len(decisions) > 1 else 0.0


def _is_new(placement: Placement, now: datetime) -> bool:
    """Whether it was made just now and has no status yet: one that is made again is decided bit by bit.

    API servers give times in whole seconds.
    """
    return (
        placement.selected is None
        and placement.created is not None
        and (now - placement.created).total_seconds() < SETTLE_SECONDS + 1
    )


# -- what the Placement's conditions say


def _problems(placement: Placement | None, explained: Collection[str] = ()) -> str:
    """Return the problems that a Placement's conditions report; "" if there are none.

    `explained`: reasons that our own words explain, quoted without OCM's message.
    """
    problems = [
        c.reason if c.reason in explained else f"{c.reason}: {c.message}".rstrip(": ")
        for c in _bad_conditions(placement)
    ]
    if placement and placement.problem:
        problems.append(f"it cannot be read: {placement.problem}")
    return "; ".join(problems)


def _fix(placement: Placement | None) -> str:
    """Return what to do if a Placement selects no cluster, by OCM's reason; "" if that says nothing.

    OCM cannot follow a wrong spec: it then selects nothing, and gives the reason for that as well.
    """
    if placement is None:
        return ""
    bad = _bad_conditions(placement)
    if any(condition.type == MISCONFIGURED for condition in bad):
        return "correct the spec of the Placement"
    reasons = {condition.reason for condition in bad}
    if NONE_MATCHED in reasons:
        return _fix_of_selection(placement)
    fixes = (fix for reason, fix in _FIXES.items() if reason in reasons)
    return next(fixes, "").format(placement.meta.namespace)


def _fix_of_selection(placement: Placement) -> str:
    """Return what to do if the sets have clusters, and predicates, taints or the number leave out all."""
    if placement.number_of_clusters == 0:
        return "set spec.numberOfClusters to 1 or more, or remove it"
    tolerate = "tolerate the taints of clusters in spec.tolerations"
    return f"label clusters as spec.predicates ask, or {tolerate}" if placement.has_predicates else tolerate


def _bad_conditions(placement: Placement | None) -> list[Condition]:
    return [c for c in placement.conditions if (c.type, c.status) in _PROBLEMS] if placement else []


# -- the order

_group: Final = attrgetter("group")


def rank(
    decisions: Iterable[Decision], prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> tuple[RankedCluster, ...]:
    """Return every decided cluster once, the best first."""
    entries = _once_each(decisions)
    if prioritizers and not any(negative for negative, _, _ in entries):
        entries = [(-score_of(name, prioritizers, scores, now), group, name) for _, group, name in entries]
    entries.sort()
    return tuple([RankedCluster(name, -negative, group) for negative, group, name in entries])


def _once_each(decisions: Iterable[Decision]) -> list[tuple[int, int, str]]:
    """Return (-score, group, cluster) of each; a cluster in several groups counts in the first."""
    first: dict[str, tuple[int, int, str]] = {}
    for decision in sorted(decisions, key=_group):
        group = decision.group
        for entry in decision.decided or ():
            name = entry.cluster_name
            if name and name not in first:
                first[name] = -entry.score, group, name
    return list(first.values())


def score_of(
    cluster: str, prioritizers: Sequence[AddOnPrioritizer], scores: ScoreTable, now: datetime
) -> int:
    """Return the weighted sum of a cluster's scores, by the AddOn prioritizers alone."""
    return sum(p.weight * _score(scores.get((cluster, p.resource_name)), p, now) for p in prioritizers)


def _score(scores: Scores | None, prioritizer: AddOnPrioritizer, now: datetime) -> int:
    """OCM: a score that is missing or expired (`validUntil`) counts 0."""
    if scores is None or (scores.valid_until and scores.valid_until < now):
        return 0
    return scores.values.get(prioritizer.score_name, 0)


OCM: Final = DecisionSource("OCM", PLACEMENT_DECISION, read, confirmed, decide)
