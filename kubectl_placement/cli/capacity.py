"""`placement-ac capacity`: the quota of the workers, how much is used, waited for and free."""

import asyncio
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Literal

import click
from rich.console import RenderableType

from kubectl_placement.capacity.amounts import amount_text, number_of
from kubectl_placement.capacity.views import (
    By,
    Row,
    old_clusters,
    rows_of,
    team_rows,
    team_totals,
    total_rows,
    unknown_clusters,
)
from kubectl_placement.cli.output import age_text, emit, plain_table, safe_text, watch_printer
from kubectl_placement.readers.capacity_reader import NotPublished, read_published, read_workloads
from placement_ac.cli.documents import Form, output, plain
from placement_ac.cli.login_options import FILE, LOGIN, HubLogin, duration, option_group, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.config.load import load
from placement_ac.config.settings import Settings
from placement_ac.core.api.text import joined
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.kube.client import Client

AGAIN_SECONDS: Final = 5.0
"""How often --watch reads again; of the workers themselves, three times as seldom."""
VIEWS: Final = ("cluster", "placement", "queue", "team")
COLUMNS: Final = ("flavor", "resource", "nominal", "used", "waiting", "borrowable", "free", "largest")
TEAM_COLUMNS: Final = ("resource", "used", "waiting")
NAMESPACE: Final = str(Settings.model_fields["kueue_namespace"].default)
"""Where the ConfigMaps are by default."""
AGAIN: Final = "ask the workers with --workers"
WAITING_UNKNOWN: Final = {
    "controller": "WAITING is not known, and jobs that came since ASKED do not count: without "
    "--dispatcher, the controller does not read the requests of jobs",
    "workers": "WAITING is not known: you may not list Workloads in all namespaces",
}
"""Source → why it is not known for what jobs wait."""


@dataclass(frozen=True, slots=True)
class CapacitySource(HubLogin):
    """Where to read: a hub, and with `workers` its workers."""

    kueue_namespace: str | None = None
    controller_namespace: str = ""
    workers: bool = False
    timeout: timedelta = timedelta(seconds=5)
    access_providers: Path | None = None

    @property
    def namespaces(self) -> tuple[HubLogin, str | None, str]:
        """The hub, and the namespaces of Kueue and of the controller as far as they are given."""
        return self, self.kueue_namespace, self.controller_namespace


_options = option_group(
    "where",
    CapacitySource,
    *LOGIN,
    click.Option(["--kueue-namespace"], help="The namespace of Kueue.  [default: the controller's setting]"),
    click.Option(
        ["--controller-namespace"], default="", help="The namespace of the controller.  [default: any]"
    ),
    click.Option(
        ["--workers"],
        is_flag=True,
        help="Ask the workers now, by your right to their Secrets, not for the controller's last answers.",
    ),
    click.Option(
        ["--timeout"],
        default="5s",
        show_default=True,
        type=duration,
        help="With --workers: the timeout of each worker.",
    ),
    click.Option(
        ["--access-providers"],
        type=FILE,
        help="With --workers: the access providers of ClusterProfiles, whose plugins are run here.",
    ),
)


@dataclass(frozen=True, slots=True)
class Question:
    """The view that the caller wants."""

    by: By
    namespace: str = ""
    """Of the Workloads of teams; "": that of the context."""
    all_namespaces: bool = False
    gpus_only: bool = False

    def space(self, of_context: str) -> str:
        """Return the namespace of the Workloads; "": all."""
        return "" if self.all_namespaces else self.namespace or of_context


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a view, and what is to be said about them."""

    by: By
    source: Literal["controller", "workers", "hub"]
    rows: tuple[Row, ...]
    totals: tuple[Row, ...]
    report: CapacityReport
    now: datetime
    space: str = ""
    """The namespace of the Workloads of teams; "": all."""
    hub_problem: str = ""
    """Why the hub's own queues are not shown."""

    @property
    def total_name(self) -> str:
        """Return `TOTAL`, of how many clusters if some are not known: their numbers are not in the sum."""
        known = sum(cluster.known for cluster in self.report.clusters)
        every = len(self.report.clusters)
        return "TOTAL" if known == every else f"TOTAL ({known} of {every} clusters)"


@click.command("capacity", cls=ReadCommand, epilog="Example:  placement-ac capacity --by placement")
@_options
@click.option("--by", type=click.Choice(VIEWS), default="cluster", show_default=True, help="The rows.")
@click.option(
    "-n",
    "--namespace",
    default="",
    help="With --by team: the Workloads of this namespace.  [default: that of the context]",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="With --by team: those of all namespaces.")
@click.option("--gpus", "gpus_only", is_flag=True, help="Only GPUs (the setting score-gpus names them).")
@output("wide", "json", "yaml", "csv")
@click.option("-w", "--watch", is_flag=True, help="Print it again after each change, until Ctrl-C.")
def command(
    where: CapacitySource,
    by: By,
    namespace: str,
    all_namespaces: bool,
    gpus_only: bool,
    form: Form,
    watch: bool,
) -> None:
    """Show how much quota the clusters have, use and have left.

    For each cluster, flavor and resource, the GPUs first: the nominal quota of its ClusterQueues, the part
    that jobs use, the part that jobs wait for which are nominated there, the part that may be borrowed, the
    part that is free, and the largest Pod set that fits now. The numbers are the controller's last answers;
    with --workers, they are read from the workers now. With --by team: what Workloads use and wait for, by
    namespace: of the namespace of the context, of -n, or with -A of all.
    """
    load({"kueue_namespace": where.kueue_namespace}, {})  # raises BadSettings, as the controller does
    if (namespace or all_namespaces) and by != "team":
        raise click.UsageError("use -n and -A only with --by team")
    if namespace and all_namespaces:
        raise click.UsageError("use -n or -A, not both")
    if where.workers and by == "team":
        raise click.UsageError("leave out --workers with --by team: Workloads are read from the hub")
    question = Question(by, namespace, all_namespaces, gpus_only)
    if watch:
        with_client(where, lambda client: _watch(client, where, question, form))
        return
    answer = with_client(where, lambda client: _read(client, where, question))
    _print(answer, form)
    _report_problems(answer)


async def _read(client: Client, where: CapacitySource, question: Question) -> Answer:
    if question.by == "team":
        return await _teams(client, where, question)
    if where.workers:
        from kubectl_placement.cli.capacity_hub import ask_workers  # noqa: PLC0415  # see there

        report = await ask_workers(client, *where.namespaces, where.timeout, where.access_providers)
    else:
        report = await _published(client, where, queues=question.by == "queue")
    rows, totals, hub_problem = rows_of(report, question.by), total_rows(report), ""
    if question.by == "queue":
        from kubectl_placement.cli.capacity_hub import queues_of_hub  # noqa: PLC0415  # see there

        on_hub, hub_problem = await queues_of_hub(client, *where.namespaces, report.gpus)
        rows = (*on_hub, *rows)
    if question.gpus_only:
        rows, totals = _gpus(rows, report.gpus), _gpus(totals, report.gpus)
    source: Literal["controller", "workers"] = "workers" if where.workers else "controller"
    return Answer(question.by, source, rows, totals, report, datetime.now(UTC), hub_problem=hub_problem)


async def _published(client: Client, where: CapacitySource, *, queues: bool) -> CapacityReport:
    """Return the controller's answers: where they are by default, else where its settings say."""
    namespace = where.kueue_namespace or NAMESPACE
    try:
        return await read_published(client, namespace, queues=queues)
    except NotPublished:
        from kubectl_placement.cli.capacity_hub import lease_namespace  # noqa: PLC0415  # see there

        other = await lease_namespace(client, *where.namespaces)
        if other == namespace:
            raise
        return await read_published(client, other, queues=queues)


async def _teams(client: Client, where: CapacitySource, question: Question) -> Answer:
    gpus: tuple[str, ...] = Settings.model_fields["score_gpus"].default
    with suppress(NotPublished):
        gpus = (await read_published(client, where.kueue_namespace or NAMESPACE, queues=False)).gpus
    space = question.space(client.login.namespace)
    rows = team_rows(await read_workloads(client, space), gpus)
    rows = _gpus(rows, gpus) if question.gpus_only else rows
    return Answer("team", "hub", rows, team_totals(rows, gpus), CapacityReport(), datetime.now(UTC), space)


def _gpus(rows: tuple[Row, ...], gpus: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of GPUs, and those of clusters that are not known."""
    return tuple(row for row in rows if row.resource in gpus or not row.resource)


async def _watch(client: Client, where: CapacitySource, question: Question, form: Form) -> None:
    reported = False
    with watch_printer(form) as printer:
        while True:
            answer = await _read(client, where, question)
            if not reported:
                _report_problems(answer)
            reported = True
            if form == "csv":
                _print(answer, form)
            else:
                printer.show(capacity_document(answer), partial(_table, answer), {})
            await asyncio.sleep(AGAIN_SECONDS * (3 if where.workers else 1))


# -- output


def _print(answer: Answer, form: Form) -> None:
    if form == "csv":
        click.echo(_csv(answer), nl=False)
    else:
        emit(form, capacity_document(answer), partial(_table, answer))


def _columns(answer: Answer) -> tuple[str, ...]:
    return TEAM_COLUMNS if answer.by == "team" else COLUMNS


def capacity_document(answer: Answer) -> dict[str, object]:
    """Return the document of `-o json`."""
    clusters = [
        {"name": one.name, "placements": one.placements, "readAt": one.read_at, "problem": one.problem}
        for one in answer.report.clusters
    ]
    return {
        "by": answer.by,
        "source": answer.source,
        "rows": [_named(answer, row) | _values(answer, row) for row in answer.rows],
        "totals": [_values(answer, row) for row in answer.totals],
        "clusters": clusters,
        "countedAt": answer.report.counted_at,
        "note": answer.report.note,
    }


def _named(answer: Answer, row: Row) -> dict[str, object]:
    named: dict[str, object] = {answer.by: row.name}
    return named | {"on": _on(row)} if answer.by == "queue" else named


def _on(row: Row) -> str:
    return "hub" if row.on_hub else "workers"


def _values(answer: Answer, row: Row) -> dict[str, object]:
    values = {name: getattr(row, name) for name in _columns(answer)}
    if not row.flavor:
        values.pop("flavor", None)
    return {name: number_of(value) if isinstance(value, int) else value for name, value in values.items()}


def _csv(answer: Answer) -> str:
    text = io.StringIO()
    columns = _columns(answer)
    writer = csv.writer(text, lineterminator="\n")
    has_on = answer.by == "queue"
    writer.writerow((answer.by, *(("on",) if has_on else ()), *columns, "readAt"))
    for row in answer.rows:
        values = (getattr(row, name) for name in columns)
        cells = (number_of(value) if isinstance(value, int) else value for value in values)
        writer.writerow(
            _harmless(cell)
            for cell in (row.name, *((_on(row),) if has_on else ()), *cells, plain(row.read_at) or "")
        )
    return text.getvalue()


def _harmless(cell: object) -> object:
    """Return a cell that a spreadsheet does not take for a formula: names are a worker's words."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell


def _table(answer: Answer, wide: bool) -> Iterator[RenderableType]:
    columns = _columns(answer)
    has_age, has_on = answer.source == "controller", answer.by == "queue"
    names = (answer.by.upper(), *(("ON",) if has_on else ()), *map(str.upper, columns))
    table = plain_table(*names, *(("AGE", "ASKED") if has_age else ()))
    for number in range(names.index("RESOURCE") + 1, len(names)):
        table.columns[number].justify = "right"
    for row in (*answer.rows, *answer.totals):
        name = safe_text(row.name) if row.name else safe_text(answer.total_name, "bold")
        on = (_on(row) if row.name else "",) if has_on else ()
        ages = (_age(answer, row.read_at), _age(answer, row.asked_at)) if has_age else ()
        table.add_row(name, *on, *_cells(row, columns), *ages)
    yield table
    if wide:
        yield from _clusters_of_placements(answer)


def _age(answer: Answer, at: datetime | None) -> str:
    return age_text((answer.now - at).total_seconds()) if at else ""


def _cells(row: Row, columns: Sequence[str]) -> Iterator[RenderableType]:
    for name in columns:
        value = getattr(row, name)
        if name == "borrowable" and row.lends:
            yield safe_text("cohort")
        else:
            text = amount_text(value, row.resource) if isinstance(value, int | None) else value
            yield safe_text(text)


def _clusters_of_placements(answer: Answer) -> Iterator[RenderableType]:
    for cluster in answer.report.clusters:
        if cluster.placements:
            yield safe_text(f"{cluster.name}: Placements {joined(cluster.placements)}")


def _report_problems(answer: Answer) -> None:
    """Report on stderr the clusters that are not known, old answers, and what is left out."""
    for why, names in unknown_clusters(answer.report).items():
        click.echo(safe_text(f"not known: {joined(names)}: {why}").plain, err=True)
    if answer.source == "controller" and (old := old_clusters(answer.report, answer.now)):
        oldest = min(one.read_at for one in old if one.read_at)
        age, clusters = age_text((answer.now - oldest).total_seconds()), joined([one.name for one in old])
        click.echo(safe_text(f"{AGAIN}: the answers of {clusters} are old ({age})").plain, err=True)
    if answer.by != "team" and not answer.report.clusters:
        click.echo("No clusters found: no MultiKueueConfig of placement-ac lists any", err=True)
    if answer.by == "team" and not answer.rows:
        place = f" in namespace {answer.space}" if answer.space else ""
        click.echo(f"No Workloads with quota{place}", err=True)
    if answer.hub_problem:
        click.echo(f"the hub's own ClusterQueues are not shown: {answer.hub_problem}", err=True)
    if any(row.waiting is None for row in answer.totals):
        click.echo(WAITING_UNKNOWN[answer.source], err=True)
    if answer.report.note:
        click.echo(safe_text(f"{AGAIN}: {answer.report.note}").plain, err=True)
