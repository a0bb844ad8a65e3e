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

    from placement_ac.lab.hub.request_attributes import Action

ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A PolicyRule; the fields are those of the API, in its order."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, action: Action) -> bool:
        if not _has(self.verbs, action.verb):
            return False
        if action.path is not None:
            return any(_leads_to(url, action.path) for url in self.urls)
        return (
            _has(self.groups, action.group)
            and self._names_resource(action.full_resource, action.subresource)
            and (not self.names or action.name in self.names)
        )

    def _names_resource(self, resource: str, subresource: str) -> bool:
        return _has(self.resources, resource) or (bool(subresource) and f"*/{subresource}" in self.resources)

    def covers(self, part: Rule) -> bool:
        """Whether it gives what a `part` (see `parts`) gives."""
        if not _has(self.verbs, part.verbs[0]):
            return False
        if part.urls:
            return any(_leads_to(url, part.urls[0]) for url in self.urls)
        resource = part.resources[0]
        return (
            _has(self.groups, part.groups[0])
            and self._names_resource(resource, resource.partition("/")[2])
            and (not self.names or (bool(part.names) and part.names[0] in self.names))
        )

    def parts(self) -> Iterator[Rule]:
        """The same in the smallest rules: one verb on one resource (of one name) or one URL each."""
        for group, resource, verb, name in product(
            self.groups, self.resources, self.verbs, self.names or ("",)
        ):
            yield Rule((verb,), (group,), (resource,), (name,) if name else ())
        for url, verb in product(self.urls, self.verbs):
            yield Rule((verb,), urls=(url,))

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


def rule(document: dict[str, Any]) -> Rule:
    """Read a (valid) rule of a role."""
    return Rule(*(tuple(document.get(field) or ()) for field in FIELDS))


def missing(wanted: Iterable[Rule], held: Iterable[Rule]) -> list[Rule]:
    """What of the `wanted` rules is not `held`: one rule for each resource or URL, with its verbs."""
    held = tuple(held)
    verbs: dict[Rule, list[str]] = {}
    for part in (part for one in wanted for part in one.parts()):
        if not any(one.covers(part) for one in held):
            thing = Rule((), part.groups, part.resources, part.names, part.urls)
            verbs.setdefault(thing, []).extend(part.verbs)
    return [Rule(tuple(v), t.groups, t.resources, t.names, t.urls) for t, v in verbs.items()]


def quoted(values: Iterable[str]) -> str:
    """A list of texts as Go prints it: ["a" "b"]."""
    return "[" + " ".join(orjson.dumps(value).decode() for value in values) + "]"


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ALL in values


def _leads_to(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), urls=(ALL,)))
# The ClusterRoles that are there from the start, as far as one can do without the others (view, edit, …).
ROLES: dict[str, tuple[Rule, ...]] = {
    "cluster-admin": EVERYTHING,
    "system:discovery": (
        Rule(
            ("get",),
            urls=(
                "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
                "/readyz", "/version", "/version/",
            ),
        ),
    ),
    "system:basic-user": (
        Rule(
            ("create",),
            ("authorization.k8s.io",),
            ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        ),
        Rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    ),
    "system:public-info-viewer": (
        Rule(("get",), urls=("/healthz", "/livez", "/readyz", "/version", "/version/")),
    ),
    "system:auth-delegator": (
        Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ),
}  # fmt: skip
# Which groups they are bound to, by a ClusterRoleBinding of the same name.
BOUND: tuple[tuple[str, str], ...] = (
    ("cluster-admin", MASTERS),
    ("system:discovery", AUTHENTICATED),
    ("system:basic-user", AUTHENTICATED),
    ("system:public-info-viewer", AUTHENTICATED),
    ("system:public-info-viewer", UNAUTHENTICATED),
)
