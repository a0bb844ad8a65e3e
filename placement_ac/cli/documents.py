"""
Documents that commands print: JSON, YAML, and rows of text in columns.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, Literal

import click
from pydantic.alias_generators import to_camel

from placement_ac.core.api.printable import NOT_SHOWN

Form = Literal["table", "wide", "json", "yaml", "name", "csv", "mermaid"]
YAML_WIDTH: Final = 200
"""Columns."""


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


def plain(value: object) -> Any:
    """Return a value as JSON types: keys in camelCase, times in RFC 3339."""
    if (keys := _keys(type(value))) is not None:  # type: ignore[arg-type]  # mypy: no class can be hashed
        return {key: plain(getattr(value, name)) for name, key in keys}
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, datetime):
        exact = "milliseconds" if value.microsecond else "seconds"
        return value.astimezone(UTC).isoformat(timespec=exact).replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()  # a word of the command line may be no Unicode
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def in_json(text: str) -> str:
    """Return JSON with escapes for the characters that terminals would obey, or not show."""
    return NOT_SHOWN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of columns, two blanks apart, without a final line break."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


@cache
def _keys(type_: type) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a dataclass with their names in a document; None for another type."""
    return (
        tuple((field.name, to_camel(field.name)) for field in fields(type_)) if is_dataclass(type_) else None
    )
