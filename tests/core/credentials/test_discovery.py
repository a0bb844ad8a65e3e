"""The way into a cluster, or why there is none."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.constants import ACCOUNT, CREDENTIAL_METHODS, PERMISSION, CredentialMethod
from placement_ac.core.credentials.discovery import (
    DiscoveryInputs,
    clusters_of_secret,
    find_credentials,
    find_external_credentials,
    secret_names,
)
from placement_ac.core.inputs.state import ProvisioningPolicy
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    NS,
    TERMS,
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
    "Secret a/s, named by ClusterProfile kueue-system/a, is out of Kueue's reach: "
    "copy it to namespace kueue-system"
)
BY_PROFILE = profile("a", secret=(NS, "given"))
BY_NAME = secret("multikueue-a")
BY_PROVIDER = profile("a", providers=["ocm"])


def found(*objects: Any, supported: bool = True) -> DiscoveryInputs:
    profiles = [decode.cluster_profile(raw) for raw in objects if kind_of(raw).kind == "ClusterProfile"]
    secrets = [decode.secret(raw) for raw in objects if kind_of(raw).kind == "Secret"]
    return DiscoveryInputs("a", NS, profiles, {s.meta.name: s for s in secrets}.get, supported)


@pytest.mark.parametrize(
    ("objects", "source"),
    [
        pytest.param(
            [BY_PROFILE, secret("given")], CredentialSource("Secret", "given"), id="a profile's Secret"
        ),
        pytest.param([BY_NAME], CredentialSource("Secret", "multikueue-a"), id="multikueue-"),
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
        pytest.param([BY_PROVIDER], CredentialSource("ClusterProfile", "a"), id="an access provider"),
        pytest.param(
            [profile("a", deprecated_providers=["ocm"])],
            CredentialSource("ClusterProfile", "a"),
            id="a deprecated one",
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
def test_the_first_usable_way_is_taken(objects: list[Any], source: CredentialSource) -> None:
    assert find_credentials(found(*objects)) == source


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            [],
            "no credentials: no ClusterProfile in namespace kueue-system names a Secret for kueue-admin, "
            "no Secret kueue-admin-a-kubeconfig or multikueue-a in namespace kueue-system, "
            "no ClusterProfile in namespace kueue-system has an access provider",
            id="nothing",
        ),
        pytest.param([profile("a", secret=("a", "s"))], OUT_OF_REACH, id="another namespace"),
        pytest.param(
            [BY_PROFILE],
            "Secret kueue-system/given, named by ClusterProfile kueue-system/a, does not exist",
            id="a Secret that does not exist",
        ),
        pytest.param(
            [BY_PROFILE, secret("given", b"\xff")],
            "Secret kueue-system/given is not YAML",
            id="not UTF-8",
        ),
        pytest.param(
            [secret("multikueue-a", None)],
            "Secret kueue-system/multikueue-a has no key 'kubeconfig'",
            id="no key",
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), secret("multikueue-a", None)],
            OUT_OF_REACH + "; Secret kueue-system/multikueue-a has no key 'kubeconfig'",
            id="two ways with trouble",
        ),
        pytest.param(
            [
                profile(
                    "a", status={"credentials": [{"consumer": "kueue-admin", "accessRef": {"kind": "Vault"}}]}
                )
            ],
            "status.credentials of ClusterProfile kueue-system/a names no Secret",
            id="no Secret named",
        ),
        pytest.param(
            [profile("a", status={"credentials": "x"})],
            "ClusterProfile kueue-system/a cannot be read: status.credentials: Input should be a valid list",
            id="malformed, and told once",
        ),
    ],
)
def test_why_there_is_none(objects: list[Any], why: str) -> None:
    assert find_credentials(found(*objects)) == Unusable(why)


def test_an_old_kueue_knows_no_profiles() -> None:
    assert find_credentials(found(BY_PROVIDER, supported=False)) == Unusable(
        "Kueue on this hub is too old for ClusterProfiles (it needs v1beta2)"
    )


@pytest.mark.parametrize(
    ("ways", "source"),
    [
        pytest.param(CREDENTIAL_METHODS, CredentialSource("Secret", "given"), id="default"),
        pytest.param(("secret",), CredentialSource("Secret", "multikueue-a"), id="one way"),
        pytest.param(
            ("access-provider", "secret"), CredentialSource("ClusterProfile", "a"), id="another order"
        ),
    ],
)
def test_the_setting_picks_the_order(ways: tuple[CredentialMethod, ...], source: CredentialSource) -> None:
    whole = profile("a", secret=(NS, "given"), providers=["ocm"])
    assert find_credentials(found(whole, secret("given"), BY_NAME), ways) == source


def test_only_the_ways_that_were_asked_for_are_told() -> None:
    assert find_credentials(found(BY_NAME), ("access-provider",)) == Unusable(
        "no credentials: no ClusterProfile in namespace kueue-system has an access provider"
    )
    bad = profile("a", status={"accessProviders": 7})
    assert find_credentials(found(bad), ("access-provider",)) == Unusable(
        "ClusterProfile kueue-system/a cannot be read: status.accessProviders: Input should be a valid list"
    )


@pytest.mark.parametrize("cluster", ["a", "a-b", "kubeconfig"])
def test_a_secrets_name_leads_back_to_its_cluster(cluster: str) -> None:
    assert [clusters_of_secret(name) for name in secret_names(cluster)] == [(cluster,), (cluster,)]


@pytest.mark.parametrize(
    "name", ["multikueue-", "kueue-admin--kubeconfig", "other", "kueue-admin-kubeconfig"]
)
def test_other_names_lead_nowhere(name: str) -> None:
    assert clusters_of_secret(name) == ()


# -- what ends


def ending(name: str, hours: float) -> Any:
    return secret(name, kubeconfig(jwt(name, hours=hours)))


def test_what_has_expired_is_told_and_the_next_way_is_tried() -> None:
    soon, later = ending("kueue-admin-a-kubeconfig", 1), ending("multikueue-a", 2)
    first, second = (
        CredentialSource("Secret", "kueue-admin-a-kubeconfig"),
        CredentialSource("Secret", "multikueue-a"),
    )
    at = {hours: NOW + timedelta(hours=hours) for hours in (0, 1, 2)}
    assert [find_credentials(replace(found(soon, later), now=at[hours])) for hours in (0, 1)] == [
        first,
        second,
    ]
    assert find_credentials(replace(found(soon, later), now=at[2])) == Unusable(
        "Secret kueue-system/kueue-admin-a-kubeconfig has a token that expired at 2026-08-01T13:00:00Z; "
        "Secret kueue-system/multikueue-a has a token that expired at 2026-08-01T14:00:00Z"
    )


def test_a_profiles_secret_that_has_expired() -> None:
    told = find_credentials(replace(found(BY_PROFILE, ending("given", 1)), now=NOW + timedelta(hours=1)))
    assert told == Unusable("Secret kueue-system/given has a token that expired at 2026-08-01T13:00:00Z")


def test_a_way_tells_when_it_ends() -> None:
    way = find_credentials(found(ending("multikueue-a", 1)))
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
    several = found(profile("a", providers=["secretreader", "ocm"]))
    way = find_credentials(replace(several, providers=supported))
    assert isinstance(way, CredentialSource) == usable


# -- found ones and made ones


def way(*objects: Any, now: datetime = NOW, **rest: Any) -> CredentialSource | Unusable | None:
    """The way into cluster a in a world in which it is selected."""
    seen = world(check(), placement(), decision("a"), *objects, **({"terms": TERMS} | rest))
    return replace(snapshot(seen), now=now).credentials.selected["a"]


MADE = [managed_cluster("a"), *provided("a")]


def test_found_ones_go_before_made_ones() -> None:
    assert way(MADE, BY_NAME) == CredentialSource("Secret", "multikueue-a")
    assert way(MADE) == CredentialSource("Secret", "placement-ac-a")
    assert way(MADE, secret("multikueue-a", b"{")) == CredentialSource("Secret", "placement-ac-a")


def test_what_is_wrong_with_either_is_told() -> None:
    assert way(managed_cluster("a"), secret("multikueue-a", None)) == Unusable(
        "Secret kueue-system/multikueue-a has no key 'kubeconfig'; "
        "ManagedServiceAccount a/placement-ac is being made"
    )


def test_what_was_made_is_used_when_no_more_is_made_and_told_when_it_ends() -> None:
    off = ProvisioningPolicy(provision=False)
    assert way(our_secret("a"), terms=off) == CredentialSource("Secret", "placement-ac-a")
    ended = secret("placement-ac-a", kubeconfig(jwt("a", NOW - timedelta(days=2))))
    assert way(ended, terms=off) == Unusable(
        "Secret kueue-system/placement-ac-a has a token that expired at 2026-07-31T12:00:00Z"
    )
    nothing = way(terms=off)
    assert isinstance(nothing, Unusable)
    assert "placement-ac" not in nothing.why


def test_the_addons_are_found_ones_until_they_are_handed_over() -> None:
    theirs = [grant(ACCOUNT, "a", "multikueue"), grant(PERMISSION, "a", "multikueue"), BY_NAME]
    assert way(theirs) == CredentialSource("Secret", "multikueue-a")
    seen = world(check(), placement(), decision("a"), theirs, managed_cluster("a"), terms=TERMS)
    assert seen.inputs_for_provisioning("a", NOW, {}).found


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
    assert way(objects) == CredentialSource("Secret", "multikueue-a")
    taken_over = [our_grant(ACCOUNT, "a", "multikueue", done=False), *objects[:2], *objects[3:]]
    assert way(taken_over) == CredentialSource("Secret", "multikueue-a")


def test_whether_others_have_put_any() -> None:
    made = world(MADE, BY_PROVIDER, terms=replace(TERMS, form="cluster-profile"))
    assert not made.inputs_for_provisioning("a", NOW, {}).found, "that profile is the one of our own making"
    assert find_external_credentials(found(BY_NAME)) == CredentialSource("Secret", "multikueue-a")
    assert find_external_credentials(found(secret("multikueue-a", None))) is None
