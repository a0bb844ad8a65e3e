"""The cache after events and lists in any order."""

from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
)
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import Key
from tests.support.builders import (
    NOW,
    Raw,
    check,
    decision,
    placement,
    placement_keys,
    profile,
    secret,
    snapshot,
    world,
)


def decided_clusters(cache: Cache, name: str = "p") -> list[str]:
    """The clusters that a Placement's decisions hold, by the cache."""
    return [cluster.cluster for cluster in cache.snapshot(Key("placement", name), NOW, {}).decisions.clusters]


def at(version: int, *clusters: str, uid: str = "1") -> Raw:
    """A version of the one PlacementDecision that these tests follow."""
    return decision(*clusters, version=version, uid=uid)


@pytest.mark.parametrize(
    ("events", "clusters"),
    [
        pytest.param([("put", at(1, "a"))], ["a"], id="one"),
        pytest.param([("put", at(1, "a")), ("put", at(2, "b"))], ["b"], id="in order"),
        pytest.param([("put", at(2, "b")), ("put", at(1, "a"))], ["b"], id="a late one"),
        pytest.param([("put", at(9, "a")), ("put", at(10, "b"))], ["b"], id="versions are numbers"),
        pytest.param([("put", at(1, "a")), ("put", at(1, "b"))], ["a"], id="a repeated one"),
        pytest.param([("put", at(1, "a")), ("remove", at(2, "a"))], [], id="gone"),
        pytest.param([("remove", at(2, "a")), ("put", at(1, "a"))], [], id="gone before it was seen"),
        pytest.param(
            [("put", at(1, "a")), ("remove", at(2)), ("put", at(1, "a"))], [], id="gone, and a late event"
        ),
        pytest.param(
            [("put", at(1, "a")), ("remove", at(2)), ("put", at(3, "b", uid="2"))], ["b"], id="made again"
        ),
        pytest.param(
            [("put", at(1, "a")), ("put", at(3, "b", uid="2")), ("remove", at(2))],
            ["b"],
            id="made again first",
        ),
        pytest.param([("remove", at(2))], [], id="never seen"),
        pytest.param(
            [
                ("put", at(1, "a") | {"metadata": at(1)["metadata"] | {"resourceVersion": "x"}}),
                ("put", at(1, "b")),
            ],
            ["b"],
            id="a version that is no number",
        ),
    ],
)
def test_the_newest_version_is_known(events: list[tuple[str, Raw]], clusters: list[str]) -> None:
    seen = world(placement())
    for change, raw in events:
        (seen.put if change == "put" else seen.remove)(PLACEMENT_DECISION, raw)
    assert decided_clusters(seen) == clusters


def test_a_change_without_effect_touches_no_key() -> None:
    seen = world(placement(), at(2, "a"))
    assert seen.put(PLACEMENT_DECISION, at(2, "a")) == set()
    assert seen.put(PLACEMENT_DECISION, at(1, "b")) == set()
    assert seen.remove(PLACEMENT_DECISION, at(1, uid="another")) == set()
    assert seen.remove(PLACEMENT_DECISION, decision(of="q")) == set()


@pytest.mark.parametrize(
    ("known", "items", "version", "clusters"),
    [
        pytest.param(at(5, "a"), [], "6", [], id="it vanished"),
        pytest.param(at(5, "a"), [], "4", ["a"], id="it is newer than the list"),
        pytest.param(at(5, "a"), [at(7, "b")], "7", ["b"], id="it changed"),
        pytest.param(at(5, "a"), [at(4, "b")], "4", ["a"], id="it changed after the list"),
        pytest.param(at(5, "a"), [at(6, "b", uid="2")], "7", ["b"], id="it was made again"),
        pytest.param(at(5, "a", uid="2"), [at(3, "b")], "4", ["a"], id="it was made again after the list"),
    ],
)
def test_a_list_after_a_gap_shows_the_changes_that_the_watch_missed(
    known: Raw, items: list[Raw], version: str, clusters: list[str]
) -> None:
    seen = world(placement())
    seen.put(PLACEMENT_DECISION, known)
    before = decided_clusters(seen)
    touched = seen.replace(PLACEMENT_DECISION, items, version)
    assert (decided_clusters(seen), touched) == (
        clusters,
        placement_keys("p") if clusters != before else set(),
    )


def test_a_list_that_was_under_way_brings_nothing_back() -> None:
    seen = world(placement(), at(5, "a"))
    seen.remove(PLACEMENT_DECISION, at(9))
    seen.replace(PLACEMENT_DECISION, [at(5, "a")], "8")
    assert decided_clusters(seen) == []


def test_a_restored_hub_begins_its_versions_again() -> None:
    seen = world(placement())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    assert seen.replace(PLACEMENT_DECISION, [at(5, "b")], "7") == placement_keys("p")
    assert decided_clusters(seen) == ["b"]


def test_a_restore_that_is_listed_in_parts_makes_nothing_complete_before_its_end() -> None:
    seen = world(placement(), check())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    assert (seen.begin_replace(PLACEMENT_DECISION, "901"), decided_clusters(seen), seen.has_synced) == (
        set(),
        ["a"],
        True,
    )
    assert seen.begin_replace(PLACEMENT_DECISION, "7") == placement_keys("p")
    assert (decided_clusters(seen), seen.has_synced) == ([], False)
    seen.put(PLACEMENT_DECISION, at(5, "b"))
    assert seen.end_replace(PLACEMENT_DECISION, {("kueue-system", "p-decision-1")}, "7") == set()
    assert (decided_clusters(seen), seen.has_synced) == (["b"], True)


def test_a_restore_brings_back_what_had_gone() -> None:
    seen = world(placement())
    seen.replace(PLACEMENT_DECISION, [at(500, "a")], "900")
    seen.remove(PLACEMENT_DECISION, at(901))
    seen.replace(PLACEMENT_DECISION, [at(5, "a")], "7")
    assert decided_clusters(seen) == ["a"]


def test_nothing_is_complete_before_every_kind_has_been_listed() -> None:
    seen = Cache()
    for kind in WATCHED_KINDS:
        assert (seen.has_synced, str(kind) in " ".join(seen.unsynced())) == (False, True)
        seen.put(ADMISSION_CHECK, check())
        seen.replace(kind, [], "")
    assert (seen.has_synced, seen.unsynced()) == (True, [])


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        pytest.param(PLACEMENT, placement(namespace="elsewhere"), id="Placement"),
        pytest.param(PLACEMENT_DECISION, decision("a", namespace="elsewhere"), id="PlacementDecision"),
        pytest.param(SECRET, secret("multikueue-a", namespace="elsewhere"), id="Secret"),
        pytest.param(CLUSTER_PROFILE, profile("a", "elsewhere", secret=("kueue-system", "s")), id="profile"),
    ],
)
def test_other_namespaces_are_ignored(kind: Any, raw: Raw) -> None:
    seen = world(check(), placement(), decision("a"))
    before = snapshot(seen)
    assert (seen.put(kind, raw), snapshot(seen)) == (set(), before)
