"""`placement-ac drain`: announce or cancel a cluster's maintenance, or ask whether it can be rebooted."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Final

import click
from rich.console import RenderableType

from kubectl_placement.cli.hub_names import cluster_references, named_cluster
from kubectl_placement.cli.hub_options import HubSource, live_hub_options, read_hub
from kubectl_placement.cli.missing_kinds import require_readable, require_served, require_settings
from kubectl_placement.cli.output import age_text, emit, plain_table, safe_text
from kubectl_placement.cli.worker_options import WorkerOptions, access_options, read_copies
from kubectl_placement.hub.requirements import READ_KINDS
from kubectl_placement.status.reboot import RebootAnswer, cluster_objects_of, reboot_answer
from placement_ac.cli.documents import Form, output
from placement_ac.cli.login_options import duration, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE, MANAGED_CLUSTER, WORKLOAD
from placement_ac.core.api.errors import NotFound
from placement_ac.core.api.fields import name_of
from placement_ac.core.api.text import did_you_mean
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.kube.client import Client

NEEDED: Final = (*READ_KINDS, WORKLOAD, MANAGED_CLUSTER)
"""The kinds without which the answer cannot be known."""
RESOURCE: Final = MANAGED_CLUSTER.at("v1")
_CLOCK: Final = re.compile(r"\d\d:\d\d(:\d\d)?")
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d[T ].+")


def time_by(text: str, now: datetime) -> datetime:
    """Return the time that `--by` names: the next one of that hour, or an RFC 3339 time; else local time.

    `now` has a zone. Raises BadParameter.
    """
    try:
        clock = time.fromisoformat(text) if _CLOCK.fullmatch(text) else None
    except ValueError:
        clock = None
    if clock is not None:
        at = now.replace(tzinfo=None)
        at = datetime.combine(at.date() + timedelta(days=clock <= at.time()), clock)
        return at.astimezone(UTC)  # of that day: the clocks may change before
    try:
        when = datetime.fromisoformat(text).astimezone(UTC) if _DATED.fullmatch(text) else None
    except (ValueError, OverflowError):
        when = None
    if when is None:
        raise click.BadParameter("use a time like 18:00 or 2026-11-26T18:00:00Z")
    if when <= now:
        raise click.BadParameter(f"use --in 0s for a maintenance that begins now: {text} has passed")
    return when


def _after(within: timedelta, now: datetime) -> datetime:
    try:
        return (now + within).astimezone(UTC)
    except OverflowError:
        raise click.BadParameter("use a shorter duration", param_hint="--in") from None


@click.command("drain", cls=ReadCommand, epilog="Example:  placement-ac drain cluster1 --by 18:00")
@click.argument("cluster", callback=named_cluster, shell_complete=cluster_references)
@click.option(
    "--by", metavar="TIME", help="Until when jobs may run there, as 18:00 (local time) or RFC 3339."
)
@click.option(
    "--in", "within", metavar="DURATION", type=duration, help="The same from now on, as 2h; 0s: now."
)
@click.option("--force", is_flag=True, help="Send back then the jobs that still run there.")
@click.option("--cancel", is_flag=True, help="End the maintenance: jobs are sent there again.")
@click.option(
    "--status", is_flag=True, help="Answer whether the cluster can be rebooted now; with -o: as JSON."
)
@live_hub_options
@access_options
@output("json", "yaml")
def command(
    cluster: str,
    by: str | None,
    within: timedelta | None,
    force: bool,
    cancel: bool,
    status: bool,
    where: HubSource,
    wanted: WorkerOptions,
    form: Form,
) -> None:
    """Announce the maintenance of a managed cluster, for all Placements: no job runs there from then on.

    Until then, no job is sent there that says it runs longer than is left (with placement-ac's dispatcher).
    Then none is sent there, and those that still run are waited for, or sent back with --force.

    --status answers "Can I reboot it now?": yes, or the jobs that are there and since when.

    Exit code: with --status 0 for yes, 1 for no, or if that cannot be known.
    """
    if [by is not None, within is not None, cancel, status].count(True) != 1:
        raise click.UsageError("use one of --by, --in, --cancel and --status")
    if force and (cancel or status):
        raise click.UsageError("use --force with --by or --in")
    if status:
        _show(cluster, where, wanted, form)
        return
    now = datetime.now().astimezone()
    window = None
    if not cancel:
        starts = time_by(by, now) if by is not None else _after(within or timedelta(), now)
        window = MaintenanceWindow(starts, force)
    with_client(where, lambda client: _annotate(client, cluster, window), announces=True)
    click.echo(f"{MANAGED_CLUSTER.kind.lower()}.{MANAGED_CLUSTER.group}/{cluster} {_done(window)}")


def _done(window: MaintenanceWindow | None) -> str:
    if window is None:
        return "no longer in maintenance"
    local = f"{window.starts.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    then = "sent back" if window.force else "waited for"
    return f"in maintenance from {local} on; jobs that still run there then are {then}"


async def _annotate(client: Client, cluster: str, window: MaintenanceWindow | None) -> None:
    value = str(window) if window else None
    try:
        await client.merge(RESOURCE, cluster, {"metadata": {"annotations": {ANNOTATION_MAINTENANCE: value}}})
    except NotFound:
        raise click.ClickException(f'{MANAGED_CLUSTER} "{cluster}" not found') from None


# -- can it be rebooted


def _show(cluster: str, where: HubSource, wanted: WorkerOptions, form: Form) -> None:
    answer = with_client(where, lambda client: _answer(client, cluster, where, wanted))
    emit(form, answer, lambda _: _lines(answer))
    if not answer.reboot:
        click.get_current_context().exit(1)


async def _answer(client: Client, cluster: str, where: HubSource, wanted: WorkerOptions) -> RebootAnswer:
    reading = await read_hub(client, where, WATCHED_KINDS)
    require_served(reading)
    require_readable(reading, NEEDED)
    require_settings(reading)
    view = reading.view
    objects = cluster_objects_of(view, cluster)
    known = [name_of(raw) for raw in view.dump.of(MANAGED_CLUSTER)]
    if cluster not in known and not objects:
        raise click.ClickException(f'{MANAGED_CLUSTER} "{cluster}" not found{did_you_mean(cluster, known)}')
    return reboot_answer(view, cluster, await read_copies(client, view, objects.values(), wanted))


def _lines(answer: RebootAnswer) -> Iterator[RenderableType]:
    if answer.reboot:
        yield safe_text(f"yes: no job is on {answer.cluster}, and none is sent there", "green")
        return
    number = f"{len(answer.jobs)} {'job is' if len(answer.jobs) == 1 else 'jobs are'} on {answer.cluster}"
    yield safe_text(
        "; ".join(("no: " + (number if answer.jobs else answer.why[0]), *answer.why[not answer.jobs :]))
    )
    if answer.jobs:
        table, now = plain_table("WORKLOAD", "STATE", "SINCE"), datetime.now(UTC)
        for job in answer.jobs:
            age = age_text((now - job.since).total_seconds()) if job.since else "-"
            table.add_row(safe_text(f"{job.namespace}/{job.name}"), job.state, age)
        yield table
