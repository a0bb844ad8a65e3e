"""
The command `placement-ac`. Exit codes: 0 done, 1 it failed, 2 wrong words on the command line.
"""

from importlib import import_module, metadata
from typing import Final

import click

COMMANDS: Final = {
    "run": "Run the controller.",
    "hub": "Start the embedded hub alone.",
    "demo": "Show the three stories on an embedded hub.",
    "adopt": "Take over what the Go kueue-addon has made.",
    "cleanup": "Remove what the controller has made.",
}


class _Lazy(click.Group):
    """Imports a command when it is called: `run` needs no hub, and starts sooner without."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = getattr(import_module(f"placement_ac.cli.{name}"), "command")  # noqa: B009  # typed below
        assert isinstance(command, click.Command)  # noqa: S101  # ours: each module defines it
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metadata.version("placement-ac"), prog_name="placement-ac")
def main() -> None:
    """Turn the clusters that an OCM Placement selects into the worker clusters of Kueue's MultiKueue."""
