"""The simulation of queues: who starts when, and how that changes with the queue and the quota."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_ac.core.expected_start.estimate import (
    RUNS_ENOUGH,
    TOO_SLOW,
    all_steps,
    expected_starts,
    interval,
)
from placement_ac.core.expected_start.model import (
    Arrivals,
    ExpectedStart,
    Interval,
    PoolKey,
    PoolSpec,
    SimulatedJob,
    Unknown,
    World,
)
from placement_ac.core.expected_start.pool import Pool
from placement_ac.core.expected_start.run_times import RunTimes
from placement_ac.core.expected_start.simulation import Simulation, uniform

GPU: Final = "gpu"
A: Final[PoolKey] = ("a", "queue")
B: Final[PoolKey] = ("b", "queue")
HUB: Final[PoolKey] = ("", "queue")
MINUTE: Final = RunTimes([60] * 50)
"""Nearly all jobs take one."""


def pool(gpus: int, key: PoolKey = A, *, strict: bool = False) -> PoolSpec:
    return PoolSpec(key, {GPU: (gpus,)}, strict)


def asks(gpus: int) -> tuple[tuple[tuple[str, int], ...], ...]:
    return (((GPU, gpus),),)


def runs(uid: str, gpus: int = 1, *, age: float = 0.0, key: PoolKey = A, **rest: Any) -> SimulatedJob:
    return SimulatedJob(uid, (0, -1000.0, uid), asks(gpus), MINUTE, runs_in=key, age=age, **rest)


def waits(
    uid: str, place: int, gpus: int = 1, *, priority: int = 0, keys: Any = (A,), **rest: Any
) -> SimulatedJob:
    """A job that came `place` seconds after the others, and waits on these clusters."""
    order = (-priority, place - 500.0, uid)
    return SimulatedJob(uid, order, asks(gpus), MINUTE, waits_in=dict.fromkeys(keys, order), **rest)


def starts(*parts: SimulatedJob | PoolSpec, **rest: Any) -> dict[str, int]:
    """Return job → its start in a run in which every job takes a minute."""
    pools = tuple(part for part in parts if isinstance(part, PoolSpec)) or (pool(4),)
    jobs = tuple(part for part in parts if isinstance(part, SimulatedJob))
    world = World(pools, jobs, **rest)
    simulation = Simulation(world, 1, [job.uid for job in jobs if job.runs_in is None])
    for _ in simulation.steps():
        pass
    return {uid: round(seconds) for uid, seconds in simulation.starts.items()}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([waits("x", 0)], {"x": 0}, id="with free quota it starts now"),
        pytest.param([runs("r", 4), waits("x", 0)], {"x": 60}, id="it waits for one that runs"),
        pytest.param([runs("r", 4, age=45), waits("x", 0)], {"x": 15}, id="and that has run for a while"),
        pytest.param(
            [runs("r", 4), waits("x", 0, 4), waits("y", 1, 4)],
            {"x": 60, "y": 120},
            id="first come, first served",
        ),
        pytest.param(
            [runs("r", 4), waits("x", 0, 4), waits("y", 1, 4, priority=1)],
            {"y": 60, "x": 120},
            id="a higher priority goes first",
        ),
        pytest.param(
            [runs("r", 2), waits("x", 0, 4), waits("y", 1, 2)],
            {"y": 0, "x": 60},
            id="BestEffortFIFO: who fits goes before one that does not",
        ),
        pytest.param(
            [pool(4, strict=True), runs("r", 2), waits("x", 0, 4), waits("y", 1, 2)],
            {"x": 60, "y": 120},
            id="StrictFIFO: nobody does",
        ),
        pytest.param(
            [pool(1), pool(1, B), runs("r", 1), runs("s", 1, age=30, key=B), waits("x", 0, keys=(A, B))],
            {"x": 30},
            id="on two clusters, the first that has room counts",
        ),
        pytest.param(
            [pool(1), pool(1, B), runs("r", 1), waits("x", 0, candidates=(B,), next_round=20.0)],
            {"x": 20},
            id="the next round nominates it to a cluster with room",
        ),
        pytest.param(
            [
                pool(8),
                pool(4, HUB),
                runs("r", 4, hub=HUB),
                waits("x", 0, keys=(), candidates=(A,), hub=HUB, has_quota=False),
            ],
            {"x": 60},
            id="it waits for quota on the hub, though a worker has some",
        ),
        pytest.param(
            [PoolSpec(A, {GPU: (2, 3)}), waits("x", 0, 3), waits("y", 1, 2), waits("z", 2, 1)],
            {"x": 0, "y": 0, "z": 60},
            id="each podSet gets one flavor: five GPUs in two flavors are not five",
        ),
        pytest.param([waits("x", 0, 9)], {}, id="one that is too large never starts"),
        pytest.param(
            [replace(runs("r", 4), run_times=None), waits("x", 0)],
            {},
            id="behind a job of unknown length nobody starts",
        ),
        pytest.param(
            [runs("r", 4, most_seconds=20.0), waits("x", 0)],
            {"x": 20},
            id="a job ends by the time that it says itself",
        ),
    ],
)
def test_when_jobs_start(parts: list[Any], expected: dict[str, int]) -> None:
    assert starts(*parts) == expected


def test_small_jobs_that_will_come_delay_a_large_one_unless_the_queue_is_strict() -> None:
    small = SimulatedJob("like", (0, 0.0, "like"), asks(1), MINUTE, candidates=(A,))
    coming = Arrivals(0.05, (small,))
    large, running = waits("x", 0, 4), [runs(f"r{number}", 1, age=15.0 * number) for number in range(4)]
    first, behind = (
        starts(pool(4, strict=strict), *running, large, arrivals=coming)["x"] for strict in (True, False)
    )
    assert first == 60 < behind


def test_the_same_world_gives_the_same_interval() -> None:
    times = RunTimes([20, 40, 90, 200, 300] * 3)
    jobs = [replace(runs(f"r{n}"), run_times=times) for n in range(4)] + [waits("x", 0)]
    world = World((pool(4),), tuple(jobs))
    first, second = (all_steps(expected_starts(world)) for _ in range(2))
    assert first == second
    found = first["x"]
    assert isinstance(found, Interval)
    assert 0 < found.p10_seconds < found.p50_seconds < found.p90_seconds


def test_only_the_wanted_ones_are_reported() -> None:
    world = World((pool(4),), (waits("x", 0), waits("y", 1)))
    assert set(all_steps(expected_starts(world, {"y"}))) == {"y"}


def long_queue(*, part: float) -> Mapping[str, ExpectedStart]:
    """Return what is said of 500 jobs in a row, if a simulation may run a part of what it needs."""
    world = World((pool(4),), tuple(waits(f"j{place:03}", place) for place in range(500)))
    simulation = Simulation(world, 0, [job.uid for job in world.jobs])
    steps = sum(1 for _ in simulation.steps())
    asked = count()
    return all_steps(expected_starts(world, spent=lambda: next(asked) / (RUNS_ENOUGH * steps * part)))


def test_of_a_queue_too_long_to_simulate_in_time_the_first_jobs_have_an_interval() -> None:
    whole, half = long_queue(part=3), long_queue(part=0.5)
    assert all(isinstance(one, Interval) for one in whole.values())
    known = [uid for uid, one in half.items() if one != Unknown(TOO_SLOW)]
    assert 100 < len(known) < 400
    assert known == list(half)[: len(known)]
    assert [half[uid].p50_seconds for uid in known] == pytest.approx(
        [whole[uid].p50_seconds for uid in known], rel=0.1
    )


def test_a_job_that_cannot_be_reached_in_time_does_not_use_up_the_time() -> None:
    world = World((pool(4),), tuple(waits(f"j{place:03}", place) for place in range(500)))
    asked = count()
    found = all_steps(expected_starts(world, {"j499"}, spent=lambda: next(asked) / 100))
    assert found == {"j499": Unknown(TOO_SLOW)}
    assert next(asked) < 40


def test_without_any_time_nothing_is_simulated() -> None:
    world = World((pool(4),), (waits("x", 0),))
    assert all_steps(expected_starts(world, spent=lambda: 1.0)) == {"x": Unknown(TOO_SLOW)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([10.0] * 40, Interval(11.0, 13.0, 10.0), id="Kueue's own time comes on top"),
        pytest.param([10.0] * 30 + [math.inf] * 10, type(None), id="one in four does not start: unknown"),
        pytest.param([10.0] * 38 + [math.inf] * 2, Interval, id="one in twenty does not matter"),
    ],
)
def test_an_interval_of_starts(found: list[float], expected: Any) -> None:
    got = interval(found)
    assert got == expected if isinstance(expected, Interval) else isinstance(got, expected)


def test_draws_are_even_and_do_not_depend_on_each_other() -> None:
    drawn = [uniform(f"job-{number}", run) for number in range(100) for run in range(40)]
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.02
    sums = [sum(uniform(f"job-{number}", run) for number in range(100)) for run in range(200)]
    mean = sum(sums) / len(sums)
    assert 6 < sum((one - mean) ** 2 for one in sums) / len(sums) < 11  # 100/12, if they are independent


ACTS: Final = ("join", "take", "release", "reserve", "admit")


@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(1, 4)), max_size=20))
def test_a_rank_is_that_of_the_quota_and_the_queue_as_they_are(acts: list[tuple[str, int]]) -> None:
    found = Pool(PoolSpec(A, {GPU: (4, 6)}))
    for number, (act, gpus) in enumerate(acts):
        if act == "join":
            found.join(f"j{number}", waits(f"j{number}", number, gpus), (0, number, f"j{number}"))
        elif act == "admit":
            list(found.admit({f"j{gpus}"}))
        else:
            getattr(found, act)(asks(gpus) if act == "take" else ((0, gpus),))
        for size in range(1, 8):
            no_room = found.room(asks(size)) is None
            assert found.rank(asks(size)) == (no_room, -found.headroom(asks(size)))


# -- properties: where they are true. With BestEffortFIFO and mixed sizes, or clusters of different choice,
# neither is: a job more may keep a large one from starting in time, to the advantage of those behind it
# (the anomalies of list scheduling, Graham 1969).

TIMES: Final = RunTimes([random.Random(7).expovariate(0.01) for _ in range(40)])
sizes = st.integers(1, 4)


def line(numbers: list[int], *, strict: bool, quota: int, equal: bool) -> dict[str, float]:
    """Return the starts of jobs of these sizes in a row, before `x`, which is the last."""
    one = [1 if equal else size for size in numbers]
    before = [replace(waits(f"j{at}", at, size), run_times=TIMES) for at, size in enumerate(one)]
    world = World((pool(quota, strict=strict),), (*before, waits("x", 999, 1 if equal else 2)))
    simulation = Simulation(world, 3, ["x"])
    for _ in simulation.steps():
        pass
    return simulation.starts


@pytest.mark.parametrize(
    ("strict", "equal"),
    [pytest.param(True, False, id="StrictFIFO"), pytest.param(False, True, id="jobs of one size")],
)
@given(numbers=st.lists(sizes, max_size=12), more=st.lists(sizes, max_size=6), quota=st.integers(4, 8))
def test_more_jobs_ahead_never_make_the_start_earlier(
    strict: bool, equal: bool, numbers: list[int], more: list[int], quota: int
) -> None:
    few = line(numbers, strict=strict, quota=quota, equal=equal)["x"]
    many = line([*numbers, *more], strict=strict, quota=quota, equal=equal)["x"]
    assert many >= few


@pytest.mark.parametrize(
    ("strict", "equal"),
    [pytest.param(True, False, id="StrictFIFO"), pytest.param(False, True, id="jobs of one size")],
)
@given(numbers=st.lists(sizes, max_size=12), quota=st.integers(4, 8), more=st.integers(0, 4))
def test_more_quota_never_makes_the_start_later(
    strict: bool, equal: bool, numbers: list[int], quota: int, more: int
) -> None:
    less = line(numbers, strict=strict, quota=quota, equal=equal)["x"]
    assert line(numbers, strict=strict, quota=quota + more, equal=equal)["x"] <= less
