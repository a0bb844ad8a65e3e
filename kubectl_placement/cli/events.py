"""`kubectl placement events`: the events of a job on the hub and on its cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import click
from rich.console import RenderableType

from kubectl_placement.access.job_events import (
    HUB,
    JobEvent,
    events_on,
    in_order,
    objects_on_cluster,
    objects_on_hub,
)
from kubectl_placement.access.no_access import NoAccess
from kubectl_placement.access.pods import NotOurs
from kubectl_placement.access.target import FORBIDDEN
from kubectl_placement.cli.job_access import (
    FoundJob,
    JobAccess,
    JobCommand,
    cluster_of,
    job_argument,
    job_on,
    job_options,
    note,
    with_job,
)
from kubectl_placement.cli.output import age_text, emit, plain_table, safe_text
from kubectl_placement.hub.dump import MissingRight, Object
from placement_ac.cli.documents import Form, output
from placement_ac.core.api.constants import EVENT
from placement_ac.core.api.errors import Refused
from placement_ac.kube.client import Client

UNKNOWN: Final = "<unknown>"


@click.command("events", cls=JobCommand, epilog="Example:  placement-ac events train")
@job_argument()
@click.option("--types", default="", metavar="TYPE,…", help="Only Normal, or only Warning.  [default: all]")
@job_options
@output("json", "yaml")
def command(job: tuple[str, ...], types: str, where: JobAccess, form: Form) -> None:
    """Show the events of a job: its own and its Workload's on the hub, its copy's and Pods' on its cluster.

    A part that you may not read is left out, and a line on stderr says so.
    """
    wanted = {name.strip().capitalize() for name in types.split(",") if name.strip()}
    if strange := wanted - {"Normal", "Warning"}:
        raise click.UsageError(f"use --types Normal or Warning: there is no {', '.join(sorted(strange))}")

    async def read(found: FoundJob) -> tuple[str, list[JobEvent]]:
        events = [*await _of_hub(found), *await _of_cluster(found, where)]
        return found.place.job.namespace, [event for event in events if not wanted or event.type in wanted]

    namespace, found = with_job(where, job, read)
    events = in_order(found)
    if not events and form == "table":
        note(f"No events found in {namespace} namespace.")
        return
    emit(form, {"events": events}, lambda _: _table(events))


async def _of_hub(found: FoundJob) -> list[JobEvent]:
    events = await _events(found.client, found.place.job.namespace, "on the hub")
    return events_on(HUB, events, objects_on_hub(found.workload))


async def _of_cluster(found: FoundJob, where: JobAccess) -> list[JobEvent]:
    """Return the events of the cluster that the job is on; none if it is on none."""
    place = found.place
    if not place.cluster:
        return []
    try:
        async with cluster_of(found, where) as cluster:
            there = await job_on(cluster, found)
            events = await _events(cluster.client, place.job.namespace, f"on cluster {cluster.name}")
            return events_on(cluster.name, events, objects_on_cluster(place, there.copy, there.pods))
    except (NoAccess, NotOurs) as error:
        for line in str(error).splitlines():
            note(line)
        return []


async def _events(client: Client, namespace: str, place: str) -> tuple[Object, ...]:
    try:
        return (await client.list(EVENT.at("v1"), namespace)).items
    except Refused as error:
        if error.status != FORBIDDEN:
            raise
        right = MissingRight("list", EVENT, namespace)
        note(f"missing right {place}: {right} (check: {right.check_command}); its events are left out")
        return ()


def _table(events: list[JobEvent]) -> Iterator[RenderableType]:
    now = datetime.now(UTC)
    table = plain_table("LAST SEEN", "TYPE", "REASON", "OBJECT", "CLUSTER", "MESSAGE")
    for event in events:
        seen = age_text((now - event.last_seen).total_seconds()) if event.last_seen else UNKNOWN
        often = f"{seen} (x{event.count})" if event.count > 1 else seen
        cells = (often, event.type, event.reason, event.object, event.cluster, event.message.strip())
        table.add_row(*map(safe_text, cells))
    yield table
