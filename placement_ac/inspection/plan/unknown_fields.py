"""
Find fields of a manifest that its kind does not have, by the schema of the hub or of a CRD in a dump.

Pure. `kubectl apply` refuses such fields, other clients lose them without a word.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import Resource
from placement_ac.inspection.hub.dump import Dump, Object
from placement_ac.inspection.hub.kinds import CRD
from placement_ac.scheduling.objects import listed

Schema = Mapping[str, Any]
_ALWAYS: Final = ("apiVersion", "kind", "metadata")
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(obj: Object, resource: Resource, dump: Dump) -> Iterator[str]:
    """Yield each field that its kind does not have, with the closest one; none if no schema is known."""
    content = {key: value for key, value in obj.items() if key not in _ALWAYS}
    for path, known in _unknown(content, _schema(resource, dump), ""):
        name = path.rpartition(".")[2]
        closest = difflib.get_close_matches(name, known, 1)
        yield path + (f"; did you mean {closest[0]}?" if closest else "")


def spec_defaults(resource: Resource, dump: Dump) -> dict[str, Any]:
    """Return the values that the API server sets in `spec`; {} if no schema is known."""
    spec = (_schema(resource, dump).get("properties") or {}).get("spec") or {}
    known = spec.get("properties") or {}
    return {key: schema["default"] for key, schema in known.items() if "default" in schema}


def _schema(resource: Resource, dump: Dump) -> Schema:
    if resource in dump.schemas:
        return dump.schemas[resource]
    crd = dump.find(CRD, f"{resource.of.plural}.{resource.of.group}") or {}
    versions = (one for one in listed(crd, "spec", "versions") if one.get("name") == resource.version)
    return next(((one.get("schema") or {}).get("openAPIV3Schema") or {} for one in versions), {})


def _unknown(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the path of each unknown field, and the names that are known there."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        for number, item in enumerate(value):
            yield from _unknown(item, items, f"{path}[{number}]")
    properties = schema.get("properties")
    if not isinstance(value, dict) or not properties or schema.get(_PRESERVE):
        return  # a map of any keys, or a reference to a schema that was not read
    for key, below in value.items():
        here = f"{path}.{key}".removeprefix(".")
        if key in properties:
            yield from _unknown(below, properties[key], here)
        else:
            yield here, sorted(properties)
