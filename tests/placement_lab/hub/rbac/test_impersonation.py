"""Requests that are handled as another user: Impersonate-User and Impersonate-Group."""

import pytest

from tests.support.hub_client import CONFIGMAPS, Client
from tests.support.rights import ME, WHO, allow, allow_here, rule


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        pytest.param({"Impersonate_User": "bob"}, ["system:authenticated"], id="no group"),
        pytest.param(
            {"Impersonate_User": "bob", "Impersonate_Group": "readers"},
            ["readers", "system:authenticated"],
            id="a group",
        ),
        pytest.param(
            {"Impersonate_User": ME},
            ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            id="a ServiceAccount",
        ),
    ],
)
def test_an_admin_may_be_anybody(admin: Client, headers: dict[str, str], groups: list[str]) -> None:
    found = admin.ask("POST", WHO, {}, **headers).json()["status"]["userInfo"]
    assert (found["username"], found["groups"]) == (headers["Impersonate_User"], groups)


def test_the_roles_of_the_other_user_decide(admin: Client, account: Client) -> None:
    assert admin.ask("GET", CONFIGMAPS, Impersonate_User=ME).status_code == 403
    allow_here(admin, rule("list", "", "configmaps"))
    assert admin.ask("GET", CONFIGMAPS, Impersonate_User=ME).status_code == 200


def test_impersonation_is_a_permission(admin: Client, account: Client) -> None:
    answer = account.ask("GET", CONFIGMAPS, Impersonate_User="bob")
    assert answer.status_code == 403
    denied = f'users "bob" is forbidden: User "{ME}" cannot impersonate resource "users" in API group ""'
    assert answer.json()["message"] == f"{denied} at the cluster scope"
    allow(admin, rule("impersonate", "", "users", "bob"))
    assert account.ask("POST", WHO, {}, Impersonate_User="bob").status_code == 201
    assert account.ask("POST", WHO, {}, Impersonate_User="eve").status_code == 403
    groups = {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"}
    assert account.ask("POST", WHO, {}, **groups).status_code == 403
    assert account.ask("POST", WHO, {}, Impersonate_User=ME).status_code == 403
