"""The snapshot of a Placement that the cache gives."""

import copy
from datetime import datetime, timedelta

import pytest

from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.inputs.state import HubFacts, Key, PlacementCluster, Since, SinceKind
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from tests.support.builders import (
    NOW,
    SHARED,
    Raw,
    check,
    check_with,
    decision,
    inputs,
    jwt,
    kubeconfig,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    placement,
    profile,
    scores,
    secret,
    secrets,
    snapshot,
    world,
)

HOUR = timedelta(hours=1)


def test_a_snapshot_holds_all_that_a_placement_depends_on() -> None:
    objects = [
        *(check("one"), check("other", "q"), multikueue_check("mk"), multikueue_check("mk-q", "q")),
        *(check_with(None, "held"), check_with(None, "bad")),
        *(placement(weights={"usage/gpu": 1}), placement("q"), decision("a"), decision("b", of="q")),
        *(scores("a", gpu=1), scores("a", "other", gpu=1), scores("b", gpu=1)),
        *(secrets("a", "b"), our_objects("a", owners=["one", "held"]), our_cluster("b", "q")),
    ]
    seen = inputs(*objects, ages={"a": 1.0})
    assert (
        [c.meta.name for c in seen.checks.ours],
        [c.meta.name for c in seen.checks.multikueue],
        [c.meta.name for c in seen.checks.former],
        seen.decisions.placement and seen.decisions.placement.name,
        [cluster.cluster for cluster in seen.decisions.clusters],
        seen.decisions.scored,
        dict(seen.credentials.selected),
        seen.objects.config and seen.objects.config.meta.name,
        list(seen.objects.clusters),
        (seen.objects.name_conflicts, seen.objects.unneeded, seen.all_ages, seen.now),
    ) == (
        ["one"],
        ["mk"],
        ["held"],
        "p",
        ["a"],
        {"a"},
        {"a": CredentialSource("Secret", "multikueue-a")},
        "p",
        ["p-a"],
        ({}, frozenset(), {Since(SinceKind.REMOVAL_UNSETTLED, "a"): 1.0}, NOW),
    )


def test_methods_and_kueues_version_decide_the_source() -> None:
    objects = [placement(), decision("a", "b"), *secrets("a"), profile("a", providers=["x"])]
    seen = inputs(*objects, profile("b", "other", providers=["x"]), methods=["access-provider", "secret"])
    assert seen.credentials.selected["a"] == CredentialSource("ClusterProfile", "a")
    old = inputs(*objects, hub=HubFacts(cluster_version="v1beta1"), methods=["access-provider"])
    assert "too old" in getattr(old.credentials.selected["a"], "why", "")


def test_credentials_count_until_they_expire_or_change() -> None:
    seen = world(check(), decision("a"), secret("multikueue-a", kubeconfig(jwt(hours=1))))

    def way(at: datetime) -> CredentialSource | Unusable:
        return seen.snapshot(Key("placement", "p"), at, {}).credentials.selected["a"]

    assert way(NOW) == way(NOW) == CredentialSource("Secret", "multikueue-a")
    assert isinstance(way(NOW + HOUR), Unusable)
    assert way(NOW) == CredentialSource("Secret", "multikueue-a")
    other = seen.copy()
    other.remove(SECRET, secret("multikueue-a"))
    assert isinstance(other.snapshot(Key("placement", "p"), NOW, {}).credentials.selected["a"], Unusable)
    assert way(NOW) == CredentialSource("Secret", "multikueue-a"), "what a copy knows is its own"
    seen.put(SECRET, secret("kueue-admin-a-kubeconfig"))
    assert way(NOW) == CredentialSource("Secret", "kueue-admin-a-kubeconfig")


def test_a_name_conflict_is_another_pair_that_comes_first() -> None:
    objects = [check("one", "a"), check("two", "a-b"), decision("b-c", of="a"), decision("c", of="a-b")]
    seen = world(*objects, secrets("c", "b-c"))
    assert (snapshot(seen, "a").objects.name_conflicts, snapshot(seen, "a-b").objects.name_conflicts) == (
        {},
        {"a-b-c": PlacementCluster("kueue-system/a", "b-c")},
    )
    shared = world(*objects, secrets("c", "b-c"), hub=SHARED)
    assert snapshot(shared, "a-b").objects.name_conflicts == {}


@pytest.mark.parametrize(
    ("objects", "naming", "unneeded"),
    [
        pytest.param([decision("a")], "{cluster}", False, id="selected"),
        pytest.param([our_config("a", of="r")], "{cluster}", False, id="listed"),
        pytest.param([our_config("a", of="r")], "{placement}-{cluster}", False, id="listed by its old name"),
        pytest.param([decision("a")], "{placement}-{cluster}", True, id="selected by another name"),
        pytest.param([decision("a", of="unused")], "{cluster}", True, id="selected without a check"),
        pytest.param([decision("b")], "{cluster}", True, id="neither"),
    ],
)
def test_a_shared_cluster_that_no_placement_needs(objects: list[Raw], naming: str, unneeded: bool) -> None:
    seen = world(check(), our_cluster("a", None), *objects, hub=HubFacts(naming=naming))
    assert snapshot(seen, "a").objects.unneeded == ({"a"} if unneeded else set())
    assert snapshot(seen, "p").objects.unneeded == set(), "the key of its name removes it"


def test_an_object_is_not_changed_by_being_looked_at() -> None:
    raw = decision("a")
    before = copy.deepcopy(raw)
    inputs(raw, check(), placement())
    assert raw == before
    assert world(raw).remove(CLUSTER_PROFILE, profile("a")) == set()


def test_credentials_that_were_found_hold_until_they_expire_or_change() -> None:
    """They are looked for again when time goes on or back, and after any change of a Secret."""
    ends = secret("multikueue-a", kubeconfig(jwt(hours=1)), version=5)
    cache = world(check(), placement(), decision("a"), ends)

    def found(after: timedelta = timedelta()) -> CredentialSource | Unusable:
        return cache.snapshot(Key("placement", "p"), NOW + after, {}).credentials.selected["a"]

    first = found()
    assert isinstance(first, CredentialSource)
    assert found(HOUR / 2) is first
    assert isinstance(found(HOUR), Unusable)
    assert found() == first
    cache.put(SECRET, secret("multikueue-a", b"no kubeconfig", version=6))
    assert isinstance(found(), Unusable)
    cache.put(SECRET, secret("multikueue-a", version=7))
    assert found(10 * HOUR) == first
    cache.remove(SECRET, secret("multikueue-a", version=8))
    assert isinstance(found(), Unusable)
    cache.put(CLUSTER_PROFILE, profile("a", providers=["gcp"]))
    assert isinstance(found(), CredentialSource)
