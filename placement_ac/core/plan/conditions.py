"""
Decide the condition `Active` of a check: the first objection, or the objects that were generated.

Pure. Each reason in constants.REASONS has one rule here, except ApplyFailed. A message to an admin
leads with the fix, where there is one.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ACTIVE,
    ANNOTATION_ADOPT,
    ANNOTATION_PLACEMENT_NAMESPACE,
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
    SILENT,
    SOME_CLUSTERS_UNUSABLE,
    Kind,
)
from placement_ac.core.api.objects import Check, KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.draining.state import DrainState
from placement_ac.core.inputs.state import Snapshot, Verdict, is_shared
from placement_ac.core.plan.disconnected import disconnected_clusters
from placement_ac.core.plan.job_fit import profile_problems
from placement_ac.core.plan.lacking_queues import queue_remarks
from placement_ac.core.plan.quarantine import quarantine_remarks
from placement_ac.core.plan.silent_workers import silent_clusters
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.probe_schedule import probe_remarks
from placement_ac.core.selection.selection import ListableCluster
from placement_ac.core.selection.unknown_copies import unknown_copies_remarks


def judge(snapshot: Snapshot, targets: TargetClusters) -> Verdict:
    """Return the first objection, else the verdict that the objects were generated."""
    for rule in RULES:
        if objection := rule(snapshot, targets):
            return objection
    message = "; ".join((GENERATED, *_remarks(snapshot, targets)))[:CONDITION_MESSAGE_MAX]
    missing = targets.selection.problems or targets.over_limit or targets.waiting_for_slot
    return Verdict("True", SOME_CLUSTERS_UNUSABLE if missing else ACTIVE, message)


def refused_checks(snapshot: Snapshot) -> dict[str, Verdict]:
    """Return the checks that name another namespace than that of the Placement in use, and why not."""
    home = snapshot.choice.named_home
    why = (
        f"correct the annotation {ANNOTATION_PLACEMENT_NAMESPACE}: all checks of one Placement's name share "
        f"its MultiKueueConfig, and {home}/{snapshot.name} is in use"
    )
    return dict.fromkeys(snapshot.choice.contradicting, refuse(BAD_PARAMETERS, why))


def usable_message(targets: TargetClusters) -> str:
    """Return how many of the selected clusters are usable, and which; "" if none is."""
    usable = [entry.cluster for entry in targets.to_list]
    if not usable:
        return ""
    others = (*targets.selection.left_out, *targets.over_limit, *targets.waiting_for_slot)
    return f"{len(usable)} of {len(usable) + len(others)} selected clusters usable: {joined(usable)}"


def is_taken(obj: KueueObject | None, placement: str, cluster: str) -> bool:
    """Whether an object belongs to someone else: not made for this pair, and not handed over."""
    if obj is None:
        return False
    if obj.ours:
        # A label that someone removed is put back.
        return obj.placement not in ("", placement) or obj.cluster not in ("", cluster)
    return not obj.handed_over


# -- the rules


def parameters_are_wrong(snapshot: Snapshot, _: TargetClusters) -> Verdict | None:
    problem = parameters_problem(snapshot.checks.ours[0])
    return refuse(BAD_PARAMETERS, f"{_parameters_fix(snapshot)}: {problem}") if problem else None


def placement_is_missing(snapshot: Snapshot, _: TargetClusters) -> Verdict | None:
    problem = missing_placement(snapshot)
    return refuse(PLACEMENT_NOT_FOUND, problem) if problem else None


def missing_placement(snapshot: Snapshot) -> str:
    """Return what to do about a Placement that does not exist; "" if it does."""
    if snapshot.decisions.placement:
        return ""
    home = snapshot.choice.named_home
    spaces = (home,) if home else snapshot.hub.namespaces
    looked_for = joined([f"{namespace}/{snapshot.name}" for namespace in spaces], " or ")
    if home and home not in snapshot.hub.namespaces:
        return (
            f"correct the annotation {ANNOTATION_PLACEMENT_NAMESPACE}, or add {home} to "
            f"--placement-namespace: Placement {looked_for} is not watched"
        )
    return f"correct spec.parameters.name, or create Placement {looked_for}: it does not exist"


def nothing_is_decided(snapshot: Snapshot, targets: TargetClusters) -> Verdict | None:
    malformed = snapshot.decisions.malformed
    if targets.selection.is_conclusive and (targets.to_list or not malformed):
        return None
    where = _placement(snapshot)
    if malformed:
        return refuse(NO_DECISION, f"the decision of {where} cannot be read: {malformed}")
    finding = f"{snapshot.decisions.by} has not decided yet for {where}{_quoted(snapshot.decisions.says)}"
    return refuse(NO_DECISION, "; ".join((finding, *targets.selection.remarks)))


def nothing_is_selected(snapshot: Snapshot, targets: TargetClusters) -> Verdict | None:
    if targets.to_list or targets.selection.problems or targets.over_limit or targets.waiting_for_slot:
        return None
    decisions = snapshot.decisions
    fix = f"{decisions.fix}: " if decisions.fix else ""
    finding = f"{fix}{_placement(snapshot)} selects no cluster{_quoted(decisions.says_none)}"
    return refuse(NO_CLUSTER_SELECTED, "; ".join((finding, *targets.selection.remarks, *_draining(targets))))


def nothing_is_usable(_: Snapshot, targets: TargetClusters) -> Verdict | None:
    if targets.to_list:
        return None
    problems = targets.selection.problems
    finding = "no selected cluster is usable"
    if problems:
        first = next(iter(problems.values()))
        finding = f"{first}; {finding}: {joined(problems)}"
    return refuse(NO_CLUSTER_USABLE, "; ".join((finding, *_waiting_for_slot(targets), *_draining(targets))))


def name_is_taken(snapshot: Snapshot, targets: TargetClusters) -> Verdict | None:
    entries = (*targets.to_list, *targets.renaming)
    problems = [problem for entry in entries if (problem := cluster_name_conflict(snapshot, entry))]
    if is_taken(snapshot.objects.config, snapshot.name, ""):
        problems.insert(0, _conflict(MULTIKUEUE_CONFIG, snapshot.objects.config, snapshot.name))
    return refuse(NAME_TAKEN, joined(problems, "; ")) if problems else None


def cluster_name_conflict(snapshot: Snapshot, entry: ListableCluster) -> str:
    """Return the fix and the owner of a MultiKueueCluster's name; "" when it is free or ours."""
    obj = snapshot.objects.clusters.get(entry.name)
    # The label that it must have: shared ones name no Placement.
    if is_taken(obj, "" if is_shared(entry.name, entry.cluster) else snapshot.name, entry.cluster):
        return _conflict(MULTIKUEUE_CLUSTER, obj, entry.name)
    if not has_name_conflict(snapshot, entry):
        return ""
    other = snapshot.objects.name_conflicts[entry.name]
    return (
        f"rename one of the Placements: MultiKueueCluster {entry.name} is the name for cluster "
        f"{other.cluster} of Placement {other.placement} as well"
    )


def has_name_conflict(snapshot: Snapshot, entry: ListableCluster) -> bool:
    """Whether another Placement and cluster, which come first, use the name."""
    return entry.name in snapshot.objects.name_conflicts and entry.name not in snapshot.objects.clusters


# Order matters: a rule may assume that those above it had no objection.
RULES: Final = (
    parameters_are_wrong,
    placement_is_missing,
    nothing_is_decided,
    nothing_is_selected,
    nothing_is_usable,
    name_is_taken,
)


def parameters_problem(check: Check, kind: Kind = PLACEMENT) -> str:
    """Return why the parameters of a check name no object of a kind; "" if they name one."""
    if check.names(kind):
        return ""
    if check.problem:
        return f"the spec cannot be read: {check.problem}"
    parameters = check.parameters
    if parameters is None:
        return "spec.parameters is missing"
    if parameters.api_group != kind.group:
        return f"spec.parameters.apiGroup is {parameters.api_group!r}"
    if parameters.kind != kind.kind:
        return f"spec.parameters.kind is {parameters.kind!r}"
    return "spec.parameters.name is empty"


def refuse(reason: str, message: str) -> Verdict:
    return Verdict("False", reason, message[:CONDITION_MESSAGE_MAX])


# -- messages


def _parameters_fix(snapshot: Snapshot) -> str:
    return (
        f"set spec.parameters to apiGroup: {OCM_CLUSTER}, kind: {PLACEMENT.kind} "
        f"and the name of a Placement in namespace {joined(snapshot.hub.namespaces, ' or ')}"
    )


def _placement(snapshot: Snapshot) -> str:
    placement = snapshot.decisions.placement
    return f"{PLACEMENT.kind} {placement.namespace}/{snapshot.name}" if placement else ""


def _conflict(kind: Kind, obj: KueueObject | None, name: str) -> str:
    if obj and obj.ours:
        pair = (f"Placement {obj.placement}", f"cluster {obj.cluster}")
        owner = ", ".join(part for part in pair if not part.endswith(" "))
        return f"rename one of the Placements: {kind.kind} {name} belongs to {owner}"
    return (
        f"delete {kind.kind} {name}, or hand it over with kubectl annotate {kind.kind.lower()} {name} "
        f"{ANNOTATION_ADOPT}=true: it was not made by placement-ac"
    )


def _quoted(problems: str) -> str:
    return f" ({problems})" if problems else ""


def _remarks(snapshot: Snapshot, targets: TargetClusters) -> Iterator[str]:
    problems, over_limit = targets.selection.problems, targets.over_limit
    second = {cluster: problems.pop(cluster) for cluster in targets.selection.second_names}
    yield from (f"left out: {cluster} ({why})" for cluster, why in second.items())
    if problems:
        yield f"left out: {_with_first_reason(problems)}"
    if over_limit:
        limit = f"beyond the {snapshot.hub.clusters_max} clusters that Kueue takes"
        yield f"{len(over_limit)} {limit}: {joined(over_limit)}"
    yield from _waiting_for_slot(targets)
    yield from targets.selection.remarks
    if snapshot.policy.probe:
        remarks = probe_remarks(snapshot, [entry.cluster for entry in targets.to_list])
        yield from (f"{cluster}: {remark}" for cluster, remark in remarks.items())
    yield from unknown_copies_remarks(snapshot, targets.listed)
    yield from _of_setups(snapshot, targets)
    yield from _of_maintenance(snapshot)
    if lost := disconnected_clusters(snapshot, targets):
        yield f"connection lost: {_with_first_reason(lost)}"
    if snapshot.policy.dispatcher:
        yield from (f"{cluster}: {why}" for cluster, why in queue_remarks(snapshot, targets).items())
        yield from (f"{cluster}: {SILENT}" for cluster in silent_clusters(snapshot, targets))
    if snapshot.policy.avoid_after_failure:
        yield from quarantine_remarks(snapshot)
    if targets.mass_loss.held:
        yield targets.mass_loss.why
    yield from _draining(targets)
    if snapshot.policy.dispatcher:
        yield from (f"check {check}: {problem}" for check, problem in profile_problems(snapshot).items())


def _of_setups(snapshot: Snapshot, targets: TargetClusters) -> Iterator[str]:
    """Yield what is to be said of the queues on listed workers, each once."""
    clusters: dict[str, list[str]] = {}
    for entry in targets.to_list:
        for remark in snapshot.fleet.setup_remarks.get(entry.cluster, ()):
            clusters.setdefault(remark, []).append(entry.cluster)
    yield from (f"{joined(names)}: {remark}" for remark, names in clusters.items())


def _of_maintenance(snapshot: Snapshot) -> Iterator[str]:
    """Yield the maintenance that is announced, and what is wrong with announcements."""
    for cluster, window in sorted(snapshot.fleet.maintenance.items()):
        if not window.has_begun(snapshot.now):  # else it is left out
            yield f"{cluster}: {window.announcement}"
    yield from (f"{cluster}: {why}" for cluster, why in sorted(snapshot.fleet.maintenance_problems.items()))


def _waiting_for_slot(targets: TargetClusters) -> Iterator[str]:
    if targets.waiting_for_slot:
        yield f"waiting for the slot of a cluster that leaves: {joined(targets.waiting_for_slot)}"


def _draining(targets: TargetClusters) -> Iterator[str]:
    staying = targets.drain.staying
    standing_by = [step.cluster for step in staying if step.state is DrainState.STANDING_BY]
    leaving = [step for step in staying if step.cluster not in standing_by]
    if leaving:
        yield "draining: " + joined([f"{step.cluster} ({step.message})" for step in leaving])
    if standing_by:
        yield f"listed, standing by: {joined(sorted(standing_by))}"


def _with_first_reason(problems: Mapping[str, str]) -> str:
    """Return the names, the first one with its reason: `explain` shows the reason of each."""
    first, *others = problems
    return joined([f"{first} ({problems[first]})", *others])
