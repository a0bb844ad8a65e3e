"""Report the kinds that a hub does not serve, and those that the caller may not read."""

from collections.abc import Collection, Iterable
from typing import Final

import click

from kubectl_placement.cli.hub_options import HubReading
from kubectl_placement.hub.requirements import (
    READ_KINDS,
    SERVED_KINDS,
    missing_rights_text,
    not_served_text,
    unreadable,
)
from placement_ac.core.api.constants import ADMISSION_CHECK, Kind
from placement_ac.core.api.printable import one_line

UNKNOWN: Final = "what depends on that is unknown"


def require_served(reading: HubReading, kinds: Iterable[Kind] = SERVED_KINDS) -> None:
    """Raise ClickException if the hub does not serve all `kinds`."""
    if problem := not_served_text(reading.dump, kinds):
        raise click.ClickException(problem)


def require_settings(reading: HubReading) -> None:
    """Raise ClickException if the controller's settings are unknown: names and limits depend on them.

    Without the right to the checks, there is a reason that comes first.
    """
    if reading.controller.problem and reading.dump.live and not unreadable(reading.dump, (ADMISSION_CHECK,)):
        raise click.ClickException(
            "name the controller's settings with --settings FILE (an empty file means the defaults), or get "
            "the right to read them: the controller's settings are unknown: "
            f"{one_line(reading.controller.problem)}"
        )


def require_readable(reading: HubReading, kinds: Collection[Kind] = (ADMISSION_CHECK,)) -> None:
    """Raise ClickException if the caller may not read one of the `kinds`: there is nothing to show."""
    if unreadable(reading.dump, kinds):
        raise click.ClickException(missing_rights_text(reading.missing_rights))


def require_checks_known(reading: HubReading) -> None:
    """Raise ClickException if the hub lacks Kueue or OCM, or if checks or settings cannot be read."""
    require_served(reading)
    require_readable(reading)
    require_settings(reading)


def missing_line(reading: HubReading) -> str:
    """Return the missing rights and their effect, in one line; "" if none is missing."""
    if problem := missing_rights_text(reading.missing_rights):
        elsewhere = "Placements in other namespaces are not counted"
        return f"missing rights: {problem}; {UNKNOWN if reading.view.missing_rights else elsewhere}"
    return ""


def report_missing(reading: HubReading) -> None:
    """Report on stderr missing rights with their effect, and settings that a dump does not name."""
    if reading.controller.problem:
        why = one_line(reading.controller.problem)
        click.echo(f"the defaults are used: the controller's settings are unknown: {why}", err=True)
    if line := missing_line(reading):
        click.echo(line, err=True)


def exit_if_unreadable(reading: HubReading, kinds: Collection[Kind] = READ_KINDS) -> None:
    """End the command with exit code 1 if the caller may not read one of the `kinds`: it was reported."""
    if unreadable(reading.dump, kinds):
        click.get_current_context().exit(1)
