"""`placement-ac graph`: the status of checks as a picture, with the path of each Workload."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal, get_args

import click

from kubectl_placement.cli.hub_names import check_references, named_checks
from kubectl_placement.cli.hub_options import STATUS_KINDS, HubReading, HubSource, hub_options, read_once
from kubectl_placement.cli.missing_kinds import (
    exit_if_unreadable,
    missing_line,
    report_missing,
    require_checks_known,
)
from kubectl_placement.cli.page_files import PageSource, graph_file
from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import build_graph
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus
from placement_ac.cli.documents import output
from placement_ac.cli.login_options import FILE
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import ADMISSION_CHECK
from placement_ac.core.api.printable import visible
from placement_ac.core.api.text import did_you_mean

Form = Literal["mermaid", "html"]
MERMAID_EDGES: Final = 500
"""GitHub's value of Mermaid's `maxEdges`."""
MERMAID_LETTERS: Final = 50_000
"""GitHub's value of Mermaid's `maxTextSize`."""

output_file_option = click.option("--output-file", type=FILE, help="Write to this file.  [default: stdout]")
"""The option for the file of a picture."""


@click.command(
    "graph", cls=ReadCommand, epilog="Example:  placement-ac graph -o html --output-file graph.html"
)
@click.argument("check", nargs=-1, callback=named_checks, shell_complete=check_references)
@hub_options
@output(*get_args(Form), default="mermaid", message="Mermaid for Markdown, or a self-contained page.")
@output_file_option
def command(where: HubSource, check: tuple[str, ...], form: Form, output_file: Path | None) -> None:
    """Draw checks with their Placements, clusters, queues and Workloads.

    For each CHECK, or for all AdmissionChecks that placement-ac answers.
    """
    reading = read_once(where, STATUS_KINDS)
    require_checks(reading, check)
    report_missing(reading)
    statuses = check_statuses(reading.view, check)
    if form == "html":
        text = graph_file(statuses, reading.view.facts.clusters_max, page_source(reading))
    else:
        text = _mermaid(statuses)
    write(text, output_file)
    exit_if_unreadable(reading)


def require_checks(reading: HubReading, names: Collection[str]) -> None:
    """Raise ClickException if a name is no check of ours, or if the checks cannot be read."""
    require_checks_known(reading)
    ours = {check.meta.name for check in reading.view.our_checks}
    for name in names:
        if name not in ours and reading.dump.knows(ADMISSION_CHECK):
            meant = did_you_mean(name, ours)
            raise click.ClickException(f"there is no AdmissionCheck {name} that placement-ac answers{meant}")


def _mermaid(statuses: Sequence[CheckStatus]) -> str:
    graph = build_graph(statuses)
    text = mermaid(graph)
    if len(graph.edges) > MERMAID_EDGES or len(text) > MERMAID_LETTERS:
        click.echo("name some checks, or use -o html: GitHub does not draw graphs of this size", err=True)
    return text


def page_source(reading: HubReading) -> PageSource:
    """Return where the data of a page come from."""
    return PageSource(reading.dump.server or "a dump", reading.view.now, missing_line(reading))


def write(text: str, file: Path | None) -> None:
    """Write a picture to a file, or to stdout."""
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(visible(text), "utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
