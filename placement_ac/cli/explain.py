"""`placement-ac explain`: the whole chain in sentences, and which step decides."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from placement_ac.cli.hub_options import (
    Look,
    ReadingCommand,
    Where,
    look,
    look_everywhere,
    looks,
    on_hub,
    tell_missing,
)
from placement_ac.cli.output import Form, emit, output, said
from placement_ac.core.api.text import joined
from placement_ac.inspection.explain.explanations import Chain, Fate, Overview, chain, of_check, of_placement
from placement_ac.inspection.explain.steps import Case, Link, Result, Step
from placement_ac.inspection.explain.subject import (
    Subject,
    cases_of,
    check_named,
    cluster_named,
    placement_named,
    subject_of,
)
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import DECIDING, MADE, QUEUES

KINDS: Final = (*DECIDING, *QUEUES, *MADE)
WHOLE: Final = 5
"""Up to so many Placements a cluster is explained in full; of more, the step that decides."""
WHYS: Final = 5
"""Up to so many different reasons of one step have a line each."""
MARKS: Final = {Result.PASSED: "✓", Result.FAILED: "✗", Result.NOTE: "•", Result.UNKNOWN: "?"}
PLAIN_MARKS: Final = {Result.PASSED: "+", Result.FAILED: "x", Result.NOTE: "-", Result.UNKNOWN: "?"}
STYLES: Final = {Result.PASSED: "green", Result.FAILED: "red", Result.NOTE: "dim", Result.UNKNOWN: "yellow"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The document."""

    subject: Subject
    checks: tuple[Chain | Overview, ...]


@click.command(
    "explain",
    cls=ReadingCommand,
    epilog="Example:  placement-ac explain cluster cluster1 --check placement-demo2",
)
@click.argument("words", nargs=-1, required=True, metavar="[TYPE] NAME")
@click.option("--check", default="", metavar="NAME", help="Explain a cluster for this check only.")
@looks
@output("wide", "json", "yaml")
def command(words: tuple[str, ...], check: str, where: Where, form: Form) -> None:
    """Tell why a cluster is in or not, step by step; or what a check comes to.

    TYPE is cluster, check or placement, or as the API calls it; also TYPE/NAME.
    """
    if len(words) > 2:  # noqa: PLR2004, RUF100  # TYPE NAME
        raise click.UsageError(f"one thing at a time: TYPE NAME, not {' '.join(words)}")
    found = _looked(where)
    tell_missing(found.view.lacking, "what depends on it is not known")
    document = explanation(found.view, words, check, where)
    emit(form, document, lambda wide: _shown(document, wide))


def _looked(where: Where) -> Look:
    if where.dump:
        return look(where, KINDS)
    return on_hub(where, lambda client: look_everywhere(client, where, KINDS))


def explanation(view: HubView, words: tuple[str, ...], check: str, where: Where) -> Explanation:
    """Return what is told of what the words name. Raises NoSuchSubject."""
    subject = subject_of(words, view)
    if subject.type == "cluster":
        name = cluster_named(view, subject.name)
        cases = cases_of(view, check, where.namespace)
        return Explanation(subject, tuple(chain(case, name) for case in cases))
    if check:
        raise click.UsageError("--check is for a cluster")
    if subject.type == "check":
        return Explanation(subject, (of_check(view, check_named(view, subject.name)),))
    case = Case(view, placement_named(view, subject.name, where.namespace))
    return Explanation(Subject(subject.type, case.name, case.namespace), (of_placement(case),))


# -- for people


def _shown(document: Explanation, wide: bool) -> Iterator[RenderableType]:
    chains = [one for one in document.checks if isinstance(one, Chain)]
    if not document.checks:
        yield Text("There is no Placement here that could choose it.")
    elif len(chains) > WHOLE and not wide:
        yield _summary(chains)
        yield Text(f"\nFor the whole chain: explain cluster {document.subject.name} --check NAME, or -o wide")
        return
    for number, one in enumerate(document.checks):
        if number:
            yield Text()
        yield from _chain(one, wide) if isinstance(one, Chain) else _overview(one, wide)


def _chain(one: Chain, wide: bool) -> Iterator[RenderableType]:
    where = "" if one.step in (Step.LIST, Step.DECISION) else f", by {one.step}"
    yield _head(f"Cluster {one.cluster} for {_for(one)}: {one.state}{where}")
    yield _links(one.links, wide)


def _overview(one: Overview, wide: bool) -> Iterator[RenderableType]:
    yield _head(_for(one)[0].upper() + _for(one)[1:])
    yield _links(one.links, wide)
    if one.clusters:
        yield Text()
        yield _clusters(one.clusters, wide)


def _for(one: Chain | Overview) -> str:
    placement = f"Placement {one.placement}" if one.placement else "no Placement"
    return f"{placement} (check {joined(one.checks)})" if one.checks else placement


def _head(told: str) -> Text:
    return said(told, "bold")


def _links(links: Iterable[Link], wide: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    marks = _marks()
    for link in links:
        mark = Text(marks[link.outcome], style=STYLES[link.outcome])
        table.add_row(
            mark, Text(link.step, no_wrap=True), said(link.sentence), *([said(link.source)] if wide else [])
        )
    return table


def _marks() -> dict[Result, str]:
    """Return marks that the terminal can show."""
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


def _summary(chains: Iterable[Chain]) -> Table:
    table = _table("PLACEMENT", "CHECKS", "OUTCOME", "STEP", "WHY")
    for one in chains:
        table.add_row(*map(said, (one.placement, joined(one.checks), one.state, one.step, one.why)))
    return table


def _clusters(fates: Iterable[Fate], wide: bool) -> Table:
    table = _table("CLUSTER", "OUTCOME", "STEP", "WHY")
    for names, fate in [([one.cluster], one) for one in fates] if wide else grouped(fates):
        told = f"{len(names)}: {joined(names)}" if len(names) > 1 else names[0]
        table.add_row(*map(said, (told, fate.state, fate.step, fate.why)))
    return table


def grouped(fates: Iterable[Fate]) -> list[tuple[list[str], Fate]]:
    """Put clusters that dropped out for one reason into one line, and for many reasons those of one step.

    Whatever is selected or listed has a line of its own.
    """
    lines: list[tuple[list[str], Fate]] = []
    dropped: dict[str, dict[str, list[Fate]]] = {}
    for fate in fates:
        if fate.state == "dropped":
            dropped.setdefault(fate.step, {}).setdefault(fate.why, []).append(fate)
        else:
            lines.append(([fate.cluster], fate))
    for whys in dropped.values():
        groups = list(whys.values())
        if len(groups) > WHYS:
            first = groups[0][0]
            told = replace(first, why=f"{first.why}; and {len(groups) - 1} other reasons")
            lines.append(([one.cluster for group in groups for one in group], told))
        else:
            lines += [([one.cluster for one in group], group[0]) for group in groups]
    return lines
