"""Seats and order: who is listed, and when the order alone is worth a write."""

from typing import Any

import pytest

from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, Plan, Since, SinceKind
from tests.support.builders import (
    check,
    decision,
    listed_in,
    our_objects,
    placement,
    planned,
    running,
    scores,
    secrets,
)
from tests.support.decided import decided_plan

CALM = PlacementPolicy(retention=0.0, loss_grace=0.0, reorder_margin=10, reorder_interval=60.0)


def answer_for(before: str, after: Any, *objects: Any, **rest: Any) -> Plan:
    """The config lists `before` in that order, OCM decides `after` (a cluster is a name and its score)."""
    return decided_plan(after, *objects, listed=before, **({"policy": CALM} | rest))


def listed(answer: Plan) -> str:
    return "".join(name.removeprefix("p-") for name in listed_in(answer))


def written(order: str, age: float) -> dict[Since, float]:
    return {Since(SinceKind.LIST_ORDER, ",".join(f"p-{name}" for name in order)): age}


@pytest.mark.parametrize(
    ("after", "order"),
    [
        pytest.param([("b", 60), ("a", 50)], "ab", id="by the margin"),
        pytest.param([("b", 61), ("a", 50)], "ba", id="by more than the margin"),
        pytest.param([("a", 61), ("b", 50)], "ab", id="in order"),
        pytest.param([("b", 55), ("a", 50), ("c", 99)], "cba", id="a new one brings the newest order"),
    ],
)
def test_the_order_alone_is_written_only_when_it_matters(after: Any, order: str) -> None:
    assert listed(answer_for("ab", after)) == order


def test_a_group_that_comes_first_always_matters() -> None:
    objects = [
        *(check(), placement(), decision("b", group=0), decision("a", index=2, group=1)),
        *(*secrets("a", "b"), *our_objects("a", "b")),
    ]
    assert listed(planned(objects, policy=CALM)) == "ba"


def test_the_order_is_written_once_a_minute_at_most() -> None:
    after = [("b", 90), ("a", 10)]
    early = answer_for("ab", after, ages=written("ab", 20.0))
    assert (listed(early), early.requeue_after, set(written("ab", 0)) <= early.lasting) == ("ab", 40.0, True)
    late = answer_for("ab", after, ages=written("ab", 60.0))
    assert (listed(late), set(written("ba", 0)) <= late.lasting) == ("ba", True)


def test_scores_that_jitter_cost_nothing() -> None:
    """OCM fills no score: it is computed from the AddOnPlacementScores."""
    weights = placement(weights={"usage/gpu": 1})
    for a, b in ((50, 52), (53, 49), (50, 59), (58, 50)):
        objects = [check(), weights, decision("a", "b"), *secrets("a", "b"), *our_objects("a", "b")]
        objects += [scores("a", gpu=a), scores("b", gpu=b)]
        assert listed(planned(objects, policy=CALM)) == "ab"


def test_one_that_leaves_stands_last_whatever_its_score() -> None:
    assert listed(answer_for("ab", [("b", 1)], running("job", "p-a"))) == "ba"
    early = answer_for("ab", [("b", 1)], running("job", "p-a"), ages=written("ab", 20.0))
    assert (listed(early), early.requeue_after) == ("ab", 40.0), "the list was written a moment ago"
    assert listed(answer_for("ab", [("b", 1)], running("job", "p-a"), ages=written("ab", 60.0))) == "ba"
    assert listed(answer_for("ba", [("b", 1)], running("job", "p-a"))) == "ba"


def test_of_too_many_the_listed_ones_keep_their_seats_against_hardly_better_ones() -> None:
    two = HubFacts(clusters_max=2)
    assert listed(answer_for("ab", [("c", 60), ("a", 55), ("b", 51)], hub=two)) == "ab"
    assert listed(answer_for("ab", [("c", 62), ("a", 55), ("b", 51)], hub=two)) == "ca"
    assert listed(answer_for("bc", ["a", "b", "c"], hub=two)) == "ab"


def test_no_margin_and_no_interval_means_the_order_of_the_scores() -> None:
    eager = PlacementPolicy(retention=0.0, reorder_margin=0, reorder_interval=0.0)
    answer = answer_for("ab", [("b", 51), ("a", 50)], policy=eager)
    assert listed(answer) == "ba"
