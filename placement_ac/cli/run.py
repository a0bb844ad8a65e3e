"""`placement-ac run`: the controller."""

import asyncio
import gc
import signal
from pathlib import Path
from typing import Any, get_args

import click

from placement_ac import logs
from placement_ac.errors import LoginFailed
from placement_ac.metrics import CannotListen
from placement_ac.operator import Operator
from placement_ac.settings import PREFIX, BadSettings, Settings, default_of, is_duration, load


def _options(command: click.Command) -> click.Command:
    """Give a command one option for each setting, its help and default told by the setting itself."""
    for name, field in reversed(Settings.model_fields.items()):
        shown = default_of(name)
        told = f" [default: {shown}]" if shown else ""
        command.params.insert(
            0,
            click.Option(
                [f"--{name.replace('_', '-')}"],
                help=f"{field.description}{told}",
                metavar="DURATION" if is_duration(name) else _choices(field.annotation),
            ),
        )
    return command


def _choices(annotation: Any) -> str:
    """Return the values that a setting may have, or what they look like."""
    choices = get_args(annotation)
    if choices and all(isinstance(choice, str) for choice in choices):
        return "|".join(choices)
    if choices and choices[-1] is Ellipsis:
        return f"{_choices(choices[0])},…"
    if Path in choices:
        return "FILE"
    return {bool: "true|false", int: "NUMBER", float: "NUMBER"}.get(annotation, "TEXT")


@_options
@click.command("run", epilog=f"Each option may be given as {PREFIX}<NAME> in the environment as well.")
def command(**flags: Any) -> None:
    """Run the controller."""
    try:
        settings = load(flags)
    except BadSettings as error:
        raise click.UsageError(str(error)) from None
    logs.configure(settings.log_format, settings.log_level)
    gc.freeze()  # what is loaded by now stays: else the collector goes through it with every page of a list
    try:
        asyncio.run(_run(settings))
    except (BadSettings, CannotListen, LoginFailed) as error:
        raise click.ClickException(str(error)) from None


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        """Take the signals; kopf sets handlers of its own whenever it starts, which are slower to stop."""
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)

    listen()
    await Operator(settings, on_started=listen).run(stop)
