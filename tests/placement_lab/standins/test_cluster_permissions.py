"""The ManifestWork that OCM creates for a ClusterPermission, and the status that it reports."""

from typing import Any

import pytest

from placement_ac.kube.client import Object
from placement_lab.standins.cluster_permissions import (
    BuildError,
    names_accounts,
    status_from_work,
    work_of,
    work_status,
)

RULES = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}]
ACCOUNT = {
    "apiGroup": "authentication.open-cluster-management.io",
    "kind": "ManagedServiceAccount",
    "name": "a",
}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
ADDON = {"spec": {"installNamespace": "agents"}}
NOW = 1_800_000_000.0
RBAC = "rbac.authorization.k8s.io"


def permission(**spec: Any) -> Object:
    metadata = {"name": "p", "namespace": "w1", "uid": "0123456789"}
    return {"metadata": metadata, "spec": spec}


def manifests_of(item: Object, addon: Object | None = ADDON) -> list[tuple[Any, ...]]:
    """Kind, metadata, roleRef and subjects of each manifest."""
    manifests = work_of(item, {"a"}, addon)["spec"]["workload"]["manifests"]
    return [
        (manifest["kind"], manifest["metadata"], manifest.get("roleRef"), manifest.get("subjects"))
        for manifest in manifests
    ]


def role(kind: str, name: str) -> Object:
    return {"apiGroup": RBAC, "kind": kind, "name": name}


def agent(namespace: str) -> Object:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": "a"}


def test_objects_have_the_permissions_name_by_default() -> None:
    item = permission(
        clusterRole={"rules": RULES},
        clusterRoleBindings=[
            {"subject": ROBOT},
            {"subject": ROBOT, "name": "x", "roleRef": role("ClusterRole", "y")},
        ],
        roles=[{"namespace": "n", "rules": RULES}],
        roleBindings=[
            {"namespace": "n", "subject": ROBOT, "roleRef": {"kind": "Role"}},
            {"namespace": "n", "subject": ROBOT, "roleRef": role("ClusterRole", "y"), "name": "x"},
        ],
    )
    assert manifests_of(item) == [
        ("ClusterRole", {"name": "p"}, None, None),
        ("ClusterRoleBinding", {"name": "p"}, role("ClusterRole", "p"), [ROBOT]),
        ("ClusterRoleBinding", {"name": "x"}, role("ClusterRole", "y"), [ROBOT]),
        ("Role", {"name": "p", "namespace": "n"}, None, None),
        ("RoleBinding", {"name": "p", "namespace": "n"}, role("Role", "p"), [ROBOT]),
        ("RoleBinding", {"name": "x", "namespace": "n"}, role("ClusterRole", "y"), [ROBOT]),
    ]
    assert not names_accounts(item)


def test_the_list_of_bindings_replaces_the_single_one() -> None:
    item = permission(
        clusterRoleBinding={"subject": ROBOT, "name": "one"}, clusterRoleBindings=[{"subject": ROBOT}]
    )
    assert [metadata["name"] for _, metadata, _, _ in manifests_of(item)] == ["p"]


@pytest.mark.parametrize(
    ("addon", "namespace"),
    [
        pytest.param(ADDON, "agents", id="installed there"),
        pytest.param(
            ADDON | {"status": {"namespace": "elsewhere"}}, "elsewhere", id="reports another namespace"
        ),
    ],
)
def test_an_account_becomes_a_service_account_in_the_agents_namespace(addon: Object, namespace: str) -> None:
    item = permission(clusterRoleBinding={"subjects": [ACCOUNT, ROBOT]})
    assert manifests_of(item, addon)[0][3] == [agent(namespace), ROBOT]
    assert names_accounts(item)


@pytest.mark.parametrize(
    ("spec", "addon", "why"),
    [
        pytest.param(
            {"clusterRoleBinding": {"subject": ACCOUNT | {"name": "b"}}},
            ADDON,
            'ManagedServiceAccount.authentication.open-cluster-management.io "b" not found',
            id="no such account",
        ),
        pytest.param(
            {"clusterRoleBinding": {"subject": ACCOUNT}},
            None,
            'ManagedClusterAddOn.addon.open-cluster-management.io "managed-serviceaccount" not found',
            id="no add-on",
        ),
        pytest.param(
            {"roles": [{"namespace": "n", "namespaceSelector": {}, "rules": RULES}]},
            ADDON,
            "both Role Namespace and NamespaceSelector cannot populated at the same time",
            id="namespace and selector",
        ),
        pytest.param(
            {"roles": [{"namespaceSelector": {}, "rules": RULES}]},
            ADDON,
            "unable to find any Namespace using NamespaceSelector",
            id="selector",
        ),
        pytest.param(
            {
                "roleBindings": [
                    {"namespace": "n", "subject": ROBOT, "roleRef": {"kind": "Role", "name": "r"}}
                ]
            },
            ADDON,
            "the RoleBinding for Namespace n missing APIGroup for the RoleRef",
            id="no group",
        ),
        pytest.param(
            {
                "roleBindings": [
                    {"namespace": "n", "subject": ROBOT, "roleRef": {"kind": "Role", "apiGroup": RBAC}}
                ]
            },
            ADDON,
            "the RoleBinding for Namespace n missing Name for the RoleRef",
            id="no name",
        ),
    ],
)
def test_a_build_error_has_the_controllers_message(spec: Object, addon: Object | None, why: str) -> None:
    with pytest.raises(BuildError) as raised:
        work_of(permission(**spec), {"a"}, addon)
    assert str(raised.value) == why


def test_a_work_without_status_is_not_complete() -> None:
    item = permission(clusterRole={"rules": RULES}, clusterRoleBinding={"subject": ROBOT})
    status = status_from_work(item, work_of(item, (), None), NOW)
    [condition] = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "ApplyRBACManifestWorkNotComplete")
    assert "resourceStatus" not in status


def test_a_rejected_manifest_is_reported_in_work_and_permission() -> None:
    item = permission(clusterRole={"rules": RULES}, clusterRoleBinding={"subject": ROBOT})
    work = work_of(item, (), None)
    work["status"] = work_status(work, {1: "it is forbidden"}, NOW)
    status = status_from_work(item, work, NOW)
    [condition] = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "AppliedManifestWorkFailed")
    reasons = {
        kind: [entry["condition"][0]["reason"] for entry in entries]
        for kind, entries in status["resourceStatus"].items()
    }
    assert reasons == {
        "clusterRoles": ["AppliedManifestComplete"],
        "clusterRoleBindings": ["FailedApplyManifest"],
    }
    [refused] = status["resourceStatus"]["clusterRoleBindings"]
    assert refused["condition"][0]["message"] == "Failed to apply manifest: it is forbidden"
