"""
Write the tables of the commands' options in docs/reference.md: `make reference`.

A test compares the page with what `reference` returns.
"""

from collections.abc import Iterator

import click

from placement_ac.cli.main import COMMANDS, main
from placement_ac.config.settings import Settings
from website.generated import REFERENCE
from website.markdown import section

HEADING = "Options of the commands"


def tables() -> Iterator[str]:
    """Yield the lines of the tables: of the options that several commands have, and of the others."""
    commands: dict[tuple[str, str], list[str]] = {}
    for name in COMMANDS:
        for row in _options(name):
            commands.setdefault(row, []).append(f"`{name}`")
    yield from ("| option | meaning | commands |", "|---|---|---|")
    yield from (f"| {' | '.join(row)} | {', '.join(of)} |" for row, of in commands.items() if len(of) > 1)
    yield from ("", "| command | option | meaning |", "|---|---|---|")
    yield from (f"| {of[0]} | {' | '.join(row)} |" for row, of in commands.items() if len(of) == 1)


def _options(name: str) -> Iterator[tuple[str, str]]:
    """Yield each option of a command as its help shows it; those of `run` that are settings are left out."""
    command = main.get_command(click.Context(main), name)
    assert command  # noqa: S101  # it stands in COMMANDS
    for option in command.params:
        record = option.get_help_record(click.Context(command)) if isinstance(option, click.Option) else None
        if record and not (name == "run" and option.name in Settings.model_fields):
            names, meaning = (" ".join(part.replace("|", "\\|").split()) for part in record)
            yield f"`{names}`", meaning


def reference(before: str) -> str:
    """Return the page `before` with the tables of today in place of its own."""
    old = section(before, HEADING)
    introduction = old.partition("\n| ")[0]
    return before.replace(old, "\n".join((introduction, *tables(), "", "")))


if __name__ == "__main__":
    REFERENCE.write_text(reference(REFERENCE.read_text("utf-8")), "utf-8")
