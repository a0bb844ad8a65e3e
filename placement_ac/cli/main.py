"""
The command `placement-ac`, and `kubectl placement` with its commands for a hub.

Exit codes: 0 success, 1 failure, 2 wrong arguments; `plan` and `doctor` have more.
"""

from collections.abc import Collection
from importlib import import_module
from typing import Any, Final

import click

from placement_ac.cli.terminal import controls_shown
from placement_ac.core.api.text import did_you_mean

COMMANDS: Final = {
    "run": "Run the controller.",
    "hub": "Start the embedded hub alone.",
    "demo": "Show the four stories on embedded hubs.",
    "adopt": "Take over the objects of the Go kueue-addon.",
    "cleanup": "Remove the objects that the controller has created.",
    "status": "Show checks with their Placements, clusters, queues and jobs.",
    "explain": "Explain why a cluster is selected or not, step by step.",
    "plan": "Preview what manifests would change, before they are applied.",
    "doctor": "Check the setup of this hub, and show how to fix it.",
    "dump": "Write the objects that these commands read, without values that may be secret.",
    "graph": "Draw checks with their Placements, clusters, queues and Workloads.",
    "timeline": "Show when each cluster of a check was listed, and its score.",
    "ui": "Show the hub on a page in the browser that follows each change.",
    "version": "Print the versions of placement-ac, the hub, Kueue and OCM.",
    "completion": "Print the shell's completion script for placement-ac.",
}
NOT_OF_KUBECTL: Final = ("run", "hub", "demo", "completion")
"""Commands that `kubectl placement` does not have, because they do not use the context of kubectl."""
NEEDED_BY_THE_DEMO: Final = ("trustme",)
"""Packages of the extra `demo`: for the embedded hub, which `demo` and `hub` start."""
PLUGIN: Final = "kubectl placement"


class LazyGroup(click.Group):
    """Imports a command only when it is called, so that it starts faster."""

    def __init__(self, *args: Any, without: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = [name for name in COMMANDS if name not in without]

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with controls_shown():
            return super().main(*args, **kwargs)

    def list_commands(self, _: click.Context) -> list[str]:
        return self._names

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = (
                f"{error.message} Options follow the command: {ctx.command_path} COMMAND {error.option_name}"
            )
            raise click.UsageError(hint, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            message = error.message.removesuffix(".") + did_you_mean(args[0], self._names)
            raise click.UsageError(message, ctx) from None

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in self._names:
            return None
        try:
            command: click.Command = import_module(f"placement_ac.cli.{name}").command
        except ModuleNotFoundError as missing:
            if missing.name not in NEEDED_BY_THE_DEMO:
                raise
            raise click.ClickException(
                f"install placement-ac[demo]: {name} needs the package {missing.name}"
            ) from None
        return command


_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}
_PACKAGE: Final = "placement-ac"
"""The name of the package, whose version is read only for --version."""


@click.group(cls=LazyGroup, context_settings=_CONTEXT)
@click.version_option(package_name=_PACKAGE, prog_name=_PACKAGE)
def main() -> None:
    """Turn the clusters that an OCM Placement selects into the worker clusters of Kueue's MultiKueue."""


@click.group(PLUGIN, cls=LazyGroup, without=NOT_OF_KUBECTL, context_settings=_CONTEXT)
@click.version_option(package_name=_PACKAGE, prog_name=PLUGIN)
def plugin() -> None:
    """Inspect and repair the OCM Placements that select clusters for Kueue's MultiKueue."""
