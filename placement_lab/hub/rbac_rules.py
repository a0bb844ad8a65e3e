"""
RBAC rules and the default ClusterRoles and bindings. Pure.

Source: Kubernetes, pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation
and plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import orjson

from placement_lab.hub.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from placement_lab.hub.request_attributes import RequestAttributes

ALL = "*"


@dataclass(frozen=True, slots=True)
class RbacRule:
    """A PolicyRule of the RBAC API."""

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
        """Return whether this rule grants everything that `part` (see `parts`) grants."""
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
        """Yield the rule as minimal rules: one verb on one resource (and name) or one URL each."""
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
        """Return the rule as Kubernetes prints it: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}."""
        fields = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{label}:{quoted(values)}" for label, values in fields if values) + "}"


FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def parse_rule(document: dict[str, Any]) -> RbacRule:
    """Parse a valid rule of a role."""
    return RbacRule(*(tuple(document.get(field) or ()) for field in FIELDS))


def missing_rules(wanted: Iterable[RbacRule], held: Iterable[RbacRule]) -> list[RbacRule]:
    """Return the parts of `wanted` that `held` does not cover: one rule per resource or URL."""
    held = tuple(held)
    verbs: dict[RbacRule, list[str]] = {}
    for part in (part for rule in wanted for part in rule.parts()):
        if not any(rule.covers(part) for rule in held):
            thing = RbacRule((), part.groups, part.resources, part.names, part.urls)
            verbs.setdefault(thing, []).extend(part.verbs)
    return [RbacRule(tuple(v), t.groups, t.resources, t.names, t.urls) for t, v in verbs.items()]


def quoted(values: Iterable[str]) -> str:
    """Return a list of strings as Go prints it: ["a" "b"]."""
    return "[" + " ".join(orjson.dumps(value).decode() for value in values) + "]"


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ALL in values


def _url_matches(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


EVERYTHING = (RbacRule((ALL,), (ALL,), (ALL,)), RbacRule((ALL,), urls=(ALL,)))
# The default ClusterRoles, without those that the hub does not need (view, edit, …).
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
# The groups that they are bound to, by a ClusterRoleBinding of the same name.
DEFAULT_BINDINGS: tuple[tuple[str, str], ...] = (
    ("cluster-admin", MASTERS),
    ("system:discovery", AUTHENTICATED),
    ("system:basic-user", AUTHENTICATED),
    ("system:public-info-viewer", AUTHENTICATED),
    ("system:public-info-viewer", UNAUTHENTICATED),
)
