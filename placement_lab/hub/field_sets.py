"""
Sets of fields in the format of managedFields (fieldsV1).

A set is a tree of dicts. `f:name` is a field, `k:{...}` an item of a map list, `v:...` a value of a
set. A dict that is empty or contains "." is a member of the set; any other only contains members.
None is the empty set. All functions are pure; results may share parts of the arguments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from placement_lab.structural_schema.schema_node import ANYTHING, SchemaNode
from placement_lab.structural_schema.validation import TYPES, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FieldSet = dict[str, Any]
WORDS = {  # of types, in errors
    "array": "list",
    "object": "map",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
}


class UntypedError(ValueError):
    """An applied configuration has a value that the schema does not allow."""


def is_member(fields: FieldSet) -> bool:
    return not fields or "." in fields


def _node(member: bool, children: FieldSet) -> FieldSet | None:
    if not children:
        return {} if member else None
    return {".": {}, **children} if member else children


def _children(fields: FieldSet) -> Iterator[tuple[str, FieldSet]]:
    return ((key, below) for key, below in fields.items() if key != ".")


def union(a: FieldSet | None, b: FieldSet | None) -> FieldSet | None:
    if a is None or b is None:
        return b if a is None else a
    children = dict(_children(a))
    for key, below in _children(b):
        joined = union(children.get(key), below)
        if joined is not None:
            children[key] = joined
    return _node(is_member(a) or is_member(b), children)


def difference(a: FieldSet | None, b: FieldSet | None) -> FieldSet | None:
    """Return the members of `a` that are not in `b`."""
    if a is None or b is None:
        return a
    children = {}
    for key, below in _children(a):
        rest = difference(below, b.get(key))
        if rest is not None:
            children[key] = rest
    return _node(is_member(a) and not is_member(b), children)


def intersection(a: FieldSet | None, b: FieldSet | None) -> FieldSet | None:
    if a is None or b is None:
        return None
    children = {}
    for key, below in _children(a):
        both = intersection(below, b.get(key))
        if both is not None:
            children[key] = both
    return _node(is_member(a) and is_member(b), children)


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the members as text: .spec.clusters, .status.conditions[type="Active"].status."""
    if prefix and is_member(fields):
        yield prefix
    for key, below in _children(fields):
        yield from paths(below, prefix + _step(key))


def _step(key: str) -> str:
    if key.startswith("f:"):
        return "." + key[2:]
    if key.startswith("k:"):
        keys = json.loads(key[2:])
        return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in keys.items()) + "]"
    return f"[={key[2:]}]"


# -- the fields of a value


def granular(node: SchemaNode, value: Any) -> bool:
    """Return whether managers own the parts of a value separately, and not the value as a whole."""
    if isinstance(value, dict):
        return not node.atomic
    return isinstance(value, list) and node.list_type in ("map", "set")


Path = tuple[str, ...]  # the keys that lead to a value


def items_of(node: SchemaNode, value: list[Any], path: Path) -> dict[str, Any]:
    """Return the items of a granular list by key; raises UntypedError for duplicate keys."""
    items: dict[str, Any] = {}
    for item in value:
        if node.list_type == "map" and not isinstance(item, dict):
            raise _type_error(path, "items must be maps")
        key = node.element(item)
        if key in items:
            raise _type_error(path, f"duplicate entries for key {_step(key)}")
        items[key] = item
    return items


def _type_error(path: Path, why: str) -> UntypedError:
    return UntypedError(f"{''.join(map(_step, path))}: {why}")


def fields_applied(node: SchemaNode, value: Any, path: Path = ()) -> FieldSet | None:
    """Return the fields of an applied configuration; raises UntypedError if a value has the wrong type."""
    if value is not None and node.type in TYPES and not isinstance(value, TYPES[node.type]):
        raise _type_error(path, f"expected {WORDS.get(node.type, node.type)}, got {type_of(value)}")
    if not granular(node, value):
        return {}
    children: FieldSet = {}
    if isinstance(value, list):
        for key, item in items_of(node, value, path).items():
            below = fields_applied(node.items, item, (*path, key)) if node.list_type == "map" else {}
            children[key] = {".": {}, **below} if below else {}
        return children or None
    for key, child_value in value.items():
        child = node.child(key) or ANYTHING
        below = fields_applied(child, child_value, (*path, "f:" + key))
        if below is None and child_value == {}:
            below = {}
        if below and key not in node.properties:
            below = {".": {}, **below}
        if below is not None:
            children["f:" + key] = below
    return children or None


def all_fields(node: SchemaNode, value: Any) -> FieldSet:
    """Return a value and all its parts: the fields that are added or removed with it."""
    if not granular(node, value) or not value:
        return {}
    children: FieldSet = {".": {}}
    if isinstance(value, list):
        for key, item in _lenient_items(node, value).items():
            children[key] = all_fields(node.items, item) if node.list_type == "map" else {}
        return children
    for key, child_value in value.items():
        children["f:" + key] = all_fields(node.child(key) or ANYTHING, child_value)
    return children


def changes(node: SchemaNode, old: Any, new: Any) -> tuple[FieldSet | None, FieldSet | None]:
    """Return the fields that an update changed: (added or changed, removed)."""
    if old is new:
        return None, None
    if type(old) is not type(new) or not granular(node, old):
        return (None, None) if old == new and type(old) is type(new) else ({}, None)
    if isinstance(old, dict):
        before = {"f:" + key: (node.child(key) or ANYTHING, value) for key, value in old.items()}
        after = {"f:" + key: (node.child(key) or ANYTHING, value) for key, value in new.items()}
    else:
        below = node.items if node.list_type == "map" else ANYTHING
        before = {key: (below, item) for key, item in _lenient_items(node, old).items()}
        after = {key: (below, item) for key, item in _lenient_items(node, new).items()}
    return _changed_children(before, after)


def _lenient_items(node: SchemaNode, value: list[Any]) -> dict[str, Any]:
    """As `items_of`, for stored objects: the last item of each key."""
    return {node.element(item): item for item in value if node.list_type == "set" or isinstance(item, dict)}


def _changed_children(
    before: dict[str, tuple[SchemaNode, Any]], after: dict[str, tuple[SchemaNode, Any]]
) -> tuple[FieldSet | None, FieldSet | None]:
    touched: FieldSet = {}
    removed: FieldSet = {}
    for key, (node, value) in after.items():
        if key not in before:
            touched[key] = all_fields(node, value)
            continue
        changed, dropped = changes(node, before[key][1], value)
        if changed is not None:
            touched[key] = changed
        if dropped is not None:
            removed[key] = dropped
    for key, (node, value) in before.items():
        if key not in after:
            removed[key] = all_fields(node, value)
    return touched or None, removed or None
