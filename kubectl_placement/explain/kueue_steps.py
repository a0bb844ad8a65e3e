"""
The controller's and Kueue's steps of an explanation: from the order of the clusters to the queues.

Pure. The steps follow from the controller's own decision and from what `status` shows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_placement.explain.steps import ExplainStep, PlacementView, StepName, StepResult
from kubectl_placement.status.check_status import selection_unknown
from kubectl_placement.status.model import LISTED_STATES, ClusterRow, ConditionStatus
from kubectl_placement.status.queues import queue_remarks_of
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_SCORE,
    WORKLOAD,
)
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import RankedBy
from placement_ac.core.inputs.state import Verdict
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import cluster_name_conflict
from placement_ac.core.selection.aliases import seen_names
from placement_ac.core.selection.selection import maintenance_of, name_problem

_VERDICT_KINDS: Final = (PLACEMENT, SOURCE.kind, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
"""The kinds that the controller needs to set the condition of a check."""
_QUEUE_STATES: Final[Mapping[ConditionStatus, tuple[StepResult, str]]] = {
    "True": (StepResult.PASSED, "is active"),
    "False": (StepResult.FAILED, "is not active"),
    "Unknown": (StepResult.NOTE, "has not reported whether it is active"),
}
_RANKED_BY: Final[Mapping[RankedBy, str]] = {
    "scores": f"the scores in {SOURCE.name}'s decisions",
    "placement scores": f"AddOnPlacementScores, because {SOURCE.name}'s decisions contain no score",
    "groups": "decision group and name, because there is no score",
}


def controller_steps(case: PlacementView, name: str) -> Iterator[ExplainStep]:
    """Yield the controller's steps for a cluster; none if it is neither selected nor listed."""
    row = case.rows.get(name)
    if row is None:
        return
    if unknown := selection_unknown(case.view.dump):
        yield StepName.ORDER.unknown(unknown)
    else:
        if row.rank is not None:
            yield _order_step(case, row)
            yield from _usability_steps(case, row)
        yield from _removal_steps(case, row)
    yield _list_step(case, row)
    if row.state in LISTED_STATES:
        yield _connection_step(case, row)


def no_check_step(case: PlacementView) -> ExplainStep:
    """Return why the controller does nothing for a Placement."""
    spaces = joined(case.view.settings.placement_namespace)
    if not case.is_used:
        message = f"the controller does not use this Placement: it watches namespace {spaces}"
        return StepName.CHECKS.note(message, "setting placement-namespace")
    if unknown := case.view.dump.why_unknown(ADMISSION_CHECK):
        return StepName.CHECKS.unknown(f"whether an AdmissionCheck names it is {unknown}")
    message = f"no AdmissionCheck of ours names Placement {case.name}: Kueue is not updated"
    return StepName.CHECKS.note(message)


# -- is it usable


def _order_step(case: PlacementView, row: ClusterRow) -> ExplainStep:
    unknown = case.view.dump.why_unknown(PLACEMENT_SCORE)
    if row.score is None and unknown and case.snapshot.decisions.ranked_by == "placement scores":
        message = f"how the controller ranks it is {unknown}"
        return StepName.ORDER.unknown(message, f"Placement {case.label}")
    selected = sum(cluster.rank is not None for cluster in case.rows.values())
    by = _RANKED_BY[case.snapshot.decisions.ranked_by]
    message = f"the controller ranks it {row.rank} of {selected}, by {by}"
    score = f": score {row.score}" if row.score else ""
    group = f", decision group {row.group}" if row.group else ""
    return StepName.ORDER.passed(message + score + group, f"Placement {case.label}")


def _usability_steps(case: PlacementView, row: ClusterRow) -> Iterator[ExplainStep]:
    """Yield name, credential, fitness and slot, up to the step that fails."""
    credential = case.snapshot.credentials.selected.get(row.name)
    left_out = case.targets.selection.left_out.get(row.name, "")
    has_credentials = isinstance(credential, CredentialSource)
    if problem := name_problem(row.name, row.cluster_object):
        yield StepName.NAME.failed(problem, "setting cluster-names")
        return
    yield _name_step(case, row)
    yield from _maintenance_steps(case, row)
    if maintenance_of(case.snapshot, row.name):
        return
    if left_out or has_credentials:  # else it is beyond those that get credentials
        yield _credential_step(case, row, "" if has_credentials else left_out)
    if keeper := case.targets.selection.second_names.get(row.name):
        is_recorded = bool(seen_names(case.snapshot, {row.name: keeper}))  # claims alone need no record
        source = f"MultiKueueConfig {case.name}" if is_recorded else f"ManagedCluster {row.name}"
        yield StepName.IDENTITY.failed(left_out, source)
    elif left_out and has_credentials:  # the probe alone objects then
        message = f"{left_out}; only the controller knows the result of its probe"
        yield StepName.FITNESS.unknown(message, "setting credentials-probe")
    if not left_out:
        yield _slot_step(case, row)


def _maintenance_steps(case: PlacementView, row: ClusterRow) -> Iterator[ExplainStep]:
    fleet, source = case.snapshot.fleet, f"ManagedCluster {row.name}"
    if why := maintenance_of(case.snapshot, row.name):
        yield StepName.MAINTENANCE.failed(f"it is {why}", source)
    elif window := fleet.maintenance.get(row.name):
        by = (
            ""
            if case.snapshot.policy.dispatcher
            else "; until then Kueue's dispatcher sends jobs of any length"
        )
        yield StepName.MAINTENANCE.note(window.announcement + by, source)
    if problem := fleet.maintenance_problems.get(row.name):
        yield StepName.MAINTENANCE.note(problem, source)


def _name_step(case: PlacementView, row: ClusterRow) -> ExplainStep:
    entry = next((target for target in case.targets.to_list if target.cluster == row.name), None)
    if entry and (problem := cluster_name_conflict(case.snapshot, entry)):
        return StepName.NAME.failed(problem, f"MultiKueueCluster {row.cluster_object}")
    return StepName.NAME.passed(f"its MultiKueueCluster is {row.cluster_object}")


def _credential_step(case: PlacementView, row: ClusterRow, problem: str) -> ExplainStep:
    space, credential = case.view.settings.kueue_namespace, row.credential
    source = f"{credential.kind} {space}/{credential.name}" if credential.kind else ""
    if not case.view.credentials_known:
        return StepName.CREDENTIAL.unknown(f"whether it has credentials is {credential.problem}", source)
    if problem:
        return StepName.CREDENTIAL.failed(problem, f"namespace {space}")
    credential_source = case.snapshot.credentials.usable(row.name)
    origin = credential_source.origin if credential_source else ""
    expires = f", and expires at {credential.expires.isoformat()}" if credential.expires else ""
    return StepName.CREDENTIAL.passed(f"its credentials are {source}, {origin}{expires}", source)


def _slot_step(case: PlacementView, row: ClusterRow) -> ExplainStep:
    targets = case.targets
    if row.name in targets.waiting_for_slot:
        staying = joined(step.cluster for step in targets.drain.staying)
        message = f"it gets a slot as soon as one of these has drained: {staying}"
        return StepName.SLOT.failed(message, f"MultiKueueConfig {case.name}")
    most = case.snapshot.hub.clusters_max
    over_limit = [name for name in targets.over_limit if case.snapshot.credentials.usable(name)]
    usable = len(targets.to_list) + len(targets.waiting_for_slot) + len(over_limit)
    message = f"{count_text(usable, 'usable cluster')}, and Kueue takes at most {most}"
    if row.name in targets.over_limit and row.name not in over_limit:
        message += ", so only the first in rank get credentials"
    if row.name in targets.over_limit:
        return StepName.SLOT.failed(f"{message}: it is beyond them", "the schema of MultiKueueConfig")
    return StepName.SLOT.passed(message)


# -- listed but not selected


def _removal_steps(case: PlacementView, row: ClusterRow) -> Iterator[ExplainStep]:
    if held := case.held_clusters.get(row.name):
        message = f"it stays listed for now: {held}"
        yield StepName.GUARD.note(message, "setting mass-loss-grace")
        return
    step = next((step for step in case.targets.drain.steps if step.name == row.cluster_object), None)
    if step is None:
        return
    source = f"MultiKueueConfig {case.name}"
    if unknown := case.view.dump.why_unknown(WORKLOAD):
        message = f"it leaves the list; which Workloads run there is {unknown}"
        yield StepName.DRAINING.unknown(message, source)
        return
    message = (
        f"it drains and stays listed for now: {step.message}" if step.stays else "it leaves the list now"
    )
    workloads = case.targets.workloads
    for what, jobs in (("run there", workloads.running), ("wait there", workloads.waiting)):
        if names := [job.label for job in jobs.get(step.name, ())]:
            message += f"; {what}: {joined(names)}"
    if others := case.view.running_for_others(case.name, row.name):
        message += f"; of other checks run there: {joined('/'.join(key) for key in others)}"
    yield StepName.DRAINING.note(message, source)


# -- Kueue's list and Kueue's conditions


def _list_step(case: PlacementView, row: ClusterRow) -> ExplainStep:
    source, config = f"MultiKueueConfig {case.name}", case.snapshot.objects.config
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CONFIG):
        return StepName.LIST.unknown(f"whether it is on Kueue's list is {unknown}", source)
    now = config.listed if config else ()
    wanted = case.plan.config.clusters if case.plan.config else ()
    name = row.cluster_object
    will_be = f"will be number {wanted.index(name) + 1} of {len(wanted)}" if name in wanted else ""
    if name in now:
        message = f"it is number {now.index(name) + 1} of {len(now)} on the list"
        if row.state == "draining":
            message += " and will leave"
        elif row.state == "standby":
            message += " and stands by: no job is sent there"
        elif will_be and wanted != now:
            message += f"; it {will_be}"
        return StepName.LIST.passed(message, source)
    if will_be:
        message = f"it is not on the list yet and {will_be}: the controller has not written it yet"
        return StepName.LIST.failed(message, source)
    return StepName.LIST.failed(f"it is not on the list{_why_unchanged(case)}", source)


def _why_unchanged(case: PlacementView) -> str:
    """Return why the list stays unchanged although clusters are usable."""
    verdict = next(iter(case.plan.verdicts.values()), None)
    if not case.targets.to_list or verdict is None or verdict.status == "True":
        return ""
    return f", which stays unchanged: {verdict.reason}: {verdict.message}"


def _connection_step(case: PlacementView, row: ClusterRow) -> ExplainStep:
    source = f"MultiKueueCluster {row.cluster_object}"
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CLUSTER):
        return StepName.CONNECTED.unknown(f"whether Kueue is connected is {unknown}", source)
    if row.connected == "True":
        return StepName.CONNECTED.passed("Kueue is connected to it", source)
    if row.connected_why and row.connected != "Unknown":
        return StepName.CONNECTED.failed(f"Kueue is not connected to it: {row.connected_why}", source)
    return StepName.CONNECTED.note("Kueue has not reported yet whether it is connected", source)


def condition_steps(case: PlacementView, checks: Iterable[Check]) -> Iterator[ExplainStep]:
    """Yield the condition of each check, and where the controller would now set another one."""
    view = case.view
    known = view.credentials_known and all(map(view.dump.knows, _VERDICT_KINDS))
    verdicts = case.plan.verdicts if known and not view.settings.credentials_probe else {}
    for check in checks:
        yield condition_step(check, verdicts.get(check.meta.name))


def queue_remark_steps(checks: Iterable[Check], cluster: str) -> Iterator[ExplainStep]:
    """Yield what the conditions say of a worker's queues, as the controller has read them."""
    for check in checks:
        if why := queue_remarks_of(check).get(cluster):
            yield StepName.CONDITION.failed(why, f"AdmissionCheck {check.meta.name}")


def condition_step(check: Check, verdict: Verdict | None) -> ExplainStep:
    """Quote the condition of a check; `verdict`: what the controller would set, None: unknown."""
    source, active = f"AdmissionCheck {check.meta.name}", check.active
    if active is None:
        return StepName.CONDITION.note("check that the controller runs: the check has no condition", source)
    outcome = {"True": StepResult.PASSED, "False": StepResult.FAILED}.get(active.status, StepResult.NOTE)
    reason = f"{active.reason}: {active.message}".strip(": ")
    message = f"{active.status}: {reason}"
    if verdict and (verdict.status, verdict.reason) != (active.status, active.reason):
        message += (
            f"; from these objects the controller would set {verdict.status} {verdict.reason}: "
            "it has not reconciled the check yet, or it sees objects that are unknown here"
        )
    return ExplainStep(StepName.CONDITION, outcome, message, source)


def queue_steps(case: PlacementView) -> Iterator[ExplainStep]:
    """Yield the ClusterQueues whose jobs use the list."""
    status = case.status
    if status is None:
        return
    if unknown := case.view.dump.why_unknown(CLUSTER_QUEUE):
        yield StepName.QUEUE.unknown(f"which queues use the list is {unknown}")
        return
    users = f", and Kueue's own {joined(status.users)}" if status.users else ""
    if not status.queues:
        checks = joined(check.meta.name for check in case.checks)
        yield StepName.QUEUE.note(f"no ClusterQueue lists {checks}{users}: no job uses the list")
    for queue in status.queues:
        result, state = _QUEUE_STATES[queue.active]
        why = f" ({queue.why})" if queue.why else ""
        local = joined(queue.local_queues or ()) or ("none" if queue.local_queues == () else "unknown")
        source = f"ClusterQueue {queue.name}"
        message = f"{source} {state}{why}; LocalQueues: {local}; it lists {joined(queue.lists)}"
        yield ExplainStep(StepName.QUEUE, result, message, source)
