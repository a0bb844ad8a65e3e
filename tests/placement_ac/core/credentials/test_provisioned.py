"""Readiness of provisioned credentials, and the messages for an admin."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.constants import ACCOUNT, ADDON_ACCOUNT, ANNOTATION_ADOPT, PERMISSION
from placement_ac.core.api.objects import AccountToken
from placement_ac.core.credentials.provisioned import kubeconfig_of, name_conflict, provisioned_credentials
from placement_ac.core.credentials.source import secret_problem
from placement_ac.core.inputs.provisioning import ProvisioningInputs, ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.kubeconfig.read import read_kubeconfig, strict_problem
from placement_ac.core.kubeconfig.refusals import StricterRule
from placement_ac.core.kubeconfig.source import ClusterAccess, CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    PROVISIONING,
    SERVER,
    authority,
    check,
    decision,
    encoded,
    grant,
    jwt,
    kubeconfig,
    managed_cluster,
    our_grant,
    our_secret,
    placement,
    profile,
    provided,
    provisioned_cluster,
    provisioning_inputs,
    secret,
    token,
    world,
)

SELECTED = [check(), placement(), decision("a")]
OURS = CredentialSource("Secret", "placement-ac-a")
BY_PROFILE = replace(PROVISIONING, form="cluster-profile")
SYNCED = secret("a-placement-ac", None)


def inputs_of(
    *objects: Any, provisioning: ProvisioningPolicy = PROVISIONING, **rest: Any
) -> ProvisioningInputs:
    return provisioning_inputs(world(SELECTED, *objects, provisioning=provisioning, **rest))


def why(made: ProvisioningInputs) -> str:
    found = provisioned_credentials(made)
    assert isinstance(found, Unusable), found
    return found.why


def refusing(kind: Any, reason: str, message: str = "") -> Any:
    """An account or permission of ours that OCM has something against."""
    condition = {"type": "X", "status": "False", "reason": reason, "message": message}
    return our_grant(kind, "a", status={"conditions": [condition]})


# -- readiness


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [],
            "wait for OCM's next decision, or let the cluster join: there is no ManagedCluster a",
            id="no ManagedCluster",
        ),
        pytest.param(
            [managed_cluster("a")],
            "wait: ManagedServiceAccount a/placement-ac is being created",
            id="no account",
        ),
        pytest.param(
            [managed_cluster("a"), our_grant(ACCOUNT, "a", done=False)],
            "wait, or enable OCM's addon managed-serviceaccount for the cluster: "
            "ManagedServiceAccount a/placement-ac is not in force yet",
            id="nobody makes the token",
        ),
        pytest.param(
            [managed_cluster("a"), refusing(ACCOUNT, "Failed", "no quota")],
            "fix ManagedServiceAccount a/placement-ac: Failed: no quota",
            id="OCM could not make it",
        ),
        pytest.param(
            [managed_cluster("a"), refusing(ACCOUNT, "Failed")],
            "fix ManagedServiceAccount a/placement-ac: Failed",
            id="and does not say why",
        ),
        pytest.param(
            [managed_cluster("a"), our_grant(ACCOUNT, "a")],
            "wait, or enable OCM's addon managed-serviceaccount for the cluster: "
            "OCM has not reported the token of ManagedServiceAccount a/placement-ac yet",
            id="no token",
        ),
        pytest.param(
            [managed_cluster("a"), our_grant(ACCOUNT, "a"), token("a")],
            "wait: ClusterPermission a/placement-ac is being created",
            id="no permission",
        ),
        pytest.param(
            [
                managed_cluster("a"),
                our_grant(ACCOUNT, "a"),
                our_grant(PERMISSION, "a", done=False),
                token("a"),
                our_secret("a"),
            ],
            "wait, or run OCM's cluster-permission controller: "
            "ClusterPermission a/placement-ac is not in force yet",
            id="nobody grants it",
        ),
        pytest.param(
            [
                managed_cluster("a"),
                our_grant(ACCOUNT, "a"),
                refusing(PERMISSION, "FailedValidation", "no"),
                token("a"),
            ],
            "fix ClusterPermission a/placement-ac: FailedValidation: no",
            id="OCM refuses it",
        ),
        pytest.param(
            [managed_cluster("a"), provided("a")[:3]],
            "wait: Secret kueue-system/placement-ac-a is being created",
            id="our Secret is about to be",
        ),
    ],
)
def test_the_condition_reports_each_step_of_a_new_cluster(objects: list[Any], message: str) -> None:
    flat = [raw for part in objects for raw in ([part] if isinstance(part, dict) else part)]
    assert why(inputs_of(flat)) == message


def test_a_hub_without_ocms_addons_is_reported() -> None:
    assert why(inputs_of(provisioning=replace(PROVISIONING, served=False))) == (
        "install OCM's addons managed-serviceaccount and cluster-permission: "
        "this hub has no ManagedServiceAccounts or no ClusterPermissions"
    )


def test_an_error_of_the_api_server_is_reported() -> None:
    assert why(replace(inputs_of(managed_cluster("a")), error="you shall not")) == "you shall not"


def test_credentials_are_ready() -> None:
    found = provisioned_credentials(inputs_of(managed_cluster("a"), provided("a")))
    assert found == OURS
    assert isinstance(found, CredentialSource)
    assert (found.issued, found.expires) == (NOW, NOW + timedelta(hours=24))


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="ManagedCluster, account, permission and token are gone"),
        pytest.param([our_grant(ACCOUNT, "a", done=False)], id="the account is not in force"),
        pytest.param([refusing(PERMISSION, "Bad"), managed_cluster("a", "")], id="OCM has trouble"),
        pytest.param([token("a", data={})], id="the token is empty"),
        pytest.param([grant(ACCOUNT, "a"), grant(PERMISSION, "a")], id="others are in the way"),
    ],
)
def test_a_listed_cluster_depends_on_the_secret_alone(objects: list[Any]) -> None:
    assert provisioned_credentials(inputs_of(objects, our_secret("a"), provisioned_cluster("a"))) == OURS
    assert isinstance(provisioned_credentials(inputs_of(objects, our_secret("a"))), Unusable)


def test_a_secret_stays_usable_without_provision() -> None:
    off = replace(PROVISIONING, provision=False)
    assert provisioned_credentials(inputs_of(our_secret("a"), provisioning=off)) == OURS
    assert isinstance(provisioned_credentials(inputs_of(provisioning=off)), Unusable)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [grant(ACCOUNT, "a")],
            "delete ManagedServiceAccount a/placement-ac, or hand it over with "
            "kubectl annotate -n a managedserviceaccount placement-ac "
            "placement-ac.open-cluster-management.io/adopt=true: someone else created it",
            id="account",
        ),
        pytest.param(
            [our_grant(ACCOUNT, "a"), grant(PERMISSION, "a")],
            "delete ClusterPermission a/placement-ac, or hand it over with "
            "kubectl annotate -n a clusterpermission placement-ac "
            "placement-ac.open-cluster-management.io/adopt=true: someone else created it",
            id="permission",
        ),
        pytest.param(
            [secret("placement-ac-a")],
            "delete Secret kueue-system/placement-ac-a, or hand it over with "
            "kubectl annotate -n kueue-system secret placement-ac-a "
            "placement-ac.open-cluster-management.io/adopt=true: someone else created it",
            id="Secret",
        ),
    ],
)
def test_a_name_conflict_is_reported_with_its_fix(objects: list[Any], message: str) -> None:
    assert why(inputs_of(managed_cluster("a"), objects)) == message


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="nothing"),
        pytest.param(provided("a"), id="ours"),
        pytest.param([our_grant(ACCOUNT, "a", labels={})], id="ours by what we applied"),
        pytest.param([our_grant(ACCOUNT, "a", managedFields=[])], id="ours by the label"),
        pytest.param([grant(ACCOUNT, "a", annotations={ANNOTATION_ADOPT: "true"})], id="handed over"),
        pytest.param([grant(ACCOUNT, "a", "another")], id="of another name"),
        pytest.param([grant(ACCOUNT, "b")], id="of another cluster"),
    ],
)
def test_no_name_conflict(objects: list[Any]) -> None:
    assert name_conflict(inputs_of(objects)) == ""


# -- expiry


def test_credentials_expire_with_their_token() -> None:
    made = inputs_of(managed_cluster("a"), provided("a"), provisioned_cluster("a"))
    end = NOW + timedelta(hours=24)
    assert provisioned_credentials(replace(made, now=end - timedelta(milliseconds=1))) == OURS
    assert why(replace(made, now=end)) == (
        "in Secret kueue-system/placement-ac-a, renew the token: it expired at 2026-08-02T12:00:00Z"
    )


def test_a_secret_of_others_expires_likewise() -> None:
    end = NOW + timedelta(hours=24)
    good = decode.secret(secret("multikueue-a", kubeconfig(jwt("a"))))
    assert (secret_problem(good, NOW), secret_problem(good, end)) == (
        "",
        "renew the token: it expired at 2026-08-02T12:00:00Z",
    )
    assert secret_problem(decode.secret(secret("x", None)), end) == "add key kubeconfig: it is missing"
    assert secret_problem(decode.secret(secret("x", kubeconfig("opaque"))), end) == ""


# -- the kubeconfig


def content(made: ProvisioningInputs) -> ClusterAccess:
    text = kubeconfig_of(made)
    assert isinstance(text, bytes), text
    access = read_kubeconfig(text)
    assert isinstance(access, ClusterAccess)
    assert strict_problem(text) == ""
    return access


def test_server_authority_and_token() -> None:
    access = content(inputs_of(managed_cluster("a"), token("a")))
    assert (access.server, access.token) == (SERVER, jwt("a"))
    assert access.authority.strip() == authority().strip()


def test_the_managed_clusters_bundle_goes_before_the_one_reported_with_the_token() -> None:
    bundle = encoded(authority() * 2)
    access = content(inputs_of(managed_cluster("a", bundle=bundle), token("a")))
    assert access.authority.count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize("proxy", ["https://proxy.example:8090", "https://proxy.example:8090/"])
def test_through_cluster_proxy(proxy: str) -> None:
    both = authority() * 2
    provisioning = replace(PROVISIONING, proxy=proxy, proxy_authority=both.encode())
    access = content(inputs_of(managed_cluster("a", "", bundle="?"), token("a"), provisioning=provisioning))
    assert access.server == "https://proxy.example:8090/a"
    assert access.authority.count("BEGIN CERTIFICATE") == 2
    bare = content(inputs_of(token("a"), provisioning=replace(provisioning, proxy_authority=b"")))
    assert bare.authority.count("BEGIN CERTIFICATE") == 1


CONFIG = "spec.managedClusterClientConfigs[0]"
NO_URL = f"set {CONFIG}.url of ManagedCluster a, or --cluster-proxy: the URL of its API server is not known"
BAD_BUNDLE = f"fix {CONFIG}.caBundle of ManagedCluster a: it is not base64"
SOURCES = f"in {CONFIG} of ManagedCluster a or Secret a/placement-ac, "


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], NO_URL, id="no ManagedCluster"),
        pytest.param([managed_cluster("a", "")], NO_URL, id="no url"),
        pytest.param([managed_cluster("a", spec={})], NO_URL, id="no client config"),
        pytest.param(
            [managed_cluster("a", "http://worker")], f"{SOURCES}{StricterRule.HTTPS}", id="not https"
        ),
        pytest.param([managed_cluster("a", bundle="not base64!")], BAD_BUNDLE, id="bundle"),
    ],
)
def test_a_worker_that_cannot_be_addressed(objects: list[Any], message: str) -> None:
    assert kubeconfig_of(inputs_of(objects, token("a"))) == Unusable(message)


@pytest.mark.parametrize(
    "managed",
    [
        pytest.param(managed_cluster("a", "https://under_score:1"), id="server"),
        pytest.param(managed_cluster("a", "https://me:hunter2@worker"), id="user info"),
        pytest.param(managed_cluster("a", bundle=encoded("-----BEGIN X-----")), id="authority"),
    ],
)
def test_invalid_parts_are_named_and_not_quoted(managed: Any) -> None:
    message = kubeconfig_of(inputs_of(managed, token("a")))
    assert isinstance(message, Unusable)
    assert message.why.startswith(SOURCES)
    assert not any(word in message.why for word in ("under_score", "hunter2", "BEGIN", jwt("a")))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param({}, "has no token", id="empty"),
        pytest.param({"token": encoded("t")}, "has no ca.crt", id="no CA"),
        pytest.param({"ca.crt": encoded("x")}, "has no token", id="no token"),
        pytest.param(
            {"token": "%", "ca.crt": ""}, "is not base64 of a token and a certificate", id="garbage"
        ),
        pytest.param(
            {"token": encoded(b"\xff"), "ca.crt": encoded("x")},
            "is not base64 of a token and a certificate",
            id="no text",
        ),
        pytest.param({"token": 7}, "is not base64 of a token and a certificate", id="a number"),
    ],
)
def test_a_token_that_cannot_be_read(data: Any, message: str) -> None:
    made = inputs_of(managed_cluster("a"), token("a", data=data))
    assert kubeconfig_of(made) == Unusable(
        f"delete Secret a/placement-ac, so that OCM reports the token again: it {message}"
    )


def test_a_token_that_no_header_can_carry() -> None:
    message = kubeconfig_of(inputs_of(managed_cluster("a"), token("a", text="SeCrEt with\na break")))
    assert isinstance(message, Unusable)
    assert message.why.startswith(SOURCES)
    assert "SeCrEt" not in message.why


def test_a_tokens_repr_shows_no_secret() -> None:
    message = repr(decode.account_token(token("a")))
    assert message.startswith("AccountToken(meta=")
    assert jwt("a") not in message
    assert "BEGIN" not in message
    assert (
        repr(AccountToken(decode.account_token(token("a")).meta, "hunter2", b"hunter2")).count("hunter2") == 0
    )


# -- ClusterProfiles

OFFERS = profile("a", providers=["x", "y"])
IN_FORCE = [managed_cluster("a"), our_grant(ACCOUNT, "a"), our_grant(PERMISSION, "a"), token("a")]


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param([OFFERS, SYNCED], CredentialSource("ClusterProfile", "a"), id="all is there"),
        pytest.param(
            [OFFERS],
            Unusable(
                "wait, or turn on the feature gate ClusterProfile of OCM's addon managed-serviceaccount: "
                "OCM has not copied the token of ManagedServiceAccount a/placement-ac "
                "to namespace kueue-system yet"
            ),
            id="the token is not copied",
        ),
        pytest.param(
            [SYNCED],
            Unusable(
                "give the ClusterProfile of a in namespace kueue-system an access provider "
                "that is supported: it is missing, or has none"
            ),
            id="no profile",
        ),
        pytest.param(
            [SYNCED, profile("a", providers=["z"])],
            Unusable(
                "give the ClusterProfile of a in namespace kueue-system an access provider "
                "that is supported: it is missing, or has none"
            ),
            id="another provider",
        ),
    ],
)
def test_a_profile_once_a_provider_is_supported_and_the_token_is_copied(
    objects: list[Any], found: CredentialSource | Unusable
) -> None:
    made = inputs_of(IN_FORCE, objects, provisioning=BY_PROFILE, providers=["y"])
    assert provisioned_credentials(made) == found


def test_a_profile_whose_server_is_not_allowed_gets_none() -> None:
    objects = [profile("a", providers=["x"], server="https://w.example.org"), SYNCED]
    made = inputs_of(IN_FORCE, objects, provisioning=BY_PROFILE, providers={"x": (".example.com",)})
    assert why(made) == (
        "in ClusterProfile kueue-system/a, correct the server of access provider x, or add its host to "
        "allowedServerSuffixes in the file --access-providers: it is not allowed there"
    )


def test_a_kueue_too_old_for_profiles_gets_none() -> None:
    old = inputs_of(
        IN_FORCE, OFFERS, SYNCED, provisioning=BY_PROFILE, hub=HubFacts(cluster_version="v1beta1")
    )
    assert why(old) == "update Kueue on this hub to one with v1beta2: it is too old for ClusterProfiles"


def test_a_secret_of_others_does_not_conflict_with_a_profile() -> None:
    made = inputs_of(IN_FORCE, OFFERS, SYNCED, secret("placement-ac-a"), provisioning=BY_PROFILE)
    assert provisioned_credentials(made) == CredentialSource("ClusterProfile", "a")


def test_the_former_secret_is_used_until_the_profile_is_ready() -> None:
    before = [IN_FORCE, our_secret("a"), provisioned_cluster("a")]
    assert provisioned_credentials(inputs_of(*before, OFFERS, provisioning=BY_PROFILE)) == OURS
    assert provisioned_credentials(
        inputs_of(*before, OFFERS, SYNCED, provisioning=BY_PROFILE)
    ) == CredentialSource("ClusterProfile", "a")
    expired = replace(inputs_of(*before, OFFERS, provisioning=BY_PROFILE), now=NOW + timedelta(days=2))
    assert "OCM has not copied the token" in why(expired)


# -- what the Go kueue-addon made


def test_adopted_credentials_keep_their_names() -> None:
    made = inputs_of(managed_cluster("a"), provided("a", ADDON_ACCOUNT))
    assert (made.account_name, provisioned_credentials(made)) == (
        ADDON_ACCOUNT,
        CredentialSource("Secret", "multikueue-a"),
    )
