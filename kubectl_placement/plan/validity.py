"""
Whether an API server would take an object: by the schema of the hub or of a CRD in a dump, and by its names.

Pure. The words are the API server's. A value that an object had before is not refused
(Kubernetes: ratcheting).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.kinds import CRD
from kubectl_placement.structural_schema.schema_node import IDENTITY, SchemaNode, prune_and_default
from kubectl_placement.structural_schema.validation import StatusCause, validate
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.fields import get_dict, get_list

Schema = Mapping[str, Any]
_ANY_MAP: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INVALID: Final = "FieldValueInvalid"
_NAME_MAX: Final = 253
_LABEL_MAX: Final = 63
_NAME: Final = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NO_NAME: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_NO_LABEL: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)
_TOO_LONG: Final = "must be no more than {} characters"


class Validity(NamedTuple):
    """The verdict on one object."""

    refusals: tuple[str, ...] = ()
    """As an API server words them: `spec: Required value`."""
    unknown: tuple[str, ...] = ()
    """Why the verdict is not complete."""


def schema_of(resource: Resource, dump: Dump) -> Schema:
    """Return the OpenAPI schema of a kind; {} if none is known."""
    if resource in dump.schemas:
        return dump.schemas[resource]
    crd = dump.find(CRD, f"{resource.of.plural}.{resource.of.group}") or {}
    versions = (
        version for version in get_list(crd, "spec", "versions") if version.get("name") == resource.version
    )
    return next((get_dict(version, "schema", "openAPIV3Schema") for version in versions), {})


def validity(before: Object | None, after: Object, schema: Schema) -> Validity:
    """Return whether an API server would store `after` in place of `before`."""
    first = list(_metadata_causes(after["metadata"])) if before is None else []
    if not schema:
        return _verdict(first)
    try:
        return _verdict(_causes(before, after, schema, first))
    except Exception as error:  # the schema of a dump may be anything
        why = f"its CustomResourceDefinition cannot be used: {type(error).__name__}"
        return Validity(tuple(map(str, first)), (why,))


def _causes(
    before: Object | None, after: Object, schema: Schema, first: list[StatusCause]
) -> list[StatusCause]:
    node = SchemaNode(_with_identity(schema))
    old, new = (prune_and_default(node, one, defaults=True, unknown=[]) for one in (before, after))
    return validate(node, new, old, first)


def _with_identity(schema: Schema) -> dict[str, Any]:
    """Return the schema with a simple one of the fields that every object has: a hub refers to another."""
    own = {key: one for key, one in (schema.get("properties") or {}).items() if key not in IDENTITY}
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _ANY_MAP}
    return {**schema, "type": "object", "properties": own | identity}


def _verdict(causes: list[StatusCause]) -> Validity:
    refusals = tuple(str(cause) for cause in causes if cause.evaluated)
    return Validity(refusals, tuple(str(cause) for cause in causes if not cause.evaluated))


def _metadata_causes(metadata: Mapping[str, Any]) -> Iterator[StatusCause]:
    yield from _name_causes("metadata.name", metadata["name"], _NAME, _NAME_MAX, _NO_NAME)
    for value in (metadata.get("labels") or {}).values():
        yield from _name_causes("metadata.labels", value, _LABEL_VALUE, _LABEL_MAX, _NO_LABEL)


def _name_causes(
    field: str, value: str, form: re.Pattern[str], longest: int, why: str
) -> Iterator[StatusCause]:
    if len(value) > longest:
        yield StatusCause(
            _INVALID, f'Invalid value: "{value[:longest]}…": {_TOO_LONG.format(longest)}', field
        )
    elif not form.fullmatch(value):
        yield StatusCause(_INVALID, f'Invalid value: "{value}": {why}', field)
