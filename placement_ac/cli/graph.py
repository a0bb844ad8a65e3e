"""`placement-ac graph`: the tree of `status` as a picture, with the way of each Workload."""

from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

import click

from placement_ac.cli.hub_options import Look, ReadingCommand, Where, look, looks, tell_missing
from placement_ac.core.api.constants import ADMISSION_CHECK, WATCHED_KINDS
from placement_ac.inspection.drawing import svg
from placement_ac.inspection.drawing.html_page import page
from placement_ac.inspection.graph import graph_svg
from placement_ac.inspection.graph.mermaid import mermaid
from placement_ac.inspection.graph.model import COLUMNS, Graph, graph_of
from placement_ac.inspection.hub.kinds import MADE, QUEUES
from placement_ac.inspection.status.check_status import branches

KINDS: Final = (*WATCHED_KINDS, *QUEUES, *MADE)
Form = Literal["mermaid", "svg", "html"]
MERMAID_EDGES: Final = 500
"""Mermaid's `maxEdges`, as GitHub has it."""
MERMAID_LETTERS: Final = 50_000
"""Mermaid's `maxTextSize`, as GitHub has it."""
HEADS: Final = ("What", "Name", "Says", "Why")

to_file = click.option(
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there.  [default: to stdout]",
)
"""Where a picture goes."""


@click.command(
    "graph", cls=ReadingCommand, epilog="Example:  placement-ac graph -o html --output-file graph.html"
)
@click.argument("check", nargs=-1)
@looks
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["mermaid", "svg", "html"]),
    default="mermaid",
    show_default=True,
    help="Mermaid for Markdown; or a file that needs nothing else.",
)
@to_file
def command(where: Where, check: tuple[str, ...], form: Form, output_file: Path | None) -> None:
    """Draw checks with their Placements, clusters, queues and Workloads.

    Of each CHECK, or of all AdmissionChecks that placement-ac answers.
    """
    seen = look(where, KINDS)
    tell_missing(seen.view.lacking)
    known_checks(seen, check)
    graph = graph_of(branches(seen.view, check))
    text = drawn(graph, form, ", ".join(check) or "all checks")
    if form == "mermaid" and (len(graph.edges) > MERMAID_EDGES or len(text) > MERMAID_LETTERS):
        click.echo("this is more than GitHub draws; name some checks, or take -o html", err=True)
    write(text, output_file)


def known_checks(seen: Look, names: Collection[str]) -> None:
    """Raise ClickException for a name that is no check of ours."""
    ours = {one.meta.name for one in seen.view.ours}
    for name in names:
        if name not in ours and seen.dump.knows(ADMISSION_CHECK):
            raise click.ClickException(f"there is no AdmissionCheck {name} that placement-ac answers")


def drawn(graph: Graph, form: Form, of: str) -> str:
    """Return the picture as text."""
    title = f"Clusters of {of}"
    if form == "mermaid":
        return mermaid(graph)
    if form == "svg":
        return svg.written(graph_svg.draw(graph, title)) + "\n"
    rows = [(COLUMNS[node.column].removesuffix("s"), node.name, node.says, node.why) for node in graph.nodes]
    told = "What a queue's jobs pass, left to right. Point at a box, or press Tab, for the why."
    return page(title, told, graph_svg.draw(graph, title, alone=False), graph_svg.STYLE, HEADS, rows)


def write(text: str, file: Path | None) -> None:
    """Write a picture to a file, or to stdout."""
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
