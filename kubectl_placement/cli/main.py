"""The command `kubectl placement`: the commands that use the context of kubectl."""

from typing import Final

import click

from placement_ac.cli.main import CONTEXT, LazyGroup

PLUGIN: Final = "kubectl placement"
NOT_OF_KUBECTL: Final = ("run", "hub", "demo", "completion")
"""Commands that it does not have, because they do not use that context."""


@click.group(PLUGIN, cls=LazyGroup, without=NOT_OF_KUBECTL, context_settings=CONTEXT)
@click.version_option(package_name="kubectl-placement", prog_name=PLUGIN)
def plugin() -> None:
    """Inspect and repair the OCM Placements that select clusters for Kueue's MultiKueue."""
