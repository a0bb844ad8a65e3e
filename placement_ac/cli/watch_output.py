"""
Print a document again after each change, for `--watch`.

On a terminal a table is redrawn in place. Otherwise each change is printed below the previous output: tables
and YAML separated by a line `---`, JSON as one line each, and of names only the changed ones.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
import orjson
from rich.console import Group, RenderableType

from placement_ac.cli.output import Form, console, emit, in_json, plain

if TYPE_CHECKING:
    from rich.live import Live


class WatchPrinter:
    """Prints a document, and prints it again when it has changed."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._last: Any = None
        self._items: dict[str, Any] = {}
        redraws = form in ("table", "wide") and sys.stdout.isatty()
        self._live = _live() if redraws else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

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
            self._show_names(items)
        else:
            if not first:
                click.echo("---")
            emit(self._form, document, table)
        sys.stdout.flush()

    def _show_names(self, items: Mapping[str, object]) -> None:
        now = {name: plain(item) for name, item in items.items()}
        for name, item in now.items():
            if self._items.get(name) != item:
                click.echo(name)
        self._items = now


def _live() -> "Live":
    from rich.live import Live  # noqa: PLC0415  # only needed here

    return Live(console=console(), auto_refresh=False)
