"""
Sets of fields, in the very form managedFields has them (fieldsV1).

A set is a tree of dicts. `f:name` is a field, `k:{...}` an item of a map list,
`v:...` a value of a set. An empty dict, or one that holds ".", belongs to the
set; any other only leads to members. None is the empty set. All functions are
pure and may share parts of their arguments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from placement_ac.lab.hub.errors import ApiError, internal
from placement_ac.lab.hub.schema import ANYTHING, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

Fields = dict[str, Any]


def is_member(fields: Fields) -> bool:
    return not fields or "." in fields


def _node(member: bool, children: Fields) -> Fields | None:
    if not children:
        return {} if member else None
    return {".": {}, **children} if member else children


def _children(fields: Fields) -> Iterator[tuple[str, Fields]]:
    return ((key, below) for key, below in fields.items() if key != ".")


def union(a: Fields | None, b: Fields | None) -> Fields | None:
    if a is None or b is None:
        return b if a is None else a
    children = dict(_children(a))
    for key, below in _children(b):
        joined = union(children.get(key), below)
        if joined is not None:
            children[key] = joined
    return _node(is_member(a) or is_member(b), children)


def minus(a: Fields | None, b: Fields | None) -> Fields | None:
    """The members of `a` that are not in `b`."""
    if a is None or b is None:
        return a
    children = {}
    for key, below in _children(a):
        rest = minus(below, b.get(key))
        if rest is not None:
            children[key] = rest
    return _node(is_member(a) and not is_member(b), children)


def common(a: Fields | None, b: Fields | None) -> Fields | None:
    if a is None or b is None:
        return None
    children = {}
    for key, below in _children(a):
        both = common(below, b.get(key))
        if both is not None:
            children[key] = both
    return _node(is_member(a) and is_member(b), children)


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """The members as text: .spec.clusters, .status.conditions[type="Active"].status."""
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


def granular(node: Node, value: Any) -> bool:
    """Whether the parts of a value are owned one by one, rather than the value as a whole."""
    if isinstance(value, dict):
        return not node.atomic
    return isinstance(value, list) and node.list_type in ("map", "set")


Path = tuple[str, ...]  # the keys of sets on the way to a value


def items_of(node: Node, value: list[Any], path: Path) -> dict[str, Any]:
    """The items of a granular list by their keys; raises 500, as a real server, when two have one key."""
    items: dict[str, Any] = {}
    for item in value:
        if node.list_type == "map" and not isinstance(item, dict):
            raise _untyped(path, "items must be maps")
        key = node.element(item)
        if key in items:
            raise _untyped(path, f"duplicate entries for key {key[2:]}")
        items[key] = item
    return items


def _untyped(path: Path, why: str) -> ApiError:
    return internal(f"failed to create typed patch object: {''.join(map(_step, path))}: {why}")


def applied(node: Node, value: Any, path: Path = ()) -> Fields | None:
    """The fields an applied configuration lays claim to; raises 500 when it is not of its schema's type."""
    if node.type in ("object", "array") and not isinstance(value, dict if node.type == "object" else list):
        raise _untyped(path, f"expected {node.type}")
    if not granular(node, value):
        return {}
    children: Fields = {}
    if isinstance(value, list):
        for key, item in items_of(node, value, path).items():
            below = applied(node.items, item, (*path, key)) if node.list_type == "map" else {}
            children[key] = {".": {}, **below} if below else {}
        return children or None
    for key, child_value in value.items():
        child = node.child(key) or ANYTHING
        below = applied(child, child_value, (*path, "f:" + key))
        if below is None and child_value == {}:
            below = {}
        if below and key not in node.properties:
            below = {".": {}, **below}
        if below is not None:
            children["f:" + key] = below
    return children or None


def everything(node: Node, value: Any) -> Fields:
    """Each part of a value and the value itself: what comes into being, or goes, with it."""
    if not granular(node, value) or not value:
        return {}
    children: Fields = {".": {}}
    if isinstance(value, list):
        for key, item in _lenient_items(node, value).items():
            children[key] = everything(node.items, item) if node.list_type == "map" else {}
        return children
    for key, child_value in value.items():
        children["f:" + key] = everything(node.child(key) or ANYTHING, child_value)
    return children


def changes(node: Node, old: Any, new: Any) -> tuple[Fields | None, Fields | None]:
    """What an update touched: (added or changed, removed)."""
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


def _lenient_items(node: Node, value: list[Any]) -> dict[str, Any]:
    """As `items_of`, for what is stored already: of two items with one key the last counts."""
    return {node.element(item): item for item in value if node.list_type == "set" or isinstance(item, dict)}


def _changed_children(
    before: dict[str, tuple[Node, Any]], after: dict[str, tuple[Node, Any]]
) -> tuple[Fields | None, Fields | None]:
    touched: Fields = {}
    removed: Fields = {}
    for key, (node, value) in after.items():
        if key not in before:
            touched[key] = everything(node, value)
            continue
        changed, dropped = changes(node, before[key][1], value)
        if changed is not None:
            touched[key] = changed
        if dropped is not None:
            removed[key] = dropped
    for key, (node, value) in before.items():
        if key not in after:
            removed[key] = everything(node, value)
    return touched or None, removed or None
