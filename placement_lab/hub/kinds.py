"""
The definition of a kind (`ServedResource`): its names, versions, schemas and columns.

Kinds come from three sources: Kubernetes' built-in kinds (`core.yaml`), the kinds bundled with the
package (`kinds.yaml`, expanded to CRDs), and CustomResourceDefinitions that clients create. Reads
the two files; no other I/O, no store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import orjson
import yaml

from placement_lab.structural_schema.schema_node import SchemaNode

READ = ("get", "list", "watch")
VERBS = ("create", "delete", "deletecollection", *READ, "patch", "update")
VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
STAGES = {"alpha": 0, "beta": 1, None: 2}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A printer column. `path` is a JSONPath such as .status.conditions[?(@.type=="Active")].status."""

    name: str
    type: str
    path: str
    priority: int = 0
    format: str = ""
    description: str = ""


NAME = PrinterColumn("Name", "string", ".metadata.name", 0, "name", "Name must be unique within a namespace.")


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One served version of a kind; `warning`: the deprecation warning, or ""."""

    name: str
    schema: SchemaNode
    status: bool
    columns: tuple[PrinterColumn, ...]
    warning: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ServedResource:
    """A served kind. `custom`: defined by a CRD; `generation`: metadata.generation is counted."""

    group: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool
    versions: dict[str, ServedVersion]
    storage: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    custom: bool = True
    generation: bool = True
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[str, ...] = field(default=())

    @property
    def full(self) -> str:
        """The name in error messages: admissionchecks.kueue.x-k8s.io, or secrets."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def any_version(self) -> ServedVersion:
        """The storage version, or another one if it is not served."""
        return self.versions.get(self.storage) or next(iter(self.versions.values()))

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version


def from_crd(crd: dict[str, Any]) -> ServedResource:
    """Return the kind that a valid CustomResourceDefinition defines."""
    spec, names = crd["spec"], crd["spec"]["names"]
    versions = {v["name"]: _version(v) for v in spec["versions"] if v.get("served", True)}
    return ServedResource(
        group=spec["group"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or names["kind"] + "List",
        namespaced=spec["scope"] == "Namespaced",
        versions=versions,
        storage=next(v["name"] for v in spec["versions"] if v.get("storage")),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
    )


def _version(document: dict[str, Any]) -> ServedVersion:
    warning = document.get("deprecationWarning") or "this version is deprecated"
    columns = document.get("additionalPrinterColumns") or [AGE]
    return ServedVersion(
        name=document["name"],
        schema=object_schema(document.get("schema", {}).get("openAPIV3Schema") or {"type": "object"}),
        status="status" in (document.get("subresources") or {}),
        columns=(NAME, *(_column(column) for column in columns)),
        warning=warning if document.get("deprecated") else "",
        fields=tuple(f["jsonPath"].lstrip(".") for f in document.get("selectableFields") or ()),
    )


AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _column(document: dict[str, Any]) -> PrinterColumn:
    return PrinterColumn(
        name=document["name"],
        type=document["type"],
        path=document["jsonPath"],
        priority=document.get("priority", 0),
        format=document.get("format", ""),
        description=document.get("description", ""),
    )


def object_schema(document: dict[str, Any]) -> SchemaNode:
    """
    Compile the schema of an object, and add apiVersion, kind and metadata.

    Compiled schemas are cached for all hubs. Raises AttributeError or TypeError for an invalid schema.
    """
    return _compiled(orjson.dumps(document))


@lru_cache(maxsize=512)
def _compiled(text: bytes) -> SchemaNode:
    document = orjson.loads(text)
    own = {k: v for k, v in (document.get("properties") or {}).items() if k != "metadata"}
    string = {"type": "string"}
    properties = {"apiVersion": string, "kind": string} | own | {"metadata": METADATA}
    return SchemaNode(document | {"type": "object", "properties": properties})


def priority(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version: v2, v1, v1beta2, v1beta1, v1alpha1, others."""
    match = VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    return (0, -STAGES[match[2]] * 1000 - int(match[1]), -int(match[3] or 0), version)


@cache
def builtin() -> tuple[ServedResource, ...]:
    """Return Kubernetes' built-in kinds that the hub serves."""
    return tuple(_builtin(entry) for entry in _read("core.yaml")["kinds"])


def _builtin(entry: dict[str, Any]) -> ServedResource:
    version, kind = entry["version"], entry["kind"]
    columns = tuple(PrinterColumn(*column) for column in entry["columns"])
    if not any(column.name == "Name" for column in columns):
        columns = (NAME, *columns)
    schema = object_schema({"properties": entry.get("schema") or {}, "required": entry.get("required") or []})
    status = "status" in entry.get("subresources", ())
    fields = tuple(entry.get("fields") or ())
    return ServedResource(
        group=entry.get("group", ""),
        kind=kind,
        plural=entry["plural"],
        singular=kind.lower(),
        list_kind=kind + "List",
        namespaced=entry.get("namespaced", True),
        versions={version: ServedVersion(version, schema, status, columns, fields=fields)},
        storage=version,
        short_names=tuple(entry.get("short") or ()),
        categories=tuple(entry.get("categories") or ()),
        custom=False,
        generation=entry.get("generation", False),
        verbs=tuple(entry.get("verbs") or VERBS),
        subresources=tuple(entry.get("subresources") or ()),
    )


def bundled() -> list[dict[str, Any]]:
    """Return the CRDs installed by default: OCM's, Kueue's, the inventory's, and the samples' job kinds."""
    return [
        _crd(group, entry) for group, entries in _read("kinds.yaml")["groups"].items() for entry in entries
    ]


@cache
def published() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return, by group, version and kind, the schemas for readers of bundled kinds that take any field."""
    return {
        (group, version, entry["kind"]): object_schema(schema).document
        for group, entries in _read("kinds.yaml")["groups"].items()
        for entry in entries
        for version, schema in entry.get("published", {}).items()
    }


def _crd(group: str, entry: dict[str, Any]) -> dict[str, Any]:
    kind, plural = entry["kind"], entry.get("plural", entry["kind"].lower() + "s")
    names = {"kind": kind, "listKind": kind + "List", "plural": plural, "singular": kind.lower()}
    if entry.get("short"):
        names["shortNames"] = entry["short"]
    versions = [_crd_version(entry, name, schema) for name, schema in entry["versions"].items()]
    storage = entry.get("storage", versions[-1]["name"])
    for version in versions:
        version["storage"] = version["name"] == storage
    scope = "Namespaced" if entry.get("namespaced") else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": scope, "versions": versions},
    }


def _crd_version(entry: dict[str, Any], name: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    schema = schema or {"x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {
        "name": name,
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object"} | schema},
    }
    if entry.get("columns"):
        version["additionalPrinterColumns"] = [
            {"name": column, "type": type_, "jsonPath": path, "priority": extra[0] if extra else 0}
            for column, type_, path, *extra in entry["columns"]
        ]
    if entry.get("status", True):
        version["subresources"] = {"status": {}}
    if warning := (entry.get("deprecated") or {}).get(name):
        version |= {"deprecated": True, "deprecationWarning": warning}
    return version


@cache
def _read(name: str) -> dict[str, Any]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 a safe loader, in C if available
    return content


METADATA: dict[str, Any] = _read("core.yaml")["metadata"]
