"""
The output of the commands that only read: tables, JSON, YAML and names, once or after each change.

Colour goes only to a terminal, and not with NO_COLOR set (https://no-color.org).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from typing import Any

import click
import orjson
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubectl_placement.cli.console import console
from placement_ac.cli.documents import YAML_WIDTH, Form, in_json, plain
from placement_ac.cli.terminal import stream_below
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.to_yaml import to_yaml


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
        click.echo(to_yaml(plain(document), width=YAML_WIDTH), nl=False)
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
        name_of: Callable[[str], str] = str,
    ) -> None:
        """Print `document` if it has changed. `items`: its parts by key; `name_of`: the name of a key."""
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
                    click.echo(name_of(name))
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
