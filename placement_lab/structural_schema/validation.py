"""
Validate a value against its schema; returns causes and raises no exception.

Values that did not change since the last write are not validated again (Kubernetes' "ratcheting"): an
existing error does not block an unrelated write.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubectl_placement.scheduling.cel_regex import matches
from placement_lab.structural_schema import rules
from placement_lab.structural_schema.formats import has_format
from placement_lab.structural_schema.schema_node import ANYTHING, UNSET, SchemaNode, dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Check = Callable[[Any, Any, dict[str, Any]], "tuple[str, str] | None"]


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
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    "<nil>",
)
Sized = type[str] | type[list[Any]] | type[dict[str, Any]]
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int, float), "number": (int, float),
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
    if node.type == "integer" and _is_number(value) and not _is_integer(value, node.document.get("format")):
        kind = f"with format {node.document['format']}" if "format" in node.document else "(default format)"
        yield StatusCause(
            "FieldValueInvalid",
            f'Invalid value: "": Checked value must be of type integer {kind} in {path}',
            "<nil>",
        )
    if not _has_type(node, value):
        yield _wrong_type(path, dumps(type_of(value)), node.type or "integer,string")
        return
    yield from _keyword_errors(node, value, path)
    if isinstance(value, dict):
        yield from _map_errors(node, value, old, path)
    elif isinstance(value, list):
        yield from _list_errors(node, value, old, path)


def _has_type(node: SchemaNode, value: Any) -> bool:
    if node.document.get("x-kubernetes-int-or-string"):
        return isinstance(value, str) or (_is_number(value) and _is_integer(value))
    if not node.type:
        return True
    if isinstance(value, bool):
        return node.type == "boolean"
    if node.type == "integer":
        return _is_number(value) and _is_integer(value)
    return isinstance(value, TYPES[node.type])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: float, form: str | None = None) -> bool:
    """Return whether a number is an integer of that format: int32, or of 64 bits."""
    limit = 2 ** (31 if form == "int32" else 63)
    least = 1 - limit if type(value) is float else -limit  # what does not fit has been read as a float
    return least <= value < limit and value == int(value)


def type_of(value: Any) -> str:
    """Return the name of a value's type; what does not fit 64 bits is a number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if _is_number(value):
        return "integer" if _is_integer(value) else "number"
    return next(name for name, types in TYPES.items() if isinstance(value, types))


def _in_body(path: str) -> str:
    """Return a path as errors of the schema name it: within status, /status is the whole body."""
    return f"{path.removeprefix('status.')} in body"


def _wrong_type(path: str, value: str, wanted: str) -> StatusCause:
    message = f"Invalid value: {value}: {_in_body(path)} must be of type {wanted}: {value}"
    return StatusCause("FieldValueTypeInvalid", message, path)


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
    document = node.document
    if isinstance(value, str) and not has_format(value, document.get("format", "")):
        yield _wrong_type(path, dumps(value), document["format"])
    for keyword, check in CHECKS.items():
        if keyword in document and (fault := check(value, document[keyword], document)):
            yield StatusCause(fault[0], fault[1].format(where=_in_body(path)), path)
    if node.variants:
        yield from _variant_errors(node.variants, value, path)


def _variant_errors(variants: dict[str, Any], value: Any, path: str) -> Iterator[StatusCause]:
    every = [
        cause for one in variants.get("allOf", ()) for cause in _errors(_compiled(one), value, UNSET, path)
    ]
    if every:
        yield _no_variant(path, "must validate all the schemas (allOf)")
        yield from every
    for kind, rule in (("anyOf", "at least one schema"), ("oneOf", "one and only one schema")):
        found = [[*_errors(_compiled(one), value, UNSET, path)] for one in variants.get(kind, ())]
        passing = found.count([])
        if found and not passing:
            none = ". Found none valid" if kind == "oneOf" else ""
            yield _no_variant(path, f"must validate {rule} ({kind}){none}")
            yield from min(found, key=len)
        elif kind == "oneOf" and passing > 1:
            yield _no_variant(path, f"must validate {rule} ({kind}). Found {passing} valid alternatives")
    if "not" in variants and next(_errors(_compiled(variants["not"]), value, UNSET, path), None) is None:
        yield _no_variant(path, "must not validate the schema (not)")


def _no_variant(path: str, why: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f'Invalid value: "": {dumps(path)} {why}', "<nil>")


_variants: dict[int, tuple[dict[str, Any], SchemaNode]] = {}


def _compiled(document: dict[str, Any]) -> SchemaNode:
    known = _variants.get(id(document))
    if known is None:  # keeping the document keeps its id unique
        known = _variants[id(document)] = (document, SchemaNode(document))
    return known[1]


def _rule_errors(node: SchemaNode, value: Any, old: Any, path: str) -> Iterator[StatusCause]:
    if not node.has_rules or (old is not UNSET and (old is value or old == value)):
        return
    composed = isinstance(value, (dict, list))
    for rule in node.rules:
        if violation := rules.violation(rule, value, old):
            yield StatusCause(
                rule.get("reason") or "FieldValueInvalid",
                "Invalid value: " + ("" if composed else f"{dumps(value)}: ") + violation.message,
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


# -- the keywords: each returns (reason, message) or None; {where} is filled in


def _bound(words: str, fits: Callable[[Any, Any], bool], exclusive: str = "") -> Check:
    """Return the check of a number: `words` for an inclusive limit, `exclusive` for its keyword and words."""
    keyword, _, other_words = exclusive.partition(" ")

    def check(value: Any, limit: Any, document: dict[str, Any]) -> tuple[str, str] | None:
        if not _is_number(value):
            return None
        is_exclusive = bool(document.get(keyword))
        if fits(value, limit) and not (is_exclusive and value == limit):
            return None
        return INVALID, _said(dumps(value), f"should be {other_words if is_exclusive else words} {limit}")

    return check


def _said(value: str, why: str) -> str:
    return f"Invalid value: {_literally(value)}: {{where}} {_literally(why)}"


def _literally(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _at_least(kind: Sized, words: str) -> Check:
    def check(value: Any, limit: int, _: dict[str, Any]) -> tuple[str, str] | None:
        if not isinstance(value, kind) or len(value) >= limit:
            return None
        shown = dumps(value) if kind is str else str(len(value))
        return INVALID, _said(shown, f"should {words.format(limit)}")

    return check


def _at_most(kind: Sized) -> Check:
    def check(value: Any, limit: int, _: dict[str, Any]) -> tuple[str, str] | None:
        if not isinstance(value, kind) or len(value) <= limit:
            return None
        if kind is str:
            return "FieldValueTooLong", f"Too long: may not be more than {limit} bytes"
        return "FieldValueTooMany", f"Too many: {len(value)}: must have at most {limit} items"

    return check


def _is_multiple(value: float, factor: float) -> bool:
    """Return whether it is one, with the rounding of a real server: 0.3 is a multiple of 0.1."""
    ratio = 1 / factor * value if factor < 1 else value / factor
    return abs(ratio - round(ratio)) < 1e-9


def _enum(value: Any, allowed: list[Any], _: dict[str, Any]) -> tuple[str, str] | None:
    if value in allowed:
        return None
    listed = ", ".join(dumps(item) for item in allowed)
    message = f"Unsupported value: {dumps(value)}: supported values: {listed}"
    return "FieldValueNotSupported", _literally(message)


def _pattern(value: Any, pattern: str, _: dict[str, Any]) -> tuple[str, str] | None:
    if not isinstance(value, str) or _matches(value, pattern):
        return None
    return INVALID, _said(dumps(value), f"should match '{pattern}'")


_matches = lru_cache(maxsize=4096)(matches)  # values repeat, and a pattern is compiled for each


INVALID = "FieldValueInvalid"
CHECKS: dict[str, Check] = {
    "enum": _enum,
    "pattern": _pattern,
    "maxLength": _at_most(str),
    "minLength": _at_least(str, "be at least {} chars long"),
    "maxItems": _at_most(list),
    "minItems": _at_least(list, "have at least {} items"),
    "maxProperties": _at_most(dict),
    "minProperties": _at_least(dict, "have at least {} properties"),
    "maximum": _bound("less than or equal to", operator.le, "exclusiveMaximum less than"),
    "minimum": _bound("greater than or equal to", operator.ge, "exclusiveMinimum greater than"),
    "multipleOf": _bound("a multiple of", _is_multiple),
}
