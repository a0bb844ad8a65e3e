"""
What a check is told: the first objection, or what has been generated, in words for an admin.

Pure. Each reason of names.REASONS stands in one rule here, except ApplyFailed.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ACTIVE,
    ANNOTATION_ADOPT,
    BAD_PARAMETERS,
    CONDITION_MESSAGE_MAX,
    GENERATED,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAME_TAKEN,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    NO_DECISION,
    OCM_CLUSTER,
    PLACEMENT,
    PLACEMENT_NOT_FOUND,
    SOME_CLUSTERS_UNUSABLE,
    Kind,
)
from placement_ac.core.api.objects import Check, KueueObject, Placement
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import Snapshot, Verdict
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.probe_schedule import probe_remarks
from placement_ac.core.selection.selection import UsableCluster

_TROUBLE: Final = (("PlacementSatisfied", "False"), ("PlacementMisconfigured", "True"))


def judge(seen: Snapshot, targets: TargetClusters) -> Verdict:
    """Return the first objection, or what has been generated."""
    return objection(seen, targets) or generated(seen, targets)


def objection(seen: Snapshot, targets: TargetClusters) -> Verdict | None:
    """Return the first objection; None: there is none."""
    for rule in RULES:
        if found := rule(seen, targets):
            return found
    return None


def generated(seen: Snapshot, targets: TargetClusters) -> Verdict:
    """Return what has been generated, where there is no objection."""
    told = "; ".join((GENERATED, *_remarks(seen, targets)))[:CONDITION_MESSAGE_MAX]
    missing = targets.selection.left_out or targets.over_limit or targets.waiting_for_slot
    return Verdict("True", SOME_CLUSTERS_UNUSABLE if missing else ACTIVE, told)


def usable_message(targets: TargetClusters) -> str:
    """Return how many of the selected clusters are usable, and which; "" if none is."""
    usable = [entry.cluster for entry in targets.usable]
    others = (*targets.selection.left_out, *targets.over_limit, *targets.waiting_for_slot)
    if not usable:
        return ""
    return f"{len(usable)} of {len(usable) + len(others)} selected clusters usable: {joined(usable)}"


def is_taken(obj: KueueObject | None, placement: str, cluster: str) -> bool:
    """Whether an object is somebody else's: not made for this pair, and not handed over."""
    if obj is None:
        return False
    if obj.ours:
        # A label that somebody took off says nothing, and is put back.
        return obj.placement not in ("", placement) or obj.cluster not in ("", cluster)
    return obj.meta.annotations.get(ANNOTATION_ADOPT) != "true"


# -- the rules


def parameters_are_wrong(seen: Snapshot, _: TargetClusters) -> Verdict | None:
    problem = parameters_problem(seen.checks.ours[0])
    return refuse(BAD_PARAMETERS, f"{problem}; {_parameters_fix(seen)}") if problem else None


def placement_is_missing(seen: Snapshot, _: TargetClusters) -> Verdict | None:
    if seen.decision.placement:
        return None
    looked_for = joined([f"{namespace}/{seen.name}" for namespace in seen.hub.namespaces], " or ")
    return refuse(PLACEMENT_NOT_FOUND, f"there is no Placement {looked_for}")


def nothing_is_decided(seen: Snapshot, targets: TargetClusters) -> Verdict | None:
    malformed = _malformed(seen)
    if targets.selection.decided and (targets.usable or not malformed):
        return None
    where = _placement(seen)
    if malformed:
        return refuse(NO_DECISION, f"the decision of {where} cannot be read: {malformed}")
    return refuse(NO_DECISION, f"OCM has not decided yet for {where}{_placement_says(seen)}")


def nothing_is_selected(seen: Snapshot, targets: TargetClusters) -> Verdict | None:
    if targets.usable or targets.selection.left_out or targets.over_limit or targets.waiting_for_slot:
        return None
    told = f"{_placement(seen)} selects no cluster{_placement_says(seen)}"
    return refuse(NO_CLUSTER_SELECTED, "; ".join((told, *_draining(targets))))


def nothing_is_usable(_: Snapshot, targets: TargetClusters) -> Verdict | None:
    if targets.usable:
        return None
    left_out = targets.selection.left_out
    told = "no selected cluster is usable" + (f": {_with_reasons(left_out)}" if left_out else "")
    return refuse(NO_CLUSTER_USABLE, "; ".join((told, *_queued(targets), *_draining(targets))))


def name_is_taken(seen: Snapshot, targets: TargetClusters) -> Verdict | None:
    problems = [*_config_in_the_way(seen), *_clusters_in_the_way(seen, targets)]
    return refuse(NAME_TAKEN, joined(problems, "; ")) if problems else None


def _config_in_the_way(seen: Snapshot) -> Iterator[str]:
    if is_taken(seen.objects.config, seen.name, ""):
        yield _in_the_way(MULTIKUEUE_CONFIG, seen.objects.config, seen.name)


def _clusters_in_the_way(seen: Snapshot, targets: TargetClusters) -> Iterator[str]:
    there, placement = seen.objects.clusters.get, _labelled(seen)
    for entry in targets.usable:  # before every list is written, and mostly none is: no words are looked for
        if (seen.objects.name_conflicts or is_taken(there(entry.name), placement, entry.cluster)) and (
            problem := cluster_name_conflict(seen, entry)
        ):
            yield problem


def _labelled(seen: Snapshot) -> str:
    """Return the Placement that a MultiKueueCluster may say it is of: none, where they are shared."""
    return "" if seen.hub.shared else seen.name


def cluster_name_conflict(seen: Snapshot, entry: UsableCluster) -> str:
    """Return whose the name of a MultiKueueCluster is, and what to do; "" when it is free or ours."""
    obj = seen.objects.clusters.get(entry.name)
    if is_taken(obj, _labelled(seen), entry.cluster):
        return _in_the_way(MULTIKUEUE_CLUSTER, obj, entry.name)
    if not seen.objects.name_conflicts or not has_name_conflict(seen, entry):
        return ""
    rival = seen.objects.name_conflicts[entry.name]
    return (
        f"MultiKueueCluster {entry.name} is the name for cluster {rival.cluster} of Placement "
        f"{rival.placement} as well: rename one of the Placements"
    )


def has_name_conflict(seen: Snapshot, entry: UsableCluster) -> bool:
    return entry.name in seen.objects.name_conflicts and entry.name not in seen.objects.clusters


# Order matters: a rule may assume that those above it had no objection.
RULES: Final = (
    parameters_are_wrong,
    placement_is_missing,
    nothing_is_decided,
    nothing_is_selected,
    nothing_is_usable,
    name_is_taken,
)


def parameters_problem(check: Check) -> str:
    """Return what keeps the parameters of a check of ours from naming a Placement; "" when nothing does."""
    if check.placement:
        return ""
    if check.problem:
        return f"the spec cannot be read: {check.problem}"
    parameters = check.parameters
    if parameters is None:
        return "spec.parameters is missing"
    if parameters.api_group != OCM_CLUSTER:
        return f"spec.parameters.apiGroup is {parameters.api_group!r}"
    if parameters.kind != PLACEMENT.kind:
        return f"spec.parameters.kind is {parameters.kind!r}"
    return "spec.parameters.name is empty"


def refuse(reason: str, message: str) -> Verdict:
    return Verdict("False", reason, message[:CONDITION_MESSAGE_MAX])


# -- the words


def _parameters_fix(seen: Snapshot) -> str:
    return (
        f"set spec.parameters to apiGroup: {OCM_CLUSTER}, kind: {PLACEMENT.kind} "
        f"and the name of a Placement in namespace {joined(seen.hub.namespaces, ' or ')}"
    )


def _placement(seen: Snapshot) -> str:
    return (
        f"{PLACEMENT.kind} {seen.decision.placement.meta.namespace}/{seen.name}"
        if seen.decision.placement
        else ""
    )


def _in_the_way(kind: Kind, obj: KueueObject | None, name: str) -> str:
    if obj and obj.ours:
        pair = (f"Placement {obj.placement}", f"cluster {obj.cluster}")
        told = ", ".join(part for part in pair if not part.endswith(" "))
        return f"{kind.kind} {name} belongs to {told}: rename one of the Placements"
    return (
        f"{kind.kind} {name} was not made by placement-ac: delete it, or hand it over with "
        f"kubectl annotate {kind.kind.lower()} {name} {ANNOTATION_ADOPT}=true"
    )


def _placement_says(seen: Snapshot) -> str:
    """Quote the Placement's own conditions where they tell of trouble."""
    said = placement_problems(seen.decision.placement) if seen.decision.placement else ""
    return f" ({said})" if said else ""


def placement_problems(placement: Placement) -> str:
    """Return what a Placement says of itself where that tells of trouble; "" where it does not."""
    said = [
        f"{c.reason}: {c.message}".rstrip(": ")
        for c in placement.conditions
        if (c.type, c.status) in _TROUBLE
    ]
    if placement.problem:
        said.append(f"it cannot be read: {placement.problem}")
    return "; ".join(said)


def _malformed(seen: Snapshot) -> str:
    return "; ".join(
        f"PlacementDecision {d.meta.namespace}/{d.meta.name} {d.problem}"
        for d in seen.decision.decisions
        if d.problem
    )


def _remarks(seen: Snapshot, targets: TargetClusters) -> Iterator[str]:
    """Yield what is to be said although all is well."""
    left_out, beyond = targets.selection.left_out, targets.over_limit
    if left_out:
        yield f"left out: {_with_reasons(left_out)}"
    if beyond:
        yield f"{len(beyond)} beyond the {seen.hub.clusters_max} clusters that Kueue takes: {joined(beyond)}"
    yield from _queued(targets)
    told = probe_remarks(seen, [entry.cluster for entry in targets.usable])
    yield from (f"{cluster}: {what}" for cluster, what in told.items())
    if targets.mass_loss.held:
        yield targets.mass_loss.why
    yield from _draining(targets)


def _queued(targets: TargetClusters) -> Iterator[str]:
    if targets.waiting_for_slot:
        yield f"waiting for the seat of a cluster that leaves: {joined(targets.waiting_for_slot)}"


def _draining(targets: TargetClusters) -> Iterator[str]:
    staying = targets.drain.staying
    if staying:
        yield "draining: " + joined([f"{one.cluster} ({one.message})" for one in staying])


def _with_reasons(left_out: Mapping[str, str]) -> str:
    return joined([f"{cluster} ({why})" for cluster, why in left_out.items()])
