"""
Objects in the formats of `kubectl get`: a Table with printer columns, or PartialObjectMetadata. Pure.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placement_lab.hub.kinds import PrinterColumn, ServedVersion
    from placement_lab.hub.store import Object

STEP = re.compile(
    r"""\.?([\w-]+)|\.?\['([^']+)'\]|\[\?\(@\.([\w.-]+)\s*==\s*['"]([^'"]*)['"]\)\]|\[(\*|\d+)\]"""
)


# The types of columns in a Table: an age is a string, a count (of a map or list) an integer.
COLUMN_TYPES = {"date": "string", "count": "integer"}


def table(
    version: ServedVersion, objects: Iterable[Object], meta: dict[str, Any], include: str
) -> dict[str, Any]:
    """Return a meta.k8s.io/v1 Table; `include`: the content of each row, None, Metadata or Object."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [_definition(column) for column in version.columns],
        "rows": [_row(version, obj, include) for obj in objects],
    }


def _definition(column: PrinterColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": COLUMN_TYPES.get(column.type, column.type),
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(version: ServedVersion, obj: Object, include: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [_cell(column, obj) for column in version.columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = metadata_only(obj)
    return row


def metadata_only(obj: Object) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _cell(column: PrinterColumn, obj: Object) -> Any:
    values = find_values(column.path, obj)
    if column.type == "count":
        return len(values[0]) if values else 0
    if not values:
        return "<unknown>" if column.type == "date" else None
    value = values[0]
    if column.type == "date":
        return age(value)
    if column.type in ("integer", "number", "boolean") and not isinstance(value, (list, dict)):
        return value
    if isinstance(value, dict):
        return f"{value.get('kind', '').lower()}/{value.get('name', '')}"  # an event's object
    return ",".join(str(item) for item in values) if len(values) > 1 else str(value)


def age(when: Any) -> str:
    """Return the age of a timestamp as kubectl prints it: 5s, 3m20s, 4h, 2d3h."""
    if not isinstance(when, str):
        return "<unknown>"
    past = datetime.now(UTC) - datetime.fromisoformat(when)
    return duration(max(0, int(past.total_seconds())))


def duration(seconds: int) -> str:
    """Return a duration as kubectl prints it. Source: apimachinery, HumanDuration."""
    if seconds < 120:
        return f"{seconds}s"
    for bound, unit, small, name, sub in (
        (600, 60, 1, "m", "s"), (10800, 60, None, "m", ""), (28800, 3600, 60, "h", "m"),
        (172800, 3600, None, "h", ""), (691200, 86400, 3600, "d", "h"),
        (2 * 365 * 86400, 86400, None, "d", ""), (8 * 365 * 86400, 365 * 86400, 86400, "y", "d"),
    ):  # fmt: skip
        if seconds < bound:
            rest = seconds % unit // small if small else 0
            return f"{seconds // unit}{name}" + (f"{rest}{sub}" if rest else "")
    return f"{seconds // (365 * 86400)}y"


def find_values(path: str, obj: Any) -> list[Any]:
    """Return the values of a simple JSONPath: fields, [n], [*] and [?(@.field=="value")]."""
    nodes = [obj]
    for step in STEP.finditer(path):
        nodes = [value for node in nodes for value in _step(step, node)]
    return [value for value in nodes if value is not None]


def _step(step: re.Match[str], value: Any) -> Iterable[Any]:
    field, quoted, key, wanted, index = step.groups()
    if field or quoted:
        return [value[field or quoted]] if isinstance(value, dict) and (field or quoted) in value else []
    if not isinstance(value, list):
        return []
    if key:
        return [item for item in value if find_values("." + key, item) == [wanted]]
    return value if index == "*" else value[int(index) : int(index) + 1]
