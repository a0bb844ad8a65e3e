"""
Merge patch (RFC 7396), JSON patch (RFC 6902), and the parts of strategic merge patch that kubectl uses.

Pure: functions return a new object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import StatusError, bad_request
from placement_lab.structural_schema.schema_node import ANYTHING, SchemaNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def merge_patch(value: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396): merge maps, remove null fields, replace everything else."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), change)
    return merged


def strategic_patch(node: SchemaNode, value: Any, patch: Any) -> Any:
    """
    Apply a strategic merge patch: a merge patch that merges lists with merge keys item by item.

    Supports `$patch: delete` and `replace`, `$deleteFromPrimitiveList/…`, `$retainKeys`, and
    `$setElementOrder/…` for map lists (items that it does not name come last).
    """
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: change for key, change in patch.items() if key != "$patch"}
    merged = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if key.startswith("$"):
            _directive(merged, key, change)
        elif change is None:
            merged.pop(key, None)
        else:
            child = node.child(key) or ANYTHING
            merged[key] = _strategic_value(child, merged.get(key), change)
    for key, order in patch.items():
        name = key.removeprefix("$setElementOrder/")
        if name != key and isinstance(merged.get(name), list):
            merged[name] = _ordered(node.child(name) or ANYTHING, merged[name], order)
    return merged


def _ordered(node: SchemaNode, items: list[Any], order: list[Any]) -> list[Any]:
    if node.list_type != "map":
        return items
    wanted = {node.element(item): n for n, item in enumerate(order)}
    return sorted(items, key=lambda item: wanted.get(node.element(item), len(wanted)))


def _directive(merged: dict[str, Any], key: str, change: Any) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        name = key.partition("/")[2]
        if name in merged:
            merged[name] = [item for item in merged[name] if item not in change]
    elif key == "$retainKeys":
        for name in set(merged) - set(change):
            del merged[name]


def _strategic_value(node: SchemaNode, value: Any, change: Any) -> Any:
    if isinstance(change, list) and node.list_type == "set":
        had = value if isinstance(value, list) else []
        return [*had, *(item for item in change if item not in had)]
    if isinstance(change, list) and node.list_type == "map":
        return _strategic_list(node, value if isinstance(value, list) else [], change)
    return strategic_patch(node, value, change)


def _strategic_list(node: SchemaNode, value: list[Any], changes: list[Any]) -> list[Any]:
    items = {} if any(c.get("$patch") == "replace" for c in changes) else {node.element(i): i for i in value}
    for change in changes:
        key = node.element(change)
        if change.get("$patch") == "delete":
            items.pop(key, None)
        elif change.get("$patch") != "replace":
            items[key] = strategic_patch(node.items, items.get(key), change)
    return list(items.values())


# -- JSON patch, as the library of Kubernetes (evanphx/json-patch) does it, which is not RFC 6902 everywhere:
# `replace` and `test` of a missing member, a negative index, a copy of nothing.

REJECTED = "the server rejected our request due to an error in our request"
MISSING: Any = object()


def json_patch(value: Any, operations: Any) -> Any:
    """Apply a JSON patch; raises 422 if a test fails or a path is missing, 400 if it is no list."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    for operation in operations:
        try:
            value = OPERATIONS[operation["op"]](value, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise StatusError(422, "Invalid", REJECTED) from error
    return value


def _keys(pointer: str) -> list[str]:
    """Return the keys of a pointer; what comes before its first slash is ignored."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _get(value: Any, keys: Iterable[str]) -> Any:
    """Return the value at the keys; MISSING for a member that its map lacks."""
    *above, last = keys
    for key in above:
        value = value[_index(value, key) if isinstance(value, list) else key]
    return value[_index(value, last)] if isinstance(value, list) else value.get(last, MISSING)


def _index(value: list[Any], key: str, *, beyond: int = 0) -> int:
    """Return the index of an item; a negative one counts from the end, `beyond` which is allowed."""
    index, size = int(key), len(value) + beyond
    if not -size <= index < size:
        raise IndexError(f"no item {key}")
    return index % size


def _changed(value: Any, keys: list[str], change: Callable[[Any, str], None]) -> Any:
    """Return `value` with the containers along `keys` copied, and the last one changed by `change`."""
    copy = list(value) if isinstance(value, list) else dict(value)
    key, *rest = keys
    if not rest:
        change(copy, key)
        return copy
    at: Any = _index(copy, key) if isinstance(copy, list) else key
    copy[at] = _changed(copy[at], rest, change)
    return copy


def _add(value: Any, operation: dict[str, Any]) -> Any:
    def put(container: Any, key: str) -> None:
        if isinstance(container, list):
            at = len(container) if key == "-" else _index(container, key, beyond=1)
            container.insert(at, operation["value"])
        else:
            container[key] = operation["value"]

    keys = _keys(operation["path"])
    return _changed(value, keys, put) if keys else operation["value"]


def _remove(value: Any, operation: dict[str, Any]) -> Any:
    def drop(container: Any, key: str) -> None:
        del container[_index(container, key) if isinstance(container, list) else key]

    return _changed(value, _keys(operation["path"]), drop)


def _replace(value: Any, operation: dict[str, Any]) -> Any:
    def put(container: Any, key: str) -> None:
        container[_index(container, key) if isinstance(container, list) else key] = operation["value"]

    keys = _keys(operation["path"])
    return _changed(value, keys, put) if keys else operation["value"]


def _move(value: Any, operation: dict[str, Any]) -> Any:
    moved = _get(value, _keys(operation["from"]))
    value = _remove(value, {"path": operation["from"]})
    return _add(value, {"path": operation["path"], "value": moved})


def _copy(value: Any, operation: dict[str, Any]) -> Any:
    copied = _get(value, _keys(operation["from"]))
    return _add(value, {"path": operation["path"], "value": None if copied is MISSING else copied})


def _test(value: Any, operation: dict[str, Any]) -> Any:
    found = _get(value, _keys(operation["path"]))
    if found is MISSING:
        found = None
    if found != operation.get("value"):
        raise ValueError("testing value failed")
    return value


OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _add, "copy": _copy, "move": _move, "remove": _remove, "replace": _replace, "test": _test,
}  # fmt: skip
