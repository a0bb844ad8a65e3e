"""Placements from several namespaces: the first that has one of the name counts, whatever comes and goes."""

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import PLACEMENT, PLACEMENT_DECISION, SECRET
from placement_ac.core.inputs.state import HubFacts, Key, PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    PROVISIONING,
    Raw,
    check,
    check_with,
    decision,
    our_objects,
    placement,
    secret,
    secrets,
    snapshot,
    unmarked,
    verdict,
    world,
)

TWO = HubFacts(namespaces=("first", "second"))
HELD = PlacementPolicy(retention=0.0, loss_grace=300.0)
P = Key("placement", "p")


def here(namespace: str, *clusters: str) -> list[Raw]:
    """A Placement `p` with its decision."""
    return [placement(namespace=namespace), decision(*clusters, namespace=namespace)]


def counts(cache: Cache) -> tuple[str, list[str]]:
    """The namespace of the Placement that counts, "" if there is none, and what is decided for it."""
    found = snapshot(cache)
    clusters = [cluster.cluster for cluster in found.decisions.clusters]
    return found.decisions.placement.namespace if found.decisions.placement else "", clusters


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        pytest.param(here("first", "a"), ("first", ["a"]), id="in the first"),
        pytest.param(here("second", "b"), ("second", ["b"]), id="in the second"),
        pytest.param([*here("second", "b"), *here("first", "a")], ("first", ["a"]), id="in both"),
        pytest.param(here("third", "c"), ("", []), id="where nobody looks"),
        pytest.param(
            [placement(namespace="first"), decision("b", namespace="second")],
            ("first", []),
            id="decisions of another namespace",
        ),
        pytest.param(
            [placement(namespace="second"), decision("a", namespace="first")],
            ("second", []),
            id="decisions that a Placement left behind",
        ),
        pytest.param([decision("a", namespace="first")], ("", ["a"]), id="decisions alone"),
        pytest.param(
            [decision("a", namespace="first"), decision("b", namespace="second")],
            ("", ["a"]),
            id="decisions alone, of two",
        ),
    ],
)
def test_which_placement_counts(objects: list[Raw], wanted: tuple[str, list[str]]) -> None:
    assert counts(world(check(), objects, hub=TWO)) == wanted


def test_the_order_is_that_of_the_setting() -> None:
    turned = HubFacts(namespaces=("second", "first"))
    assert counts(world(here("first", "a"), here("second", "b"), hub=turned)) == ("second", ["b"])


def test_a_check_follows_the_placements_that_come_and_go() -> None:
    seen = world(check(), here("second", "b"), hub=TWO)
    first, decided = here("first", "a")
    assert (seen.put(PLACEMENT, first), counts(seen)) == ({P}, ("first", []))
    assert (seen.put(PLACEMENT_DECISION, decided), counts(seen)) == ({P}, ("first", ["a"]))
    assert (seen.remove(PLACEMENT, first), counts(seen)) == ({P}, ("second", ["b"]))
    assert (seen.remove(PLACEMENT_DECISION, decided), counts(seen)) == ({P}, ("second", ["b"]))


def test_the_clusters_of_both_are_looked_at_where_credentials_are_made() -> None:
    seen = world(
        check(), here("second", "b"), decision("a", namespace="first"), hub=TWO, provisioning=PROVISIONING
    )
    keys = {P, Key("cluster", "a"), Key("cluster", "b")}

    def selected() -> list[str]:
        return [cluster for cluster in "ab" if seen.provisioning_inputs(cluster, NOW).usage.selected]

    first = placement(namespace="first")
    assert selected() == ["b"]
    assert (seen.put(PLACEMENT, first), selected()) == (keys, ["a"])
    assert (seen.remove(PLACEMENT, first), selected()) == (keys, ["b"])


# -- lists


def test_a_list_of_one_namespace_says_nothing_of_the_other() -> None:
    seen = world(check(), here("first", "a"), here("second", "b"), hub=TWO)
    assert seen.end_replace(PLACEMENT, (), "9", "second") == {P}
    assert counts(seen) == ("first", ["a"])
    assert seen.end_replace(PLACEMENT_DECISION, (), "9", "first") == {P}
    assert counts(seen) == ("first", [])


def test_nothing_is_complete_before_each_namespace_has_been_listed() -> None:
    seen = world(check(), hub=TWO)
    fresh = Cache(TWO)
    for kind, namespace in seen.scopes:
        assert not fresh.has_synced
        message = f"{kind} in {namespace}" if namespace else str(kind)
        assert message in fresh.unsynced()
        fresh.end_replace(kind, (), "1", namespace)
        assert message not in fresh.unsynced()
    assert fresh.has_synced
    assert {where for kind, where in seen.scopes if kind is PLACEMENT} == {"first", "second"}
    assert {where for kind, where in seen.scopes if kind is SECRET} == {"kueue-system"}


def test_versions_that_begin_anew_in_one_namespace_leave_the_other_alone() -> None:
    seen = Cache(TWO)
    for kind, namespace in seen.scopes:
        seen.end_replace(kind, (), "900", namespace)
    for namespace in TWO.namespaces:
        for raw in here(namespace, namespace[0]):
            seen.put(PLACEMENT if raw["kind"] == "Placement" else PLACEMENT_DECISION, raw)
    assert (seen.begin_replace(PLACEMENT, "901", "first"), seen.has_synced) == (set(), True)
    assert (seen.begin_replace(PLACEMENT, "7", "first"), seen.has_synced) == ({P}, False)
    assert counts(seen) == ("second", ["s"])
    assert seen.unsynced() == [f"{PLACEMENT} in first"]
    assert (seen.end_replace(PLACEMENT, (), "7", "first"), seen.has_synced) == (set(), True)


# -- mass loss


def switched(ages: dict[Since, float], **rest: int) -> Plan:
    """The list was made of the first namespace's Placement; now only the second has one, for one cluster."""
    objects = [check(), placement(namespace="second", **rest), decision("a", namespace="second")]
    seen = world(objects, our_objects(*"abcd"), secrets(*"abcd"), hub=TWO, policy=HELD)
    return plan(snapshot(seen, ages=ages))


GENERATIONS = (SinceKind.PLACEMENT_NAMESPACE, SinceKind.PLACEMENT_GENERATION, SinceKind.PLACEMENT_EDITED)
FIRST = Since(SinceKind.PLACEMENT_NAMESPACE, "first")
FIRSTS = Since(SinceKind.PLACEMENT_GENERATION, "Placement/p@first", 1)
SECOND = Since(SinceKind.PLACEMENT_NAMESPACE, "second")
SECONDS = Since(SinceKind.PLACEMENT_GENERATION, "Placement/p@second", 1)


def test_a_placement_that_went_is_no_edit_of_the_one_that_counts_now() -> None:
    answer = switched({FIRST: 999.0, FIRSTS: 999.0})
    assert answer.config
    assert answer.config.clusters == ("p-a", "p-b", "p-c", "p-d")
    assert {mark for mark in answer.lasting if mark.kind in (*GENERATIONS, SinceKind.MASS_LOSS)} == {
        SECOND,
        SECONDS,
        Since(SinceKind.MASS_LOSS),
    }


def test_an_edit_of_the_one_that_counts_now_goes_through() -> None:
    answer = switched({SECOND: 9.0, SECONDS: 9.0, Since(SinceKind.MASS_LOSS): 9.0}, generation=2)
    assert answer.config
    assert answer.config.clusters == ("p-a",)
    assert SECONDS._replace(kind=SinceKind.PLACEMENT_EDITED, number=2) in answer.lasting


# -- what is message


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [check()],
            ("correct spec.parameters.name, or create Placement first/p or second/p: it does not exist"),
            id="none",
        ),
        pytest.param(
            [check(), placement(namespace="second")],
            "OCM has not decided yet for Placement second/p",
            id="not decided",
        ),
        pytest.param(
            [check(), placement(selected=0, namespace="second"), decision(namespace="second")],
            "Placement second/p selects no cluster",
            id="none selected",
        ),
        pytest.param(
            [check_with(None)],
            "set spec.parameters to apiGroup: cluster.open-cluster-management.io, kind: Placement and the "
            "name of a Placement in namespace first or second: spec.parameters is missing",
            id="bad parameters",
        ),
    ],
)
def test_messages_name_the_namespace(objects: list[Raw], message: str) -> None:
    if objects[0]["spec"].get("parameters"):
        assert verdict(objects, hub=TWO).message == message
    else:
        answer = plan(world(objects, hub=TWO).snapshot(Key("check", "check"), NOW, {}))
        assert unmarked(answer).verdicts["check"].message == message


def test_secrets_beside_a_placement_are_ignored() -> None:
    seen = world(check(), here("first", "a"), hub=TWO)
    assert seen.put(SECRET, secret("multikueue-a", namespace="first")) == set()
