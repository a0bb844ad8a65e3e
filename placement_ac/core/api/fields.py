"""
Read fields of API objects, as parsed from JSON.

A field that is absent, null or of another type than asked for reads as empty, so that no malformed object can
make a reader raise.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

Obj: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is empty."""

EMPTY: Obj = {}


def get_value(obj: object, *path: str) -> object:
    """Return the value at `path`; None if the path does not exist."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def get_dict(obj: object, *path: str) -> Obj:
    value = get_value(obj, *path)
    return value if isinstance(value, dict) else EMPTY


def get_list(obj: object, *path: str) -> list[Obj]:
    """Return the objects of the list at `path`; other values are skipped."""
    value = get_value(obj, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def get_strs(obj: object, *path: str) -> list[str]:
    """Return the strings of the list at `path`."""
    value = get_value(obj, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def get_str(obj: object, *path: str) -> str:
    value = get_value(obj, *path)
    return value if isinstance(value, str) else ""


def get_texts(obj: object, *path: str) -> dict[str, str]:
    """Return the texts of the map at `path`: null is "", as Go decodes it; other values are skipped."""
    pairs = get_dict(obj, *path).items()
    return {key: value or "" for key, value in pairs if value is None or isinstance(value, str)}


def get_int(obj: object, *path: str) -> int | None:
    value = get_value(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def get_time(obj: object, *path: str) -> datetime | None:
    """Return the RFC 3339 time at `path`; None if it is missing or invalid."""
    return parse_time(get_str(obj, *path))


def parse_time(written: str) -> datetime | None:
    """Return an RFC 3339 time; None when it is no time, or has no zone."""
    try:
        when = datetime.fromisoformat(written)
    except ValueError:
        return None
    return when if when.tzinfo else None


def format_time(when: datetime) -> str:
    """Return a time as Kubernetes writes a metav1.Time: RFC 3339, UTC, whole seconds."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def name_of(obj: Obj) -> str:
    return get_str(obj, "metadata", "name")


def namespace_of(obj: Obj) -> str:
    return get_str(obj, "metadata", "namespace")


def key_of(obj: Obj) -> Key:
    return namespace_of(obj), name_of(obj)


def labels_of(obj: Obj) -> Mapping[str, str]:
    return get_dict(obj, "metadata", "labels")


def is_terminating(obj: Obj) -> bool:
    return get_value(obj, "metadata", "deletionTimestamp") is not None
