"""
OpenAPI v3: an index, and one document with schemas per group and version. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.kinds import ServedResource, ServedVersion

FIELD_VALIDATION = {
    "name": "fieldValidation",
    "in": "query",
    "schema": {"type": "string", "uniqueItems": True},
}
COMMON = ("dryRun", "fieldManager", "pretty")
INFO = {"title": "placement-ac hub", "version": "v1.35.0"}


def document(catalog: Catalog, path: str) -> dict[str, Any] | None:
    """Return the index for "", or the document of "api/v1" or "apis/GROUP/VERSION"; None if not served."""
    if not path:
        return _index(catalog)
    match path.split("/"):
        case ["api", version]:
            return _document(catalog, "", version)
        case ["apis", group, version]:
            return _document(catalog, group, version)
    return None


def all_schemas(catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the schema of each served kind and version."""
    for resource in catalog:
        for version in resource.versions.values():
            yield _name(resource, version), _schema(resource, version)


def _index(catalog: Catalog) -> dict[str, Any]:
    served = {"api/v1"} | {
        f"apis/{group}/{v}" for group, versions in catalog.groups().items() for v in versions
    }
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={catalog.edition}"}
            for path in sorted(served)
        }
    }


def _document(catalog: Catalog, group: str, version: str) -> dict[str, Any] | None:
    served = catalog.served(group, version)
    if not served:
        return None
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for resource, served_version in served:
        schemas[_name(resource, served_version)] = _schema(resource, served_version)
        paths |= _paths(resource, served_version)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _name(resource: ServedResource, version: ServedVersion) -> str:
    """Return the schema's name as in Kubernetes: reversed group, version, kind."""
    if not resource.custom:
        return f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{version.name}.{resource.kind}"
    return ".".join([*reversed(resource.group.split(".")), version.name, resource.kind])


def _identity(resource: ServedResource, version: ServedVersion) -> dict[str, str]:
    return {"group": resource.group, "version": version.name, "kind": resource.kind}


def _schema(resource: ServedResource, version: ServedVersion) -> dict[str, Any]:
    document = version.schema.document
    if _takes_any_field(version):
        document = kinds.published().get((resource.group, version.name, resource.kind), document)
    return document | {"x-kubernetes-group-version-kind": [_identity(resource, version)]}


def _takes_any_field(version: ServedVersion) -> bool:
    spec = version.schema.properties.get("spec")
    return version.schema.preserve or (spec is not None and spec.preserve)


def _paths(resource: ServedResource, version: ServedVersion) -> dict[str, Any]:
    root = f"/apis/{resource.group}/{version.name}" if resource.group else f"/api/{version.name}"
    base = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    one, many = f"{base}/{resource.plural}/{{name}}", f"{base}/{resource.plural}"
    paths = {
        many: {"get": _operation(resource, version, "list"), "post": _operation(resource, version, "post")},
        one: {
            "get": _operation(resource, version, "get"),
            "put": _operation(resource, version, "put"),
            "patch": _operation(resource, version, "patch"),
            "delete": _operation(resource, version, "delete"),
        },
    }
    if version.status:
        paths[one + "/status"] = {k: _operation(resource, version, k) for k in ("get", "put", "patch")}
    return paths


def _operation(resource: ServedResource, version: ServedVersion, action: str) -> dict[str, Any]:
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in COMMON]
    if action in ("post", "put", "patch"):
        parameters.append(FIELD_VALIDATION)
    operation: dict[str, Any] = {
        "operationId": f"{action}{version.name.capitalize()}{resource.kind}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(resource, version),
    }
    if action in ("post", "put", "patch"):
        body = {"schema": {"$ref": f"#/components/schemas/{_name(resource, version)}"}}
        kinds = ("application/json",) if action != "patch" else (
            "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
            *(() if resource.custom else ("application/strategic-merge-patch+json",)),
        )  # fmt: skip
        operation["requestBody"] = {"content": dict.fromkeys(kinds, body)}
    return operation
