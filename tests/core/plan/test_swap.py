"""The short way from a decision to the list: when it is taken, and to what it comes."""

from collections.abc import Iterable
from typing import Any

import pytest

from placement_ac.cache.store import World
from placement_ac.core.api.constants import ANNOTATION_DRAINING, MULTIKUEUE_CONFIG, PLACEMENT_DECISION, SHARED
from placement_ac.core.inputs.state import HubFacts, Key, Policy
from placement_ac.core.plan.diff import Apply, first_phases
from placement_ac.core.plan.plan import outline
from placement_ac.core.plan.swap import is_at_rest, swap
from tests.support import builders
from tests.support.builders import NOW, Raw

DECISION = "p-decision-1"
GROUPS = [([DECISION], 2)]


def scene(*more: Raw, clusters: Iterable[str] = "abc", **of_placement: Any) -> list[Raw]:
    """Two of some clusters are listed, as was decided; there is a MultiKueueCluster for each of them."""
    said = {"selected": 2, "groups": GROUPS} | of_placement
    kept = [builders.our_cluster(cluster) for cluster in clusters if cluster not in "ab"]
    return [
        builders.check(),
        builders.placement(**said),
        builders.decision("a", "b"),
        *builders.secrets(*clusters),
        *builders.made("a", "b"),
        *kept,
        *more,
    ]


def looked_at(objects: list[Raw], hub: HubFacts | None = None, policy: Policy | None = None) -> World:
    """A world of which one look has been taken, and that keeps what the look says of rest."""
    seen = builders.world(objects, hub=hub, policy=policy or Policy())
    look(seen)
    return seen


def look(seen: World) -> bool:
    """Return whether all is at rest, and let the world keep that."""
    now = builders.snapshot(seen)
    at_rest = is_at_rest(now, outline(now))
    if at_rest:
        seen.rest(now)
    return at_rest


def short(seen: World) -> Apply | None:
    now = seen.at_rest("p", NOW)
    return swap(now) if now else None


def decided(seen: World, *clusters: str | tuple[str, int], **rest: Any) -> Apply | None:
    """Let OCM decide anew, and return what comes of that by the short way: what comes by the long one."""
    raw = builders.decision(*clusters, **rest)
    raw["metadata"]["resourceVersion"] = "2"
    assert Key("placement", "p") in seen.put(PLACEMENT_DECISION, raw)
    write = short(seen)
    if write:
        now = builders.snapshot(seen)
        assert first_phases(now, outline(now)) == ((write,),)
    return write


def names_in(write: Apply | None) -> list[str]:
    assert write
    names: list[str] = write.body["spec"]["clusters"]
    return names


def test_one_cluster_takes_the_place_of_another() -> None:
    seen = looked_at(scene())
    write = decided(seen, "b", "c")
    assert names_in(write) == ["p-b", "p-c"]
    assert write
    assert write.body["metadata"]["resourceVersion"] == "1", "as of the list that was replaced"


def test_the_order_is_that_of_the_scores() -> None:
    assert names_in(decided(looked_at(scene()), ("b", 10), ("c", 20))) == ["p-c", "p-b"]


def test_so_it_is_when_the_scores_are_our_own_to_look_up() -> None:
    scores = [builders.scores("b", gpu=1), builders.scores("c", gpu=5)]
    seen = looked_at(scene(*scores, weights={"usage/gpu": 1}))
    assert names_in(decided(seen, "b", "c")) == ["p-c", "p-b"]


def test_what_it_has_written_is_at_rest_as_well() -> None:
    seen = looked_at(scene(clusters="abcd"))
    for version, clusters in (("2", ("b", "c")), ("3", ("c", "d"))):
        raw = builders.decision(*clusters)
        raw["metadata"]["resourceVersion"] = version
        seen.put(PLACEMENT_DECISION, raw)
        names = [f"p-{cluster}" for cluster in clusters]
        assert names_in(short(seen)) == names
        seen.put(MULTIKUEUE_CONFIG, written(version, *names))


def written(version: str, *names: str, **rest: Any) -> Raw:
    raw = builders.our_config(*names, **rest)
    raw["metadata"]["resourceVersion"] = version
    return raw


@pytest.mark.parametrize(
    "config",
    [
        written("3", "p-b", "p-c", "p-d"),
        written("3", "p-a", "p-c"),
        written("3", "p-b", "p-c", labels={}),
        written("3", "p-b", "p-c", annotations={"by": "hand"}),
        written("3", "p-b", "p-c", managedFields=[]),
        written("3", "p-b", "p-c", owners=("another",)),
        written("3", "p-b", "p-c", uid="another"),
    ],
    ids=["longer", "not-as-decided", "labels", "annotations", "by-hand", "owners", "another"],
)
def test_what_others_have_written_is_not(config: Raw) -> None:
    seen = looked_at(scene(clusters="abcd"))
    assert decided(seen, "b", "c")
    seen.put(MULTIKUEUE_CONFIG, config)
    assert seen.at_rest("p", NOW) is None


def test_nor_is_a_list_with_a_cluster_out_of_reach() -> None:
    there = builders.managed_clusters("a", "b", "c", unreachable=["c"])
    seen = looked_at(scene(*there))
    assert decided(seen, "b", "c")
    seen.put(MULTIKUEUE_CONFIG, written("3", "p-b", "p-c"))
    assert seen.at_rest("p", NOW) is None


def test_a_decision_for_another_placement_is_no_swap() -> None:
    seen = looked_at(scene())
    assert decided(seen, "b", "c")
    raw = builders.decision("b", "c", of="q")
    raw["metadata"] |= {"name": DECISION, "resourceVersion": "3"}
    seen.put(PLACEMENT_DECISION, raw)
    assert seen.at_rest("p", NOW) is None


@pytest.mark.parametrize(
    "clusters",
    [("a", "b"), ("b", "a"), ("a",), ("b", "c", "a"), ("c", "c"), ("c", ""), ("c", "x"), ()],
    ids=["same", "order", "fewer", "more", "twice", "unnamed", "unknown", "none"],
)
def test_what_is_no_swap_takes_the_long_way(clusters: tuple[str, ...]) -> None:
    assert decided(looked_at(scene()), *clusters) is None


@pytest.mark.parametrize(
    ("objects", "rest"),
    [
        (scene(builders.workload("w", check="Pending")), {}),
        (scene(*builders.managed_clusters("a", "b", "c", unreachable=["b"])), {}),
        (scene(builders.decision("c", index=2)), {}),
        (scene(selected=3), {}),
        (scene(groups=[([DECISION], 3)]), {}),
        (scene(groups=[([DECISION], 1), (["other"], 1)]), {}),
        (scene(clusters="ac"), {}),
        (scene(), {"hub": HubFacts(naming=SHARED)}),
        (scene(), {"hub": HubFacts(namespaces=("kueue-system", "other"))}),
        (scene(), {"hub": HubFacts(clusters_max=1)}),
        (scene(), {"policy": Policy(probe=True)}),
        ([raw for raw in scene() if raw["kind"] != "Placement"], {}),
        ([raw for raw in scene() if raw["kind"] != "AdmissionCheck"], {}),
        ([raw for raw in scene() if raw["kind"] != "MultiKueueConfig"], {}),
        ([raw for raw in scene() if raw["metadata"]["name"] != "p-a"], {}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_what_is_not_at_rest_takes_the_long_way(objects: list[Raw], rest: dict[str, Any]) -> None:
    seen = looked_at(objects, **rest)
    assert seen.at_rest("p", NOW) is None


def test_a_list_that_still_drains_is_not_at_rest() -> None:
    objects = scene()
    config = next(raw for raw in objects if raw["kind"] == "MultiKueueConfig")
    config["metadata"]["annotations"] = {ANNOTATION_DRAINING: "p-a=2026-07-01T00:00:00Z"}
    assert not look(looked_at(objects))


@pytest.mark.parametrize(
    "change",
    [
        builders.secret("multikueue-b", b"\xff"),
        builders.our_cluster("b", owners=["another"]),
        builders.check("another"),
        builders.placement(selected=2, groups=GROUPS, weights={"usage/gpu": 1}),
        builders.workload("w", check="Pending"),
        builders.our_config("p-a"),
        builders.managed_clusters("a", "b", unreachable=["b"])[1],
    ],
    ids=lambda raw: raw["kind"],
)
def test_whatever_changes_besides_takes_the_long_way(change: Raw) -> None:
    seen = looked_at(scene())
    assert seen.at_rest("p", NOW)
    change["metadata"]["resourceVersion"] = "5"
    assert Key("placement", "p") in seen.put(builders.kind_of(change), change)
    assert seen.at_rest("p", NOW) is None


@pytest.mark.parametrize(
    "change",
    [
        builders.secret("multikueue-c", b"\xff"),
        builders.our_cluster("c", owners=["another"]),
        builders.foreign_cluster("p-c"),
    ],
    ids=["secret", "owners", "foreign"],
)
def test_who_is_not_ready_is_not_swapped_in(change: Raw) -> None:
    seen = looked_at(scene())
    change["metadata"]["resourceVersion"] = "5"
    seen.put(builders.kind_of(change), change)
    look(seen)
    assert decided(seen, "b", "c") is None


@pytest.mark.parametrize("kind", ["AdmissionCheck", "MultiKueueConfig", "Placement", "MultiKueueCluster"])
def test_whatever_goes_takes_the_long_way(kind: str) -> None:
    seen = looked_at(scene())
    gone = next(raw for raw in scene() if raw["kind"] == kind)
    seen.remove(builders.kind_of(gone), gone)
    assert seen.at_rest("p", NOW) is None


def test_so_does_a_list_in_which_something_is_missing() -> None:
    seen = looked_at(scene())
    seen.replace(builders.kind_of(builders.check()), [], "9")
    assert seen.at_rest("p", NOW) is None


def test_a_copy_of_a_world_keeps_nothing_of_it() -> None:
    seen = looked_at(scene())
    assert seen.copy().at_rest("p", NOW) is None
    assert seen.at_rest("p", NOW)
