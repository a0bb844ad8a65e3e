"""
Structural schemas: field types, defaults, and pruning of unknown fields.

Schemas are compiled when a kind is installed. `prune_and_default` never changes its argument, because stored
objects share their parts: it returns the same value, or new containers along the changed paths.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import orjson

UNSET: Any = object()
IDENTITY = ("apiVersion", "kind", "metadata")


class SchemaNode:
    """The schema of one value. `child(key)` and `items` are the schemas of its parts; None: unknown field."""

    __slots__ = (
        "additional", "atomic", "default", "defaulted", "document", "embedded", "has_rules", "items",
        "list_keys", "list_type", "nullable", "preserve", "properties", "required", "rules", "type",
        "variants",
    )  # fmt: skip

    def __init__(self, document: dict[str, Any]) -> None:
        get = document.get
        self.document = document
        self.type: str = get("type", "")
        self.nullable = bool(get("nullable"))
        self.preserve = bool(get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(get("x-kubernetes-embedded-resource"))
        self.required: tuple[str, ...] = tuple(get("required") or ())
        self.default: Any = get("default", UNSET)
        self.properties: dict[str, SchemaNode] = {
            name: SchemaNode(child) for name, child in (get("properties") or {}).items()
        }
        self.additional = self._additional(get("additionalProperties"))
        items = get("items")
        self.items = SchemaNode(items) if isinstance(items, dict) else ANYTHING
        self.list_type: str = get("x-kubernetes-list-type") or "atomic"
        self.list_keys: tuple[str, ...] = tuple(get("x-kubernetes-list-map-keys") or ())
        self.atomic = get("x-kubernetes-map-type") == "atomic"
        self.defaulted = tuple((k, n) for k, n in self.properties.items() if n.default is not UNSET)
        self.rules: tuple[dict[str, Any], ...] = tuple(get("x-kubernetes-validations") or ())
        self.variants = {k: get(k) for k in ("allOf", "anyOf", "oneOf", "not") if get(k)}
        below = [*self.properties.values(), self.additional, self.items]
        self.has_rules: bool = bool(self.rules) or any(n is not None and n.has_rules for n in below)

    def _additional(self, document: Any) -> SchemaNode | None:
        if isinstance(document, dict):
            return SchemaNode(document)
        return ANYTHING if document is True else None

    def child(self, key: str) -> SchemaNode | None:
        """Return the schema of a field, None if the field is unknown."""
        return self.properties.get(key) or self.additional or (ANYTHING if self.preserve else None)

    def element(self, item: Any) -> str:
        """Return the fieldsV1 key of an item of a granular list: k:{...} in a map list, v:... in a set."""
        if self.list_type == "set":
            return "v:" + dumps(item)
        keys = {key: self._key(item, key) for key in sorted(self.list_keys)}
        return "k:" + dumps({k: v for k, v in keys.items() if v is not UNSET})

    def _key(self, item: dict[str, Any], key: str) -> Any:
        if key in item:
            return item[key]
        known = self.items.child(key)
        return known.default if known is not None else UNSET


class _Anything(SchemaNode):
    """The schema of content without a schema: maps are merged by field, lists are replaced."""

    def __init__(self) -> None:
        for slot in ("properties", "variants", "document"):
            setattr(self, slot, {})
        self.type, self.list_type = "", "atomic"
        self.nullable = self.preserve = True
        self.embedded = self.atomic = self.has_rules = False
        self.required = self.list_keys = self.defaulted = self.rules = ()
        self.default, self.additional, self.items = UNSET, None, self


ANYTHING = _Anything()


def dumps(value: Any) -> str:
    """Return compact JSON with sorted keys, as fieldsV1 writes keys and values."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def prune_and_default(
    node: SchemaNode,
    value: Any,
    *,
    defaults: bool,
    unknown: list[str],
    path: str = "",
    keep_nulls: bool = False,
) -> Any:
    """
    Drop unknown fields and set defaults.

    Appends the paths of dropped fields to `unknown`. With `defaults=False`, only drops unknown fields
    and nulls. `keep_nulls`: leave nulls that no default replaces, as an applied configuration does.
    """
    if node is ANYTHING:
        return value
    if isinstance(value, dict):
        return _prune_and_default_map(node, value, defaults, unknown, path, keep_nulls)
    if isinstance(value, list) and node.items is not ANYTHING:
        result = [
            prune_and_default(
                node.items,
                item,
                defaults=defaults,
                unknown=unknown,
                path=f"{path}[{i}]",
                keep_nulls=keep_nulls,
            )
            for i, item in enumerate(value)
        ]
        return value if all(map(is_, result, value)) else result
    return value


def _prune_and_default_map(
    node: SchemaNode, value: dict[str, Any], defaults: bool, unknown: list[str], path: str, keep_nulls: bool
) -> Any:
    result: dict[str, Any] = {}
    changed = False
    for key, child_value in value.items():
        child = node.child(key)
        here = f"{path}.{key}" if path else key
        if child is None:
            if node.embedded and key in IDENTITY:
                result[key] = child_value
            else:
                changed = True
                unknown.append(here)
            continue
        if child_value is None and not child.nullable and not (keep_nulls and child.default is UNSET):
            changed = True
            if child is node.additional and child.default is not UNSET:
                result[key] = child.default  # in Go, null is the empty value of the map's type
            continue
        new = prune_and_default(
            child, child_value, defaults=defaults, unknown=unknown, path=here, keep_nulls=keep_nulls
        )
        changed = changed or new is not child_value
        result[key] = new
    if defaults:
        for key, child in node.defaulted:
            if key not in result:
                result[key] = prune_and_default(
                    child, child.default, defaults=True, unknown=unknown, path=path
                )
                changed = True
    return result if changed else value
