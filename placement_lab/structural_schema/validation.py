"""
Validate a value against its schema; returns causes and raises no exception.

Values that did not change since the last write are not validated again (Kubernetes' "ratcheting"): an
existing error does not block an unrelated write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubectl_placement.scheduling.cel_regex import matches
from placement_lab.structural_schema import rules
from placement_lab.structural_schema.schema_node import ANYTHING, UNSET, SchemaNode, dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Check = Callable[[Any, Any], "tuple[str, str] | None"]


@dataclass(frozen=True, slots=True)
class StatusCause:
    """
    An error in one field: `reason` such as FieldValueRequired, `field` such as spec.clusters[0].

    `evaluated`: False for a CEL rule that cannot be evaluated here, so that it may hold on an API server.
    """

    reason: str
    message: str
    field: str
    evaluated: bool = True

    def wire(self) -> dict[str, str]:
        """Return the cause as in a `Status`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


# Errors with these reasons prevent the evaluation of CEL rules, which may rely on the field.
# Source: apiextensions-apiserver, hasBlockingErr.
BLOCKING = {
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong",
    "FieldValueTooMany", "FieldValueTypeInvalid",
}  # fmt: skip
UNCHECKED = StatusCause(
    "FieldValueInvalid",
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    "<nil>",
)
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def validate(
    node: SchemaNode, value: dict[str, Any], old: dict[str, Any] | None, first: list[StatusCause]
) -> list[StatusCause]:
    """
    Return all errors of an object: `first` (errors in its metadata), schema errors, then CEL rule errors.

    `old` is the stored object, None for a new object.
    """
    before = UNSET if old is None else old
    causes = [*first, *_errors(node, value, before, "")]
    if not node.has_rules:
        return causes
    if any(cause.reason in BLOCKING for cause in causes):
        return [*causes, UNCHECKED]
    return [*causes, *_rule_errors(node, value, before, "")]


def _errors(node: SchemaNode, value: Any, old: Any, path: str) -> Iterator[StatusCause]:
    if node is ANYTHING or (old is not UNSET and (old is value or old == value)):
        return
    if value is None and node.nullable:
        return
    if not _has_type(node, value):
        yield StatusCause(
            "FieldValueTypeInvalid", f"Invalid value: {dumps(value)}: must be of type {node.type}", path
        )
        return
    yield from _keyword_errors(node, value, path)
    if isinstance(value, dict):
        yield from _map_errors(node, value, old, path)
    elif isinstance(value, list):
        yield from _list_errors(node, value, old, path)


def _has_type(node: SchemaNode, value: Any) -> bool:
    if node.document.get("x-kubernetes-int-or-string"):
        return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    if not node.type:
        return True
    if isinstance(value, bool):
        return node.type == "boolean"
    if isinstance(value, float) and node.type == "integer":
        return value.is_integer()
    return isinstance(value, TYPES[node.type])


def _map_errors(node: SchemaNode, value: dict[str, Any], old: Any, path: str) -> Iterator[StatusCause]:
    for key in node.required:
        if key not in value:
            yield StatusCause("FieldValueRequired", "Required value", join(path, key))
    for key, child_value in value.items():
        child = node.child(key)
        if child is not None:
            yield from _errors(child, child_value, _before(old, key), join(path, key))


def _list_errors(node: SchemaNode, value: list[Any], old: Any, path: str) -> Iterator[StatusCause]:
    before = _items_before(node, old)
    granular = node.list_type in ("map", "set")
    keys: set[str] = set()
    for i, item in enumerate(value):
        here = f"{path}[{i}]"
        key = node.element(item) if granular and (node.list_type == "set" or isinstance(item, dict)) else ""
        if key and key in keys:
            yield StatusCause("FieldValueDuplicate", f"Duplicate value: {key[2:]}", here)
        keys.add(key)
        yield from _errors(node.items, item, before.get(key, UNSET), here)


def _items_before(node: SchemaNode, old: Any) -> dict[str, Any]:
    """Return the stored items of a map list by key; empty for other lists, which have no keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return {}
    return {node.element(item): item for item in old if isinstance(item, dict)}


def _before(old: Any, key: str) -> Any:
    return old.get(key, UNSET) if isinstance(old, dict) else UNSET


def _keyword_errors(node: SchemaNode, value: Any, path: str) -> Iterator[StatusCause]:
    for keyword, check in CHECKS.items():
        if keyword in node.document and (fault := check(value, node.document[keyword])):
            yield StatusCause(fault[0], fault[1], path)
    if node.variants:
        yield from _variant_errors(node.variants, value, path)


def _variant_errors(variants: dict[str, Any], value: Any, path: str) -> Iterator[StatusCause]:
    for document in variants.get("allOf", ()):
        yield from _errors(_compiled(document), value, UNSET, path)
    passing = {
        kind: sum(_passes(document, value) for document in variants.get(kind, ()))
        for kind in ("anyOf", "oneOf")
    }
    if "anyOf" in variants and not passing["anyOf"]:
        yield StatusCause("FieldValueInvalid", "must validate at least one schema (anyOf)", path)
    if "oneOf" in variants and passing["oneOf"] != 1:
        yield StatusCause("FieldValueInvalid", "must validate one and only one schema (oneOf)", path)
    if "not" in variants and _passes(variants["not"], value):
        yield StatusCause("FieldValueInvalid", "must not validate the schema (not)", path)


def _passes(document: dict[str, Any], value: Any) -> bool:
    return next(_errors(_compiled(document), value, UNSET, ""), None) is None


_variants: dict[int, tuple[dict[str, Any], SchemaNode]] = {}


def _compiled(document: dict[str, Any]) -> SchemaNode:
    known = _variants.get(id(document))
    if known is None:  # keeping the document keeps its id unique
        known = _variants[id(document)] = (document, SchemaNode(document))
    return known[1]


def _rule_errors(node: SchemaNode, value: Any, old: Any, path: str) -> Iterator[StatusCause]:
    if not node.has_rules or (old is not UNSET and (old is value or old == value)):
        return
    for rule in node.rules:
        if violation := rules.violation(rule, value, old):
            yield StatusCause(
                rule.get("reason") or "FieldValueInvalid",
                f"Invalid value: {violation.message}",
                (path + rule.get("fieldPath", "")).lstrip("."),
                violation.evaluated,
            )
    if isinstance(value, dict):
        for key, child_value in value.items():
            child = node.child(key)
            if child is not None:
                yield from _rule_errors(child, child_value, _before(old, key), join(path, key))
    elif isinstance(value, list) and node.items.has_rules:
        before = _items_before(node, old)
        for i, item in enumerate(value):
            was = before.get(node.element(item), UNSET) if before else UNSET
            yield from _rule_errors(node.items, item, was, f"{path}[{i}]")


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# -- the keywords: each returns (reason, message) or None


def _bound(
    reason: str, words: str, kind: type | tuple[type, ...], exceeds: Callable[[Any, Any], bool]
) -> Check:
    def check(value: Any, limit: Any) -> tuple[str, str] | None:
        if not isinstance(value, kind) or isinstance(value, bool) or not exceeds(value, limit):
            return None
        return reason, words.format(limit)

    return check


def _enum(value: Any, allowed: list[Any]) -> tuple[str, str] | None:
    if value in allowed:
        return None
    listed = ", ".join(dumps(item) for item in allowed)
    return "FieldValueNotSupported", f"Unsupported value: {dumps(value)}: supported values: {listed}"


def _pattern(value: Any, pattern: str) -> tuple[str, str] | None:
    if not isinstance(value, str) or _matches(value, pattern):
        return None
    return "FieldValueInvalid", f"Invalid value: {dumps(value)}: should match '{pattern}'"


_matches = lru_cache(maxsize=4096)(matches)  # values repeat, and a pattern is compiled for each


BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _format(value: Any, name: str) -> tuple[str, str] | None:
    if not isinstance(value, str) or (name == "byte" and BASE64.fullmatch(value)):
        return None
    if name not in ("byte", "date-time") or (name == "date-time" and _is_time(value)):
        return None
    return "FieldValueInvalid", f"Invalid value: {dumps(value)}: must be of type {name}"


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None and "T" in value
    except ValueError:
        return False


TOO_LONG, TOO_MANY, INVALID = "FieldValueTooLong", "FieldValueTooMany", "FieldValueInvalid"
NUMBER = (int, float)
CHECKS: dict[str, Check] = {
    "enum": _enum,
    "format": _format,
    "pattern": _pattern,
    "maxLength": _bound(TOO_LONG, "Too long: may not be more than {} bytes", str, lambda v, n: len(v) > n),
    "minLength": _bound(INVALID, "should be at least {} chars long", str, lambda v, n: len(v) < n),
    "maxItems": _bound(TOO_MANY, "Too many: must have at most {} items", list, lambda v, n: len(v) > n),
    "minItems": _bound(INVALID, "should have at least {} items", list, lambda v, n: len(v) < n),
    "maxProperties": _bound(TOO_MANY, "Too many: must have at most {} items", dict, lambda v, n: len(v) > n),
    "minProperties": _bound(INVALID, "should have at least {} properties", dict, lambda v, n: len(v) < n),
    "maximum": _bound(INVALID, "should be less than or equal to {}", NUMBER, lambda v, n: v > n),
    "minimum": _bound(INVALID, "should be greater than or equal to {}", NUMBER, lambda v, n: v < n),
    "multipleOf": _bound(INVALID, "should be a multiple of {}", NUMBER, lambda v, n: v % n != 0),
}  # exclusiveMinimum and exclusiveMaximum, which no kind uses, are not checked
