"""
Authorize requests by the roles and bindings in the store.

Runs in the hub's thread. The rules of a user in a namespace are cached until a role or binding changes.
Source: Kubernetes, pkg/registry/rbac and plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placement_lab.hub import kinds, rbac_rules, rbac_validation
from placement_lab.hub.errors import StatusError, forbidden, object_details
from placement_lab.hub.request_attributes import RequestAttributes
from placement_lab.hub.users import MASTERS, account_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from placement_lab.hub.rbac_rules import RbacRule
    from placement_lab.hub.store import Object, Record, ResourceStore, Store
    from placement_lab.hub.users import UserInfo
    from placement_lab.hub.write_request import WriteRequest

GROUP = rbac_validation.GROUP
CACHE_SIZE = 10_000  # entries: one per user and namespace


@dataclass(slots=True)
class UserRules:
    """The rules of a user in a namespace ("": cluster-wide), each with its source, and resolution errors."""

    rules: list[tuple[str, RbacRule]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AuthorizationDecision:
    allowed: bool
    reason: str = ""


class Rbac:
    """The roles and bindings of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[tuple[str, tuple[str, ...], str], UserRules] = {}
        self._version = -1  # the version of the roles and bindings behind `_held`
        self._kinds = {kind.plural: kind for kind in kinds.builtin() if kind.group == GROUP}

    def authorize(self, user: UserInfo, action: RequestAttributes) -> AuthorizationDecision:
        """Return the decision; a denial has a reason only if a role is missing."""
        if MASTERS in user.groups:
            return AuthorizationDecision(True)
        held = self.rules_for(user, action.namespace)
        for source, rule in held.rules:
            if rule.allows(action):
                return AuthorizationDecision(True, f"RBAC: allowed by {source}")
        return AuthorizationDecision(False, f"RBAC: {_join_errors(held.errors)}" if held.errors else "")

    def rules_for(self, user: UserInfo, namespace: str) -> UserRules:
        version = max(self._shelf(plural).last for plural in self._kinds)
        if version != self._version or len(self._held) >= CACHE_SIZE:
            self._held.clear()
            self._version = version
        key = (user.name, user.groups, namespace)
        known = self._held.get(key)
        if known is None:
            known = self._held[key] = self._resolve(user, namespace)
        return known

    def _shelf(self, plural: str) -> ResourceStore:
        return self._store.by_resource[self._kinds[plural]]

    def _resolve(self, user: UserInfo, namespace: str) -> UserRules:
        held = UserRules()
        for name, group in rbac_rules.DEFAULT_BINDINGS:
            if group in user.groups:
                source = f'ClusterRoleBinding "{name}" of ClusterRole "{name}" to Group "{group}"'
                held.rules.extend((source, rule) for rule in rbac_rules.DEFAULT_CLUSTER_ROLES[name])
        for record in self._bindings(namespace):
            subject = next(
                (s for s in record.obj.get("subjects") or () if _is_subject(user, s, record.key[0])), None
            )
            if subject is None:
                continue
            try:
                rules = self.rules_of(record.obj["roleRef"], record.key[0])
            except StatusError as error:
                held.errors.append(error.message)
                continue
            source = _describe(record, subject)
            held.rules.extend((source, rule) for rule in rules)
        return held

    def _bindings(self, namespace: str) -> Iterator[Record]:
        yield from self._shelf("clusterrolebindings").between("")
        if namespace:
            yield from self._shelf("rolebindings").between(namespace)

    def rules_of(self, reference: Object, namespace: str) -> tuple[RbacRule, ...]:
        """Return the rules of the role that a binding in `namespace` refers to; raises 404 if missing."""
        kind, name = reference["kind"], reference["name"]
        plural, key = ("roles", (namespace, name)) if kind == "Role" else ("clusterroles", ("", name))
        record = self._shelf(plural).records.get(key)
        if record is not None:
            return self._rules(record.obj)
        if kind == "ClusterRole" and name in rbac_rules.DEFAULT_CLUSTER_ROLES:
            return rbac_rules.DEFAULT_CLUSTER_ROLES[name]
        full = f"{kind.lower()}.{GROUP}"
        details = {"name": name, "group": GROUP, "kind": kind.lower()}
        raise StatusError(404, "NotFound", f'{full} "{name}" not found', details=details)

    def _rules(self, role: Object) -> tuple[RbacRule, ...]:
        """Return the rules of a role, or of the roles that it aggregates (Kubernetes copies them into it)."""
        selectors = _aggregation_selectors(role)
        if not selectors:
            return tuple(map(rbac_rules.parse_rule, role.get("rules") or ()))
        tests = [rbac_validation.selector(selector) for selector in selectors]
        others = (record.obj for record in self._shelf("clusterroles").between(""))
        chosen = [other for other in others if other is not role and any(test(other) for test in tests)]
        return tuple(rbac_rules.parse_rule(rule) for other in chosen for rule in other.get("rules") or ())

    # -- privilege escalation prevention

    def check_escalation(self, request: WriteRequest, obj: Object, live: Object | None) -> None:
        """Raise 403 if a role or binding grants permissions that the user does not have."""
        if request.resource.group != GROUP or request.resource.custom or MASTERS in request.user.groups:
            return
        if self.authorize(request.user, _escalation_right(request, obj)).allowed:
            return
        if reference := obj.get("roleRef"):
            granted = self.rules_of(reference, request.namespace)
        else:
            granted = tuple(map(rbac_rules.parse_rule, obj.get("rules") or ()))
        held = tuple(rule for _, rule in self.rules_for(request.user, request.namespace).rules)
        name = obj["metadata"]["name"]
        if lacking := rbac_rules.missing_rules(granted, held):
            raise _escalation_error(request, name, _escalation_message(request.user, lacking))
        if (_aggregation_selectors(obj) or _aggregation_selectors(live or {})) and rbac_rules.missing_rules(
            rbac_rules.EVERYTHING, held
        ):
            raise _escalation_error(
                request, name, "must have cluster-admin privileges to use the aggregationRule"
            )


def _escalation_right(request: WriteRequest, obj: Object) -> RequestAttributes:
    """Return the permission that allows escalation: escalate for a role, bind for a binding."""
    reference = obj.get("roleRef")
    if reference is None:
        return RequestAttributes(
            "escalate", GROUP, request.resource.plural, "", request.namespace, request.name
        )
    plural = "roles" if reference["kind"] == "Role" else "clusterroles"
    return RequestAttributes("bind", GROUP, plural, "", request.namespace, reference["name"])


def _aggregation_selectors(role: Object) -> list[Object]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _escalation_message(user: UserInfo, lacking: Iterable[RbacRule]) -> str:
    what = "\n".join(sorted(map(str, lacking)))
    return (
        f'user "{user.name}" (groups={rbac_rules.quoted(user.groups)}) is attempting to grant '
        f"RBAC permissions not currently held:\n{what}"
    )


def _escalation_error(request: WriteRequest, name: str, why: str) -> StatusError:
    return forbidden(
        f'{request.resource.full} "{name}" is forbidden: {why}', object_details(request.resource, name)
    )


def _is_subject(user: UserInfo, subject: dict[str, Any], namespace: str) -> bool:
    """Return whether a subject of a binding in `namespace` ("" for a ClusterRoleBinding) is this user."""
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return bool(user.name == name)
    if kind == "Group":
        return name in user.groups
    where = subject.get("namespace") or namespace
    return bool(where) and user.name == account_name(where, name)


def _describe(binding: Record, subject: dict[str, Any]) -> str:
    namespace, name = binding.key
    full = f"{name}/{namespace}" if namespace else name
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    role = binding.obj["roleRef"]
    return f'{binding.resource.kind} "{full}" of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{who}"'


def _join_errors(errors: list[str]) -> str:
    errors = list(dict.fromkeys(errors))
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
