"""
OpenAPI v2, as JSON or protobuf: the schemas of all kinds, without paths. Pure.

kubectl validates a `kind: List` and a kind that is not served with it, and reads only the protobuf form.
Source: Kubernetes, apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go; the field numbers are
those of google/gnostic-models/openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from placement_lab.hub import openapi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from placement_lab.hub.catalog import Catalog

    Writer = Callable[[Any], bytes]

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", PROTOBUF)
KEPT = ("type", "format", "description", "required", "x-kubernetes-group-version-kind")


def document(catalog: Catalog) -> dict[str, Any]:
    """Return the document with the schemas of all kinds."""
    return {
        "swagger": "2.0",
        "info": openapi.INFO,
        "paths": {},
        "definitions": {name: _schema(schema) for name, schema in openapi.all_schemas(catalog)},
    }


def _schema(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that kubectl can read: a value that may be null or have unknown fields has no type."""
    schema = {key: node[key] for key in KEPT if node.get(key)}
    if node.get("nullable") or node.get("x-kubernetes-preserve-unknown-fields"):
        return {key: value for key, value in schema.items() if key not in ("type", "required")}
    if properties := node.get("properties"):
        schema["properties"] = {name: _schema(child) for name, child in properties.items()}
        schema["required"] = [
            name for name in schema.get("required", ()) if not _may_be_null(properties, name)
        ]
    if isinstance(node.get("additionalProperties"), dict):
        schema["additionalProperties"] = _schema(node["additionalProperties"])
    if node.get("items"):
        schema["items"] = _schema(node["items"])
    elif schema.get("type") == "array":
        del schema["type"]
    return schema


def _may_be_null(properties: dict[str, Any], name: str) -> bool:
    return bool(properties.get(name, {}).get("nullable"))


def _field(number: int, data: bytes) -> bytes:
    """Return a field of a message: its tag, its length and its content."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Return a base 128 varint."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def _texts(value: list[str]) -> bytes:
    return b"".join(_field(1, text.encode()) for text in value)


def _named(value: Mapping[str, Any]) -> bytes:
    """Return named schemas (Definitions, Properties)."""
    pairs = (_field(1, name.encode()) + _field(2, _schema_message(node)) for name, node in value.items())
    return b"".join(_field(1, pair) for pair in pairs)


def _schema_message(schema: dict[str, Any]) -> bytes:
    written = [_field(number, write(schema[key])) for key, (number, write) in FIELDS.items() if key in schema]
    written += [_field(19, name.encode()) for name in schema.get("required", ())]
    written += [
        _field(31, _field(1, key.encode()) + _field(2, _field(2, orjson.dumps(value))))
        for key, value in schema.items()
        if key.startswith("x-")
    ]
    return b"".join(written)


FIELDS: dict[str, tuple[int, Writer]] = {
    "format": (2, str.encode),
    "description": (4, str.encode),
    "additionalProperties": (21, lambda schema: _field(1, _schema_message(schema))),
    "type": (22, lambda name: _texts([name])),
    "items": (23, lambda schema: _field(1, _schema_message(schema))),
    "properties": (25, _named),
}
"""JSON key → the number in the message `Schema`, and how the value is written."""


def protobuf(document: dict[str, Any]) -> bytes:
    """Return the document as the protobuf message `openapi.v2.Document`."""
    info = _field(1, document["info"]["title"].encode()) + _field(2, document["info"]["version"].encode())
    return b"".join((
        _field(1, document["swagger"].encode()), _field(2, info), _field(8, b""),
        _field(9, _named(document["definitions"])),
    ))  # fmt: skip
