"""`placement-ac jobs`: one line per job: where it runs, or what it waits for."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from kubectl_placement.cli.controller_line import controller_problem
from kubectl_placement.cli.hub_options import HubReading, watch_hub
from kubectl_placement.cli.job_options import (
    LIST_KINDS,
    JobSource,
    list_options,
    places,
    read_jobs,
    require_jobs,
    unseen,
)
from kubectl_placement.cli.job_texts import NOTHING, age_of
from kubectl_placement.cli.output import emit, watch_printer
from kubectl_placement.story.lines import STATES, Wanted, job_lines, name_of
from kubectl_placement.story.model import JobLine
from placement_ac.cli.documents import Form, aligned, output
from placement_ac.cli.login_options import with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import enumeration
from placement_ac.kube.client import Client


@click.command("jobs", cls=ReadCommand, epilog="Example:  placement-ac jobs -n team-a --state waiting")
@list_options
@click.option("-q", "--queue", default="", help="Only those of this LocalQueue.")
@click.option("--cluster", default="", help="Only those on this cluster, or MultiKueueCluster.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([str(state) for state in STATES]),
    help="Only those in this state; may be repeated. finished: succeeded or failed.",
)
@output("wide", "json", "yaml", "name")
@click.option("-w", "--watch", is_flag=True, help="Print it again after each change, until Ctrl-C.")
def command(
    where: JobSource, queue: str, cluster: str, states: tuple[str, ...], form: Form, watch: bool
) -> None:
    """List jobs: kind and name, queue, state, cluster, since when, and what each waits for.

    Of the namespace of the context, of `-n`, or with -A of all. The right to list Workloads there is enough;
    what else cannot be seen is named.
    """
    if watch and where.dump_files:
        raise click.UsageError("use --watch without --from-dump: a dump never changes")
    wanted = Wanted(queue, cluster, states)
    if watch:
        with_client(where, lambda client: _watch(client, where, wanted, form))
        return
    reading, space = read_jobs(where)
    listed = ListedJobs(reading, space, wanted)
    listed.report()
    if listed.lines or form != "table":
        emit(form, listed.document, listed.table, lambda: map(name_of, listed.lines))
    if not listed.lines:
        click.echo(f"No jobs found{f' in namespace {space}' if space else ''}", err=True)


async def _watch(client: Client, where: JobSource, wanted: Wanted, form: Form) -> None:
    space, reported = where.space(client.login.namespace), False
    with watch_printer(form) as printer:
        within = places(space, LIST_KINDS)
        async with aclosing(watch_hub(client, where, LIST_KINDS, within=within)) as readings:
            async for reading in readings:
                listed = ListedJobs(reading, space, wanted)
                if not reported:
                    listed.report()
                reported = True
                printer.show(listed.document, listed.table, listed.by_workload, listed.name)


@dataclass(frozen=True)
class ListedJobs:
    """The jobs on one hub at one time."""

    reading: HubReading
    space: str
    wanted: Wanted

    @cached_property
    def lines(self) -> tuple[JobLine, ...]:
        return job_lines(self.reading.view, self.wanted, self.space)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        return (*filter(None, (controller_problem(self.reading.view),)), *unseen(self.reading))

    def report(self) -> None:
        """Report what cannot be seen. Raises ClickException if nothing can."""
        require_jobs(self.reading, self.space)
        for note in self.notes:
            click.echo(note, err=True)

    @property
    def document(self) -> dict[str, Any]:
        return {"jobs": self.lines, "notes": self.notes}

    @cached_property
    def by_workload(self) -> dict[str, JobLine]:
        return {f"{line.namespace}/{line.workload}": line for line in self.lines}

    def name(self, key: str) -> str:
        """Return the name to print of a key of `by_workload`."""
        return name_of(self.by_workload[key])

    def table(self, wide: bool) -> Iterator[RenderableType]:
        spaces = ("NAMESPACE",) if not self.space else ()
        more = ("WORKLOAD", "CLUSTERQUEUE", "MULTIKUEUECLUSTER", "TO DO") if wide else ()
        rows = [(*spaces, "JOB", "QUEUE", "STATE", "CLUSTER", "SINCE", "WAITS FOR", *more)]
        now = self.reading.view.now
        for line in self.lines:
            cells = [line.namespace] if spaces else []
            elsewhere = f"{enumeration(line.elsewhere, 'or')}, not {line.cluster}" if line.elsewhere else ""
            cells += [name_of(line), line.queue, line.state, elsewhere or line.cluster]
            cells += [age_of(line, now), line.waits_for]
            cells += [line.workload, line.cluster_queue, line.cluster_object, line.fix] if wide else []
            rows.append(tuple(one_line(cell or NOTHING) for cell in cells))
        head, _, body = aligned(rows).partition("\n")  # a table of rich takes ten times as long
        yield Text(head, "bold", no_wrap=True, overflow="ignore")
        if body:
            yield Text(body, no_wrap=True, overflow="ignore")
