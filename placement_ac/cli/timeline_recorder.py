"""`placement-ac timeline --record`: write a line for each change of a check."""

import asyncio
import signal
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final

import click

from placement_ac.cli.graph import require_checks
from placement_ac.cli.hub_options import HubReading, HubSource, report_missing, watch_hub, with_client
from placement_ac.core.api.constants import WATCHED_KINDS
from placement_ac.inspection.status.check_status import check_statuses
from placement_ac.inspection.status.model import CheckStatus
from placement_ac.inspection.timeline.recording import RecordedState, current_state, differs, record_line
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
    """Write a first line, a line for each change, and a last line at Ctrl-C or after `lasts`."""
    loop = asyncio.get_running_loop()
    recorder = TimelineRecorder(out, check or "", lasts)
    work = asyncio.ensure_future(recorder.run(client, where))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await work
    finally:
        recorder.finish()


class TimelineRecorder:
    """Records one check, for `lasts` after the first line."""

    def __init__(self, out: IO[str], check: str, lasts: timedelta | None) -> None:
        self._out = out
        self._check = check
        self._lasts = lasts
        self._last: RecordedState | None = None

    async def run(self, client: Client, where: HubSource) -> None:
        """Watch the hub until cancelled. Raises ApiError if it stops answering."""
        async with aclosing(watch_hub(client, where, WATCHED_KINDS, PAUSE_SECONDS)) as readings:
            async for seen in readings:
                first = self._last is None
                if first:
                    report_missing(seen.dump.missing)
                    self._check = chosen_check(seen, self._check or None)
                    click.echo(f"recording {self._check} …", err=True)
                branch = status_of_check(seen, self._check)
                now = current_state(seen.view, branch) if branch else RecordedState(seen.view.now)
                if differs(self._last, now):
                    self._write(now)
                if first and self._lasts and (work := asyncio.current_task()):
                    asyncio.get_running_loop().call_later(self._lasts.total_seconds(), work.cancel)

    def finish(self) -> None:
        """Write a last line with the end of the recording."""
        if self._last:
            self._write(replace(self._last, time=datetime.now(UTC)))

    def _write(self, now: RecordedState) -> None:
        self._out.write(record_line(self._check, self._last, now))
        self._out.flush()
        self._last = now


def chosen_check(seen: HubReading, check: str | None) -> str:
    """Return the named check; without a name, the only one. Raises ClickException."""
    require_checks(seen, (check,) if check else ())
    if check:
        return check
    names = [one.meta.name for one in seen.view.our_checks]
    if len(names) != 1:
        raise click.UsageError(
            f"name a check: {', '.join(names) or 'there is none that placement-ac answers'}"
        )
    return names[0]


def status_of_check(seen: HubReading, check: str) -> CheckStatus | None:
    """Return the present status of a check; None if it is unknown."""
    return next(iter(check_statuses(seen.view, (check,))), None)
