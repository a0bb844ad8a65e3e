"""The guard against mass loss: what only OCM or vanished credentials take away is held for a while."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from tests.support.builders import NOW, listed_in
from tests.support.decided import decided_plan

HELD = PlacementPolicy(retention=0.0, loss_grace=300.0)
LOSS = Since(SinceKind.MASS_LOSS)
NAMESPACE = Since(SinceKind.PLACEMENT_NAMESPACE, "kueue-system")
FOUR = ("a", "b", "c", "d")


def answer_for(before: str, after: str, ages: Any = None, *, keys: Any = None, **rest: Any) -> Plan:
    """The config lists `before`, OCM decides `after`; `keys`: the clusters with credentials."""
    given = {"policy": HELD} | rest
    return decided_plan(after, listed=before, credentials=keys, ages=ages, **given)


def listed(answer: Plan) -> list[str]:
    return [name.removeprefix("p-") for name in listed_in(answer)]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param("a", "", "a", id="the only one"),
        pytest.param("abc", "", "abc", id="all of them"),
        pytest.param("abc", "a", "a", id="few, and not all"),
        pytest.param("abcd", "a", "abcd", id="more than half of four"),
        pytest.param("abcd", "ab", "ab", id="just half"),
        pytest.param("a", "b", "b", id="one takes over from another"),
        pytest.param("abcd", "wxyz", "wxyz", id="all take over"),
        pytest.param("abcd", "z", "zabcd", id="one for four"),
    ],
)
def test_a_loss_of_more_than_half_is_held_unless_others_take_over(before: str, after: str, kept: str) -> None:
    assert sorted(listed(answer_for(before, after))) == sorted(kept)


def test_it_is_reported_in_the_condition_and_in_an_event() -> None:
    answer = answer_for("abc", "")
    expected_message = (
        "3 of 3 clusters would go at once though the Placement was not changed: held for 5 min, "
        "or until the Placement is changed"
    )
    verdict = answer.verdicts["check"]
    assert (verdict.status, verdict.reason) == ("True", "Active")
    assert verdict.message.endswith(f"; {expected_message}")
    assert [(notice.reason, notice.message) for notice in answer.events] == [("Held", expected_message)]
    assert (LOSS in answer.lasting, answer.requeue_after) == (True, 300.0)


def test_after_the_grace_it_goes_through() -> None:
    assert listed(answer_for("abc", "", {LOSS: 299.0})) == ["a", "b", "c"]
    late = answer_for("abc", "", {LOSS: 300.0})
    assert (late.config, late.verdicts["check"].reason) == (None, "NoClusterSelected")


def test_a_loss_that_ends_by_itself_leaves_no_trace() -> None:
    answer = answer_for("abc", "abc", {LOSS: 100.0})
    assert (listed(answer), LOSS in answer.lasting, answer.events) == (["a", "b", "c"], False, ())


def test_whoever_changes_the_placement_gets_it_at_once() -> None:
    known = {NAMESPACE: 999.0, Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 1): 999.0}
    answer = answer_for("abc", "", known, generation=2)
    edited = Since(SinceKind.PLACEMENT_EDITED, "Placement/p", 2)
    assert (answer.config, edited in answer.lasting) == (None, True)


def test_a_placement_that_is_created_anew_is_a_change() -> None:
    known = {NAMESPACE: 999.0, Since(SinceKind.PLACEMENT_GENERATION, "its uid before", 1): 999.0}
    assert listed(answer_for("abc", "", known)) == []


@pytest.mark.parametrize(("age", "kept"), [(59.0, []), (60.0, ["a", "b", "c"])])
def test_a_change_counts_for_a_minute_as_ocm_may_follow_late(age: float, kept: list[str]) -> None:
    known = {
        NAMESPACE: age,
        Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 2): age,
        Since(SinceKind.PLACEMENT_EDITED, "Placement/p", 2): age,
    }
    assert listed(answer_for("abc", "", known, generation=2)) == kept


def test_the_generation_found_at_the_start_is_no_change() -> None:
    """After a restart of the hub, controller and OCM come up together."""
    answer = answer_for("abc", "", generation=7)
    generation = Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 7)
    assert (listed(answer), {NAMESPACE, generation} <= answer.lasting) == (["a", "b", "c"], True)


def test_vanished_credentials_are_a_loss_as_well() -> None:
    answer = answer_for("abc", "abc", {"a": 9.0, "b": 9.0, "c": 9.0}, keys={"other"})
    assert listed(answer) == ["a", "b", "c"]


def test_clusters_that_drain_already_are_no_mass_loss_for_a_new_controller() -> None:
    draining = dict.fromkeys("abc", NOW - timedelta(hours=1))
    quiet = {Since(SinceKind.QUIET, name): 2.0 for name in "abc"}
    assert listed(answer_for("dabc", "d", quiet, draining=draining)) == ["d"]


def test_the_share_and_the_grace_are_settings() -> None:
    assert listed(answer_for("abcd", "abc", policy=PlacementPolicy(loss_share=0.2))) == ["a", "b", "c", "d"]
    assert listed(answer_for("abcd", "", policy=PlacementPolicy(loss_grace=0.0, retention=0.0))) == []
