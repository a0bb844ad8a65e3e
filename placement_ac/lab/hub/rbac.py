"""
May this user do that? Judged by the roles and bindings in the store.

Runs in the hub's thread. What a user holds in a namespace is worked out once
and kept until a role or a binding changes.
Source: Kubernetes, pkg/registry/rbac and plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placement_ac.lab.hub import kinds, rbac_rules, rbac_validation
from placement_ac.lab.hub.errors import ApiError, about, forbidden
from placement_ac.lab.hub.request_attributes import Action
from placement_ac.lab.hub.users import MASTERS, account_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from placement_ac.lab.hub.rbac_rules import Rule
    from placement_ac.lab.hub.store import Object, Record, Shelf, Store
    from placement_ac.lab.hub.users import User
    from placement_ac.lab.hub.write_request import Ask

GROUP = rbac_validation.GROUP
REMEMBERED = 10_000  # users, in so many namespaces


@dataclass(slots=True)
class Held:
    """What one user holds in one namespace ("": cluster-wide), by whom, and what could not be resolved."""

    rules: list[tuple[str, Rule]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    reason: str = ""


class Rbac:
    """The roles and bindings of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[tuple[str, tuple[str, ...], str], Held] = {}
        self._seen = -1  # the version of the roles and bindings that `_held` was worked out from
        self._kinds = {kind.plural: kind for kind in kinds.builtin() if kind.group == GROUP}

    def judge(self, user: User, action: Action) -> Verdict:
        """Whether the user may, and why; why not is told only when a role is missing."""
        if MASTERS in user.groups:
            return Verdict(True)
        held = self.held(user, action.namespace)
        for source, rule in held.rules:
            if rule.allows(action):
                return Verdict(True, f"RBAC: allowed by {source}")
        return Verdict(False, f"RBAC: {_aggregate(held.faults)}" if held.faults else "")

    def held(self, user: User, namespace: str) -> Held:
        seen = max(self._shelf(plural).last for plural in self._kinds)
        if seen != self._seen or len(self._held) >= REMEMBERED:
            self._held.clear()
            self._seen = seen
        key = (user.name, user.groups, namespace)
        known = self._held.get(key)
        if known is None:
            known = self._held[key] = self._worked_out(user, namespace)
        return known

    def _shelf(self, plural: str) -> Shelf:
        return self._store.shelves[self._kinds[plural]]

    def _worked_out(self, user: User, namespace: str) -> Held:
        held = Held()
        for name, group in rbac_rules.BOUND:
            if group in user.groups:
                source = f'ClusterRoleBinding "{name}" of ClusterRole "{name}" to Group "{group}"'
                held.rules.extend((source, rule) for rule in rbac_rules.ROLES[name])
        for record in self._bindings(namespace):
            subject = next((s for s in record.obj.get("subjects") or () if _is(user, s, record.key[0])), None)
            if subject is None:
                continue
            try:
                rules = self.rules_of(record.obj["roleRef"], record.key[0])
            except ApiError as error:
                held.faults.append(error.message)
                continue
            source = _told(record, subject)
            held.rules.extend((source, rule) for rule in rules)
        return held

    def _bindings(self, namespace: str) -> Iterator[Record]:
        yield from self._shelf("clusterrolebindings").between("")
        if namespace:
            yield from self._shelf("rolebindings").between(namespace)

    def rules_of(self, reference: Object, namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a binding in `namespace` refers to; raises 404 when there is none."""
        kind, name = reference["kind"], reference["name"]
        plural, key = ("roles", (namespace, name)) if kind == "Role" else ("clusterroles", ("", name))
        record = self._shelf(plural).records.get(key)
        if record is not None:
            return self._rules(record.obj)
        if kind == "ClusterRole" and name in rbac_rules.ROLES:
            return rbac_rules.ROLES[name]
        full = f"{kind.lower()}.{GROUP}"
        details = {"name": name, "group": GROUP, "kind": kind.lower()}
        raise ApiError(404, "NotFound", f'{full} "{name}" not found', details=details)

    def _rules(self, role: Object) -> tuple[Rule, ...]:
        """The rules of a role, or of those that it aggregates (which a real server copies into it)."""
        selectors = _aggregates(role)
        if not selectors:
            return tuple(map(rbac_rules.rule, role.get("rules") or ()))
        tests = [rbac_validation.selector(one) for one in selectors]
        others = (record.obj for record in self._shelf("clusterroles").between(""))
        chosen = [one for one in others if one is not role and any(test(one) for test in tests)]
        return tuple(rbac_rules.rule(rule) for one in chosen for rule in one.get("rules") or ())

    # -- nobody gives what they do not have

    def confirm(self, ask: Ask, obj: Object, live: Object | None) -> None:
        """Raises 403 when a user writes a role or binding that gives more than the user holds."""
        if ask.resource.group != GROUP or ask.resource.custom or MASTERS in ask.user.groups:
            return
        if self.judge(ask.user, _excuse(ask, obj)).allowed:
            return
        if reference := obj.get("roleRef"):
            granted = self.rules_of(reference, ask.namespace)
        else:
            granted = tuple(map(rbac_rules.rule, obj.get("rules") or ()))
        held = tuple(rule for _, rule in self.held(ask.user, ask.namespace).rules)
        name = obj["metadata"]["name"]
        if lacking := rbac_rules.missing(granted, held):
            raise _too_much(ask, name, _escalation(ask.user, lacking))
        if (_aggregates(obj) or _aggregates(live or {})) and rbac_rules.missing(rbac_rules.EVERYTHING, held):
            raise _too_much(ask, name, "must have cluster-admin privileges to use the aggregationRule")


def _excuse(ask: Ask, obj: Object) -> Action:
    """The right to give what one does not have: escalate for a role, bind for a binding."""
    reference = obj.get("roleRef")
    if reference is None:
        return Action("escalate", GROUP, ask.resource.plural, "", ask.namespace, ask.name)
    plural = "roles" if reference["kind"] == "Role" else "clusterroles"
    return Action("bind", GROUP, plural, "", ask.namespace, reference["name"])


def _aggregates(role: Object) -> list[Object]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _escalation(user: User, lacking: Iterable[Rule]) -> str:
    what = "\n".join(sorted(map(str, lacking)))
    return (
        f'user "{user.name}" (groups={rbac_rules.quoted(user.groups)}) is attempting to grant '
        f"RBAC permissions not currently held:\n{what}"
    )


def _too_much(ask: Ask, name: str, why: str) -> ApiError:
    return forbidden(f'{ask.resource.full} "{name}" is forbidden: {why}', about(ask.resource, name))


def _is(user: User, subject: dict[str, Any], namespace: str) -> bool:
    """Whether a subject of a binding in `namespace` ("" for a ClusterRoleBinding) is this user."""
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return bool(user.name == name)
    if kind == "Group":
        return name in user.groups
    where = subject.get("namespace") or namespace
    return bool(where) and user.name == account_name(where, name)


def _told(binding: Record, subject: dict[str, Any]) -> str:
    namespace, name = binding.key
    full = f"{name}/{namespace}" if namespace else name
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    role = binding.obj["roleRef"]
    return f'{binding.resource.kind} "{full}" of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{who}"'


def _aggregate(faults: list[str]) -> str:
    told = list(dict.fromkeys(faults))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"
