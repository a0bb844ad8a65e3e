"""
The command `placement-ac`: its commands are entry points of the group `placement_ac.commands`.

Exit codes: 0 success, 1 failure, 2 wrong arguments; `plan` and `doctor` have more.
"""

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import click

from placement_ac.cli.kubectl_words import as_click_reads, with_command_first
from placement_ac.cli.terminal import controls_shown
from placement_ac.core.api.text import did_you_mean

ENTRY_POINTS: Final = "placement_ac.commands"
"""The group; an entry point names a click command."""
COMMANDS: Final = {
    "run": "Run the controller.",
    "check": "Check settings, kinds, rights and the running controller, as helm test does.",
    "hub": "Start the embedded hub alone.",
    "demo": "Show the four stories on embedded hubs.",
    "adopt": "Take over the objects of the Go kueue-addon.",
    "cleanup": "Remove the objects that the controller has created.",
    "status": "Show checks with their Placements, clusters, queues and jobs.",
    "capacity": "Show how much quota the clusters have, use and have left.",
    "top": "Show the same as capacity.",
    "job": "Tell the story of a job: where it is, and what it waits for.",
    "jobs": "List jobs: where each runs, or what it waits for.",
    "explain": "Explain why a cluster is selected or not, step by step.",
    "plan": "Preview what manifests would change, before they are applied.",
    "doctor": "Check the setup of this hub, and show how to fix it.",
    "drain": "Announce the maintenance of a cluster, or ask whether it can be rebooted.",
    "dump": "Write the objects that these commands read, without values that may be secret.",
    "logs": "Print the logs of a job, from the cluster that it runs on.",
    "access": "Print the kubectl line for the cluster that a job runs on.",
    "exec": "Run a command in a Pod of a job.",
    "port-forward": "Forward ports to a Pod of a job.",
    "ui": "Show the hub on a page in the browser that follows each change.",
    "version": "Print the versions of placement-ac, the hub, Kueue and OCM.",
    "completion": "Print the shell's completion script for placement-ac.",
}
"""The commands of the three packages, so that a help imports none of them."""
PACKAGES: Final = {
    **dict.fromkeys(("hub", "demo"), "placement-lab"),
    **dict.fromkeys(
        (
            *(
                "status",
                "job",
                "jobs",
                "capacity",
                "top",
                "explain",
                "plan",
                "doctor",
                "drain",
                "dump",
            ),
            *("logs", "access", "exec", "port-forward", "ui"),
        ),
        "kubectl-placement",
    ),
}
"""The distributions of the commands that are not in this one."""


class LazyGroup(click.Group):
    """Imports a command only when it is called, so that it starts faster."""

    def __init__(self, *args: Any, without: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._without = without
        self._entry_points: dict[str, EntryPoint] | None = None

    @property
    def _found(self) -> dict[str, EntryPoint]:
        """The installed commands by name: ours in the order of `COMMANDS`, then others."""
        if self._entry_points is None:
            known = {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINTS)}
            names = [*(name for name in COMMANDS if name in known), *sorted(known.keys() - COMMANDS.keys())]
            self._entry_points = {name: known[name] for name in names if name not in self._without}
        return self._entry_points

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with controls_shown():
            return super().main(*args, **kwargs)

    def list_commands(self, _: click.Context) -> list[str]:
        return [*self._found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._short_help(ctx, name)) for name in self._found])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        if name in COMMANDS:
            return COMMANDS[name]
        command = self.get_command(ctx, name)
        return command.get_short_help_str() if command else ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = with_command_first(args)
        if args[:1] == ["help"]:  # as kubectl has it
            args = [*args[1:], "--help"]
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
            name, command, words = super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] in PACKAGES and args[0] not in self._without:
                package = PACKAGES[args[0]]
                raise click.UsageError(
                    f"install {package} (docs/install.md, The commands): it has the command {args[0]}", ctx
                ) from None
            message = error.message.removesuffix(".") + did_you_mean(args[0], self._found)
            raise click.UsageError(message, ctx) from None
        return name, command, as_click_reads(words, command.params) if command else words

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in self._found:
            return None
        command: click.Command = self._found[name].load()
        return command


CONTEXT: Final = {"help_option_names": ["-h", "--help"]}
_PACKAGE: Final = "placement-ac"
"""The name of the package, whose version is read only for --version."""


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name=_PACKAGE, prog_name=_PACKAGE)
def main() -> None:
    """Turn the clusters that an OCM Placement selects into the worker clusters of Kueue's MultiKueue."""
