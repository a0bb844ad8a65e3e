"""RBAC on the hub: rules, roles and bindings decide what users may do."""

import pytest

from tests.support.driver import Object
from tests.support.hub_client import (
    CHECKS,
    CONFIGMAPS,
    CONFIGS,
    KUEUE,
    Client,
    Watching,
    check,
    configmap,
    status,
)
from tests.support.rights import (
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ME,
    allow,
    allow_here,
    bound_to,
    codes,
    rule,
)

WORKLOADS = f"{KUEUE}/workloads"


def test_a_denial_names_the_missing_permission(admin: Client, account: Client) -> None:
    answer = account.ask("GET", WORKLOADS)
    assert (answer.status_code, answer.json()) == (
        403,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f'workloads.kueue.x-k8s.io is forbidden: User "{ME}" cannot list resource "workloads" '
            'in API group "kueue.x-k8s.io" at the cluster scope',
            "reason": "Forbidden",
            "details": {"group": "kueue.x-k8s.io", "kind": "workloads"},
            "code": 403,
        },
    )


GROUP_HERE = 'group "" in the namespace "default"'


def test_each_request_has_its_verb(account: Client) -> None:
    of_workload = f"{KUEUE}/namespaces/x/workloads/w"
    wanted = {
        ("GET", f"{WORKLOADS}?watch=true"): 'User "{}" cannot watch resource "workloads"',
        ("GET", of_workload): 'workloads.kueue.x-k8s.io "w" is forbidden: User "{}" cannot get resource',
        ("PATCH", f"{of_workload}/status"): ' "w" is forbidden: User "{}" cannot patch resource '
        '"workloads/status" in API group',
        ("POST", CONFIGMAPS): 'configmaps is forbidden: User "{}" cannot create resource "configmaps" in API',
        ("PUT", f"{CONFIGMAPS}/c"): f'cannot update resource "configmaps" in API {GROUP_HERE}',
        ("DELETE", f"{CONFIGMAPS}/c"): f'cannot delete resource "configmaps" in API {GROUP_HERE}',
        ("DELETE", CONFIGMAPS): 'configmaps is forbidden: User "{}" cannot deletecollection resource',
        ("GET", "/api/v1/namespaces/default"): f'cannot get resource "namespaces" in API {GROUP_HERE}',
        ("GET", "/api/v1/nothings"): 'nothings is forbidden: User "{}" cannot list resource "nothings"',
        ("GET", "/nowhere"): 'forbidden: User "{}" cannot get path "/nowhere"',
    }
    for (method, path), message in wanted.items():
        answer = account.ask(method, path, {} if method != "GET" else None)
        assert answer.status_code == 403, path
        assert message.format(ME) in answer.json()["message"], path


def test_permissions_are_per_verb_and_resource(admin: Client, account: Client) -> None:
    allow(admin, rule("get list", "kueue.x-k8s.io", "admissionchecks admissionchecks/status"))
    admin.create(CHECKS, check("c"))
    assert account.names(CHECKS) == ["c"]
    assert account.get(f"{CHECKS}/c/status")["metadata"]["name"] == "c"
    assert (
        codes(
            account,
            ("GET", f"{CHECKS}?watch=true"),
            ("GET", CONFIGS),
            ("POST", CHECKS, check("d")),
            ("PUT", f"{CHECKS}/c/status", status("c")),
            ("DELETE", f"{CHECKS}/c"),
            ("DELETE", CHECKS),
        )
        == [403] * 6
    )


def test_a_subresource_needs_its_own_permission(admin: Client, account: Client) -> None:
    allow(admin, rule("patch", "kueue.x-k8s.io", "admissionchecks/status"), rule("patch", "", "*/status"))
    admin.create(CHECKS, check("c"))
    asked = [account.apply(f"{CHECKS}/c{sub}", status("c")).status_code for sub in ("/status", "")]
    assert asked == [200, 403]
    paths = [f"/api/v1/namespaces/default{sub}" for sub in ("/status", "")]
    kind = {"Content_Type": "application/merge-patch+json"}
    assert [account.ask("PATCH", path, {}, **kind).status_code for path in paths] == [200, 403]


@pytest.mark.parametrize(
    "given",
    [rule("*", "*", "*"), rule("get", "*", "configmaps"), rule("get", "", "*"), rule("*", "", "configmaps")],
)
def test_a_star_matches_everything(admin: Client, account: Client, given: Object) -> None:
    allow(admin, given)
    admin.create(CONFIGMAPS, configmap("c"))
    assert account.ask("GET", f"{CONFIGMAPS}/c").status_code == 200


def test_permissions_can_be_limited_to_names(admin: Client, account: Client) -> None:
    allow(admin, rule("get list watch patch delete create", "", "configmaps", "a"))
    for name in ("a", "b"):
        admin.create(CONFIGMAPS, configmap(name))
    assert codes(
        account,
        ("GET", f"{CONFIGMAPS}/a"),
        ("GET", f"{CONFIGMAPS}/b"),
        ("GET", CONFIGMAPS),
        ("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name=a"),
        ("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name%3D%3Da,metadata.namespace=default"),
        ("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name=b"),
        ("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name!=b"),
        ("GET", f"{CONFIGMAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=a"),
        ("GET", f"{CONFIGMAPS}?watch=true"),
        ("POST", CONFIGMAPS, configmap("a")),
        ("DELETE", f"{CONFIGMAPS}/b"),
        ("DELETE", f"{CONFIGMAPS}?fieldSelector=metadata.name=a"),
        ("DELETE", f"{CONFIGMAPS}/a"),
    ) == [200, 403, 403, 200, 200, 403, 403, 200, 403, 403, 403, 403, 200]


def test_permissions_can_be_for_paths(admin: Client, account: Client) -> None:
    allow(admin, {"verbs": ["get"], "nonResourceURLs": ["/one", "/logs/*"]})
    paths = ["/one", "/one/x", "/logs/x", "/logs"]
    assert [account.ask("GET", path).status_code for path in paths] == [404, 403, 404, 403]


def test_applying_a_missing_object_needs_create(admin: Client, account: Client) -> None:
    allow(admin, rule("patch", "", "configmaps"))
    path = f"{CONFIGMAPS}/a"
    refused = account.apply(path, configmap("a"))
    cannot = f'User "{ME}" cannot create resource "configmaps" in API group "" in the namespace "default"'
    assert (refused.status_code, refused.json()["message"]) == (403, f'configmaps "a" is forbidden: {cannot}')
    admin.create(CONFIGMAPS, configmap("a"))
    assert account.apply(path, configmap("a"), force="true").status_code == 200
    admin.delete(path)
    admin.patch(f"{CLUSTER_ROLES}/r", {"rules": [rule("patch create", "", "configmaps")]})
    assert account.apply(path, configmap("a")).status_code == 201


def test_permissions_of_a_role_end_at_its_namespace(admin: Client, account: Client) -> None:
    allow_here(admin, rule("list get", "", "configmaps namespaces"))
    elsewhere = "/api/v1/namespaces/kube-public/configmaps"
    asked = (("GET", CONFIGMAPS), ("GET", elsewhere), ("GET", "/api/v1/configmaps"))
    assert codes(account, *asked) == [200, 403, 403]
    namespaces = ["/default", "/kube-public", ""]
    assert [account.ask("GET", f"/api/v1/namespaces{name}").status_code for name in namespaces] == [
        200,
        403,
        403,
    ]


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        ({"kind": "User", "name": ME}, 200),
        ({"kind": "Group", "name": "system:serviceaccounts"}, 200),
        ({"kind": "Group", "name": "system:serviceaccounts:default"}, 200),
        ({"kind": "Group", "name": "system:authenticated"}, 200),
        ({"kind": "ServiceAccount", "name": "sa", "namespace": "kube-system"}, 403),
        ({"kind": "User", "name": "sa"}, 403),
        ({"kind": "Group", "name": ME}, 403),
    ],
)
def test_a_binding_names_its_subject(
    admin: Client, account: Client, subject: dict[str, str], code: int
) -> None:
    admin.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": [rule("list", "", "configmaps")]})
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r", **subject))
    assert account.ask("GET", CONFIGMAPS).status_code == code


def test_permissions_follow_roles_and_bindings(admin: Client, account: Client) -> None:
    asked = ("GET", CONFIGMAPS)
    found = codes(account, asked)
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r"))
    missing = account.ask(*asked).json()["message"]
    admin.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": [rule("list", "", "configmaps")]})
    found += codes(account, asked)
    admin.patch(f"{CLUSTER_ROLES}/r", {"rules": [rule("get", "", "configmaps")]})
    found += codes(account, asked)
    admin.patch(f"{CLUSTER_ROLES}/r", {"rules": [rule("list", "", "configmaps")]})
    found += codes(account, asked)
    admin.delete(f"{CLUSTER_BINDINGS}/b")
    found += codes(account, asked)
    assert found == [403, 200, 403, 200, 403]
    assert missing.endswith(
        'in the namespace "default": RBAC: clusterrole.rbac.authorization.k8s.io "r" not found'
    )


def test_a_watch_continues_after_its_permission_is_removed(admin: Client, account: Client) -> None:
    allow(admin, rule("watch", "", "configmaps"))
    with Watching(account, CONFIGMAPS) as seen:
        admin.delete(f"{CLUSTER_BINDINGS}/b")
        admin.create(CONFIGMAPS, configmap("a"))
        seen.until(("ADDED", "a"))
        assert codes(account, ("GET", f"{CONFIGMAPS}?watch=true")) == [403]


@pytest.mark.embedded("a bare API server has no controller that aggregates roles")
def test_a_cluster_role_can_aggregate_others(admin: Client, account: Client) -> None:
    labels = {"labels": {"to": "all"}}
    selectors = [
        {"matchLabels": {"to": "all"}, "matchExpressions": [{"key": "not", "operator": "DoesNotExist"}]}
    ]
    parts = {"one": labels, "two": {"labels": {"to": "all", "not": "x"}}, "three": {}}
    for verb, (name, more) in zip(("list", "get", "delete"), parts.items(), strict=True):
        found = {"metadata": {"name": name, **more}, "rules": [rule(verb, "", "configmaps")]}
        admin.create(CLUSTER_ROLES, found)
    whole = {"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": selectors}}
    admin.create(CLUSTER_ROLES, whole)
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r"))
    admin.create(CONFIGMAPS, configmap("a"))
    path = f"{CONFIGMAPS}/a"
    assert codes(account, ("GET", CONFIGMAPS), ("GET", path), ("DELETE", path)) == [200, 403, 403]
