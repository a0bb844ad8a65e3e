"""
Explain why a cluster is selected or not: every step from the cluster set binding to the last condition.

Pure. For a cluster, all steps per Placement. For a check or a Placement, the steps that apply to all its
clusters, and for each cluster the step that decides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kubectl_placement.explain import kueue_steps, ocm_steps
from kubectl_placement.explain.steps import ExplainStep, PlacementView, StepName, StepResult
from kubectl_placement.hub.hub_view import OCM_DECIDES, HubView
from kubectl_placement.status.model import ClusterState
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT
from placement_ac.core.api.fields import get_strs, key_of
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import did_you_mean, joined
from placement_ac.core.decisions import SOURCE
from placement_ac.core.plan.conditions import parameters_problem
from placement_ac.core.plan.plan import plan

ClusterOutcome = ClusterState | Literal["dropped", "unknown"]
"""The state of a cluster for a Placement; dropped: OCM does not select it and it is not listed."""


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """The outcome for one cluster, and the step that decided it."""

    cluster: str
    state: ClusterOutcome
    step: StepName
    why: str


@dataclass(frozen=True, slots=True)
class ClusterExplanation:
    """The explanation of a cluster for one Placement."""

    placement: str
    """As namespace/name."""
    checks: tuple[str, ...]
    """The checks of ours that name the Placement."""
    cluster: str
    state: ClusterOutcome
    selected: bool | None
    """By OCM; None: unknown."""
    step: StepName
    """The step that decides."""
    why: str
    links: tuple[ExplainStep, ...]


@dataclass(frozen=True, slots=True)
class CheckExplanation:
    """The explanation of a check or a Placement, with all clusters."""

    placement: str
    """As namespace/name; without namespace if it does not exist; "" if the check names none."""
    checks: tuple[str, ...]
    links: tuple[ExplainStep, ...]
    clusters: tuple[ClusterSummary, ...]
    """The selected or listed clusters, best first; then the others by name."""


def explain_cluster(case: PlacementView, cluster: str) -> ClusterExplanation:
    """Return all steps of a cluster for a Placement."""
    links = _cluster_steps(case, cluster)
    summary = _summary(case, cluster, links)
    if case.checks:
        used = kueue_steps.queue_steps(case) if cluster in case.rows else ()
        remarks = kueue_steps.queue_remark_steps(case.checks, cluster)
        links = (*links, *kueue_steps.condition_steps(case, case.checks), *remarks, *used)
    else:
        links = (*links, kueue_steps.no_check_step(case))
    return ClusterExplanation(
        placement=case.label,
        checks=tuple(check.meta.name for check in case.checks),
        cluster=cluster,
        state=summary.state,
        selected=ocm_steps.is_selected(case, cluster),
        step=summary.step,
        why=summary.why,
        links=links,
    )


def _cluster_steps(case: PlacementView, cluster: str) -> tuple[ExplainStep, ...]:
    return (*ocm_steps.ocm_steps(case, cluster), *kueue_steps.controller_steps(case, cluster))


def _summary(case: PlacementView, cluster: str, links: Sequence[ExplainStep]) -> ClusterSummary:
    state = _outcome(case, cluster)
    link = _deciding_step(links, state)
    return ClusterSummary(cluster, state, link.step, link.sentence)


def _outcome(case: PlacementView, cluster: str) -> ClusterOutcome:
    if row := case.rows.get(cluster):
        return row.state
    selected = ocm_steps.is_selected(case, cluster)
    return "unknown" if selected is None else "selected" if selected else "dropped"


def _deciding_step(links: Sequence[ExplainStep], state: ClusterOutcome) -> ExplainStep:
    """Return the step that decides: the first that failed, or the last one of a selected cluster."""
    steps = {link.step: link for link in links}
    if state == "listed":
        return steps[StepName.LIST]
    decision = steps[StepName.DECISION]
    # OCM's own decision takes precedence over the steps before it.
    begin = links.index(decision) if decision.outcome is StepResult.PASSED else 0
    failed = (link for link in links[begin:] if link.outcome in (StepResult.FAILED, StepResult.UNKNOWN))
    return next(failed, steps.get(StepName.LIST, decision))


# -- a check, or a Placement


def explain_check(view: HubView, check: Check) -> CheckExplanation:
    """Explain a check, even if its Placement is missing or not named."""
    parameters = _parameters_step(check)
    raw = view.placement(check.placement) if check.placement else None
    if raw is not None:
        case = PlacementView(view, raw)
        text = f"Placement {case.label} exists"
        link = StepName.PLACEMENT.passed("; ".join((text, *ocm_steps.placement_problem_texts(raw))))
        return _all_clusters(case, (parameters, link), (check,))
    links = [parameters]
    if check.placement:
        links.append(_missing_placement_step(view, check.placement))
    verdict = plan(view.check_snapshot(check)).verdicts.get(check.meta.name)
    links.append(kueue_steps.condition_step(check, verdict if view.dump.knows(PLACEMENT) else None))
    return CheckExplanation(check.placement, (check.meta.name,), tuple(links), ())


def explain_placement(case: PlacementView) -> CheckExplanation:
    """Explain a Placement, whether a check names it or not."""
    message = ocm_steps.placement_problem_texts(case.placement)
    link = StepName.PLACEMENT.note("; ".join(message)) if message else None
    return _all_clusters(case, (link,) if link else (), case.checks)


def _parameters_step(check: Check) -> ExplainStep:
    source = f"AdmissionCheck {check.meta.name}"
    if problem := parameters_problem(check):
        return StepName.PARAMETERS.failed(problem, source)
    return StepName.PARAMETERS.passed(f"its parameters name Placement {check.placement}", source)


def _missing_placement_step(view: HubView, name: str) -> ExplainStep:
    if unknown := view.dump.why_unknown(PLACEMENT):
        return StepName.PLACEMENT.unknown(f"whether it exists is {unknown}")
    looked_for = joined((f"{space}/{name}" for space in view.settings.placement_namespace), " or ")
    names = (key_of(placement)[1] for placement in view.dump.of(PLACEMENT))
    message = f"there is no Placement {looked_for}{did_you_mean(name, names)}"
    return StepName.PLACEMENT.failed(message, "setting placement-namespace")


def _all_clusters(
    case: PlacementView, before: Iterable[ExplainStep], checks: Sequence[Check]
) -> CheckExplanation:
    clusters = tuple(_summaries(case))
    cluster_sets = (_cluster_sets_step(case),) if OCM_DECIDES else ()
    links = [*before, *cluster_sets, _decision_step(case, len(clusters))]
    if checks:
        links += _list_steps(case)
        links += kueue_steps.condition_steps(case, checks)
        links += kueue_steps.queue_steps(case)
    else:
        links.append(kueue_steps.no_check_step(case))
    return CheckExplanation(case.label, tuple(check.meta.name for check in checks), tuple(links), clusters)


def _summaries(case: PlacementView) -> Iterator[ClusterSummary]:
    others = {name for _, name in case.view.fleet.clusters} | set(case.decisions or ())
    for name in (*case.rows, *sorted(others - case.rows.keys())):
        yield _summary(case, name, _cluster_steps(case, name))


def _cluster_sets_step(case: PlacementView) -> ExplainStep:
    """Return which cluster sets the Placement may select from."""
    if case.unknown_kinds:
        return StepName.CLUSTER_SET.unknown(ocm_steps.unknown_kinds_text(case))
    if case.scheduling.hold:
        return StepName.CLUSTER_SET.note(f"{case.scheduling.hold}: OCM leaves its decisions as they are")
    if case.scheduling.unsupported:
        return StepName.CLUSTER_SET.unknown(f"what OCM decides is unknown: {case.scheduling.unsupported}")
    pool, space = case.pool, case.namespace
    named = get_strs(case.placement, "spec", "clusterSets")
    if not pool.bound:
        message = f"no ManagedClusterSet is bound in namespace {space}: bind one to select clusters"
        return StepName.CLUSTER_SET.failed(message, f"namespace {space}")
    if not pool.eligible:
        bound = joined(pool.bound)
        message = f"spec.clusterSets names {joined(named)}; bound in namespace {space} is only {bound}"
        return StepName.CLUSTER_SET.failed(message, f"Placement {case.label}")
    why = f"bound in namespace {space}{' and named in spec.clusterSets' if named else ''}"
    message = f"OCM chooses from the clusters of {joined(pool.eligible)}: {why}"
    bindings = joined(f"{space}/{name}" for name in pool.eligible)
    return StepName.CLUSTER_SET.passed(message, f"ManagedClusterSetBinding {bindings}")


def _decision_step(case: PlacementView, clusters: int) -> ExplainStep:
    source = f"Placement {case.label}"
    if unknown := case.view.dump.why_unknown(SOURCE.kind):
        return StepName.DECISION.unknown(f"{SOURCE.name}'s decision is {unknown}", source)
    if case.decisions is None:
        return StepName.DECISION.note(f"{SOURCE.name} has not decided yet", source)
    outcome = StepResult.PASSED if case.decisions else StepResult.FAILED
    message = f"{SOURCE.name} has selected {len(case.decisions)} of {clusters} clusters"
    return ExplainStep(StepName.DECISION, outcome, message, source)


def _list_steps(case: PlacementView) -> Iterator[ExplainStep]:
    """Yield the content of Kueue's list, and the clusters that a held mass loss keeps on it."""
    source = f"MultiKueueConfig {case.name}"
    for why in set(case.held_clusters.values()):
        yield StepName.GUARD.note(why, "setting mass-loss-grace")
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CONFIG):
        yield StepName.LIST.unknown(f"Kueue's list is {unknown}", source)
    elif case.snapshot.objects.config is None:
        yield StepName.LIST.failed(f"there is no {source}", source)
    else:
        listed = joined(case.snapshot.objects.config.listed)
        yield StepName.LIST.passed(f"Kueue's list, in order: {listed}", source)
