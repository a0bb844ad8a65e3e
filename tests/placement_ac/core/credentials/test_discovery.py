"""Discovery of the credentials of a cluster, or why there are none."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.constants import ACCOUNT, CREDENTIAL_METHODS, PERMISSION, CredentialMethod
from placement_ac.core.credentials.discovery import SOURCES, find_credentials, find_external_credentials
from placement_ac.core.credentials.named_secret import clusters_of_secret, secret_names
from placement_ac.core.credentials.source import DiscoveryInputs
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.kubeconfig.servers import AllowedServers
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    NS,
    PROVISIONING,
    check,
    decision,
    foreign_cluster,
    grant,
    jwt,
    kind_of,
    kubeconfig,
    kubeconfig_spec,
    managed_cluster,
    our_grant,
    our_secret,
    placement,
    profile,
    provided,
    secret,
    snapshot,
    world,
)

OUT_OF_REACH = (
    "copy Secret a/s to namespace kueue-system: "
    "ClusterProfile kueue-system/a names it, and Kueue reads no other namespace"
)
BY_PROFILE = profile("a", secret=(NS, "given"))
BY_NAME = secret("multikueue-a")
BY_PROVIDER = profile("a", providers=["ocm"])


def discovery_inputs(*objects: Any, supported: bool = True) -> DiscoveryInputs:
    profiles = [decode.cluster_profile(raw) for raw in objects if kind_of(raw).kind == "ClusterProfile"]
    secrets = [decode.secret(raw) for raw in objects if kind_of(raw).kind == "Secret"]
    return DiscoveryInputs(
        "a", NS, profiles=profiles, secret={s.meta.name: s for s in secrets}.get, profiles_supported=supported
    )


@pytest.mark.parametrize(
    ("objects", "source"),
    [
        pytest.param(
            [BY_PROFILE, secret("given")], CredentialSource("Secret", "given"), id="a profile's Secret"
        ),
        pytest.param(
            [BY_NAME, secret("kueue-admin-a-kubeconfig")],
            CredentialSource("Secret", "kueue-admin-a-kubeconfig"),
            id="kueue-admin- before multikueue-",
        ),
        pytest.param(
            [BY_NAME, secret("kueue-admin-a-kubeconfig", b"\xff")],
            CredentialSource("Secret", "multikueue-a"),
            id="a bad one does not hide a good one",
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), BY_NAME],
            CredentialSource("Secret", "multikueue-a"),
            id="a Secret out of reach, then one by name",
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), profile("also-a", secret=(NS, "given")), secret("given")],
            CredentialSource("Secret", "given"),
            id="the second profile",
        ),
    ],
)
def test_the_first_usable_credentials_are_taken(objects: list[Any], source: CredentialSource) -> None:
    assert find_credentials(discovery_inputs(*objects)) == source


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            [],
            "create Secret kueue-system/multikueue-a with key kubeconfig: a has no credentials",
            id="nothing",
        ),
        pytest.param(
            [BY_PROFILE],
            "create Secret kueue-system/given with key kubeconfig: "
            "ClusterProfile kueue-system/a names it, and it does not exist",
            id="a Secret that does not exist",
        ),
        pytest.param(
            [BY_PROFILE, secret("given", b"\xff")],
            "in Secret kueue-system/given, put a kubeconfig: this is not YAML",
            id="not UTF-8",
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), secret("multikueue-a", None)],
            OUT_OF_REACH + "; in Secret kueue-system/multikueue-a, add key kubeconfig: it is missing",
            id="two ways with trouble",
        ),
        pytest.param(
            [
                profile(
                    "a", status={"credentials": [{"consumer": "kueue-admin", "accessRef": {"kind": "Vault"}}]}
                )
            ],
            "name a Secret in status.credentials of ClusterProfile kueue-system/a: it names none",
            id="no Secret named",
        ),
        pytest.param(
            [profile("a", status={"credentials": "x"})],
            "fix ClusterProfile kueue-system/a: status.credentials: Input should be a valid list",
            id="malformed, and message once",
        ),
    ],
)
def test_why_there_are_none(objects: list[Any], why: str) -> None:
    assert find_credentials(discovery_inputs(*objects)) == Unusable(why)


def test_an_old_kueue_knows_no_profiles() -> None:
    assert find_credentials(discovery_inputs(BY_PROVIDER, supported=False)) == Unusable(
        "update Kueue on this hub to one with v1beta2: it is too old for ClusterProfiles"
    )


@pytest.mark.parametrize(
    ("methods", "source"),
    [
        pytest.param(CREDENTIAL_METHODS, CredentialSource("Secret", "given"), id="default"),
        pytest.param(("secret",), CredentialSource("Secret", "multikueue-a"), id="one way"),
        pytest.param(
            ("access-provider", "secret"), CredentialSource("ClusterProfile", "a"), id="another order"
        ),
    ],
)
def test_the_setting_picks_the_order(methods: tuple[CredentialMethod, ...], source: CredentialSource) -> None:
    whole = profile("a", secret=(NS, "given"), providers=["ocm"])
    assert (
        find_credentials(replace(discovery_inputs(whole, secret("given"), BY_NAME), methods=methods))
        == source
    )


def test_only_the_methods_of_the_setting_are_reported() -> None:
    assert find_credentials(replace(discovery_inputs(BY_NAME), methods=("access-provider",))) == Unusable(
        "give the ClusterProfile of a in namespace kueue-system an access provider: a has no credentials"
    )
    bad = profile("a", status={"accessProviders": 7})
    assert find_credentials(replace(discovery_inputs(bad), methods=("access-provider",))) == Unusable(
        "fix ClusterProfile kueue-system/a: status.accessProviders: Input should be a valid list"
    )


@pytest.mark.parametrize("cluster", ["a", "a-b", "kubeconfig"])
def test_a_secrets_name_leads_back_to_its_cluster(cluster: str) -> None:
    assert [clusters_of_secret(name) for name in secret_names(cluster)] == [(cluster,), (cluster,)]


@pytest.mark.parametrize(
    "name", ["multikueue-", "kueue-admin--kubeconfig", "other", "kueue-admin-kubeconfig"]
)
def test_other_names_lead_nowhere(name: str) -> None:
    assert clusters_of_secret(name) == ()


# -- expiry


def ending(name: str, hours: float) -> Any:
    return secret(name, kubeconfig(jwt(name, hours=hours)))


def test_expired_credentials_are_reported_and_the_next_method_is_tried() -> None:
    soon, later = ending("kueue-admin-a-kubeconfig", 1), ending("multikueue-a", 2)
    first, second = (
        CredentialSource("Secret", "kueue-admin-a-kubeconfig"),
        CredentialSource("Secret", "multikueue-a"),
    )
    at = {hours: NOW + timedelta(hours=hours) for hours in (0, 1, 2)}
    assert [find_credentials(replace(discovery_inputs(soon, later), now=at[hours])) for hours in (0, 1)] == [
        first,
        second,
    ]
    assert find_credentials(replace(discovery_inputs(soon, later), now=at[2])) == Unusable(
        "in Secret kueue-system/kueue-admin-a-kubeconfig, renew the token: "
        "it expired at 2026-08-01T13:00:00Z; "
        "in Secret kueue-system/multikueue-a, renew the token: it expired at 2026-08-01T14:00:00Z"
    )


def test_a_profiles_secret_that_has_expired() -> None:
    message = find_credentials(
        replace(discovery_inputs(BY_PROFILE, ending("given", 1)), now=NOW + timedelta(hours=1))
    )
    assert message == Unusable(
        "in Secret kueue-system/given, renew the token: it expired at 2026-08-01T13:00:00Z"
    )


def test_a_source_has_its_expiry() -> None:
    way = find_credentials(discovery_inputs(ending("multikueue-a", 1)))
    assert isinstance(way, CredentialSource)
    assert (way.issued, way.expires) == (NOW, NOW + timedelta(hours=1))


# -- access providers


@pytest.mark.parametrize(
    ("supported", "usable"),
    [
        pytest.param(None, True, id="not known which"),
        pytest.param(["other", "ocm"], True, id="one of several"),
        pytest.param(["other"], False, id="none that the profile has"),
        pytest.param([], False, id="none at all"),
    ],
)
def test_an_access_provider_must_be_supported(supported: list[str] | None, usable: bool) -> None:
    several = discovery_inputs(profile("a", providers=["secretreader", "ocm"]))
    allowed = None if supported is None else dict.fromkeys(supported, ())
    way = find_credentials(replace(several, providers=allowed))
    assert isinstance(way, CredentialSource) == usable


WORKER = "https://w.example.com:6443"
NOT_ALLOWED = (
    "in ClusterProfile kueue-system/a, correct the server of access provider ocm, or add its host to "
    "allowedServerSuffixes in the file --access-providers: it is not allowed there"
)


@pytest.mark.parametrize(
    ("providers", "expected"),
    [
        pytest.param({"ocm": ()}, CredentialSource("ClusterProfile", "a"), id="any server"),
        pytest.param({"ocm": (".example.com",)}, CredentialSource("ClusterProfile", "a"), id="allowed"),
        pytest.param({"ocm": (".example.org",)}, Unusable(NOT_ALLOWED), id="not allowed"),
        pytest.param(
            {"ocm": (".example.org",), "other": ()}, Unusable(NOT_ALLOWED), id="its plugin is the first"
        ),
        pytest.param(
            {"other": (), "ocm": (".example.org",)},
            CredentialSource("ClusterProfile", "a"),
            id="another plugin is the first",
        ),
    ],
)
def test_the_server_must_be_allowed_for_the_provider_that_is_used(
    providers: AllowedServers, expected: CredentialSource | Unusable
) -> None:
    offers = discovery_inputs(profile("a", providers=["ocm", "other"], server=WORKER))
    assert find_credentials(replace(offers, providers=providers, methods=("access-provider",))) == expected


def test_each_method_of_the_setting_has_a_source() -> None:
    assert sorted(SOURCES) == sorted(CREDENTIAL_METHODS)


@pytest.mark.parametrize(
    ("method", "objects", "origin", "cluster_source"),
    [
        pytest.param(
            "secret",
            [BY_NAME],
            "found by its name",
            {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}},
            id="secret",
        ),
        pytest.param(
            "profile-secret",
            [BY_PROFILE, secret("given")],
            "named by its ClusterProfile",
            {"kubeConfig": {"location": "given", "locationType": "Secret"}},
            id="profile-secret",
        ),
        pytest.param(
            "access-provider",
            [BY_PROVIDER],
            "for its access provider",
            {"clusterProfileRef": {"name": "a"}},
            id="access-provider",
        ),
    ],
)
def test_a_source_yields_the_cluster_source_and_says_how_it_was_found(
    method: CredentialMethod, objects: list[Any], origin: str, cluster_source: Any
) -> None:
    source = SOURCES[method].find(discovery_inputs(*objects))
    assert isinstance(source, CredentialSource)
    assert (source.origin, source.cluster_source) == (origin, cluster_source)


# -- external and provisioned credentials


def source_of(*objects: Any, now: datetime = NOW, **rest: Any) -> CredentialSource | Unusable | None:
    """The way into cluster a in a world in which it is selected."""
    seen = world(check(), placement(), decision("a"), *objects, **({"provisioning": PROVISIONING} | rest))
    return replace(snapshot(seen), now=now).credentials.selected["a"]


MADE = [managed_cluster("a"), *provided("a")]


def test_external_credentials_come_before_provisioned_ones() -> None:
    assert source_of(MADE, BY_NAME) == CredentialSource("Secret", "multikueue-a")
    assert source_of(MADE) == CredentialSource("Secret", "placement-ac-a")
    assert source_of(MADE, secret("multikueue-a", b"{")) == CredentialSource("Secret", "placement-ac-a")


def test_problems_of_both_are_reported() -> None:
    assert source_of(managed_cluster("a"), secret("multikueue-a", None)) == Unusable(
        "in Secret kueue-system/multikueue-a, add key kubeconfig: it is missing; "
        "wait: ManagedServiceAccount a/placement-ac is being created"
    )


def test_leftover_credentials_are_used_until_they_expire() -> None:
    off = ProvisioningPolicy(provision=False)
    assert source_of(our_secret("a"), provisioning=off) == CredentialSource("Secret", "placement-ac-a")
    ended = secret("placement-ac-a", kubeconfig(jwt("a", NOW - timedelta(days=2))))
    assert source_of(ended, provisioning=off) == Unusable(
        "in Secret kueue-system/placement-ac-a, renew the token: it expired at 2026-07-31T12:00:00Z"
    )
    nothing = source_of(provisioning=off)
    assert isinstance(nothing, Unusable)
    assert "placement-ac" not in nothing.why


def test_the_addons_credentials_are_external_until_they_are_handed_over() -> None:
    theirs = [grant(ACCOUNT, "a", "multikueue"), grant(PERMISSION, "a", "multikueue"), BY_NAME]
    assert source_of(theirs) == CredentialSource("Secret", "multikueue-a")
    seen = world(check(), placement(), decision("a"), theirs, managed_cluster("a"), provisioning=PROVISIONING)
    assert seen.provisioning_inputs("a", NOW).external


@pytest.mark.parametrize("handed", range(4))
def test_in_no_step_of_an_adoption_is_a_cluster_unusable(handed: int) -> None:
    """In the order in which the command hands them over: Secret, permission, account."""
    adopt = {"placement-ac.open-cluster-management.io/adopt": "true"}
    notes: list[Any] = [{"annotations": adopt} if at < handed else {} for at in range(3)]
    objects = [
        secret("multikueue-a", **notes[0]),
        grant(PERMISSION, "a", "multikueue", done=False, **notes[1]),
        grant(ACCOUNT, "a", "multikueue", done=False, **notes[2]),
        foreign_cluster("a", spec=kubeconfig_spec("multikueue-a")),  # handed over after them
    ]
    assert source_of(objects) == CredentialSource("Secret", "multikueue-a")
    taken_over = [our_grant(ACCOUNT, "a", "multikueue", done=False), *objects[:2], *objects[3:]]
    assert source_of(taken_over) == CredentialSource("Secret", "multikueue-a")


def test_external_credentials_are_recognized() -> None:
    made = world(MADE, BY_PROVIDER, provisioning=replace(PROVISIONING, form="cluster-profile"))
    assert not made.provisioning_inputs("a", NOW).external, "that profile is the one of our own making"
    assert find_external_credentials(discovery_inputs(BY_NAME)) == CredentialSource("Secret", "multikueue-a")
    assert find_external_credentials(discovery_inputs(secret("multikueue-a", None))) is None
