"""
OCM's steps of an explanation: from the cluster set binding to the decision.

Pure. The scheduler (`scheduling`) computes each step; this module puts it into words.
"""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.explain.steps import (
    ExplainStep,
    PlacementView,
    StepName,
    StepResult,
    reason_and_message,
)
from kubectl_placement.hub.dump import condition_of
from kubectl_placement.hub.hub_view import OCM_DECIDES
from kubectl_placement.scheduling.affected import sets_holding
from kubectl_placement.scheduling.outcome import ClusterVerdict
from kubectl_placement.scheduling.outcome import FilterStep as Dropped
from kubectl_placement.scheduling.prioritizers import Scored
from kubectl_placement.scheduling.selectors import lack
from kubectl_placement.scheduling.sets import member_selector
from kubectl_placement.scheduling.tolerations import TaintTolerance, taint_text, taint_tolerances
from placement_ac.core.api.constants import MANAGED_CLUSTER, SCORES_NAME
from placement_ac.core.api.fields import (
    Obj,
    get_int,
    get_list,
    get_str,
    get_strs,
    get_time,
    get_value,
    is_terminating,
    labels_of,
)
from placement_ac.core.api.label_selector import first_unmet
from placement_ac.core.api.text import and_more, count_text, joined
from placement_ac.core.decisions import SOURCE

_SETS_SHOWN: Final = 3
_BUILT_IN: Final = {
    "Balance": "100 if no other known Placement selects it, less if some do",
    "Steady": "100 for a cluster that is selected already, 0 for others",
    "ResourceAllocatableCPU": "from -100 for the least allocatable CPU to 100 for the most",
    "ResourceAllocatableMemory": "from -100 for the least allocatable memory to 100 for the most",
}
_STATES: Final = (
    ("HubAcceptedManagedCluster", "accepted"),
    ("ManagedClusterJoined", "joined"),
    ("ManagedClusterConditionAvailable", "available"),
)


def ocm_steps(case: PlacementView, name: str) -> Iterator[ExplainStep]:
    """Yield the steps of OCM's scheduler for a cluster, up to the one that drops it; then the decision.

    The decision alone, if OCM's scheduler does not make it.
    """
    if OCM_DECIDES:
        yield from _steps_before_decision(case, name)
    yield _decision_step(case, name)


def _steps_before_decision(case: PlacementView, name: str) -> Iterator[ExplainStep]:
    cluster = case.view.fleet.clusters.get(("", name))
    there = _cluster_step(case, name, cluster)
    yield there
    if case.unknown_kinds:
        yield StepName.CLUSTER_SET.unknown(unknown_kinds_text(case))
    elif case.scheduling.hold:
        message = f"{case.scheduling.hold}: OCM leaves its decisions as they are"
        yield StepName.PLACEMENT.note(message, _placement(case))
    elif case.scheduling.unsupported:
        yield StepName.PREDICATE.unknown(f"what OCM decides is unknown: {case.scheduling.unsupported}")
    elif cluster is not None and there.outcome is not StepResult.FAILED:
        yield from _scheduling_steps(case, name, cluster)


def unknown_kinds_text(case: PlacementView) -> str:
    """Return which kinds that OCM's scheduler needs are unknown."""
    kinds = joined(f"{kind.kind}s" for kind in case.unknown_kinds)
    why = "the right to list them is missing" if case.view.dump.live else "the dump contains none"
    return f"OCM's steps are unknown without {kinds}: {why}"


def _placement(case: PlacementView) -> str:
    return f"Placement {case.label}"


def _cluster_step(case: PlacementView, name: str, cluster: Obj | None) -> ExplainStep:
    source = f"ManagedCluster {name}"
    if cluster is None:
        if not case.view.dump.knows(MANAGED_CLUSTER):
            return StepName.CLUSTER.unknown("ManagedClusters are unknown")
        return StepName.CLUSTER.failed(f"there is no ManagedCluster {name}")
    if is_terminating(cluster):
        since = get_str(cluster, "metadata", "deletionTimestamp")
        message = f"it is being deleted, since {since}: OCM no longer selects it"
        return StepName.CLUSTER.failed(message, source)
    conditions = [(word, condition_of(cluster, kind)) for kind, word in _STATES]
    good = [word for word, condition in conditions if condition.get("status") == "True"]
    bad = [
        f"not {word} ({reason_and_message(condition) or 'no condition says so'})"
        for word, condition in conditions
        if word not in good
    ]
    if not bad:
        return StepName.CLUSTER.passed("it is accepted, joined and available", source)
    message = f"it is {', '.join((*good, *bad))}; OCM drops a cluster only for the taint that follows"
    return StepName.CLUSTER.note(message, source)


def _scheduling_steps(case: PlacementView, name: str, cluster: Obj) -> Iterator[ExplainStep]:
    verdict = case.scheduling.clusters[name]
    dropped = verdict.dropped
    if dropped is Dropped.CLUSTER_SET:
        yield StepName.CLUSTER_SET.failed(_why_in_no_set(case, cluster), _placement(case))
        return
    yield _cluster_set_step(case, cluster)
    if dropped in (Dropped.PREDICATE, Dropped.MISCONFIGURED):
        yield StepName(dropped).failed(verdict.why, _placement(case))
        return
    yield _predicate_step(case, cluster)
    if dropped is Dropped.TAINT:
        yield StepName.TAINT.failed(verdict.why, f"ManagedCluster {name}")
        return
    yield _taint_step(case, name, cluster)
    yield from _score_steps(case, name)
    yield _number_step(case, name, verdict)
    if dropped is None:
        yield from _group_steps(case, verdict)


# -- cluster sets


def _cluster_set_step(case: PlacementView, cluster: Obj) -> ExplainStep:
    holding = sets_holding(cluster, case.view.fleet)
    mine = [name for name in case.pool.eligible if name in holding]
    bindings = [f"{case.namespace}/{name}" for name in mine]
    named = ", and spec.clusterSets names it" if get_strs(case.placement, "spec", "clusterSets") else ""
    where = f"bound in namespace {case.namespace}{named}"
    message = f"it is in ManagedClusterSet {joined(mine)}, which is {where}"
    return StepName.CLUSTER_SET.passed(message, f"ManagedClusterSetBinding {joined(bindings)}")


def _why_in_no_set(case: PlacementView, cluster: Obj) -> str:
    pool, fleet, space = case.pool, case.view.fleet, case.namespace
    holding = sets_holding(cluster, fleet)
    absent = sorted(name for where, name in fleet.bindings if where == space and name not in pool.bound)
    parts = []
    if not pool.bound and not absent:
        parts.append(f"there is no ManagedClusterSetBinding in namespace {space}")
    elif pool.eligible:
        shown = (fleet.cluster_sets["", name] for name in pool.eligible[:_SETS_SHOWN])
        message = ", nor in ".join(_why_not_in_set(cluster_set, cluster) for cluster_set in shown)
        parts.append(f"it is not in {message}{and_more(len(pool.eligible) - _SETS_SHOWN)}")
    elif pool.bound:
        named = joined(get_strs(case.placement, "spec", "clusterSets"))
        parts.append(f"spec.clusterSets names {named}, and none of them is bound in namespace {space}")
    parts += [
        f"ManagedClusterSetBinding {space}/{name} names a ManagedClusterSet that does not exist"
        for name in absent
    ]
    unbound = sorted(holding - set(pool.bound))
    unnamed = sorted(holding & set(pool.bound) - set(pool.eligible))
    if unbound:
        parts.append(f"it is in {joined(unbound)}, not bound in namespace {space}")
    if unnamed:
        parts.append(f"it is in {joined(unnamed)}, which spec.clusterSets does not name")
    return "; ".join(parts)


def _why_not_in_set(cluster_set: Obj, cluster: Obj) -> str:
    """Return a set with the label that keeps a cluster out of it."""
    name, labels = get_str(cluster_set, "metadata", "name"), labels_of(cluster)
    selector = member_selector(cluster_set)
    unmet = first_unmet(selector, labels) if selector else None
    why = f"label {lack(unmet, labels, 'the set')}" if unmet else "it has no members"
    return f"ManagedClusterSet {name} ({why})"


# -- filters


def _predicate_step(case: PlacementView, cluster: Obj) -> ExplainStep:
    predicates = case.predicates
    for number, predicate in enumerate(predicates, start=1):
        if predicate.objection(cluster, case.view.fleet) is None:
            which = f"predicate {number} of {len(predicates)}" if len(predicates) > 1 else "the predicate"
            return StepName.PREDICATE.passed(f"{which} matches it: {predicate}", _placement(case))
    return StepName.PREDICATE.passed("there are no predicates: every cluster passes")


def _taint_step(case: PlacementView, name: str, cluster: Obj) -> ExplainStep:
    tolerances = taint_tolerances(name, cluster, case.taint_context)
    texts = [_toleration_text(taint, tolerance) for taint, tolerance in tolerances if tolerance is not None]
    if not texts:
        return StepName.TAINT.passed("it has no taint")
    return StepName.TAINT.passed("; ".join(texts), f"ManagedCluster {name}")


def _toleration_text(taint: Obj, by: TaintTolerance) -> str:
    what = f"taint {taint_text(taint)}"
    if not by.by:
        preferred = get_str(taint, "effect") == "PreferNoSelect"
        why = "its effect is only a preference" if preferred else "the cluster is already selected"
        return f"{what} drops no cluster here: {why}"
    toleration = get_str(by.by, "key") or "any key"
    until = f" until {by.until.isoformat()}" if by.until else ""
    return f"{what} is tolerated{until}, by spec.tolerations of {toleration}"


# -- scores, number, groups


def _score_steps(case: PlacementView, name: str) -> Iterator[ExplainStep]:
    if not case.scheduling.prioritizers:
        yield StepName.SCORE.note("nothing scores: clusters are ordered by name", _placement(case))
    for prioritizer in case.scheduling.prioritizers:
        score = prioritizer.scores.get(name, 0)
        why, source = _score_source(case, prioritizer, name)
        message = (
            f"{prioritizer.name}: {prioritizer.weight} times {score} is {prioritizer.weight * score} ({why})"
        )
        yield StepName.SCORE.note(message, source)


def _score_source(case: PlacementView, scored: Scored, cluster: str) -> tuple[str, str]:
    """Return where a score comes from, as text, and its object."""
    if not scored.name.startswith("AddOn/"):
        return _BUILT_IN.get(scored.name, "built in"), ""
    _, resource, score = scored.name.split("/", 2)
    source = f"AddOnPlacementScore {cluster}/{resource}"
    scores = case.view.fleet.scores.get((cluster, resource))
    if scores is None:
        ours = resource == SCORES_NAME and not case.view.settings.report_scores
        return f"there is no {source}" + (": set --report-scores true" if ours else ""), source
    if cluster in scored.expired:
        return f"it has expired, validUntil {get_str(scores, 'status', 'validUntil')}", source
    if all(get_str(item, "name") != score for item in get_list(scores, "status", "scores")):
        return f"{source} has no score {score}", source
    until = get_time(scores, "status", "validUntil")
    return f"from {source}" + (f", valid until {until.isoformat()}" if until else ""), source


def _number_step(case: PlacementView, name: str, verdict: ClusterVerdict) -> ExplainStep:
    ranked = case.scheduling.ranked
    number = get_int(case.placement, "spec", "numberOfClusters")
    message = f"total score {verdict.score}, rank {ranked.index(name) + 1} of {len(ranked)}"
    if number is None:
        message += "; numberOfClusters is not set: all clusters are selected"
        return StepName.NUMBER.passed(message, _placement(case))
    message += f"; numberOfClusters is {number}"
    if verdict.dropped is None:
        return StepName.NUMBER.passed(message, _placement(case))
    if number > 0:
        last = ranked[number - 1]
        score = case.scheduling.clusters[last].score
        tie = " too and sorts first by name" if score == verdict.score else ""
        message += f"; {last}, the last one selected, has score {score}{tie}"
    return StepName.NUMBER.failed(message, _placement(case))


def _group_steps(case: PlacementView, verdict: ClusterVerdict) -> Iterator[ExplainStep]:
    groups = get_list(case.scheduling.status, "decisionGroups")
    if verdict.group is None:
        condition = condition_of({"status": case.scheduling.status}, "PlacementMisconfigured")
        message = f"correct the decision groups, they put it in no decision: {reason_and_message(condition)}"
        yield StepName.GROUP.failed(message, _placement(case))
    elif get_value(case.placement, "spec", "decisionStrategy") is not None:
        group = groups[verdict.group]
        name = get_str(group, "decisionGroupName") or "without a name"
        size = count_text(get_int(group, "clusterCount") or 0, "cluster")
        message = f"decision group {verdict.group} ({name}), of {size}; there are {len(groups)}"
        yield StepName.GROUP.passed(message, _placement(case))


# -- the decision


def _decision_step(case: PlacementView, name: str) -> ExplainStep:
    by = SOURCE.name
    if case.view.dump.why_unknown(SOURCE.kind):
        return StepName.DECISION.unknown(f"{SOURCE.kind.kind}s are unknown")
    expected, now = case.predicts_selection(name), case.decisions
    if now is None:
        will = "" if expected is None else f"; it will {'' if expected else 'not '}select this cluster"
        outcome = StepResult.FAILED if expected is False else StepResult.NOTE
        return ExplainStep(StepName.DECISION, outcome, f"{by} has not decided yet{will}", _placement(case))
    outdated = "OCM has not scheduled again yet, or it sees objects that are unknown here"
    is_expected = expected in (None, name in now)
    differs = "" if is_expected else f", although the steps above say otherwise: {outdated}"
    if name not in now:
        return StepName.DECISION.failed(f"{by} has not selected it{differs}", _placement(case))
    where, score = now[name]
    with_score = f" with score {score}" if score else ""
    return StepName.DECISION.passed(f"{by} has selected it: it is in {where}{with_score}{differs}", where)


def is_selected(case: PlacementView, name: str) -> bool | None:
    """Whether the cluster is selected or, before OCM's decision, would be; None: unknown."""
    if case.decisions is None:
        return case.predicts_selection(name)
    return name in case.decisions


def placement_problem_texts(placement: Obj) -> list[str]:
    """Return reason and message of each condition of a Placement that reports a problem."""
    problems = (("PlacementSatisfied", "False"), ("PlacementMisconfigured", "True"))
    conditions = get_list(placement, "status", "conditions")
    return [
        reason_and_message(condition)
        for condition in conditions
        if (condition.get("type"), condition.get("status")) in problems
    ]
