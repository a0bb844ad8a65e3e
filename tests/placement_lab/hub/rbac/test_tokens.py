"""Authentication on the hub: the tokens of ServiceAccounts, users and their groups."""

import base64
import json
import time

import pytest

from placement_lab.hub import Hub
from tests.support.driver import Object, eventually
from tests.support.hub_client import CONFIGMAPS, CONFIGS, KUEUE, Client
from tests.support.rights import (
    ACCOUNTS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ME,
    TOKEN_REVIEW,
    WHO,
    bound_to,
    codes,
    rule,
    token_of,
)


def part(token: str, number: int) -> Object:
    text = token.split(".")[number]
    return dict(json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


def test_a_token_has_the_claims_of_its_account(admin: Client, account: Client) -> None:
    uid = admin.get(f"{ACCOUNTS}/sa")["metadata"]["uid"]
    asked = int(time.time())
    answer = admin.create(f"{ACCOUNTS}/sa/token", {"spec": {"expirationSeconds": 900}})
    claims = part(answer["status"]["token"], 1)
    issued = claims["iat"]
    assert part(answer["status"]["token"], 0)["alg"] == "ES256"
    assert asked <= issued <= time.time()
    assert claims.pop("jti")
    assert claims == {
        "iss": "https://kubernetes.default.svc.cluster.local",
        "aud": ["https://kubernetes.default.svc.cluster.local"],
        "sub": ME,
        "iat": issued,
        "nbf": issued,
        "exp": issued + 900,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "sa", "uid": uid}},
    }
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(issued + 900))
    assert (answer["kind"], answer["status"]["expirationTimestamp"]) == ("TokenRequest", ends)


def test_an_account_is_a_user_with_groups(admin: Client, account: Client) -> None:
    found = account.create(WHO, {})["status"]["userInfo"]
    [token_id] = found.pop("extra")["authentication.kubernetes.io/credential-id"]
    assert token_id.startswith("JTI=")
    assert found == {
        "username": ME,
        "uid": admin.get(f"{ACCOUNTS}/sa")["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    }


def test_a_token_expires() -> None:
    with Hub(crds=[], shortest_token_seconds=1) as hub:
        admin = Client(hub)
        admin.create(ACCOUNTS, {"metadata": {"name": "sa"}})
        short, longer = (Client(hub, token_of(admin, seconds)) for seconds in (1, 3600))
        assert short.ask("POST", WHO, {}).status_code == 201
        eventually(lambda: short.ask("POST", WHO, {}).status_code, 401)
        assert longer.ask("POST", WHO, {}).status_code == 201


def test_a_token_is_invalid_without_its_account(admin: Client, account: Client) -> None:
    admin.delete(f"{ACCOUNTS}/sa")
    assert account.ask("POST", WHO, {}).json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    admin.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    assert account.ask("POST", WHO, {}).status_code == 401
    assert Client(admin.hub, token_of(admin)).ask("POST", WHO, {}).status_code == 201


def swapped(token: str, number: int, other: str) -> str:
    parts = token.split(".")
    parts[number] = other.split(".")[number]
    return ".".join(parts)


def test_a_token_with_another_signature_or_audience_is_rejected(admin: Client, account: Client) -> None:
    mine, longer = token_of(admin, 600), token_of(admin, 6000)
    with Hub(crds=[]) as other:
        elsewhere = Client(other)
        elsewhere.create(ACCOUNTS, {"metadata": {"name": "sa"}})
        foreign = token_of(elsewhere)
    wrong = [
        swapped(mine, 1, longer), swapped(mine, 2, longer), foreign, swapped(mine, 2, foreign),
        mine[:-8], mine + "=", mine.rpartition(".")[0], "..", "a.b.c", "nonsense",
        token_of(admin, audiences=["x"]),
    ]  # fmt: skip
    assert [Client(admin.hub, token).ask("POST", WHO, {}).status_code for token in wrong] == [401] * 11


@pytest.mark.parametrize(
    ("shortest", "seconds", "why"),
    [
        (600, 599, "Invalid value: 599: may not specify a duration less than 10 minutes"),
        (5, 4, "Invalid value: 4: may not specify a duration less than 5 seconds"),
        (1, 2**32 + 1, "Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"),
    ],
)
def test_the_lifetime_of_a_token_is_limited(shortest: int, seconds: int, why: str) -> None:
    with Hub(crds=[], shortest_token_seconds=shortest) as hub:
        admin = Client(hub)
        admin.create(ACCOUNTS, {"metadata": {"name": "sa"}})
        answer = admin.ask("POST", f"{ACCOUNTS}/sa/token", {"spec": {"expirationSeconds": seconds}})
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
    message = f'TokenRequest.authentication.k8s.io "sa" is invalid: spec.expirationSeconds: {why}'
    assert answer.json()["message"] == message


def test_a_token_request(admin: Client, account: Client) -> None:
    to_object = {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}
    requests = [
        (404, "POST", "nobody", {}),
        (405, "GET", "sa", None),
        (400, "POST", "sa", {"spec": {"expirationSeconds": "x"}}),
        (400, "POST", "sa", {"spec": to_object}),
        (400, "POST", "sa", {"spec": "x"}),
        (400, "POST", "sa", {"spec": {"audiences": "x"}}),
        (201, "POST", "sa", {}),
    ]
    for code, method, name, body in requests:
        assert admin.ask(method, f"{ACCOUNTS}/{name}/token", body).status_code == code, (method, body)


def test_a_token_can_be_reviewed(admin: Client, account: Client) -> None:
    def reviewed(token: str) -> Object:
        return dict(admin.create(TOKEN_REVIEW, {"spec": {"token": token}})["status"])

    token = token_of(admin)
    found = reviewed(token)
    assert (found["authenticated"], found["user"]["username"]) == (True, ME)
    admin.delete(f"{ACCOUNTS}/sa")
    # An API server keeps an answer for ten seconds, and its first error is another.
    eventually(lambda: reviewed(token)["user"], {}, seconds=20)
    assert reviewed(token).get("error", "").startswith("[invalid bearer token, ")
    assert (
        codes(admin, *(("POST", TOKEN_REVIEW, {"spec": spec}) for spec in ({}, {"token": []}))) == [400] * 2
    )


def test_the_token_is_never_logged(admin: Client, account: Client) -> None:
    token = token_of(admin)
    answer = Client(admin.hub, token + "x").ask("GET", CONFIGS)
    assert answer.status_code == 401
    assert token not in answer.text + repr(admin.hub.journal) + repr(vars(admin.hub.access))


def test_anonymous_users_can_only_read_health(admin: Client, account: Client) -> None:
    nobody, member = Client(admin.hub, " "), account
    nobody.session.headers.pop("Authorization")
    paths = ["/version", "/healthz", "/livez", "/readyz"]
    discovery = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/kueue.x-k8s.io",
        KUEUE,
        "/openapi/v3",
        "/openapi/v3/api/v1",
    ]
    assert [nobody.ask("GET", path).status_code for path in paths + discovery] == [200] * 4 + [403] * 7
    assert [member.ask("GET", path).status_code for path in paths + discovery] == [200] * 11
    assert codes(nobody, ("POST", WHO, {}), ("GET", CONFIGMAPS)) == [403, 403]


def test_users_have_the_permissions_of_their_groups(hub: Hub, admin: Client) -> None:
    admin.create(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": [rule("list", "", "configmaps")]})
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "r", kind="Group", name="readers"))
    every, reader, nothing = (
        Client(hub, hub.add_user("bob", groups=groups)) for groups in (None, ["readers"], [])
    )
    asked = (("GET", CONFIGMAPS), ("GET", CONFIGS))
    assert [codes(client, *asked) for client in (every, reader, nothing)] == [
        [200, 200],
        [200, 403],
        [403, 403],
    ]
    groups = [c.create(WHO, {})["status"]["userInfo"]["groups"] for c in (every, reader)]
    assert groups == [["system:masters", "system:authenticated"], ["readers", "system:authenticated"]]
    admin.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "cluster-admin", kind="User", name="bob") | {
        "metadata": {"name": "bob"}
    })  # fmt: skip
    assert codes(nothing, *asked, ("GET", "/nowhere")) == [200, 200, 404]
