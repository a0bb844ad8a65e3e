"""
The output of the commands that only read: tables, JSON, YAML and names, once or after each change.

Colour goes only to a terminal, and not with NO_COLOR set (https://no-color.org).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from io import TextIOWrapper
from typing import Any, Final, Literal

import click
import orjson
import yaml
from pydantic.alias_generators import to_camel
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from placement_ac.cli.terminal import console, stream_below
from placement_ac.core.api.printable import NOT_SHOWN, one_line, visible

Form = Literal["table", "wide", "json", "yaml", "name"]
PLAIN_WIDTH: Final = 200
"""Columns of YAML."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # chosen at run time
    """The C implementation, if available: it is ten times as fast."""


def _text_in_yaml(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Return a text between double quotes if it needs escapes: YAML has them only there."""
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if NOT_SHOWN.search(text) else None
    )


_Dumper.add_representer(str, _text_in_yaml)


def output(
    *forms: str, default: str | None = None, message: str = "The output format.  [default: a table]"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `-o` to a command. `default`: one of `forms`; without it, the default is "table"."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=default,
        show_default=default is not None,
        help=message,
        callback=lambda _, __, value: value or "table",
    )


def emit(
    form: Form,
    document: object,
    table: Callable[[bool], Iterable[RenderableType]],
    names: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Print `document` as JSON or YAML, `names` one a line, or what `table(wide)` gives."""
    if isinstance(below := stream_below(sys.stdout), TextIOWrapper):
        below.reconfigure(errors="replace")  # the terminal's encoding may lack a character
    if form == "json":
        click.echo(in_json(json.dumps(plain(document), indent=2, ensure_ascii=False)))
    elif form == "yaml":
        click.echo(in_yaml(plain(document)), nl=False)
    elif form == "name":
        for name in names():
            click.echo(name)
    else:
        out = console()
        for part in table(form == "wide"):
            out.print(part)


class WatchPrinter:
    """Prints a document, and prints it again when it has changed.

    With `live`, a table is redrawn in place. Otherwise each change is printed below the previous output:
    tables and YAML separated by a line `---`, JSON as one line each, and of names only the changed ones.
    """

    def __init__(self, form: Form, live: Live | None) -> None:
        self._form = form
        self._live = live
        self._last: Any = None
        self._items: dict[str, Any] = {}

    def show(
        self,
        document: object,
        table: Callable[[bool], Iterable[RenderableType]],
        items: Mapping[str, object],
    ) -> None:
        """Print `document` if it has changed. `items`: its parts by name."""
        if self._live:
            self._live.update(Group(*table(self._form == "wide")), refresh=True)
            return
        now = plain(document)
        if now == self._last:
            return
        first, self._last = self._last is None, now
        if self._form == "json":
            click.echo(in_json(orjson.dumps(now).decode()))
        elif self._form == "name":
            before, self._items = self._items, {name: plain(item) for name, item in items.items()}
            for name, item in self._items.items():
                if before.get(name) != item:
                    click.echo(name)
        else:
            if not first:
                click.echo("---")
            emit(self._form, document, table)
        sys.stdout.flush()


@contextmanager
def watch_printer(form: Form) -> Iterator[WatchPrinter]:
    """Yield a printer for stdout; on a terminal it redraws tables."""
    redraws = form in ("table", "wide") and sys.stdout.isatty()
    with Live(console=console(), auto_refresh=False) if redraws else nullcontext() as live:
        yield WatchPrinter(form, live)


def plain_table(*columns: str) -> Table:
    """Return an empty table without lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def plain(value: object) -> Any:
    """Return a value as JSON types: keys in camelCase, times in RFC 3339."""
    if (keys := _keys(type(value))) is not None:  # type: ignore[arg-type]  # mypy: no class can be hashed
        return {key: plain(getattr(value, name)) for name, key in keys}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, datetime):
        exact = "milliseconds" if value.microsecond else "seconds"
        return value.astimezone(UTC).isoformat(timespec=exact).replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()  # a word of the command line may be no Unicode
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def safe_text(text: str, style: str = "") -> Text:
    """Return an untrusted text for a line of a table: without markup, its control characters as escapes."""
    return Text(one_line(text), style)


def shortened(text: str, letters: int) -> str:
    """Return a text of at most so many letters, cut between words."""
    return text if len(text) <= letters else f"{text[: letters - 1].rpartition(' ')[0]} …"


def age_text(seconds: float) -> str:
    """Return a time in kubectl's format of ages: `90s`, `5m`, `23h`, `6d`, `3y`."""
    whole = max(int(seconds), 0)
    for unit, letter in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if whole >= 2 * unit:
            return f"{whole // unit}{letter}"
    return f"{whole}s"


def in_json(text: str) -> str:
    """Return JSON with escapes for the characters that terminals would obey, or not show."""
    return NOT_SHOWN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def in_yaml(document: object) -> str:
    """Return a document as YAML with such escapes."""
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=PLAIN_WIDTH)
    return visible(text)


@cache
def _keys(type_: type) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a dataclass with their names in a document; None for another type."""
    return tuple((one.name, to_camel(one.name)) for one in fields(type_)) if is_dataclass(type_) else None
