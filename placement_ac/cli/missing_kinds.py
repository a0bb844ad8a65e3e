"""Report the kinds that a hub does not serve, and those that the caller may not read."""

from collections.abc import Collection, Iterable
from typing import Final

import click

from placement_ac.cli.hub_options import HubReading
from placement_ac.cli.output import without_controls
from placement_ac.core.api.constants import ADMISSION_CHECK, Kind
from placement_ac.inspection.hub.requirements import (
    READ_KINDS,
    SERVED_KINDS,
    missing_rights_text,
    not_served_text,
    unreadable,
)

UNKNOWN: Final = "what depends on that is unknown"
SETTINGS: Final = "the settings of Deployment {} cannot be read"
NOT_COUNTED: Final = "Placements in other namespaces are not counted"


def require_served(found: HubReading, kinds: Iterable[Kind] = SERVED_KINDS) -> None:
    """Raise ClickException if the hub does not serve all `kinds`."""
    if problem := not_served_text(found.dump, kinds):
        raise click.ClickException(problem)


def require_readable(found: HubReading, kinds: Collection[Kind] = (ADMISSION_CHECK,)) -> None:
    """Raise ClickException if the caller may not read one of the `kinds`: there is nothing to show."""
    if unreadable(found.dump, kinds):
        raise click.ClickException(missing_rights_text(found.missing_rights))


def missing_line(found: HubReading) -> str:
    """Return the missing rights and their effect, in one line; "" if none is missing."""
    if problem := missing_rights_text(found.missing_rights):
        return f"missing rights: {problem}; {UNKNOWN if found.view.missing_rights else NOT_COUNTED}"
    return ""


def report_missing(found: HubReading) -> None:
    """Report on stderr missing rights with their effect, and settings that cannot be read."""
    if found.controller.problem:
        why = without_controls(found.controller.problem)
        click.echo(f"{SETTINGS.format(found.controller.deployment)}: {why}; the defaults are used", err=True)
    if line := missing_line(found):
        click.echo(line, err=True)


def exit_if_unreadable(found: HubReading, kinds: Collection[Kind] = READ_KINDS) -> None:
    """End the command with exit code 1 if the caller may not read one of the `kinds`: it was reported."""
    if unreadable(found.dump, kinds):
        click.get_current_context().exit(1)
