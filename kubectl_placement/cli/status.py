"""`placement-ac status`: each check with its Placement, its clusters, its queues and its jobs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import click
from rich.console import RenderableType

from kubectl_placement.cli.controller_line import controller_line
from kubectl_placement.cli.hub_names import check_references, named_checks
from kubectl_placement.cli.hub_options import (
    STATUS_KINDS,
    HubReading,
    HubSource,
    hub_options,
    read_once,
    watch_hub,
)
from kubectl_placement.cli.missing_kinds import exit_if_unreadable, report_missing, require_checks_known
from kubectl_placement.cli.output import emit, safe_text, watch_printer
from kubectl_placement.cli.status_tree import tree_of
from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import build_graph
from kubectl_placement.hub.controller_state import ControllerState, controller_state
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.hub_quota import quota_warnings
from kubectl_placement.status.model import CheckStatus, QuotaWarning
from placement_ac.cli.documents import Form, output
from placement_ac.cli.login_options import with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import ADMISSION_CHECK, EVENT, LEASE
from placement_ac.core.api.text import did_you_mean
from placement_ac.kube.client import Client

KINDS: Final = (*STATUS_KINDS, EVENT, LEASE)
MERMAID_EDGES: Final = 500
"""GitHub's value of Mermaid's `maxEdges`."""
MERMAID_LETTERS: Final = 50_000
"""GitHub's value of Mermaid's `maxTextSize`."""
_SINGULAR: Final = f"{ADMISSION_CHECK.kind.lower()}.{ADMISSION_CHECK.group}"


@click.command("status", cls=ReadCommand, epilog="Example:  placement-ac status placement-demo2")
@click.argument(
    "check",
    nargs=-1,
    callback=named_checks,
    shell_complete=check_references,
)
@hub_options
@output("wide", "json", "yaml", "name", "mermaid")
@click.option("-w", "--watch", is_flag=True, help="Print it again after each change, until Ctrl-C.")
def command(where: HubSource, check: tuple[str, ...], form: Form, watch: bool) -> None:
    """Show checks with their Placements, clusters, queues and jobs.

    For each CHECK, or for all AdmissionChecks that placement-ac answers: its clusters in order, the state
    of each (listed, draining, selected, waiting, beyond, unusable) and its reason, its credentials, whether
    Kueue is connected to it, and how many Workloads run and wait there. The first line says which controller
    leads. Also the Workloads that the gate
    holds and why, and how often the list changed in the last hour. With -o mermaid: a graph for Markdown.
    """
    if watch and form == "mermaid":
        raise click.UsageError("use --watch without -o mermaid")
    if watch and where.dump_files:
        raise click.UsageError("use --watch without --from-dump: a dump never changes")
    if watch:
        with_client(where, lambda client: _watch(client, where, check, form))
        return
    found = read_once(where, KINDS)
    shown = _SelectedChecks(found.view, check)
    _report_unreadable(found)
    if form == "mermaid":
        click.echo(_mermaid(shown.statuses), nl=False)
    elif shown.statuses or not check:
        emit(form, shown.document, shown.trees, lambda: shown.by_name)
    shown.report_not_found()
    exit_if_unreadable(found)


def _mermaid(statuses: Sequence[CheckStatus]) -> str:
    graph = build_graph(statuses)
    text = mermaid(graph)
    if len(graph.edges) > MERMAID_EDGES or len(text) > MERMAID_LETTERS:
        click.echo("name some checks: GitHub does not draw graphs of this size", err=True)
    return text


def _report_unreadable(found: HubReading) -> None:
    """Report missing rights. Raises ClickException if nothing can be shown."""
    require_checks_known(found)
    if found.watched:
        shown, watched = (
            " and ".join(one) for one in (found.view.settings.placement_namespace, found.watched)
        )
        click.echo(
            f"shown are the Placements in namespace {shown}; the controller watches {watched}, and its "
            "conditions are about the Placements there",
            err=True,
        )
    report_missing(found)


async def _watch(client: Client, where: HubSource, check: Collection[str], form: Form) -> None:
    reported = False
    with watch_printer(form) as printer:
        async with aclosing(watch_hub(client, where, KINDS)) as readings:
            async for reading in readings:
                shown = _SelectedChecks(reading.view, check)
                if not reported:
                    _report_unreadable(reading)
                    shown.report_not_found()
                reported = True
                printer.show(shown.document_without_renewal, shown.trees, shown.by_name)


@dataclass(frozen=True)
class _SelectedChecks:
    """The named checks on one hub at one time; without names, all of them."""

    view: HubView
    names: Collection[str]

    @cached_property
    def statuses(self) -> tuple[CheckStatus, ...]:
        return check_statuses(self.view, self.names)

    @cached_property
    def quota(self) -> tuple[QuotaWarning, ...]:
        """Where the hub's quota does not suit that on its workers, of the queues that are shown."""
        shown = {queue.name for check_status in self.statuses for queue in check_status.queues}
        whole = check_statuses(self.view) if self.names and self.view.sets_up else self.statuses
        return tuple(one for one in quota_warnings(self.view, whole) if shown.intersection(one.queues))

    @cached_property
    def controller(self) -> ControllerState:
        return controller_state(self.view)

    @property
    def document(self) -> dict[str, object]:
        return {
            "controller": self.controller,
            "checks": self.statuses,
            "quota": self.quota,
            "missingRights": list(map(str, self.view.missing_rights)),
        }

    @property
    def document_without_renewal(self) -> dict[str, object]:
        """The document for --watch: a renewal of the Lease is no change."""
        return self.document | {"controller": replace(self.controller, renewed=None)}

    def trees(self, wide: bool) -> Iterator[RenderableType]:
        if self.view.dump.knows(LEASE) or self.view.dump.live:
            yield controller_line(self.controller, self.view.now)
        for check_status in self.statuses:
            yield tree_of(check_status, self.view.now, wide=wide)
        for warning in self.quota:
            yield safe_text(f"{warning.message}; to set it: {warning.fix}", "yellow")

    @property
    def by_name(self) -> dict[str, CheckStatus]:
        return {f"{_SINGULAR}/{check_status.name}": check_status for check_status in self.statuses}

    def report_not_found(self) -> None:
        """Report that there are no checks. Raises ClickException for named checks that are missing."""
        if not self.statuses and not self.names:
            click.echo("No checks found", err=True)
        shown = {check_status.name for check_status in self.statuses}
        others = {
            check.meta.name: f"is answered by {check.controller}, not by placement-ac"
            for check in self.view.checks
        }
        ours = [check.meta.name for check in self.view.our_checks]
        problems = [
            f'{ADMISSION_CHECK} "{name}" {others.get(name) or "not found" + did_you_mean(name, ours)}'
            for name in dict.fromkeys(self.names)
            if name not in shown
        ]
        if problems:
            raise click.ClickException("\nError: ".join(problems))
