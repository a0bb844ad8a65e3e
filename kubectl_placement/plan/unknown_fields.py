"""
Find fields of a manifest that its kind does not have, by the schema of the hub or of a CRD in a dump.

Pure. `kubectl apply` refuses such fields, other clients lose them without a word.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.kinds import CRD
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.fields import get_dict, get_list

Schema = Mapping[str, Any]
MAX_SHOWN: Final = 10
"""Fields of one object: the closest name takes a fraction of a millisecond to find."""
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_IDENTITY: Final = frozenset(("apiVersion", "kind", "metadata"))


def schema_of(resource: Resource, dump: Dump) -> Schema:
    """Return the OpenAPI schema of a kind; {} if none is known."""
    if resource in dump.schemas:
        return dump.schemas[resource]
    crd = dump.find(CRD, f"{resource.of.plural}.{resource.of.group}") or {}
    versions = (
        version for version in get_list(crd, "spec", "versions") if version.get("name") == resource.version
    )
    return next((get_dict(version, "schema", "openAPIV3Schema") for version in versions), {})


def unknown_fields(obj: Object, resource: Resource, dump: Dump) -> Iterator[str]:
    """Yield each field that its kind does not have, with the closest one; none if no schema is known."""
    content = {key: value for key, value in obj.items() if key not in _IDENTITY}
    found = list(_unknown(content, schema_of(resource, dump), ""))
    for path, known in found[:MAX_SHOWN]:
        name = path.rpartition(".")[2]
        closest = difflib.get_close_matches(name, known, 1)
        yield path + (f"; did you mean {closest[0]}?" if closest else "")
    if len(found) > MAX_SHOWN:
        yield f"{found[MAX_SHOWN][0]}; {len(found):,} fields are unknown"


def spec_defaults(resource: Resource, dump: Dump) -> dict[str, Any]:
    """Return the values that the API server sets in `spec`; {} if no schema is known."""
    known = get_dict(schema_of(resource, dump), "properties", "spec", "properties")
    return {key: one["default"] for key, one in known.items() if isinstance(one, dict) and "default" in one}


def _unknown(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the path of each unknown field, and the names that are known there."""
    if isinstance(value, list):
        items = get_dict(schema, "items")
        for number, item in enumerate(value):
            yield from _unknown(item, items, f"{path}[{number}]")
    properties = get_dict(schema, "properties")
    if not isinstance(value, dict) or not properties or schema.get(_PRESERVE):
        return  # a map of any keys, or a reference to a schema that was not read
    for key, below in value.items():
        here = f"{path}.{key}".removeprefix(".")
        if key in properties:
            yield from _unknown(below, get_dict(properties, key), here)
        else:
            yield here, sorted(properties)
