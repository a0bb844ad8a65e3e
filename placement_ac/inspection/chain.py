"""
Explain: the whole chain from the cluster set binding to the last condition, and which step decides.

Pure. For a cluster a chain per Placement; for a check, or a Placement without one, what holds for all its
clusters, and of each cluster the one step that decides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT, PLACEMENT_DECISION
from placement_ac.core.api.objects import Check
from placement_ac.core.api.text import joined
from placement_ac.core.plan.conditions import parameters_problem
from placement_ac.core.plan.plan import plan
from placement_ac.inspection.hub import HubView
from placement_ac.inspection.links import Case, Link, Result, Step
from placement_ac.inspection.links_kueue import condition, conditions, from_controller, no_check, queues
from placement_ac.inspection.links_ocm import from_ocm, placement_conditions, selected, unseen
from placement_ac.inspection.tree import State
from placement_ac.scheduling.objects import words

Standing = State | Literal["dropped", "unknown"]
"""What a cluster is for a Placement: as in the tree; dropped: OCM does not select it, nor is it listed."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one cluster, and the step that decided it."""

    cluster: str
    state: Standing
    step: Step
    why: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A cluster for one Placement."""

    placement: str
    """As namespace/name."""
    checks: tuple[str, ...]
    """Ours that name it."""
    cluster: str
    state: Standing
    selected: bool | None
    """By OCM; None: it cannot be told."""
    step: Step
    """The one that decides."""
    why: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A check, or a Placement, with all clusters."""

    placement: str
    """As namespace/name; without a namespace where it is not there; "" where the check names none."""
    checks: tuple[str, ...]
    links: tuple[Link, ...]
    clusters: tuple[Fate, ...]
    """Those that are selected or listed, best first; then the others by name."""


def chain(case: Case, cluster: str) -> Chain:
    """Return the whole chain of a cluster."""
    links = (*from_ocm(case, cluster), *from_controller(case, cluster))
    fate = _fate(case, cluster, links)
    if case.checks:
        used = queues(case) if cluster in case.rows else ()
        links = (*links, *conditions(case, case.checks), *used)
    else:
        links = (*links, no_check(case))
    return Chain(
        placement=case.label,
        checks=tuple(check.meta.name for check in case.checks),
        cluster=cluster,
        state=fate.state,
        selected=selected(case, cluster),
        step=fate.step,
        why=fate.why,
        links=links,
    )


def _fate(case: Case, cluster: str, links: Sequence[Link]) -> Fate:
    state = _state(case, cluster)
    link = _deciding(links, state)
    return Fate(cluster, state, link.step, link.sentence)


def _state(case: Case, cluster: str) -> Standing:
    if row := case.rows.get(cluster):
        return row.state
    return {True: _SELECTED, False: _DROPPED, None: _UNKNOWN}[selected(case, cluster)]


_SELECTED: Final[Standing] = "selected"
_DROPPED: Final[Standing] = "dropped"
_UNKNOWN: Final[Standing] = "unknown"
_IN: Final = (Step.LIST, Step.DECISION)


def _deciding(links: Sequence[Link], state: Standing) -> Link:
    """Return the link that says most: why it is out, and of what is in, where it stands."""
    if state == "listed":
        return next(link for link in links if link.step is Step.LIST)
    begin = next((at for at, link in enumerate(links) if _is_decided(link)), 0)  # the decision is what counts
    for link in links[begin:]:
        if link.outcome in (Result.FAILED, Result.UNKNOWN):
            return link
    return next(link for step in _IN for link in links if link.step is step)


def _is_decided(link: Link) -> bool:
    return link.step is Step.DECISION and link.outcome is Result.PASSED


# -- a check, or a Placement


def of_check(view: HubView, check: Check) -> Overview:
    """Return what a check comes to, also one that names no Placement, or none that is there."""
    parameters = _parameters(check)
    raw = view.placement(check.placement) if check.placement else None
    if raw is not None:
        case = Case(view, raw)
        found = f"Placement {case.label} is there"
        link = Link(Step.PLACEMENT, Result.PASSED, "; ".join((found, *placement_conditions(raw))))
        return _overview(case, (parameters, link), (check,))
    links = [parameters]
    if check.placement:
        links.append(_no_placement(view, check.placement))
    verdict = plan(view.of_check(check)).verdicts.get(check.meta.name)
    links.append(condition(check, verdict if view.dump.knows(PLACEMENT) else None))
    return Overview(check.placement, (check.meta.name,), tuple(links), ())


def of_placement(case: Case) -> Overview:
    """Return what a Placement comes to, whether a check names it or not."""
    told = placement_conditions(case.placement)
    link = Link(Step.PLACEMENT, Result.NOTE, "; ".join(told)) if told else None
    return _overview(case, (link,) if link else (), case.checks)


def _parameters(check: Check) -> Link:
    source = f"AdmissionCheck {check.meta.name}"
    if problem := parameters_problem(check):
        return Link(Step.PARAMETERS, Result.FAILED, problem, source)
    return Link(Step.PARAMETERS, Result.PASSED, f"its parameters name Placement {check.placement}", source)


def _no_placement(view: HubView, name: str) -> Link:
    if view.dump.live and not view.dump.knows(PLACEMENT):
        return Link(
            Step.PLACEMENT, Result.UNKNOWN, f"whether it is there is {view.dump.why_unknown(PLACEMENT)}"
        )
    looked_for = joined((f"{space}/{name}" for space in view.settings.placement_namespace), " or ")
    told = f"there is no Placement {looked_for}"
    return Link(Step.PLACEMENT, Result.FAILED, told, "setting placement-namespace")


def _overview(case: Case, before: Iterable[Link], checks: Sequence[Check]) -> Overview:
    fates = tuple(_fates(case))
    after = (*_lists(case), *conditions(case, checks), *queues(case)) if checks else (no_check(case),)
    links = (*before, _sets(case), _decided(case, fates), *after)
    return Overview(case.label, tuple(check.meta.name for check in checks), links, fates)


def _fates(case: Case) -> Iterator[Fate]:
    others = {name for _, name in case.view.fleet.clusters} | set(case.decided or ())
    for name in (*case.rows, *sorted(others - case.rows.keys())):
        yield _fate(case, name, (*from_ocm(case, name), *from_controller(case, name)))


def _sets(case: Case) -> Link:
    """Tell which cluster sets stand to choice."""
    if case.unseen:
        return Link(Step.CLUSTER_SET, Result.UNKNOWN, unseen(case))
    pool, space = case.pool, case.namespace
    if case.outcome.hold:
        return Link(
            Step.CLUSTER_SET, Result.NOTE, f"{case.outcome.hold}: OCM leaves its decisions as they are"
        )
    asked = words(case.placement, "spec", "clusterSets")
    if not pool.bound:
        told = f"no ManagedClusterSet is bound in namespace {space}: there is no cluster to choose from"
        return Link(Step.CLUSTER_SET, Result.FAILED, told, f"namespace {space}")
    if not pool.eligible:
        told = (
            f"spec.clusterSets names {joined(asked)}; bound in namespace {space} is only {joined(pool.bound)}"
        )
        return Link(Step.CLUSTER_SET, Result.FAILED, told, f"Placement {case.label}")
    named = " and named in spec.clusterSets" if asked else ""
    told = f"OCM chooses from the clusters of {joined(pool.eligible)}: bound in namespace {space}{named}"
    bindings = joined(f"{space}/{name}" for name in pool.eligible)
    return Link(Step.CLUSTER_SET, Result.PASSED, told, f"ManagedClusterSetBinding {bindings}")


def _decided(case: Case, fates: Sequence[Fate]) -> Link:
    source, total = f"Placement {case.label}", len(fates)
    if unknown := case.view.dump.why_hidden(PLACEMENT_DECISION):
        return Link(Step.DECISION, Result.UNKNOWN, f"what OCM has decided is {unknown}", source)
    if case.decided is None:
        return Link(Step.DECISION, Result.NOTE, "OCM has not decided yet", source)
    outcome = Result.PASSED if case.decided else Result.FAILED
    return Link(Step.DECISION, outcome, f"OCM has decided on {len(case.decided)} of {total} clusters", source)


def _lists(case: Case) -> Iterator[Link]:
    """Tell what the list holds, and what the guard holds there."""
    source = f"MultiKueueConfig {case.name}"
    for why in set(case.held.values()):
        yield Link(Step.GUARD, Result.NOTE, why, "settings mass-loss-share, mass-loss-grace")
    if unknown := case.view.dump.why_unknown(MULTIKUEUE_CONFIG):
        yield Link(Step.LIST, Result.UNKNOWN, f"what is on Kueue's list is {unknown}", source)
    elif case.seen.objects.config is None:
        yield Link(Step.LIST, Result.FAILED, f"there is no {source}", source)
    else:
        yield Link(
            Step.LIST,
            Result.PASSED,
            f"on the list, in order: {joined(case.seen.objects.config.listed)}",
            source,
        )
