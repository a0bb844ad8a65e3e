"""The limits on writes that succeed."""

from typing import Any

import pytest

from placement_ac.controller.write_limits import BURST, FREE_WRITES, UndoneWrite, WriteLimits, object_of
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT_SCORE, SECRET
from placement_ac.core.api.decode import workload
from placement_ac.core.plan.diff import (
    Action,
    Apply,
    Delete,
    Nominate,
    SetCheckStates,
    SetCondition,
    SetStatus,
)
from tests.support import builders


def apply(*clusters: str, **metadata: Any) -> Apply:
    body = {"metadata": {"name": "p"} | metadata, "spec": {"clusters": list(clusters)}}
    return Apply(MULTIKUEUE_CONFIG, body, None)


def condition(message: str, when: str = "") -> SetCondition:
    return SetCondition("p", "uid", {"message": message, "lastTransitionTime": when})


JOB = workload(builders.workload("job"))
A = apply("a")


def written(limits: WriteLimits, action: Action, *at: float) -> list[tuple[int, float] | None]:
    """Write at these times, however long the write should wait; return what was known of each."""
    found = []
    for now in at:
        undone = limits.undone(action, now)
        limits.wrote(action, now)
        found.append(undone and (undone.times, undone.wait))
    return found


def test_the_same_write_is_held_back_after_it_was_undone_five_times() -> None:
    limits = WriteLimits(50)
    assert written(limits, A, *range(6)) == [None, (1, 0), (2, 0), (3, 0), (4, 0), (5, 29)]
    assert limits.undone(A, 7.0) == UndoneWrite(6, 28, is_new=True)
    assert limits.undone(A, 20.0) == UndoneWrite(6, 15, is_new=False)
    assert limits.undone(A, 40.0) == UndoneWrite(6, 0, is_new=False), "now it may be written"


def score(value: int, valid_until: str) -> SetStatus:
    status = {"scores": [{"name": "gpuFree", "value": value}], "validUntil": valid_until}
    return SetStatus(PLACEMENT_SCORE, "placement-ac", "1", status, "a")


def test_a_score_that_somebody_overwrites_is_held_back_although_each_is_valid_for_longer() -> None:
    """One that its agent overwrote again and again was corrected 25 times a minute, and never reported."""
    limits, found = WriteLimits(50), []
    for now in range(6):
        found += written(limits, score(70, f"2026-01-01T00:00:{now:02}Z"), now)
    assert found == [None, (1, 0), (2, 0), (3, 0), (4, 0), (5, 29)]
    assert limits.undone(score(80, "2026-01-01T00:00:06Z"), 6.0) is None, "another value"


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([(apply("b"), 4.5)], id="something else was written"),
        pytest.param([(Delete(MULTIKUEUE_CONFIG, "p", "uid"), 4.5)], id="it was deleted by us"),
        pytest.param([(A, 40.0), (A, 80.0)], id="a write lasted"),
    ],
)
def test_it_is_counted_anew_if(between: list[tuple[Action, float]]) -> None:
    limits = WriteLimits(50)
    written(limits, A, *range(5))
    for action, at in between:
        limits.undone(action, at)
        limits.wrote(action, at)
    undone = limits.undone(A, between[-1][1] + 1.0)
    assert undone is None or (undone.times <= 1 and undone.wait == 0)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (apply("a"), apply("a", uid="u", resourceVersion="7"), True),
        (apply("a"), apply("a", labels={"x": "y"}), False),
        (condition("m", "12:00"), condition("m", "12:01"), True),
        (condition("m"), condition("other"), False),
        (Delete(SECRET, "s", "1", "n"), Delete(SECRET, "s", "2", "n"), True),
        (Delete(SECRET, "s", "1", "n"), Delete(SECRET, "s", "1", "other"), False),
        (SetCheckStates(JOB, ()), SetCheckStates(JOB, ()), False),
        (Nominate(JOB, ("a",)), Nominate(JOB, ("a",)), False),
    ],
    ids=str,
)
def test_which_writes_are_the_same(first: Action, second: Action, same: bool) -> None:
    limits = WriteLimits(50)
    limits.wrote(first, 0.0)
    assert (limits.undone(second, 1.0) is not None) is same


def waits_of(limits: WriteLimits, actions: list[Action], now: float) -> list[float]:
    """Write them all, however long each should wait."""
    found = []
    for action in actions:
        found.append(limits.reserve(action, now))
        limits.wrote(action, now)
    return found


def test_decisions_that_change_do_not_wait() -> None:
    limits = WriteLimits(10)
    for turn in range(FREE_WRITES):
        many: list[Action] = [apply(str(turn), name=f"p{i}") for i in range(2 * BURST)]
        assert waits_of(limits, many, turn / 10) == [0.0] * len(many)


def test_an_object_that_is_written_often_takes_tokens() -> None:
    limits = WriteLimits(10)
    for turn in range(FREE_WRITES):
        waits_of(limits, [apply(str(turn))], 0.0)
    assert waits_of(limits, [A] * 2 * BURST, 0.0) == [0.0] * BURST + [n / 10 for n in range(1, BURST + 1)]
    assert waits_of(limits, [A] * FREE_WRITES, 10.0) == [0.0] * FREE_WRITES
    assert limits.reserve(A, 10.0) > 0


@pytest.mark.parametrize("wait", [0.5, 1.0])
def test_one_write_a_second_takes_no_token(wait: float) -> None:
    limits = WriteLimits(0.001)
    took = [waits_of(limits, [A], wait * turn) for turn in range(FREE_WRITES * 3 + BURST)]
    assert any(seconds > 0 for [seconds] in took) is (wait < 1)


def test_the_name_of_an_object() -> None:
    names = [
        str(object_of(action))
        for action in (A, condition("m"), Delete(SECRET, "s", "1", "n"), Nominate(JOB, ()))
    ]
    assert names == ["MultiKueueConfig p", "AdmissionCheck p", "Secret n/s", "Workload default/job"]
