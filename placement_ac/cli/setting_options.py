"""An option of the command line for each setting."""

from collections.abc import Container
from typing import Any, get_args

import click

from placement_ac.config.load import REMOVED, flag_name
from placement_ac.config.settings import File, Settings, default_of, descriptions, is_duration


def setting_options(
    command: click.Command, *, shown: Container[str] = frozenset(Settings.model_fields)
) -> click.Command:
    """Add an option for each setting that has none, with its default; the help shows only those `shown`.

    Settings that were removed have one, too: `load` refuses them, and says what to do.
    """
    there = {param.name for param in command.params}
    texts = descriptions()
    for name, field in reversed(Settings.model_fields.items()):
        if name in there:
            continue
        default = default_of(name)
        message = f" [default: {default}]" if default else ""
        command.params.insert(
            0,
            click.Option(
                [f"--{flag_name(name)}"],
                help=f"{texts[name]}{message}",
                metavar="DURATION" if is_duration(name) else _choices(field.annotation),
                hidden=name not in shown,
            ),
        )
    for name in REMOVED:
        command.params.append(
            click.Option([f"--{flag_name(name)}"], hidden=True, is_flag=False, flag_value="")
        )
    return command


def _choices(annotation: Any) -> str:
    """Return the values of a setting, or their format."""
    choices = get_args(annotation)
    if choices and all(isinstance(choice, str) for choice in choices):
        return "|".join(choices)
    if choices and choices[-1] is Ellipsis:
        return f"{_choices(choices[0])},…"
    if File in choices:
        return "FILE"
    return {bool: "true|false", int: "NUMBER", float: "NUMBER"}.get(annotation, "TEXT")
