"""`placement-ac timeline --record`: write a line for each change of a check."""

import asyncio
import signal
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final

import click

from kubectl_placement.cli.graph import require_checks
from kubectl_placement.cli.hub_options import HubReading, HubSource, watch_hub
from kubectl_placement.cli.missing_kinds import report_missing
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus
from kubectl_placement.timeline.recording import RecordedState, current_state, record_line
from placement_ac.cli.login_options import with_client
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client

PAUSE_SECONDS: Final = 0.02
"""Delay after a change, so that changes made together are one line."""


def record_to_file(where: HubSource, check: str | None, file: Path, lasts: timedelta | None) -> None:
    """Record into a new file until Ctrl-C or for `lasts`. Raises ClickException.

    Deletes the file if it is empty at the end.
    """
    try:
        out = file.open("x", encoding="utf-8")
    except FileExistsError:
        raise click.ClickException(f"name a new file: {file} exists") from None
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    try:
        with out:
            with_client(where, lambda client: _follow(client, where, check, out, lasts))
    finally:
        if not file.stat().st_size:
            file.unlink()


async def _follow(
    client: Client, where: HubSource, check: str | None, out: IO[str], lasts: timedelta | None
) -> None:
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(_record(client, where, check, out, lasts))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _record(
    client: Client, where: HubSource, check: str | None, out: IO[str], lasts: timedelta | None
) -> None:
    """Write a first line, a line for each change until cancelled or `lasts` later, and a last line.

    Raises ApiError if the hub stops answering.
    """
    name = ""
    last: RecordedState | None = None

    def write(now: RecordedState) -> None:
        nonlocal last
        out.write(record_line(name, last, now))
        out.flush()
        last = now

    try:
        async with aclosing(watch_hub(client, where, WATCHED_KINDS, PAUSE_SECONDS)) as readings:
            async for reading in readings:
                first = last is None
                if first:
                    name = chosen_check(reading, check)
                    report_missing(reading)
                    click.echo(f"recording {name} …", err=True)
                check_status, view = status_of_check(reading, name), reading.view
                now = current_state(view, check_status) if check_status else RecordedState(view.now)
                if last is None or replace(last, time=now.time) != now:
                    write(now)
                if first and lasts and (work := asyncio.current_task()):
                    asyncio.get_running_loop().call_later(lasts.total_seconds(), work.cancel)
    finally:
        if last:
            write(replace(last, time=datetime.now(UTC)))


def chosen_check(reading: HubReading, check: str | None) -> str:
    """Return the named check; without a name, the only one. Raises ClickException."""
    require_checks(reading, (check,) if check else ())
    if check:
        return check
    names = [check.meta.name for check in reading.view.our_checks]
    if len(names) != 1:
        raise click.UsageError(
            f"name a check: {', '.join(names) or 'there is none that placement-ac answers'}"
        )
    return names[0]


def status_of_check(reading: HubReading, check: str) -> CheckStatus | None:
    """Return the present status of a check; None if it is unknown."""
    return next(iter(check_statuses(reading.view, (check,))), None)
