"""The keys that a change touches."""

from typing import Any

import pytest

from placement_ac.cache.mapping import possible_pairs
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT_DECISION,
    SECRET,
)
from placement_ac.core.inputs.state import Key
from tests.support.builders import (
    SHARED,
    Raw,
    check,
    check_with,
    decision,
    foreign_cluster,
    foreign_config,
    inputs,
    kind_of,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    placement,
    placement_keys,
    profile,
    scores,
    secret,
    secrets,
    snapshot,
    undecided,
    world,
)

BEFORE = [check(), placement(), decision("a"), *our_objects("a"), check("two", "q"), decision("b", of="q")]


@pytest.mark.parametrize(
    ("raw", "touched"),
    [
        pytest.param(check("new", "x"), placement_keys("x"), id="a check"),
        pytest.param(check("check", "q", version=2), placement_keys("p", "q"), id="changed parameters"),
        pytest.param(
            check_with(None, version=2),
            placement_keys("p") | {Key("check", "check")},
            id="parameters turned bad",
        ),
        pytest.param(check_with(None, "bad"), {Key("check", "bad")}, id="bad parameters"),
        pytest.param(multikueue_check("mk", "q"), placement_keys("q"), id="a multikueue check"),
        pytest.param(multikueue_check("mk", ""), set(), id="a multikueue check without config"),
        pytest.param(placement("q"), placement_keys("q"), id="a Placement"),
        pytest.param(decision("a", version=2), placement_keys("p"), id="a decision"),
        pytest.param(
            decision("a", version=2, labels={}), placement_keys("p"), id="a decision that lost its label"
        ),
        pytest.param(decision("a", of="x", labels={}), set(), id="a decision without label"),
        pytest.param(secret("multikueue-a"), placement_keys("p"), id="a Secret by name"),
        pytest.param(
            secret("kueue-admin-b-kubeconfig"), placement_keys("q"), id="a Secret by the other name"
        ),
        pytest.param(secret("unrelated"), set(), id="another Secret"),
        pytest.param(profile("b"), placement_keys("q"), id="a ClusterProfile"),
        pytest.param(scores("a", gpu=1), placement_keys("p"), id="scores"),
        pytest.param(foreign_config("x"), placement_keys("x"), id="a foreign config"),
        pytest.param(our_config(of="x"), placement_keys("x"), id="our config"),
        pytest.param(our_cluster("z", "x"), placement_keys("x"), id="our cluster"),
        pytest.param(foreign_cluster("q-a-b"), placement_keys("q", "q-a"), id="a name that may be wanted"),
        pytest.param(
            our_cluster("a", version=2, labels={}), placement_keys("p", "p-a"), id="a cluster without labels"
        ),
    ],
)
def test_the_keys_that_a_change_touches(raw: Raw, touched: set[Key]) -> None:
    assert world(*BEFORE).put(kind_of(raw), raw) == touched


def test_a_deleted_object_touches_the_keys_that_it_touched() -> None:
    seen = world(*BEFORE)
    assert seen.remove(ADMISSION_CHECK, check()) == placement_keys("p")
    assert seen.remove(MULTIKUEUE_CONFIG, our_config()) == placement_keys("p")


def test_a_secret_touches_those_whose_profile_names_it() -> None:
    seen = world(*BEFORE, profile("a", secret=("kueue-system", "given")))
    assert seen.put(SECRET, secret("given")) == placement_keys("p")


def test_a_cluster_that_is_listed_but_not_selected_counts_as_well() -> None:
    seen = world(check(), placement(), undecided(), our_objects("a"))
    assert seen.put(SECRET, secret("multikueue-a")) == placement_keys("p")


def test_fixed_parameters_touch_the_objects_that_were_held() -> None:
    seen = world(check_with(None), our_objects("a"))
    assert seen.put(ADMISSION_CHECK, check(placement="q", version=2)) == placement_keys("p", "q") | {
        Key("check", "check")
    }


def test_a_shared_cluster_touches_those_who_share_it() -> None:
    objects = [check("one", "p"), check("two", "q"), decision("a"), decision("a", of="q")]
    seen = world(*objects, our_config("a", of="r", owners=["three"]), hub=SHARED)
    assert seen.put(MULTIKUEUE_CLUSTER, our_cluster("a", None)) == placement_keys("p", "q", "r", "a")
    assert seen.put(MULTIKUEUE_CLUSTER, our_cluster("z", None)) == placement_keys("z")
    assert seen.put(MULTIKUEUE_CLUSTER, foreign_cluster("a", version=2)) == placement_keys("p", "q", "r", "a")


def test_a_change_touches_a_shared_cluster_that_may_be_needed_no_more() -> None:
    objects = [check("one", "p"), check("two", "q"), decision("a"), our_cluster("a", None)]
    seen = world(*objects, hub=SHARED)
    assert seen.put(PLACEMENT_DECISION, decision("b", version=2)) == placement_keys("p", "a")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("a")) == placement_keys("p", "a")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("a", of="q")) == placement_keys("q"), (
        "another lists it as well"
    )
    assert seen.put(PLACEMENT_DECISION, decision("a", version=3)) == placement_keys("p")
    assert seen.put(MULTIKUEUE_CONFIG, our_config("b", version=2)) == placement_keys("p")
    assert seen.remove(MULTIKUEUE_CONFIG, our_config("a", of="q")) == placement_keys("q", "a")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a-b-c", [("a", "b-c"), ("a-b", "c")], id="two ways"),
        pytest.param("a", [], id="none"),
        pytest.param("-a", [], id="no placement"),
        pytest.param("a-", [], id="no cluster"),
        pytest.param("a--b", [("a", "-b"), ("a-", "b")], id="two dashes"),
        pytest.param("", [], id="empty"),
    ],
)
def test_a_name_may_be_made_of_several_pairs(name: str, expected: list[Any]) -> None:
    assert list(possible_pairs(name)) == expected


def test_the_first_keys_are_those_of_checks_and_of_our_objects() -> None:
    seen = world(
        check("one", "p"),
        check_with(None, "bad"),
        multikueue_check("mk", "foreign"),
        foreign_config("foreign"),
        foreign_cluster("x-y"),
        placement("unused"),
        decision("a", of="unused"),
        our_config(of="left"),
        our_cluster("a", "behind"),
        our_cluster("shared", None),
    )
    assert seen.keys() == placement_keys("p", "left", "behind", "shared") | {Key("check", "bad")}


@pytest.mark.parametrize(
    "free",
    [
        pytest.param((ADMISSION_CHECK, check("one", "a")), id="the check"),
        pytest.param((PLACEMENT_DECISION, decision("b-c", of="a")), id="the decision"),
        pytest.param((SECRET, secret("multikueue-b-c")), id="the credentials"),
    ],
)
def test_whatever_frees_a_name_touches_the_placement_that_waits_for_it(free: Any) -> None:
    objects = [check("one", "a"), check("two", "a-b"), decision("b-c", of="a"), decision("c", of="a-b")]
    seen = world(*objects, secrets("c", "b-c"))
    assert snapshot(seen, "a-b").objects.name_conflicts
    assert Key("placement", "a-b") in seen.remove(*free)
    assert not snapshot(seen, "a-b").objects.name_conflicts
    shared = world(*objects, secrets("c", "b-c"), hub=SHARED)
    assert Key("placement", "a-b") not in shared.remove(*free)


def test_a_label_that_is_off_a_config_does_not_free_its_holder() -> None:
    config, cluster = our_objects("a")
    config["metadata"]["labels"] = {}
    assert [c.meta.name for c in inputs(check_with(None), config, cluster).checks.former] == ["check"]
