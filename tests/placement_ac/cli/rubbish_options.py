"""Every option, argument and variable of every command, and the words around it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from click.testing import Result

from placement_ac.cli.main import main
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings
from tests.support import commands

SAMPLES: Final = Path(__file__).parents[3] / "samples"
STORY: Final = SAMPLES / "placement-demo2-2.yaml"


@dataclass(frozen=True)
class Option:
    """An option or argument of a command, or a setting as a variable of the environment."""

    command: str
    param: click.Parameter
    variable: str = ""

    def __str__(self) -> str:
        return f"{self.command} {self.variable or max(self.param.opts, key=len)}"

    @property
    def takes_file(self) -> bool:
        file = isinstance(self.param.type, click.Path) or (self.param.metavar or "").startswith("FILE")
        return file or self.variable.removeprefix(PREFIX).lower() in _FILE_SETTINGS


_FILE_SETTINGS: Final = {name for name, one in Settings.model_fields.items() if "Path" in str(one.annotation)}


def all_options() -> list[Option]:
    """Return every option and argument of every command, and every setting in the environment."""
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    found = [Option(name, param) for name, one in commands.items() if one for param in one.params]
    variables = [
        Option(one.command, one.param, f"{PREFIX}{one.param.name}".upper())
        for one in found
        if one.command == "run" and one.param.name in Settings.model_fields
    ]
    return found + variables


OPTIONS: Final = all_options()
NEEDS: Final = {
    ("doctor", "cluster"): ("--workers",),
    ("doctor", "timeout"): ("--workers",),
    ("doctor", "access_providers"): ("--workers",),
    ("explain", "timeout"): ("--workers",),
    ("explain", "access_providers"): ("--workers",),
    ("plan", "timeout"): ("--workers",),
    ("plan", "access_providers"): ("--workers",),
}
"""Other options that an option needs, or it is refused without being read."""


def words_around(option: Option) -> list[str]:
    """Return the words of a command besides the option, so that it is read."""
    params = {one.name: one for one in command_named(option.command).params}
    words = list(NEEDS.get((option.command, option.param.name or ""), ()))
    if option.variable:
        return ["--print-settings"]
    if option.param.name not in ("kubeconfig", "dump_files", "record"):
        if "dump_files" in params and not words and option.param.name != "context":
            words += ["--from-dump", "dump"]
        elif "kubeconfig" in params and option.command != "hub":
            words += ["--kubeconfig", "hub"]
    for name, param in params.items():
        if param.required and name != option.param.name:
            value = str(STORY) if (param.metavar or "").startswith("FILE") else "check/placement-demo2"
            words += [param.opts[-1], value] if isinstance(param, click.Option) else [value]
    return words


def command_named(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found
    return found


def invoke(option: Option, value: str, form: str = "") -> Result:
    words = [*words_around(option), *(["-o", form] if form else [])]
    environment = {}
    if option.variable:
        environment = {option.variable: value}
    elif isinstance(option.param, click.Argument):
        words += [value]
    else:
        words += [f"{max(option.param.opts, key=len)}={value}"]
    return commands.run(option.command, *words, env=environment, prog_name="placement-ac")
