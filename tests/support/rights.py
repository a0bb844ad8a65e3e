"""Permissions for the hub's own tests: paths, tokens of ServiceAccounts, roles and bindings."""

from typing import Any

from tests.support.hub_client import Client

Object = dict[str, Any]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ME = "system:serviceaccount:default:sa"
SSAR = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SSRR = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN_REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


def token_of(admin: Client, seconds: int = 3600, **spec: Any) -> str:
    answer = admin.create(f"{ACCOUNTS}/sa/token", {"spec": {"expirationSeconds": seconds, **spec}})
    token: str = answer["status"]["token"]
    return token


def rule(verbs: str, group: str, resources: str, *names: str) -> Object:
    found = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return found | ({"resourceNames": list(names)} if names else {})


def bound_to(kind: str, role: str, /, **subject: str) -> Object:
    return {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject or {"kind": "ServiceAccount", "name": "sa", "namespace": "default"}],
    }


def allow(admin: Client, *rules: Object) -> None:
    """Grant `sa` these rules cluster-wide."""
    admin.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": list(rules)})
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r"))


def allow_here(admin: Client, *rules: Object) -> None:
    """Grant `sa` these rules in the namespace `default`."""
    admin.create(ROLES, {"metadata": {"name": "r"}, "rules": list(rules)})
    admin.create(BINDINGS, bound_to("Role", "r"))


def codes(client: Client, *requests: tuple[str, str] | tuple[str, str, Object]) -> list[int]:
    return [client.ask(*request).status_code for request in requests]
