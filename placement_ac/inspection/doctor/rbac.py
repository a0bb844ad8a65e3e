"""
The cluster-wide rights of a ServiceAccount, from the hub's RBAC objects.

Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from placement_ac.core.api.schemas import as_mapping
from placement_ac.inspection.doctor.setup import HubSetup, name_of, sequence, strings
from placement_ac.inspection.hub.dump import Object
from placement_ac.inspection.hub.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING

PolicyRule = Mapping[str, Any]


def rules_of(setup: HubSetup, namespace: str, account: str) -> list[PolicyRule]:
    """Return the rules of every ClusterRole that is bound to an account."""
    roles = {
        str(as_mapping(binding.get("roleRef")).get("name"))
        for binding in setup.dump.of(CLUSTER_ROLE_BINDING)
        if _binds(binding, namespace, account)
    }
    bound = (one for one in setup.dump.of(CLUSTER_ROLE) if name_of(one) in roles)
    return [as_mapping(rule) for role in bound for rule in sequence(role.get("rules"))]


def missing_permissions(
    rules: Iterable[PolicyRule], group: str, resources: Mapping[str, Iterable[str]]
) -> list[str]:
    """Return the verbs on these resources of a group that no rule allows, as text."""
    granted, message = list(rules), []
    for resource, verbs in resources.items():
        missing = [one for one in verbs if not any(_allows(rule, group, resource, one) for rule in granted)]
        message += [f"{', '.join(missing)} {resource}.{group}"] if missing else []
    return message


def _binds(binding: Object, namespace: str, account: str) -> bool:
    users = {
        ("ServiceAccount", namespace, account),
        ("User", "", f"system:serviceaccount:{namespace}:{account}"),
        *(("Group", "", f"system:{group}") for group in ("authenticated", "serviceaccounts")),
        ("Group", "", f"system:serviceaccounts:{namespace}"),
    }
    subjects = map(as_mapping, sequence(binding.get("subjects")))
    keys = ("kind", "namespace", "name")
    return any(tuple(str(one.get(key) or "") for key in keys) in users for one in subjects)


def _allows(rule: PolicyRule, group: str, resource: str, verb: str) -> bool:
    message = {key: strings(rule.get(key)) for key in ("apiGroups", "resources", "verbs")}
    _, _, sub = resource.partition("/")
    resources = {resource, "*", *([f"*/{sub}"] if sub else [])}
    return (
        not rule.get("resourceNames")
        and bool({group, "*"} & set(message["apiGroups"]))
        and bool(resources & set(message["resources"]))
        and bool({verb, "*"} & set(message["verbs"]))
    )
