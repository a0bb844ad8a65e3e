"""Objects of which one field is malformed."""

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """Yield the path of every field within, beginning with `above`."""
    fields = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, field in fields:
        yield (*above, key)
        yield from paths(field, (*above, key))


def with_value(obj: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return a copy of an object with another value in the field at that path."""
    found: Any = copy.deepcopy(obj)
    field = found
    for step in path[:-1]:
        field = field[step]
    field[path[-1]] = value
    return dict(found)
