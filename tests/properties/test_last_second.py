"""A job that starts in the second in which its cluster leaves, in virtual time: with and without the gate."""

import asyncio
import random
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.controller import reconcile
from placement_ac.core.api.constants import DRAIN, IMMEDIATE, OUR_CONTROLLER, PENDING, READY, RemovalPolicy
from placement_ac.core.inputs.state import CheckStateUpdate, Plan, Snapshot
from placement_ac.core.plan.plan import plan
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL
from tests.properties.job_stage import GATED, UNGATED, Stage, Story
from tests.properties.job_steps import crash, hold, submit
from tests.properties.job_stories import (
    EXAMPLES,
    all_ends_well,
    by_us,
    calm_down,
    dispatchers,
    ran_twice,
    random_stories,
    run,
)
from tests.support.virtual.hub import object_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workloads import OURS


def last_second(seed: int, dispatcher: str, **how: Any) -> Stage:
    """Jobs wait everywhere; the cluster that leaves admits them when they are about to be sent back.

    Kueue leaves every second copy behind (shared/kueue/gate.txt: one in eight).
    """
    chance = random.Random(seed)
    story = Story(seed, (), dispatcher, left_behind=0.5, **how)
    grace = 60.0 if story.removal == DRAIN and dispatcher != OUR_CONTROLLER else 0.0

    async def ends(at: Stage) -> None:
        hold(at, 15, 0)
        for _ in range(2):
            submit(at, 0, 0)
        await asyncio.sleep(70.0 if chance.random() < 0.5 else 10.0)
        at.kueue.later(1.3, lambda: at.hub.select(["b", "c"], edited=True))
        await asyncio.sleep(1.3 + grace + chance.uniform(-1.3, 1.0))
        at.kueue.release(object_of("a"))
        if chance.random() < 0.3:
            crash(at, chance.randrange(4), 1)
        await asyncio.sleep(chance.choice((0.5, 5.0, 30.0)))
        await all_ends_well(at)

    return run(story, ends)


@pytest.mark.parametrize("removal", [DRAIN, IMMEDIATE])
@dispatchers
def test_a_cluster_that_leaves_may_admit_in_the_last_second(dispatcher: str, removal: RemovalPolicy) -> None:
    count = EXAMPLES or 5
    for nominates in (False, True):
        for seed in range(count):
            at = last_second(seed, dispatcher, removal=removal, nominates_admitted=nominates)
            assert (seed, ran_twice(at), by_us(at) if removal == DRAIN else []) == (seed, [], [])


def careless(snapshot: Snapshot) -> Plan:
    """List exactly what is selected, and let every Workload go: what the gate is there to prevent."""
    ready = (
        CheckStateUpdate(workload, OURS, READY, "go")
        for workload in snapshot.workloads
        if workload.has_quota and (answer := workload.check_state(OURS)) and answer.state == PENDING
    )
    return replace(plan(replace(snapshot, workloads=())), check_state_updates=tuple(ready))


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL])
def test_a_careless_controller_doubles_and_evicts(dispatcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ends(at: Stage) -> None:
        calm_down(at)
        await asyncio.sleep(60.0)

    monkeypatch.setattr(reconcile, "plan", careless)
    stages = [run(story, ends) for story in random_stories(12, dispatcher=dispatcher)]
    assert sum(bool(ran_twice(at)) for at in stages) >= 3
    assert sum(bool(by_us(at)) for at in stages) >= 3


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, OUR_CONTROLLER], ids=["AllAtOnce", "ours"])
def test_who_believes_that_a_worker_holds_no_copy_doubles(
    dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VirtualKueue, "copies", lambda *_: [])
    assert sum(bool(ran_twice(last_second(seed, dispatcher))) for seed in range(20)) >= 2


SLOW_HUB: Final = 0.3
"""Seconds that an event takes at most, on a hub that has much to do: without it no job runs twice."""
AIMED: Final = 200


def aimed(seed: int, checks: tuple[str, ...], dispatcher: str) -> Stage:
    """A job comes in the very moment in which the only cluster that has room for it leaves."""
    early = random.Random(seed).uniform(-0.1, SLOW_HUB)
    story = Story(seed, (), checks=checks, dispatcher=dispatcher, late=SLOW_HUB)

    async def ends(at: Stage) -> None:
        at.kueue.hold(object_of("b"), object_of("c"))
        await asyncio.sleep(5.0)
        at.kueue.later(1.0 - early, lambda: submit(at, 0, 0))
        at.kueue.later(1.0, lambda: at.hub.select(["b", "c"]))
        await asyncio.sleep(30.0)
        at.kueue.release(object_of("b"), object_of("c"))
        await asyncio.sleep(30.0)

    return run(story, ends)


@pytest.mark.parametrize(
    ("dispatcher", "most"),
    [pytest.param(ALL_AT_ONCE, 20, id="AllAtOnce"), pytest.param(INCREMENTAL, 4, id="Incremental")],
)
def test_without_our_check_only_a_job_that_starts_in_the_second_of_an_unlisting_is_doubled(
    dispatcher: str, most: int
) -> None:
    stages = [at for seed in range(AIMED) if ran_twice(at := aimed(seed, UNGATED, dispatcher))]
    assert 0 < len(stages) <= most
    for at in stages:
        ((when, where),) = at.unlisted
        assert [abs(start - when) < 1.0 for start, on in at.kueue.starts["j0"] if on == where] == [True]


@pytest.mark.parametrize(
    ("checks", "dispatcher"),
    [
        pytest.param(GATED, ALL_AT_ONCE, id="our check"),
        pytest.param(UNGATED, OUR_CONTROLLER, id="ours alone"),
    ],
)
def test_with_our_check_or_our_dispatcher_that_job_runs_once(
    checks: tuple[str, ...], dispatcher: str
) -> None:
    stages = [aimed(seed, checks, dispatcher) for seed in range(AIMED // 4)]
    assert [at.story.seed for at in stages if ran_twice(at) or by_us(at)] == []
    assert all(at.kueue.running("j0") for at in stages)


def test_without_our_check_a_prompt_hub_doubles_nothing() -> None:
    stages = [run(story) for story in random_stories(15, checks=UNGATED)]
    assert [at.story.seed for at in stages if ran_twice(at) or by_us(at)] == []
