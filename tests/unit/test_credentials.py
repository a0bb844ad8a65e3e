"""The way into a cluster, or why there is none."""

from typing import Any

import pytest

from placement_ac import model
from placement_ac.credentials import Found, clusters_of_secret, find, secret_names
from placement_ac.names import WAYS, Way
from placement_ac.ways import Source, Unusable
from tests.builders import NS, kind_of, profile, secret

OUT_OF_REACH = (
    "Secret a/s, named by ClusterProfile kueue-system/a, is out of Kueue's reach: "
    "copy it to namespace kueue-system"
)
BY_PROFILE = profile("a", secret=(NS, "given"))
BY_NAME = secret("multikueue-a")
BY_PROVIDER = profile("a", providers=["ocm"])


def found(*objects: Any, supported: bool = True) -> Found:
    profiles = [model.profile(raw) for raw in objects if kind_of(raw).kind == "ClusterProfile"]
    secrets = [model.secret(raw) for raw in objects if kind_of(raw).kind == "Secret"]
    return Found("a", NS, profiles, {s.meta.name: s for s in secrets}.get, supported)


@pytest.mark.parametrize(
    ("objects", "source"),
    [
        pytest.param([BY_PROFILE, secret("given")], Source("Secret", "given"), id="a profile's Secret"),
        pytest.param([BY_NAME], Source("Secret", "multikueue-a"), id="multikueue-"),
        pytest.param(
            [BY_NAME, secret("kueue-admin-a-kubeconfig")],
            Source("Secret", "kueue-admin-a-kubeconfig"),
            id="kueue-admin- before multikueue-",
        ),
        pytest.param(
            [BY_NAME, secret("kueue-admin-a-kubeconfig", b"\xff")],
            Source("Secret", "multikueue-a"),
            id="a bad one does not hide a good one",
        ),
        pytest.param([BY_PROVIDER], Source("ClusterProfile", "a"), id="an access provider"),
        pytest.param(
            [profile("a", deprecated_providers=["ocm"])], Source("ClusterProfile", "a"), id="a deprecated one"
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), BY_NAME],
            Source("Secret", "multikueue-a"),
            id="a Secret out of reach, then one by name",
        ),
        pytest.param(
            [profile("a", secret=("a", "s")), profile("a", "other", secret=(NS, "given")), secret("given")],
            Source("Secret", "given"),
            id="the second profile",
        ),
        pytest.param(
            [profile("a", "other", providers=["ocm"]), BY_PROVIDER],
            Source("ClusterProfile", "a"),
            id="Kueue's own namespace counts",
        ),
    ],
)
def test_the_first_usable_way_is_taken(objects: list[Any], source: Source) -> None:
    assert find(found(*objects)) == source


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            [],
            "no credentials: no ClusterProfile names a Secret for kueue-admin, "
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
    assert find(found(*objects)) == Unusable(why)


def test_an_old_kueue_knows_no_profiles() -> None:
    assert find(found(BY_PROVIDER, supported=False)) == Unusable(
        "Kueue on this hub is too old for ClusterProfiles (it needs v1beta2)"
    )


@pytest.mark.parametrize(
    ("ways", "source"),
    [
        pytest.param(WAYS, Source("Secret", "given"), id="default"),
        pytest.param(("secret",), Source("Secret", "multikueue-a"), id="one way"),
        pytest.param(("access-provider", "secret"), Source("ClusterProfile", "a"), id="another order"),
    ],
)
def test_the_setting_picks_the_order(ways: tuple[Way, ...], source: Source) -> None:
    whole = profile("a", secret=(NS, "given"), providers=["ocm"])
    assert find(found(whole, secret("given"), BY_NAME), ways) == source


def test_only_the_ways_that_were_asked_for_are_told() -> None:
    assert find(found(BY_NAME), ("access-provider",)) == Unusable(
        "no credentials: no ClusterProfile in namespace kueue-system has an access provider"
    )
    bad = profile("a", status={"accessProviders": 7})
    assert find(found(bad), ("access-provider",)) == Unusable(
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
