"""
Moves with a budget, the whole controller on the virtual clock: must not run twice, must end, must balance.

Run the stories long by hand: `MOVES_EXAMPLES=500 pytest tests/properties/test_moves.py --timeout 0`.
"""

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from placement_ac.core.api.constants import (
    ANNOTATION_MOVES,
    MOVE_BEGINS_SECONDS,
    MULTIKUEUE_CONFIG,
    Kind,
)
from placement_ac.core.inputs.state import MovePolicy, PlacementPolicy
from placement_ac.core.moves.history import Move, MoveHistory
from placement_ac.kube.client import TIMEOUT_SECONDS
from tests.support.builders import NOW
from tests.support.virtual.hub import object_of
from tests.support.virtual.loop import play
from tests.support.virtual.moving_fleet import MovingFleet

EXAMPLES: Final = int(os.environ.get("MOVES_EXAMPLES", "0"))
MINUTE, HOUR = 60.0, 3600.0
PROFILES: Final = ("ranked", "spread", "headroom", "headroom,Spread=1")
POLICY: Final = PlacementPolicy(
    retention=60.0, loss_grace=0.0, dispatcher=True, unlist_after=HOUR, dispatch_profile="headroom"
)


def moves_in_an_hour(fleet: MovingFleet) -> int:
    """The most moves in any hour."""
    times = [move.at for move in fleet.moved]
    return max((sum(0 <= other - at < HOUR for other in times) for at in times), default=0)


def too_soon(fleet: MovingFleet, cooldown: float) -> list[str]:
    """The jobs that were moved twice within the cooldown."""
    times = {move.job: [other.at for other in fleet.moved if other.job == move.job] for move in fleet.moved}
    return [job for job, at in times.items() if any(b - a < cooldown for a, b in pairwise(at))]


def returned(fleet: MovingFleet, cooldown: float) -> list[str]:
    """The jobs that came back to a cluster within the cooldown after they had left it for another."""
    back = []
    for move in fleet.moved:
        after = [(at, where) for at, where in fleet.placed[move.job] if at > move.at]
        # Where the copy was left behind, it is recorded again before the job has run anywhere else.
        if any(where == move.left and at - move.at < cooldown for at, where in after[1:]):
            back.append(move.job)
    return back


def happen(fleet: MovingFleet, chance: random.Random, names: list[str], *, crashes: bool) -> None:
    """Let something happen to jobs or clusters."""
    cluster = chance.choice(fleet.clusters)
    what = chance.choice(("submit", "submit", "submit", "resize", "select", "hold", "crash", "evict"))
    if what == "submit" and len(names) < 12:
        names.append(f"j{len(names)}")
        movable = chance.random() < 0.7
        fleet.submit(
            names[-1],
            chance.choice((300.0, 1800.0, 9 * HOUR)),
            movable=movable,
            gpus=chance.choice((1, 1, 2)),
        )
    elif what == "resize":
        fleet.resize(cluster, chance.choice((1, 2, 4, 8)))
    elif what == "select":
        fleet.hub.select(sorted(chance.sample(fleet.clusters, chance.randint(2, 4))), edited=True)
    elif what == "hold":
        fleet.kueue.hold(object_of(cluster))
        fleet.kueue.later(chance.choice((60.0, 900.0)), lambda: fleet.kueue.release(object_of(cluster)))
    elif what == "crash" and crashes:
        fleet.controller.crash(chance.choice((0.1, 3.0, 20.0)), chance.randrange(4))
    elif what == "evict" and names and fleet.kueue.is_known(name := chance.choice(names)):
        fleet.kueue.evict(name)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("dispatcher", [True, False], ids=["ours", "AllAtOnce"])
@settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    seed=st.integers(0, 9999),
    profile=st.sampled_from(PROFILES),
    per_hour=st.sampled_from((1, 3, 12)),
    after=st.sampled_from((0.0, 60.0, 300.0)),
    cooldown=st.sampled_from((1200.0, HOUR)),
    left_behind=st.sampled_from((1 / 8, 0.5)),
)
def test_moves_keep_to_the_budget_and_end_and_no_job_runs_twice(
    dispatcher: bool,
    seed: int,
    profile: str,
    per_hour: int,
    after: float,
    cooldown: float,
    left_behind: float,
) -> None:
    policy = replace(
        POLICY,
        dispatcher=dispatcher,
        unlist_after=HOUR if dispatcher else 0.0,
        dispatch_profile=profile,
        moves=MovePolicy(after, 20.0, per_hour, cooldown),
    )
    chance = random.Random(seed)
    fleet = MovingFleet(seed, dict(zip("abcd", (4, 4, 2, 8), strict=True)), policy, left_behind=left_behind)

    async def story() -> None:
        names: list[str] = []
        fleet.start("a", "b", "c")
        for _ in range(40):
            happen(fleet, chance, names, crashes=True)
            await asyncio.sleep(chance.choice((0.3, 2.0, 20.0, 90.0, 400.0)))
        calm = fleet.now
        await asyncio.sleep(3 * HOUR)
        assert [move for move in fleet.moved if move.at > calm + HOUR + MINUTE] == []

    play(fleet.kueue, story())
    assert fleet.ran_twice() == []
    assert moves_in_an_hour(fleet) <= per_hour
    assert too_soon(fleet, cooldown) == []
    assert {move.job for move in fleet.moved} <= fleet.movable
    assert returned(fleet, cooldown) == []


@given(
    per_hour=st.integers(1, 4),
    cooldown=st.sampled_from((600.0, HOUR)),
    steps=st.lists(
        st.tuples(
            st.sampled_from((1.0, 300.0, 599.0, 661.0)),
            st.sampled_from((0.0, 1.0, MOVE_BEGINS_SECONDS)),
            st.sampled_from((0.0, TIMEOUT_SECONDS)),
            st.booleans(),
        ),
        max_size=40,
    ),
)
@settings(max_examples=200, deadline=None)
def test_however_late_jobs_are_sent_back_the_budget_and_the_cooldown_hold(
    per_hour: int, cooldown: float, steps: list[tuple[float, float, float, bool]]
) -> None:
    """Each step: the seconds since the one before, until the move begins, and of its write; which job."""
    policy, now = MovePolicy(per_hour=per_hour, cooldown=cooldown), NOW
    moves: list[Move] = []
    evicted: list[tuple[datetime, str]] = []
    for since, begins, takes, is_first in steps:
        now += timedelta(seconds=since)
        history, uid = MoveHistory(tuple(moves), policy, now), "first" if is_first else f"u{len(moves)}"
        if history.left("check") and uid not in history.cooling:
            moves.append(Move("check", uid, "a", "b", "drain", now.replace(microsecond=0)))
            evicted.append((max(now, moves[-1].at + timedelta(seconds=begins + takes)), uid))
    for number, (at, uid) in enumerate(evicted):
        later = [(other - at).total_seconds() for other, _ in evicted[:number] + evicted[number + 1 :]]
        assert sum(0 <= seconds < HOUR for seconds in later) < per_hour
        again = [(other - at).total_seconds() for other, job in evicted[number + 1 :] if job == uid]
        assert all(seconds >= cooldown for seconds in again)


def test_a_job_is_not_sent_back_for_a_cluster_where_its_name_is_taken() -> None:
    fleet = MovingFleet(1, dict.fromkeys("ab", 4), replace(POLICY, moves=MovePolicy()), left_behind=0.0)
    fleet.taken["b"] = {"j"}

    async def story() -> None:
        fleet.start("a")
        fleet.submit("j", 9 * HOUR)
        await asyncio.sleep(MINUTE)
        fleet.hub.select("b")
        await asyncio.sleep(10 * MINUTE)
        assert (fleet.where("j"), fleet.moved) == ("a", [])
        fleet.taken.clear()
        await asyncio.sleep(3 * MINUTE)
        assert fleet.where("j") == "b"

    play(fleet.kueue, story())
    assert fleet.ran_twice() == []


def test_a_job_that_is_sent_back_long_after_its_move_was_recorded_counts_for_an_hour_from_then() -> None:
    """The controller crashes between the two writes, and is back 25 s later."""
    policy = replace(POLICY, moves=MovePolicy(per_hour=1))
    fleet = MovingFleet(1, dict.fromkeys("ab", 4), policy, left_behind=0.0)
    records: list[float] = []

    def crash_at_the_first(kind: Kind, before: Any, after: Any) -> None:
        if kind == MULTIKUEUE_CONFIG and _moves_in(after) != _moves_in(before):
            records.append(fleet.now)
            if len(records) == 1:
                fleet.kueue.later(0.0, lambda: fleet.controller.crash(25.0))

    async def story() -> None:
        fleet.hub.on_apply.append(crash_at_the_first)
        fleet.start("a")
        for name in ("j1", "j2"):
            fleet.submit(name, 9 * HOUR)
        await asyncio.sleep(MINUTE)
        fleet.hub.select("b")
        await asyncio.sleep(HOUR)
        for tick in range(240):
            fleet.hub.score("b", tick)  # it plans again
            await asyncio.sleep(1.0)

    play(fleet.kueue, story())
    first, second = (move.at for move in fleet.moved)
    assert first - records[0] > 25.0
    assert second - first >= HOUR


def _moves_in(config: Any) -> str:
    annotations = (config or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(ANNOTATION_MOVES, ""))


# -- five workers with 200 jobs: one degrades to half its GPUs, another one is added

GPUS: Final = dict.fromkeys("abcdef", 41)
FEW_GPUS: Final = dict.fromkeys("abcdef", 2)
JOBS: Final = 200
TROUBLE: Final = 10 * MINUTE
"""When a degrades and f is added."""
LONG_JOB: Final = 5 * HOUR
SHORT_JOB: Final = 10 * MINUTE
"""On ten GPUs, 200 of them take more than three hours; on 200 they would have ended after ten minutes."""


def rebalanced(
    policy: PlacementPolicy, gpus: dict[str, int], seconds: float, until: Callable[[MovingFleet], bool]
) -> tuple[MovingFleet, float]:
    """Play three hours; return the fleet, and how long after the trouble `until` first held (inf: never)."""
    fleet = MovingFleet(1, gpus, policy)

    async def story() -> float:
        fleet.start(*"abcde")
        await asyncio.sleep(5.0)
        for number in range(JOBS):
            fleet.submit(f"j{number}", seconds)
        await asyncio.sleep(TROUBLE)
        assert {where for name in fleet.seconds if (where := fleet.where(name))} == set("abcde")
        fleet.resize("a", gpus["a"] // 2)
        fleet.hub.select("abcdef")
        began = fleet.now
        while fleet.now < began + 3 * HOUR:
            await asyncio.sleep(MINUTE)
            if until(fleet):
                return fleet.now - began
        return float("inf")

    return fleet, play(fleet.kueue, story())


def is_balanced(fleet: MovingFleet) -> bool:
    """Whether the use of GPUs of each cluster is within 15 % of the mean."""
    use: dict[str, float] = fleet.use()
    mean = sum(use.values()) / len(use)
    return all(abs(share - mean) <= 0.15 * mean for share in use.values())


def lost(fleet: MovingFleet) -> float:
    """The share of all work that was lost to moves."""
    return sum(move.lost for move in fleet.moved) / sum(fleet.seconds.values())


QUICK: Final = MovePolicy(margin=5.0, per_hour=60)
"""Twelve moves an hour cannot move the 36 jobs in time, and by 20 points the added cluster stays emptier."""
ONE_QUEUE: Final = replace(POLICY, step_size=1, round_timeout=4 * HOUR)
"""A job waits for one cluster, and no other one is nominated as well: those that wait balance nothing."""
WITH_MOVES: Final = [
    pytest.param(replace(POLICY, moves=QUICK), GPUS, LONG_JOB, id="jobs of five hours on 200 GPUs"),
    pytest.param(replace(ONE_QUEUE, moves=MovePolicy()), FEW_GPUS, SHORT_JOB, id="of ten minutes on ten"),
]
"""The short jobs with the budget, margin and time that are the defaults."""


@pytest.mark.long
@pytest.mark.timeout(600)  # 30 virtual minutes with 200 jobs and some 36 moves
@pytest.mark.parametrize(("policy", "gpus", "seconds"), WITH_MOVES)
def test_with_moves_a_degraded_and_an_added_cluster_are_balanced_within_half_an_hour(
    policy: PlacementPolicy, gpus: dict[str, int], seconds: float
) -> None:
    fleet, took = rebalanced(policy, gpus, seconds, is_balanced)
    assert took <= 30 * MINUTE
    assert fleet.moved
    assert fleet.ran_twice() == []
    assert lost(fleet) <= 0.03


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("policy", "gpus", "seconds"), WITH_MOVES)
def test_without_moves_they_are_not_balanced_within_three_hours(
    policy: PlacementPolicy, gpus: dict[str, int], seconds: float
) -> None:
    fleet, took = rebalanced(replace(policy, moves=None), gpus, seconds, is_balanced)
    assert (took, fleet.moved) == (float("inf"), [])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_moves_of_short_jobs_lose_little_work_in_three_hours() -> None:
    fleet, _ = rebalanced(replace(ONE_QUEUE, moves=MovePolicy()), FEW_GPUS, SHORT_JOB, lambda _: False)
    assert lost(fleet) <= 0.03


@pytest.mark.long
@pytest.mark.timeout(600)
def test_without_moves_jobs_that_wait_balance_them_in_the_next_round() -> None:
    rounds = replace(ONE_QUEUE, round_timeout=5 * MINUTE)
    fleet, took = rebalanced(rounds, FEW_GPUS, SHORT_JOB, is_balanced)
    assert took <= 30 * MINUTE
    assert fleet.moved == []


def test_a_movable_job_that_runs_costs_two_plans_in_half_a_minute() -> None:
    """One that asks the workers, and one that takes in all their answers, however many there are."""
    fleet = MovingFleet(1, dict.fromkeys("abcdef", 8), replace(POLICY, moves=MovePolicy()))

    async def story() -> int:
        fleet.start(*"abcdef")
        fleet.submit("j", LONG_JOB)
        await asyncio.sleep(TROUBLE)
        before = fleet.controller.reconciles.total()
        await asyncio.sleep(TROUBLE)
        return fleet.controller.reconciles.total() - before

    plans = play(fleet.kueue, story())
    assert fleet.where("j")
    assert plans <= 2 * TROUBLE / 30.0 + 4
