"""
The controller's part of an explanation, and Kueue's: from the order of the clusters to the queues.

Pure. What becomes of a cluster is read off the controller's own course, and off the tree that `status` shows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    WORKLOAD,
    CredentialMethod,
)
from placement_ac.core.api.objects import Check, Workload
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.inputs.state import Verdict
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.core.plan.conditions import cluster_name_conflict
from placement_ac.core.selection.probe_schedule import probe_objection
from placement_ac.inspection.kinds import CLUSTER_QUEUE
from placement_ac.inspection.links import Case, Link, Result, Step, quoted
from placement_ac.inspection.tree import ClusterRow

_ANSWERED_BY: Final = (PLACEMENT, PLACEMENT_DECISION, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
"""Kinds without which it cannot be told what the controller would answer a check."""
_TOLD_BY: Final[Mapping[CredentialMethod | None, str]] = {
    "profile-secret": "named by its ClusterProfile",
    "secret": "found by its name",
    "access-provider": "for its access provider",
    None: "made by the controller",
}


def from_controller(case: Case, name: str) -> Iterator[Link]:
    """Yield the controller's steps for a cluster; none for one that is neither selected nor listed."""
    row = case.rows.get(name)
    if row is None:
        return
    if row.state == "listed" and row.why.startswith("unknown"):
        yield Link(Step.ORDER, Result.UNKNOWN, row.why)
    else:
        if row.rank is not None:
            yield _order(case, row)
            yield from _entrance(case, row)
        yield from _held(case, row) if row.name in case.held else _leaving(case, row)
    yield _listed(case, row)
    if row.state in ("listed", "draining"):
        yield _connected(case, row)


def no_check(case: Case) -> Link:
    """Say why nothing becomes of a Placement, though OCM decides for it."""
    spaces = joined(case.view.settings.placement_namespace)
    if not case.counts:
        told = f"the controller does not go by this Placement: it looks in namespace {spaces}"
        return Link(Step.CHECKS, Result.NOTE, told, "setting placement-namespace")
    if unknown := case.view.dump.why_hidden(ADMISSION_CHECK):
        return Link(Step.CHECKS, Result.UNKNOWN, f"whether an AdmissionCheck names it is {unknown}")
    told = f"no AdmissionCheck of ours names Placement {case.name}: Kueue hears nothing of it"
    return Link(Step.CHECKS, Result.NOTE, told)


# -- on the way in


def _order(case: Case, row: ClusterRow) -> Link:
    if row.score is None:
        told = f"how the controller ranks it is {case.view.dump.why_hidden(PLACEMENT_SCORE)}"
        return Link(Step.ORDER, Result.UNKNOWN, told, f"Placement {case.label}")
    selected = sum(one.rank is not None for one in case.rows.values())
    told = f"the controller ranks it {row.rank} of {selected}, by {_ranked_by(case)}"
    score = f": score {row.score}" if row.score else ""
    group = f", decision group {row.group}" if row.group else ""
    return Link(Step.ORDER, Result.PASSED, told + score + group, f"Placement {case.label}")


def _ranked_by(case: Case) -> str:
    if any(entry.score for one in case.seen.decision.decisions for entry in one.decided or ()):
        return "the scores in OCM's decisions"
    if case.seen.decision.placement and case.seen.decision.placement.prioritizers:
        return "AddOnPlacementScores, as OCM's decisions hold no score"
    return "decision group and name, as there is no score to go by"


def _entrance(case: Case, row: ClusterRow) -> Iterator[Link]:
    """Yield name, credential, fitness and seat, up to the one that keeps it out."""
    found, left_out = (
        case.seen.credentials.selected.get(row.name),
        case.course.selection.left_out.get(row.name, ""),
    )
    no_way = isinstance(found, Unusable) and found.why == left_out
    not_fit = (
        isinstance(found, CredentialSource)
        and (why := probe_objection(case.seen, row.name, found))
        and why.why == left_out
    )
    if left_out and not no_way and not not_fit:
        yield Link(Step.NAME, Result.FAILED, left_out, "setting cluster-names")
        return
    yield _named(case, row)
    yield _credential(case, row, left_out if no_way else "")
    if not_fit:
        told = f"{left_out}; what it answers the controller is not seen here"
        yield Link(Step.FITNESS, Result.UNKNOWN, told, "setting credentials-probe")
    if not left_out:
        yield _seat(case, row)


def _named(case: Case, row: ClusterRow) -> Link:
    entry = next((one for one in case.course.usable if one.cluster == row.name), None)
    if entry and (problem := cluster_name_conflict(case.seen, entry)):
        return Link(Step.NAME, Result.FAILED, problem, f"MultiKueueCluster {row.cluster_object}")
    return Link(Step.NAME, Result.PASSED, f"its MultiKueueCluster is {row.cluster_object}")


def _credential(case: Case, row: ClusterRow, problem: str) -> Link:
    space, way = case.view.settings.kueue_namespace, row.credential
    source = f"{way.kind} {space}/{way.name}" if way.kind else ""
    if not case.view.credentials_known:
        return Link(Step.CREDENTIAL, Result.UNKNOWN, f"whether there is a way in is {way.problem}", source)
    if problem:
        return Link(Step.CREDENTIAL, Result.FAILED, problem, f"namespace {space}")
    told_by = _TOLD_BY[case.view.world.credential_method(row.name, case.view.now)]
    expires = f", and expires at {way.expires.isoformat()}" if way.expires else ""
    return Link(Step.CREDENTIAL, Result.PASSED, f"the way in is {source}, {told_by}{expires}", source)


def _seat(case: Case, row: ClusterRow) -> Link:
    most, course = case.seen.hub.clusters_max, case.course
    usable = count_text(
        len(course.usable) + len(course.waiting_for_slot) + len(course.over_limit), "usable cluster"
    )
    if row.name in course.over_limit:
        told = f"{usable}, and Kueue takes {most} at most: it is beyond them"
        return Link(Step.SEAT, Result.FAILED, told, "the schema of MultiKueueConfig")
    if row.name in course.waiting_for_slot:
        staying = joined(one.cluster for one in course.drain.staying)
        told = f"it has the seat of a cluster that leaves, when that has given it up: {staying}"
        return Link(Step.SEAT, Result.FAILED, told, f"MultiKueueConfig {case.name}")
    return Link(Step.SEAT, Result.PASSED, f"{usable}, and Kueue takes {most} at most")


# -- what stays although it is not selected


def _held(case: Case, row: ClusterRow) -> Iterator[Link]:
    told = f"it would leave, and is kept for now: {case.held[row.name]}"
    yield Link(Step.GUARD, Result.NOTE, told, "settings mass-loss-share, mass-loss-grace")


def _leaving(case: Case, row: ClusterRow) -> Iterator[Link]:
    one = next((one for one in case.course.drain.steps if one.name == row.cluster_object), None)
    if one is None:
        return
    source = f"MultiKueueConfig {case.name}"
    if unknown := case.view.dump.why_hidden(WORKLOAD):
        told = f"it leaves the list; which Workloads are on it is {unknown}"
        yield Link(Step.DRAINING, Result.UNKNOWN, told, source)
        return
    jobs = case.course.workloads
    parts = (
        *_jobs("run there", jobs.running.get(one.name, ())),
        *_jobs("wait there", jobs.waiting.get(one.name, ())),
    )
    told = f"it drains, and stays listed for now: {one.message}" if one.stays else "it leaves the list now"
    yield Link(Step.DRAINING, Result.NOTE, "; ".join((told, *parts)), source)


def _jobs(what: str, workloads: Iterable[Workload]) -> Iterator[str]:
    names = [workload.label for workload in workloads]
    if names:
        yield f"{what}: {joined(names)}"


# -- the list, and what Kueue says


def _listed(case: Case, row: ClusterRow) -> Link:
    source, config = f"MultiKueueConfig {case.name}", case.seen.objects.config
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CONFIG):
        return Link(Step.LIST, Result.UNKNOWN, f"whether Kueue's list holds it is {unknown}", source)
    now = config.listed if config else ()
    wanted = case.plan.config.clusters if case.plan.config else ()
    name = row.cluster_object
    if name in now:
        told = f"it is number {now.index(name) + 1} of {len(now)} on the list"
        if row.state == "draining":
            told = f"{told}, and is to leave"
        elif name in wanted and wanted != now:
            told = f"{told}; it is to be number {wanted.index(name) + 1} of {len(wanted)}"
        return Link(Step.LIST, Result.PASSED, told, source)
    if name in wanted:
        told = (
            f"it is not on the list yet, and is to be number {wanted.index(name) + 1} of {len(wanted)}: "
            "the controller has not written it yet"
        )
        return Link(Step.LIST, Result.FAILED, told, source)
    told = "it is not on the list" + _refused(case)
    return Link(Step.LIST, Result.FAILED, told, source)


def _refused(case: Case) -> str:
    """Return why the list stays as it is, though clusters are usable."""
    verdict = next(iter(case.plan.verdicts.values()), None)
    if not case.course.usable or verdict is None or verdict.status == "True":
        return ""
    return f", which stays as it is: {verdict.reason}: {verdict.message}"


def _connected(case: Case, row: ClusterRow) -> Link:
    source = f"MultiKueueCluster {row.cluster_object}"
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CLUSTER):
        return Link(Step.CONNECTED, Result.UNKNOWN, f"whether Kueue is connected is {unknown}", source)
    if row.connected == "True":
        return Link(Step.CONNECTED, Result.PASSED, "Kueue is connected to it", source)
    if row.connected_why and row.connected != "Unknown":
        told = f"Kueue is not connected to it: {row.connected_why}"
        return Link(Step.CONNECTED, Result.FAILED, told, source)
    return Link(Step.CONNECTED, Result.NOTE, "Kueue has not said yet whether it is connected", source)


def conditions(case: Case, checks: Iterable[Check]) -> Iterator[Link]:
    """Yield the condition of each check, and where the controller would say something else by now."""
    for check in checks:
        yield condition(check, case.plan.verdicts.get(check.meta.name) if _can_tell(case) else None)


def condition(check: Check, verdict: Verdict | None) -> Link:
    """Quote the condition of a check; `verdict`: what the controller would answer, None: not known."""
    source, said = f"AdmissionCheck {check.meta.name}", check.active
    if said is None:
        return Link(Step.CONDITION, Result.NOTE, "the controller has not answered it: does it run?", source)
    outcome = {"True": Result.PASSED, "False": Result.FAILED}.get(said.status, Result.NOTE)
    told = f"{said.status}: {quoted({'reason': said.reason, 'message': said.message})}"
    if verdict and (verdict.status, verdict.reason) != (said.status, said.reason):
        told = (
            f"{told}; by what is seen here the controller would say {verdict.status} {verdict.reason}: "
            "it has not looked again yet, or goes by something that is not seen here"
        )
    return Link(Step.CONDITION, outcome, told, source)


def _can_tell(case: Case) -> bool:
    view = case.view
    known = view.credentials_known and all(map(view.dump.knows, _ANSWERED_BY))
    return known and not view.settings.credentials_probe


def queues(case: Case) -> Iterator[Link]:
    """Yield the ClusterQueues whose jobs the list is for."""
    branch = case.branch
    if branch is None:
        return
    if unknown := case.view.dump.why_unknown(CLUSTER_QUEUE):
        yield Link(Step.QUEUE, Result.UNKNOWN, f"which jobs come this way is {unknown}")
        return
    users = f", and Kueue's own {joined(branch.users)}" if branch.users else ""
    if not branch.queues:
        checks = joined(check.meta.name for check in case.checks)
        told = f"no ClusterQueue lists {checks}{users}: no job comes this way"
        yield Link(Step.QUEUE, Result.NOTE, told)
    for queue in branch.queues:
        outcome = {"True": Result.PASSED, "False": Result.FAILED}.get(queue.active, Result.NOTE)
        state = {"True": "is active", "False": "is not active"}.get(
            queue.active, "has not said whether it is active"
        )
        why = f" ({queue.why})" if queue.why else ""
        local = joined(queue.local_queues or ()) or ("none" if queue.local_queues == () else "unknown")
        told = f"ClusterQueue {queue.name} {state}{why}; LocalQueues: {local}; it lists {joined(queue.lists)}"
        yield Link(Step.QUEUE, outcome, told, f"ClusterQueue {queue.name}")
