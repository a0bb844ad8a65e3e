"""
The attributes of a request that RBAC checks: a verb on a resource, or on a path. Pure.

Source: Kubernetes, apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from placement_lab.hub import options
from placement_lab.hub.selectors import name_in

VERBS = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
OF_NAMESPACES = ("status", "finalize")  # subresources of a namespace


@dataclass(frozen=True, slots=True)
class RequestAttributes:
    """
    A verb on a resource, or on a path: `path` is None for resource requests.

    `subresource`, `namespace` and `name` may be empty; "" is the core group.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None

    @property
    def full_resource(self) -> str:
        """The resource as rules name it: workloads, or workloads/status."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(method: str, path: str, query: dict[str, str]) -> RequestAttributes:
    """Return the attributes of a request; empty path segments are ignored, as in the hub's routing."""
    match [part for part in path.split("/") if part]:
        case ["api", _, first, *more]:
            return _on_resource(method, "", [first, *more], query)
        case ["apis", group, _, first, *more]:
            return _on_resource(method, group, [first, *more], query)
    return RequestAttributes(method.lower(), path=path)


def _on_resource(method: str, group: str, parts: list[str], query: dict[str, str]) -> RequestAttributes:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in OF_NAMESPACES:
            parts = parts[2:]
    resource, name, subresource = [*parts, "", ""][:3]
    verb = VERBS.get(method, "")
    if not name and verb == "get":
        verb = "watch" if options.flag(query, "watch") else "list"
        name = _selected(query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestAttributes(verb, group, resource, subresource, namespace, name)


def _selected(fields: str) -> str:
    """Return the name that a field selector requires, or ""."""
    return next((name for part in fields.split(",") if (name := name_in(part.strip()))), "")


def attributes_of_review(spec: dict[str, Any]) -> RequestAttributes | None:
    """Return the attributes in a SelfSubjectAccessReview's spec; None unless it has exactly one kind."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(path, dict) and resource is None:
        return RequestAttributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    if not isinstance(resource, dict) or path is not None:
        return None
    keys = ("verb", "group", "resource", "subresource", "namespace", "name")
    return RequestAttributes(*(str(resource.get(key) or "") for key in keys))
