"""
The rules of RBAC, and what they allow; those that every server has from the start. Pure.

Source: Kubernetes, pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation
and plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import orjson

from placement_ac.lab.hub.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from placement_ac.lab.hub.request_attributes import RequestAttributes

ALL = "*"


@dataclass(frozen=True, slots=True)
class RbacRule:
    """A PolicyRule; the fields are those of the API, in its order."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, action: RequestAttributes) -> bool:
        if not _has(self.verbs, action.verb):
            return False
        if action.path is not None:
            return any(_url_matches(url, action.path) for url in self.urls)
        return (
            _has(self.groups, action.group)
            and self._names_resource(action.full_resource, action.subresource)
            and (not self.names or action.name in self.names)
        )

    def _names_resource(self, resource: str, subresource: str) -> bool:
        return _has(self.resources, resource) or (bool(subresource) and f"*/{subresource}" in self.resources)

    def covers(self, part: RbacRule) -> bool:
        """Whether it gives what a `part` (see `parts`) gives."""
        if not _has(self.verbs, part.verbs[0]):
            return False
        if part.urls:
            return any(_url_matches(url, part.urls[0]) for url in self.urls)
        resource = part.resources[0]
        return (
            _has(self.groups, part.groups[0])
            and self._names_resource(resource, resource.partition("/")[2])
            and (not self.names or (bool(part.names) and part.names[0] in self.names))
        )

    def parts(self) -> Iterator[RbacRule]:
        """The same in the smallest rules: one verb on one resource (of one name) or one URL each."""
        for group, resource, verb, name in product(
            self.groups, self.resources, self.verbs, self.names or ("",)
        ):
            yield RbacRule((verb,), (group,), (resource,), (name,) if name else ())
        for url, verb in product(self.urls, self.verbs):
            yield RbacRule((verb,), urls=(url,))

    def wire(self) -> dict[str, list[str]]:
        values = (self.verbs, self.groups, self.resources, self.names, self.urls)
        return {field: list(value) for field, value in zip(FIELDS, values, strict=True) if value}

    def __str__(self) -> str:
        """As the server tells of it: {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}."""
        told = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{label}:{quoted(values)}" for label, values in told if values) + "}"


FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def parse_rule(document: dict[str, Any]) -> RbacRule:
    """Read a (valid) rule of a role."""
    return RbacRule(*(tuple(document.get(field) or ()) for field in FIELDS))


def missing_rules(wanted: Iterable[RbacRule], held: Iterable[RbacRule]) -> list[RbacRule]:
    """What of the `wanted` rules is not `held`: one rule for each resource or URL, with its verbs."""
    held = tuple(held)
    verbs: dict[RbacRule, list[str]] = {}
    for part in (part for one in wanted for part in one.parts()):
        if not any(one.covers(part) for one in held):
            thing = RbacRule((), part.groups, part.resources, part.names, part.urls)
            verbs.setdefault(thing, []).extend(part.verbs)
    return [RbacRule(tuple(v), t.groups, t.resources, t.names, t.urls) for t, v in verbs.items()]


def quoted(values: Iterable[str]) -> str:
    """A list of texts as Go prints it: ["a" "b"]."""
    return "[" + " ".join(orjson.dumps(value).decode() for value in values) + "]"


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ALL in values


def _url_matches(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


EVERYTHING = (RbacRule((ALL,), (ALL,), (ALL,)), RbacRule((ALL,), urls=(ALL,)))
# The ClusterRoles that are there from the start, as far as one can do without the others (view, edit, …).
DEFAULT_CLUSTER_ROLES: dict[str, tuple[RbacRule, ...]] = {
    "cluster-admin": EVERYTHING,
    "system:discovery": (
        RbacRule(
            ("get",),
            urls=(
                "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
                "/readyz", "/version", "/version/",
            ),
        ),
    ),
    "system:basic-user": (
        RbacRule(
            ("create",),
            ("authorization.k8s.io",),
            ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        ),
        RbacRule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    ),
    "system:public-info-viewer": (
        RbacRule(("get",), urls=("/healthz", "/livez", "/readyz", "/version", "/version/")),
    ),
    "system:auth-delegator": (
        RbacRule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        RbacRule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ),
}  # fmt: skip
# Which groups they are bound to, by a ClusterRoleBinding of the same name.
DEFAULT_BINDINGS: tuple[tuple[str, str], ...] = (
    ("cluster-admin", MASTERS),
    ("system:discovery", AUTHENTICATED),
    ("system:basic-user", AUTHENTICATED),
    ("system:public-info-viewer", AUTHENTICATED),
    ("system:public-info-viewer", UNAUTHENTICATED),
)
