"""The cluster-wide rights of a ServiceAccount, from the hub's RBAC objects. Pure."""

from collections.abc import Iterable, Mapping

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from placement_ac.core.api.fields import Obj, get_list, get_str, get_strs, name_of


def rules_of(dump: Dump, namespace: str, account: str) -> list[Obj]:
    """Return the rules of every ClusterRole that is bound to an account."""
    users = {
        ("ServiceAccount", namespace, account),
        ("User", "", f"system:serviceaccount:{namespace}:{account}"),
        *(("Group", "", f"system:{group}") for group in ("authenticated", "serviceaccounts")),
        ("Group", "", f"system:serviceaccounts:{namespace}"),
    }
    roles = {
        get_str(binding, "roleRef", "name")
        for binding in dump.of(CLUSTER_ROLE_BINDING)
        for subject in get_list(binding, "subjects")
        if (get_str(subject, "kind"), get_str(subject, "namespace"), get_str(subject, "name")) in users
    }
    return [
        rule for role in dump.of(CLUSTER_ROLE) if name_of(role) in roles for rule in get_list(role, "rules")
    ]


def missing_permissions(
    rules: Iterable[Obj], group: str, resources: Mapping[str, Iterable[str]]
) -> list[str]:
    """Return the verbs on these resources of a group that no rule allows, as text."""
    granted, missing = list(rules), []
    for resource, verbs in resources.items():
        denied = [verb for verb in verbs if not any(_allows(rule, group, resource, verb) for rule in granted)]
        missing += [f"{', '.join(denied)} {resource}.{group}"] if denied else []
    return missing


def _allows(rule: Obj, group: str, resource: str, verb: str) -> bool:
    _, slash, subresource = resource.partition("/")
    wanted = {
        "apiGroups": {group, "*"},
        "resources": {resource, "*", f"*/{subresource}" if slash else resource},
        "verbs": {verb, "*"},
    }
    return not rule.get("resourceNames") and all(
        names & {*get_strs(rule, key)} for key, names in wanted.items()
    )
