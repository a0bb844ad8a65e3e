"""Which running job is moved, why, and why not the others: the tables of the budget and of what is better."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import MOVED, MOVED_FROM
from placement_ac.core.inputs.state import MovePolicy, Plan, WorkerCopies
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW, Raw, posts
from tests.support.decided import check_messages, check_states, nominated
from tests.support.moving import (
    POLICY,
    USED,
    WITH_KUEUES,
    entry,
    evicted,
    explained,
    fleet,
    job,
    planned,
    recorded,
)

THE_MOVE = "check:Workload/job:a:b:better"
BEGAN = entry(0, "Workload/job")
"""The same, recorded just now."""


# -- one move, step by step


def test_a_move_is_recorded_on_the_hub_before_the_job_is_sent_back() -> None:
    answer = planned(job())
    assert (recorded(answer), check_states(answer)) == ([THE_MOVE], {})


def test_then_the_job_is_sent_back_and_an_event_says_why_and_which_move_it_is() -> None:
    answer = planned(job(), moves=[entry(59), entry(1), BEGAN])
    message = "moved from cluster a because b has room and is better; move 3 of 12 in this hour"
    assert (check_states(answer), check_messages(answer)) == ({"job": "Retry"}, {"job": message})
    assert (MOVED, "job", message) in posts(answer)
    assert (MOVED, "", f"a movable job is {message}: default/job") in posts(answer)


HAS_QUOTA = {("default", "job"): True}


@pytest.mark.parametrize(
    ("copies", "asked"),
    [
        ({}, ["p-a"]),
        ({"p-a": WorkerCopies(HAS_QUOTA, age=11.0)}, ["p-a"]),
        ({"p-a": WorkerCopies(HAS_QUOTA, "no answer", 16.0)}, ["p-a"]),
        ({"p-a": WorkerCopies(HAS_QUOTA, "no answer", 1.0)}, []),
        ({"p-a": WorkerCopies({("default", "job"): False}, age=1.0)}, []),
    ],
    ids=["not asked", "too long ago", "no answer", "just no answer", "no quota there"],
)
@pytest.mark.parametrize("moves", [(), (BEGAN,)], ids=["before it is recorded", "before it is sent back"])
def test_its_cluster_must_have_reported_the_copy_just_now(
    copies: Any, asked: Sequence[str], moves: Sequence[str]
) -> None:
    answer = planned(job(), copies=copies, moves=moves)
    assert ([*answer.ask_for_copies], check_states(answer)) == (asked, {})
    assert len(recorded(answer)) == len(moves)


def test_a_job_whose_cluster_does_not_answer_holds_up_no_other() -> None:
    copies = {
        "p-a": WorkerCopies(HAS_QUOTA, "no answer", 1.0),
        "p-c": WorkerCopies({("default", "other"): True}, age=1.0),
    }
    answer = planned(job(), job("other", "c"), copies=copies, used={"a": (8, 8), "b": (8, 2), "c": (8, 8)})
    assert recorded(answer) == ["check:Workload/other:c:b:better"]


def test_a_recorded_move_that_did_not_begin_in_time_is_given_up() -> None:
    answer = planned(job(), moves=[entry(0.6, "Workload/job")])
    assert (check_states(answer), answer.ask_for_copies) == ({}, ())


def sent_back(minutes: float = 0.5, **rest: Any) -> Raw:
    """The job after Kueue has taken it back."""
    states: Any = {"check": "Pending", "mk": "Pending"}
    why = f"due to: {MOVED_FROM.format('a')} b has room and is better; move 1 of 12 in this hour"
    return evicted(job(cluster="", **(states | rest)), why, NOW - timedelta(minutes=minutes))


MOVES = (entry(0.6, "Workload/job"),)


@pytest.mark.parametrize(
    ("copies", "asked"),
    [
        ({}, ("p-a",)),
        ({"p-a": WorkerCopies({}, "no answer", 20.0)}, ("p-a",)),
        ({"p-a": WorkerCopies({}, age=28.0)}, ("p-a",)),
    ],
    ids=["not asked", "no answer", "asked too early"],
)
def test_it_waits_until_its_cluster_that_stays_holds_no_copy(copies: Any, asked: Sequence[str]) -> None:
    answer = planned(sent_back(), moves=MOVES, copies=copies)
    assert answer.ask_for_copies == asked
    assert check_messages(answer) == {"job": "waits until cluster a holds no copy of it"}
    assert nominated(answer) == {}


def test_when_the_copy_is_gone_it_becomes_ready_and_is_nominated_to_the_target_alone() -> None:
    gone = {"p-a": WorkerCopies({}, age=1.0)}
    assert check_states(planned(sent_back(), moves=MOVES, copies=gone)) == {"job": "Ready"}
    assert nominated(planned(sent_back(check="Ready"), moves=MOVES, copies=gone)) == {"job": ("p-b",)}


LEFT = {"p-a": WorkerCopies({("default", "job"): True}, age=1.0)}
READY_AND_NOMINATED: Any = {"check": "Ready", "nominated": ["p-a"]}
NOT_RECORDED: Any = ({}, {"check": "Ready"}, READY_AND_NOMINATED, READY_AND_NOMINATED)


def after_plans(*states: Any, seconds: float, moves: Sequence[str] = MOVES) -> Plan:
    """The plan for the last of these states, each of which came so many seconds after the one before."""
    ages: dict[Any, float] = {}
    for state in states[:-1]:
        lasting = plan(fleet(sent_back(**state), moves=moves, copies=LEFT, ages=ages)).lasting
        ages = {since: ages.get(since, 0.0) + seconds for since in lasting}
    return plan(fleet(sent_back(**states[-1]), moves=moves, copies=LEFT, ages=ages))


def test_a_job_that_left_a_copy_becomes_ready_then_is_nominated_there_alone() -> None:
    first = planned(sent_back(), moves=MOVES, copies=LEFT)
    assert (check_states(first), nominated(first)) == ({"job": "Ready"}, {})
    then = after_plans({}, {"check": "Ready"}, seconds=0.1)
    assert (check_states(then), nominated(then)) == ({}, {"job": ("p-a",)})
    waits = after_plans({}, {"check": "Ready"}, READY_AND_NOMINATED, READY_AND_NOMINATED, seconds=2.9)
    assert (check_states(waits), nominated(waits)) == ({"job": "Ready"}, {})  # it says where it waits


def test_a_left_copy_that_kueue_does_not_record_is_taken_back_again_as_a_move() -> None:
    answer = after_plans(*NOT_RECORDED, seconds=3.0)
    assert check_states(answer) == {"job": "Retry"}
    assert check_messages(answer)["job"].startswith(MOVED_FROM.format("a"))


AGAIN = entry(0.1, "Workload/job", target="")


def test_the_budget_counts_once_that_it_is_taken_back_again() -> None:
    both = ["check:Workload/job:a:b:better", "check:Workload/job:a::better"]
    assert recorded(after_plans(*NOT_RECORDED, seconds=3.0)) == both
    refused = after_plans(*NOT_RECORDED, seconds=3.0, moves=[*MOVES, AGAIN])
    assert (check_states(refused), recorded(refused)) == ({"job": "Retry"}, both)


def test_a_job_whose_copy_kueue_records_at_last_stays_there() -> None:
    assert check_states(planned(job(), moves=[*MOVES, AGAIN])) == {}


@pytest.mark.parametrize(
    ("copies", "asked", "where"),
    [
        ({}, ("p-a",), {}),
        ({"p-a": WorkerCopies({}, "no answer", 1.0)}, (), {}),
        (LEFT, (), {"job": ("p-a",)}),
        ({"p-a": WorkerCopies({}, age=1.0)}, (), {"job": ("p-b",)}),
    ],
    ids=["not asked", "no answer", "it holds a copy", "it holds none"],
)
def test_a_restart_before_the_nomination_asks_again_whether_a_copy_was_left(
    copies: Any, asked: Sequence[str], where: Any
) -> None:
    answer = plan(fleet(sent_back(check="Ready"), moves=MOVES, copies=copies))
    assert (answer.ask_for_copies, nominated(answer)) == (asked, where)


def test_a_restart_with_moves_off_still_waits_for_the_copy() -> None:
    answer = planned(sent_back(), copies={}, policy=replace(POLICY, moves=None))
    assert check_messages(answer) == {"job": "waits until cluster a holds no copy of it"}


# -- where it goes

FULL_ELSEWHERE = {"a": (8, 7), "b": (8, 8), "c": (8, 8)}


def test_it_goes_to_another_cluster_with_room_if_the_target_is_full_by_now() -> None:
    used = {"a": (8, 1), "b": (8, 8), "c": (8, 4)}
    assert nominated(planned(sent_back(check="Ready"), moves=MOVES, used=used)) == {"job": ("p-c",)}


def test_it_does_not_go_back_at_once_even_if_only_there_is_room() -> None:
    (names,) = nominated(planned(sent_back(check="Ready"), moves=MOVES, used=FULL_ELSEWHERE)).values()
    assert names in (("p-b",), ("p-c",))


def test_it_may_go_back_when_no_other_cluster_has_had_room_for_a_round() -> None:
    waits = sent_back(5.6, check="Ready", nominated=["p-b"])
    answer = planned(waits, moves=[entry(5.7, "Workload/job")], used=FULL_ELSEWHERE)
    assert nominated(answer)["job"][:2] == ("p-b", "p-a")


def test_it_does_not_go_back_within_the_cooldown_while_another_has_room() -> None:
    waits = sent_back(5.6, check="Ready", nominated=["p-b"])
    answer = planned(waits, moves=[entry(5.7, "Workload/job")], used={**FULL_ELSEWHERE, "c": (8, 2)})
    assert "p-a" not in nominated(answer)["job"]


# -- why a job is moved

TWO = {"a": (8, 8), "b": (8, 2)}
SOON = MaintenanceWindow(NOW + timedelta(hours=1))


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        ({}, "check:Workload/job:a:b:better"),
        ({"selected": "bc"}, "check:Workload/job:a:b:drain"),
        ({"maintenance": {"a": SOON}}, "check:Workload/job:a:b:maintenance"),
        ({"maintenance": {"a": SOON, "b": SOON}}, "check:Workload/job:a:c:maintenance"),
        ({"quarantined": {"a": "jobs keep failing"}}, "check:Workload/job:a:b:quarantine"),
        (
            {"quarantined": {"a": "x", "b": "x"}, "used": {**USED, "c": (8, 2)}},
            "check:Workload/job:a:c:quarantine",
        ),
        ({"selected": "bc", "seconds": 61.0}, "check:Workload/job:a:b:drain"),
        ({"seconds": 299.0}, None),
        ({"selected": "bc", "seconds": 59.0}, None),
    ],
    ids=[
        "another is better",
        "it drains",
        "its maintenance is announced",
        "never to one whose maintenance is announced",
        "it is quarantined",
        "never to one that is quarantined",
        "it drains: nobody waits for room",
        "room for less than five minutes",
        "in step for less than a minute",
    ],
)
def test_why_a_job_is_moved(given: Any, moved: str | None) -> None:
    assert recorded(planned(job(), **given)) == ([moved] if moved else [])


def test_what_must_be_empty_goes_first_and_of_equals_the_youngest() -> None:
    old, young = (job(name, "a", since=NOW - timedelta(minutes=m)) for name, m in (("old", 50), ("young", 5)))
    drains = job("drains", "d", since=NOW - timedelta(hours=9))
    used = {**USED, "d": (8, 3)}
    assert recorded(planned(old, young, used=used, selected="abcd")) == ["check:Workload/young:a:b:better"]
    assert recorded(planned(old, young, drains, used=used, selected="abc")) == [
        "check:Workload/drains:d:b:drain"
    ]


# -- why a job is not moved

HAS = {"used": TWO}


@pytest.mark.parametrize(
    ("changed", "given", "why"),
    [
        ({"movable": ""}, HAS, None),
        ({"movable": "yes"}, HAS, None),
        ({"check": "Retry"}, HAS, "it is being sent back"),
        ({"active": False}, HAS, "it is being sent back, or is not active"),
        ({}, {**HAS, "moves": [entry(59, "Workload/job")]}, "may be moved again from"),
        ({}, {**HAS, "moves": [entry(60.9, "Workload/job")]}, "may be moved again from"),
        ({}, {**HAS, "off": "a"}, "not connected to Kueue"),
        ({}, {"used": {"a": (8, 8), "b": (8, 8)}}, "no other cluster is known to have room"),
        ({}, {"used": {"a": (8, 8), "b": None}}, "no other cluster is known to have room"),
        ({}, {"used": {"a": (8, 3), "b": (8, 2)}}, "no cluster is better by 20 points"),
        ({}, {**HAS, "seconds": 100.0}, "b is better, and has had room for 100 s: it moves after 300 s"),
        ({"gpus": 7}, HAS, "no other cluster is known to have room"),
    ],
    ids=[
        "it does not say so",
        "it says something else",
        "it was sent back",
        "it is inactive",
        "it was moved",
        "it was moved an hour ago, and may have been sent back a minute later",
        "its cluster is not connected",
        "nothing has room",
        "it is not known whether there is room",
        "nothing is better",
        "not for long",
        "it is too large",
    ],
)
def test_why_a_job_is_not_moved(changed: Any, given: Any, why: str | None) -> None:
    assert recorded(planned(job(**changed), **given))[len(given.get("moves", ())) :] == []
    reasons = [candidate.objection for candidate in explained(job(**changed), **given).candidates()]
    assert (why or "") in "".join(reasons)
    assert bool(reasons) == (why is not None)


OTHER = job("other", "c")


@pytest.mark.parametrize(
    ("moves", "others", "why"),
    [
        ([entry(m) for m in range(12)], (), "12 of 12 moves in this hour; the next one at"),
        ([*(entry(m) for m in range(11)), entry(60.9)], (), "12 of 12 moves in this hour"),
        ([entry(m) for m in range(61, 73)], (), ""),
        ([entry(m) for m in range(11)], (), ""),
        ([entry(m, check="another") for m in range(12)], (), ""),
        ([entry(3)], (evicted(job("other", ""), "x", NOW),), "default/other moves from cluster a"),
        ([entry(0.1)], (job("other", "a"),), "default/other moves from cluster a"),
        ([entry(3)], (OTHER,), ""),
        ([entry(11)], (evicted(job("other", ""), "x", NOW),), ""),
    ],
    ids=[
        "spent",
        "spent: a job may have been sent back a minute after its move was recorded",
        "an hour ago",
        "one is left",
        "of another check",
        "the last one runs nowhere yet",
        "the last one has not begun",
        "the last one runs elsewhere",
        "the last one is given up",
    ],
)
def test_the_budget_and_one_at_a_time(moves: Sequence[str], others: Sequence[Raw], why: str) -> None:
    answer = explained(job(), *others, moves=moves)
    assert answer.objections.get("check", "").startswith(why)
    assert bool(answer.record) == (not why)


def test_a_mass_loss_stops_all_moves() -> None:
    held = replace(POLICY, loss_grace=300.0)
    used = dict.fromkeys("abcd", (8, 8)) | {"e": (8, 1)}
    answer = planned(job(cluster="a"), used=used, selected="e", policy=held, moves=[BEGAN], seconds=61.0)
    assert (len(recorded(answer)), check_states(answer)) == (1, {})


def test_a_move_that_counts_for_nothing_any_more_is_dropped_from_the_record() -> None:
    long_ago = [entry(61), entry(61, "Workload/there"), entry(200, "Workload/there")]
    policy = replace(POLICY, moves=MovePolicy(cooldown=7200.0))
    answer = planned(job(), job("there", "c"), moves=long_ago, policy=policy)
    assert recorded(answer) == ["check:Workload/there:a:b:better", THE_MOVE]


# -- with Kueue's own dispatcher, which sends a job to any listed cluster with room


@pytest.mark.parametrize(
    ("used", "why"),
    [
        ({"a": (4, 8), "b": (8, 2), "c": (8, 8)}, ""),
        ({"a": (8, 8), "b": (8, 2), "c": (8, 8)}, "which has room without it"),
        ({"a": (4, 8), "b": (8, 2), "c": None}, "might send it to c"),
    ],
    ids=["only there is room", "its own cluster has room", "c may have room"],
)
def test_with_kueues_dispatcher_every_cluster_with_room_must_be_better(used: Any, why: str) -> None:
    answer = explained(job(), used=used, policy=WITH_KUEUES)
    assert bool(answer.record) == (not why)
    assert why in answer.candidates()[0].objection
