"""Roles and bindings as objects, the limits of granting, and reviews of a user's own permissions."""

import pytest
import requests

from tests.support.driver import Object
from tests.support.hub_client import Client
from tests.support.rights import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ME,
    ROLES,
    SSAR,
    SSRR,
    allow,
    allow_here,
    bound_to,
    codes,
    rule,
)


def review(**attributes: str) -> Object:
    return {"spec": {"resourceAttributes": attributes}}


def may(client: Client, **attributes: str) -> Object:
    answer: Object = client.create(SSAR, review(**attributes))
    return dict(answer["status"])


def test_bindings_are_defaulted(admin: Client) -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    bare = {"kind": "ClusterRole", "name": "system:x"}
    created = admin.create(
        CLUSTER_BINDINGS, {"metadata": {"name": "a:B"}, "roleRef": bare, "subjects": subjects}
    )
    group = "rbac.authorization.k8s.io"
    assert created["roleRef"] == bare | {"apiGroup": group}
    assert created["subjects"] == [{"kind": "User", "name": "u", "apiGroup": group}, subjects[1]]


REQUIRED, UNSUPPORTED, INVALID = "FieldValueRequired", "FieldValueNotSupported", "FieldValueInvalid"
WRONG_ROLES: list[tuple[str, Object, list[tuple[str, str]]]] = [
    (ROLES, {"rules": [{}]}, [
        (REQUIRED, "rules[0].verbs"), (REQUIRED, "rules[0].apiGroups"), (REQUIRED, "rules[0].resources"),
    ]),
    (ROLES, {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, [
        (INVALID, "rules[0].nonResourceURLs"),
    ]),
    (CLUSTER_ROLES, {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""]}]}, [
        (INVALID, "rules[0].nonResourceURLs"),
    ]),
    (BINDINGS, {"roleRef": {"kind": "X", "apiGroup": "y"}}, [
        (UNSUPPORTED, "roleRef.apiGroup"), (UNSUPPORTED, "roleRef.kind"), (REQUIRED, "roleRef.name"),
    ]),
    (CLUSTER_BINDINGS, {"roleRef": {"kind": "Role", "name": "r"}}, [(UNSUPPORTED, "roleRef.kind")]),
    (CLUSTER_BINDINGS, {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [
        {"kind": "ServiceAccount", "name": "s"}, {"kind": "User", "name": "u", "apiGroup": "x"},
        {"kind": "Robot"},
    ]}, [
        (REQUIRED, "subjects[0].namespace"), (UNSUPPORTED, "subjects[1].apiGroup"),
        (REQUIRED, "subjects[2].name"), (UNSUPPORTED, "subjects[2].kind"),
    ]),
    (CLUSTER_ROLES, {"metadata": {"name": "a/b"}}, [(INVALID, "metadata.name")]),
]  # fmt: skip


def test_roles_and_bindings_are_validated(admin: Client) -> None:
    for path, given, faults in WRONG_ROLES:
        answer = admin.ask("POST", path, {"metadata": {"name": "x"}} | given)
        assert answer.status_code == 422
        assert [(cause["reason"], cause["field"]) for cause in answer.json()["details"]["causes"]] == faults


def test_the_role_of_a_binding_is_immutable(admin: Client) -> None:
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r"))
    kind = {"Content_Type": "application/merge-patch+json"}
    answer = admin.ask("PATCH", f"{CLUSTER_BINDINGS}/b", {"roleRef": {"name": "other"}}, **kind)
    assert (answer.status_code, "cannot change roleRef" in answer.text) == (422, True)


def patched(client: Client, role: str, change: Object) -> requests.Response:
    kind = {"Content_Type": "application/merge-patch+json"}
    return client.ask("PATCH", f"{CLUSTER_ROLES}/{role}", change, **kind)


def test_a_role_cannot_grant_more_than_its_author_has(admin: Client, account: Client) -> None:
    allow(admin, rule("create update patch", "rbac.authorization.k8s.io", "clusterroles roles"),
          rule("get list", "", "configmaps pods/log"), rule("get", "", "*/status"))  # fmt: skip
    wanted = {
        "metadata": {"name": "mine"},
        "rules": [rule("get list", "", "configmaps"), rule("get", "", "a/status")],
    }
    assert account.ask("POST", CLUSTER_ROLES, wanted).status_code == 201
    more = {"metadata": {"name": "more"}, "rules": [
        rule("get watch delete", "", "configmaps"), rule("get", "", "secrets", "s"),
        {"verbs": ["get"], "nonResourceURLs": ["/version", "/x"]},
    ]}  # fmt: skip
    answer = account.ask("POST", CLUSTER_ROLES, more)
    groups = '["system:serviceaccounts" "system:serviceaccounts:default" "system:authenticated"]'
    message = (
        f'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "{ME}" (groups={groups}) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["watch" "delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["s"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )
    assert (answer.status_code, answer.json()["message"]) == (403, message)
    grown = patched(account, "mine", {"rules": more["rules"]})
    assert grown.json()["message"] == message.replace('"more"', '"mine"')
    admin.patch(f"{CLUSTER_ROLES}/r", {"rules": [rule("create escalate", "*", "clusterroles")]})
    assert account.ask("POST", CLUSTER_ROLES, more).status_code == 201


GATHERED = (
    'clusterroles.rbac.authorization.k8s.io "mine" is forbidden: '
    "must have cluster-admin privileges to use the aggregationRule"
)


def test_only_an_admin_can_use_aggregation_rules(admin: Client, account: Client) -> None:
    allow(admin, rule("patch", "rbac.authorization.k8s.io", "clusterroles"))
    admin.create(CLUSTER_ROLES, {"metadata": {"name": "mine"}})
    gathers = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    answer = patched(account, "mine", gathers)
    assert (answer.status_code, answer.json()["message"]) == (403, GATHERED)
    admin.patch(f"{CLUSTER_ROLES}/mine", gathers)
    assert patched(account, "mine", {"aggregationRule": None}).status_code == 403
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "cluster-admin") | {"metadata": {"name": "all"}})
    assert patched(account, "mine", {"aggregationRule": None}).status_code == 200


def test_a_binding_cannot_grant_more_than_its_author_has(admin: Client, account: Client) -> None:
    allow_here(
        admin, rule("create", "rbac.authorization.k8s.io", "rolebindings"), rule("get", "", "configmaps")
    )
    for name, verb in (("less", "get"), ("more", "delete")):
        admin.create(ROLES, {"metadata": {"name": name}, "rules": [rule(verb, "", "configmaps")]})

    def bind(role: str) -> int:
        return account.ask(
            "POST", BINDINGS, bound_to("Role", role) | {"metadata": {"name": role}}
        ).status_code

    assert [bind(role) for role in ("less", "more", "none")] == [201, 403, 404]
    bind_right = rule("create bind", "rbac.authorization.k8s.io", "roles rolebindings")
    admin.patch(f"{ROLES}/r", {"rules": [bind_right]})
    assert bind("more") == 201


# -- reviews


def test_an_access_review_answers(admin: Client, account: Client) -> None:
    allow(admin, rule("get", "", "configmaps", "a"), rule("patch", "kueue.x-k8s.io", "workloads/status"))
    reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "sa/default"'
    yes = {"allowed": True, "reason": reason}
    assert may(account, verb="get", resource="configmaps", name="a", namespace="x") == yes
    kueue = {"verb": "patch", "group": "kueue.x-k8s.io", "resource": "workloads"}
    assert may(account, **kueue, subresource="status") == yes
    assert may(account, **kueue) == {"allowed": False}
    assert may(account, verb="get", resource="configmaps") == {"allowed": False}
    assert may(account, verb="*", group="*", resource="*") == {"allowed": False}
    assert may(admin, verb="*", group="*", resource="*") == {"allowed": True}


def test_access_reviews_for_paths_and_namespaces(admin: Client, account: Client) -> None:
    allow_here(admin, rule("get", "", "configmaps"))
    found = may(account, verb="get", resource="configmaps", namespace="default")
    assert (
        found["reason"]
        == 'RBAC: allowed by RoleBinding "b/default" of Role "r" to ServiceAccount "sa/default"'
    )
    assert may(account, verb="get", resource="configmaps", namespace="x") == {"allowed": False}
    asked = ({"nonResourceAttributes": {"path": path, "verb": "get"}} for path in ("/apis/x", "/metrics"))
    allowed = [account.create(SSAR, {"spec": spec})["status"]["allowed"] for spec in asked]
    assert allowed == [True, False]


@pytest.mark.embedded("a real API server cannot decode some of them, and says 400")
@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("x", 422),
        ({}, 422),
        ({"resourceAttributes": {}, "nonResourceAttributes": {}}, 422),
        ({"nonResourceAttributes": {"path": [], "verb": "get"}}, 201),
    ],
)
def test_an_access_review_of_another_form_allows_nothing(account: Client, spec: object, code: int) -> None:
    answer = account.ask("POST", SSAR, {"spec": spec})
    assert answer.status_code == code
    assert answer.json()["status"] != {"allowed": True}


def test_a_rules_review_lists_the_rules(admin: Client, account: Client) -> None:
    allow_here(admin, rule("get", "", "configmaps"))
    admin.create(BINDINGS, bound_to("Role", "none") | {"metadata": {"name": "broken"}})
    status = account.create(SSRR, {"spec": {"namespace": "default"}})["status"]
    assert rule("get", "", "configmaps") in status["resourceRules"]
    assert any("/healthz" in found["nonResourceURLs"] for found in status["nonResourceRules"])
    assert (status["incomplete"], status["evaluationError"]) == (
        False,
        'role.rbac.authorization.k8s.io "none" not found',
    )
    assert codes(account, *(("POST", SSRR, {"spec": {"namespace": n}}) for n in ("", []))) == [400] * 2
