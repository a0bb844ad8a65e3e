"""
The output of the commands that only read: tables, JSON, YAML and names.

Colour goes only to a terminal, and not with NO_COLOR set (https://no-color.org).
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from io import TextIOWrapper
from typing import Any, Final, Literal

import click
import yaml
from rich.console import Console, RenderableType
from rich.text import Text

Form = Literal["table", "wide", "json", "yaml", "name"]
FORMS: Final = ("wide", "json", "yaml", "name")
PLAIN_WIDTH: Final = 200
"""Columns of YAML."""
UNWRAPPED: Final = 100_000
"""Columns without a terminal: output for programs is not wrapped, as with kubectl."""
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The C implementation, if available: it is ten times as fast."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_ALLOWED_IN_JSON: Final = re.compile(r"[\x7f-\x9f]")


def output(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `-o` to a command; the default is "table"."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms or FORMS),
        help="The output format.  [default: a table]",
        callback=lambda _, __, value: value or "table",
    )


def console() -> Console:
    """Return a console on the current stdout."""
    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if terminal else UNWRAPPED,
        highlight=False,
        soft_wrap=not terminal,
    )


def emit(
    form: Form,
    document: object,
    table: Callable[[bool], Iterable[RenderableType]],
    names: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Print `document` as JSON or YAML, `names` one a line, or what `table(wide)` gives."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # the terminal's encoding may lack a character
    if form == "json":
        click.echo(in_json(json.dumps(plain(document), indent=2, ensure_ascii=False)))
    elif form == "yaml":
        text = yaml.dump(
            plain(document), Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=PLAIN_WIDTH
        )
        click.echo(text, nl=False)
    elif form == "name":
        for name in names():
            click.echo(name)
    else:
        out = console()
        for part in table(form == "wide"):
            out.print(part)


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
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def safe_text(text: str, style: str = "") -> Text:
    """Return a text of somebody else's for a table: it can neither style itself nor steer the terminal."""
    return Text(without_controls(text), style)


def without_controls(text: str) -> str:
    """Return a text of somebody else's, on one line and without what steers a terminal."""
    return _CONTROLS.sub(" ", text)


def in_json(text: str) -> str:
    """Return JSON with those control characters escaped that JSON allows, and terminals obey."""
    return _ALLOWED_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def _keys(type_: type) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a dataclass with their names in a document; None: it is another type."""
    return tuple((one.name, camel(one.name)) for one in fields(type_)) if is_dataclass(type_) else None


def camel(name: str) -> str:
    """Return `clusterName` for `cluster_name`, as the API writes fields."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)
