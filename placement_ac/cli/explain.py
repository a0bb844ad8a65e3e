"""`placement-ac explain`: each step in a sentence, and the step that decides."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from placement_ac.cli.hub_options import (
    HubReading,
    HubSource,
    ReadCommand,
    hub_options,
    read_all_namespaces,
    read_once,
    report_missing,
    with_client,
)
from placement_ac.cli.output import Form, emit, output, safe_text
from placement_ac.core.api.text import joined
from placement_ac.inspection.explain.explanations import (
    CheckExplanation,
    ClusterExplanation,
    ClusterSummary,
    explain_check,
    explain_cluster,
    explain_placement,
)
from placement_ac.inspection.explain.steps import ExplainStep, PlacementView, StepName, StepResult
from placement_ac.inspection.explain.subject import (
    Subject,
    find_check,
    find_cluster,
    find_placement,
    parse_subject,
    placement_views,
)
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import DECISION_KINDS, PROVISIONED_KINDS, QUEUE_KINDS

KINDS: Final = (*DECISION_KINDS, *QUEUE_KINDS, *PROVISIONED_KINDS)
WHOLE: Final = 5
"""Up to this many Placements, all steps are shown; beyond, only the step that decides."""
WHYS: Final = 5
"""Up to this many reasons of one step have a line each."""
MARKS: Final = {StepResult.PASSED: "✓", StepResult.FAILED: "✗", StepResult.NOTE: "•", StepResult.UNKNOWN: "?"}
PLAIN_MARKS: Final = {
    StepResult.PASSED: "+",
    StepResult.FAILED: "x",
    StepResult.NOTE: "-",
    StepResult.UNKNOWN: "?",
}
STYLES: Final = {
    StepResult.PASSED: "green",
    StepResult.FAILED: "red",
    StepResult.NOTE: "dim",
    StepResult.UNKNOWN: "yellow",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The document."""

    subject: Subject
    checks: tuple[ClusterExplanation | CheckExplanation, ...]


@click.command(
    "explain",
    cls=ReadCommand,
    epilog="Example:  placement-ac explain cluster cluster1 --check placement-demo2",
)
@click.argument("words", nargs=-1, required=True, metavar="[TYPE] NAME")
@click.option("--check", default="", metavar="NAME", help="Explain a cluster for this check only.")
@hub_options
@output("wide", "json", "yaml")
def command(words: tuple[str, ...], check: str, where: HubSource, form: Form) -> None:
    """Explain why a cluster is selected or not, step by step; or all clusters of a check.

    TYPE is cluster, check or placement, or the kind's name in the API; also TYPE/NAME.
    """
    if len(words) > 2:  # noqa: PLR2004, RUF100  # TYPE NAME
        raise click.UsageError(f"name one object, as TYPE NAME: {' '.join(words)}")
    found = _read(where)
    report_missing(found.view.missing_rights, "what depends on it is unknown")
    document = explanation(found.view, words, check, where)
    emit(form, document, lambda wide: _shown(document, wide))


def _read(where: HubSource) -> HubReading:
    if where.dump_files:
        return read_once(where, KINDS)
    return with_client(where, lambda client: read_all_namespaces(client, where, KINDS))


def explanation(view: HubView, words: tuple[str, ...], check: str, where: HubSource) -> Explanation:
    """Return the explanation of the object that the words name. Raises SubjectNotFound."""
    subject = parse_subject(words, view)
    if subject.type == "cluster":
        name = find_cluster(view, subject.name)
        cases = placement_views(view, check, where.namespace)
        return Explanation(subject, tuple(explain_cluster(case, name) for case in cases))
    if check:
        raise click.UsageError("use --check only with a cluster")
    if subject.type == "check":
        return Explanation(subject, (explain_check(view, find_check(view, subject.name)),))
    case = PlacementView(view, find_placement(view, subject.name, where.namespace))
    return Explanation(Subject(subject.type, case.name, case.namespace), (explain_placement(case),))


# -- tables


def _shown(document: Explanation, wide: bool) -> Iterator[RenderableType]:
    chains = [one for one in document.checks if isinstance(one, ClusterExplanation)]
    if not document.checks:
        yield Text("No Placement could select it.")
    elif len(chains) > WHOLE and not wide:
        yield _summary_table(chains)
        yield Text(f"\nFor all steps: explain cluster {document.subject.name} --check NAME, or -o wide")
        return
    for number, one in enumerate(document.checks):
        if number:
            yield Text()
        yield from (
            _cluster_lines(one, wide) if isinstance(one, ClusterExplanation) else _check_lines(one, wide)
        )


def _cluster_lines(one: ClusterExplanation, wide: bool) -> Iterator[RenderableType]:
    where = "" if one.step in (StepName.LIST, StepName.DECISION) else f", by {one.step}"
    yield _head(f"Cluster {one.cluster} for {_for(one)}: {one.state}{where}")
    yield _step_table(one.links, wide)


def _check_lines(one: CheckExplanation, wide: bool) -> Iterator[RenderableType]:
    yield _head(_for(one)[0].upper() + _for(one)[1:])
    yield _step_table(one.links, wide)
    if one.clusters:
        yield Text()
        yield _cluster_table(one.clusters, wide)


def _for(one: ClusterExplanation | CheckExplanation) -> str:
    placement = f"Placement {one.placement}" if one.placement else "no Placement"
    return f"{placement} (check {joined(one.checks)})" if one.checks else placement


def _head(message: str) -> Text:
    return safe_text(message, "bold")


def _step_table(links: Iterable[ExplainStep], wide: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    marks = _marks()
    for link in links:
        mark = Text(marks[link.outcome], style=STYLES[link.outcome])
        table.add_row(
            mark,
            Text(link.step, no_wrap=True),
            safe_text(link.sentence),
            *([safe_text(link.source)] if wide else []),
        )
    return table


def _marks() -> dict[StepResult, str]:
    """Return marks that the terminal can encode."""
    try:
        "".join(MARKS.values()).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN_MARKS
    return MARKS


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _summary_table(chains: Iterable[ClusterExplanation]) -> Table:
    table = _table("PLACEMENT", "CHECKS", "OUTCOME", "STEP", "WHY")
    for one in chains:
        table.add_row(*map(safe_text, (one.placement, joined(one.checks), one.state, one.step, one.why)))
    return table


def _cluster_table(fates: Iterable[ClusterSummary], wide: bool) -> Table:
    table = _table("CLUSTER", "OUTCOME", "STEP", "WHY")
    for names, fate in [([one.cluster], one) for one in fates] if wide else grouped(fates):
        message = f"{len(names)}: {joined(names)}" if len(names) > 1 else names[0]
        table.add_row(*map(safe_text, (message, fate.state, fate.step, fate.why)))
    return table


def grouped(fates: Iterable[ClusterSummary]) -> list[tuple[list[str], ClusterSummary]]:
    """Group dropped clusters by their reason, or by their step if there are many reasons.

    A cluster that is selected or listed has a line of its own.
    """
    lines: list[tuple[list[str], ClusterSummary]] = []
    dropped: dict[str, dict[str, list[ClusterSummary]]] = {}
    for fate in fates:
        if fate.state == "dropped":
            dropped.setdefault(fate.step, {}).setdefault(fate.why, []).append(fate)
        else:
            lines.append(([fate.cluster], fate))
    for whys in dropped.values():
        groups = list(whys.values())
        if len(groups) > WHYS:
            first = groups[0][0]
            message = replace(first, why=f"{first.why}; and {len(groups) - 1} other reasons")
            lines.append(([one.cluster for group in groups for one in group], message))
        else:
            lines += [([one.cluster for one in group], group[0]) for group in groups]
    return lines
