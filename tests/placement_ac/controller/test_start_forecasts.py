"""The controller's forecasts: apart from the dispatcher, in slices, and whatever goes wrong, it goes on."""

import asyncio
import threading
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.controller import start_forecasts
from placement_ac.controller.start_forecasts import (
    CORE_SHARE,
    LOOK_SECONDS,
    SLICE_SECONDS,
    StartForecaster,
)
from placement_ac.core.api import constants
from placement_ac.core.expected_start.estimate import SIMULATION_SECONDS
from placement_ac.core.expected_start.outcomes import RESULTS
from placement_ac.core.inputs.state import Key, PlacementPolicy, Snapshot
from placement_ac.observability.metrics import Metrics
from tests.kubectl_placement.test_expected_start import FIRST, finished, known, running, waiting
from tests.kubectl_placement.test_explain_workload import view_of
from tests.support.builders import NOW, Raw, an

OURS = {constants.LABEL_MANAGED_BY: constants.MANAGED_BY, constants.LABEL_PLACEMENT: "gone"}


class Stage:
    """The hub of `explain workload`, as the controller sees it. `seconds`: what a step of the work takes."""

    def __init__(self, *jobs: Raw, seconds: float = 0.0) -> None:
        self.view, self.metrics, self.now = view_of(*jobs), Metrics(), NOW
        self.cache: Cache = self.view.cache
        ticks = count()
        self.looks = StartForecaster(
            self.cache, self.snapshot, self.metrics, lambda: self.now, busy=lambda: next(ticks) * seconds
        )

    def snapshot(self, key: Key) -> Snapshot:
        return self.view.with_queue_facts(known()).snapshot(key.name)

    def put(self, job: Raw) -> None:
        job["metadata"]["resourceVersion"] = "9"
        self.cache.put(constants.WORKLOAD, job)

    def counted(self) -> dict[str, int]:
        name = "placement_ac_expected_starts_total"
        values = {one: self.metrics.registry.get_sample_value(name, {"result": one}) for one in RESULTS}
        return {one: int(value) for one, value in values.items() if value}


@pytest.mark.parametrize(
    ("minutes", "history", "result"),
    [
        pytest.param(3, 40, "held", id="it starts when the other one has ended"),
        pytest.param(1, 40, "early", id="it starts before that"),
        pytest.param(9, 40, "late", id="it starts long after"),
        pytest.param(3, 2, "unknown", id="nothing was known"),
    ],
)
async def test_the_first_forecast_is_compared_with_the_start(minutes: int, history: int, result: str) -> None:
    job = waiting()
    at = Stage(*finished(history), running(), job)
    await at.looks.look()
    assert at.counted() == {}
    at.now += timedelta(minutes=minutes)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {result: 1}


def started(job: Raw, when: Any) -> Raw:
    checks = [
        one | {"state": "Ready", "lastTransitionTime": when.strftime("%Y-%m-%dT%H:%M:%SZ")}
        for one in job["status"]["admissionChecks"]
    ]
    return job | {"status": job["status"] | {"clusterName": FIRST, "admissionChecks": checks}}


async def test_others_have_their_turn_between_the_slices() -> None:
    at = Stage(*finished(40), running(), waiting(), seconds=SLICE_SECONDS / 3)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with asyncio.timeout(30):
        task = asyncio.create_task(others())
        await at.looks.look()
        task.cancel()
    assert turns > 10


async def test_a_look_that_takes_too_long_ends_and_counts_as_unknown() -> None:
    job = waiting()
    at = Stage(*finished(40), running(), job, seconds=SIMULATION_SECONDS)
    await at.looks.look()
    at.now += timedelta(minutes=3)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {"unknown": 1}


async def test_what_was_simulated_in_time_counts() -> None:
    job = waiting()
    at = Stage(*finished(40), running(), job, seconds=SIMULATION_SECONDS / 40)
    await at.looks.look()
    at.now += timedelta(minutes=3)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {"held": 1}


@pytest.mark.parametrize("step", [0.0, SIMULATION_SECONDS / 1000, SIMULATION_SECONDS / 40])
async def test_it_looks_so_seldom_that_it_takes_a_small_share_of_a_core(step: float) -> None:
    """Whoever asks for the time finds that another step has passed: so the whole cost is known."""
    at, steps = Stage(*finished(40), running(), waiting()), count()
    forecaster = StartForecaster(
        at.cache, at.snapshot, at.metrics, lambda: at.now, busy=lambda: next(steps) * step
    )
    await forecaster.look()
    cost = next(steps) * step
    assert max(LOOK_SECONDS, 0.8 * cost / CORE_SHARE) <= forecaster.rest_seconds
    assert forecaster.rest_seconds <= max(LOOK_SECONDS, cost / CORE_SHARE)


async def test_what_is_simulated_during_a_reset_is_dropped() -> None:
    job = waiting()
    at = Stage(*finished(40), running(), job)

    async def with_reset(work: Any) -> Any:
        found = work()
        at.looks.reset()
        return found

    at.looks = StartForecaster(at.cache, at.snapshot, at.metrics, lambda: at.now, in_thread=with_reset)
    await at.looks.look()
    at.now += timedelta(minutes=3)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {}


async def test_the_simulations_run_in_a_thread() -> None:
    at = Stage(*finished(40), running(), waiting())
    threads: set[int] = set()

    def busy() -> float:
        threads.add(threading.get_ident())
        return 0.0

    at.looks = StartForecaster(at.cache, at.snapshot, at.metrics, lambda: at.now, busy=busy)
    await at.looks.look()
    assert threads - {threading.get_ident()}


async def test_without_a_job_that_waits_nothing_is_read() -> None:
    at, read = Stage(*finished(40), running()), list[Key]()

    def snapshot(key: Key) -> Snapshot:
        read.append(key)
        return at.snapshot(key)

    await StartForecaster(at.cache, snapshot, at.metrics, lambda: at.now).look()
    assert read == []


async def test_after_a_reset_nothing_is_known_of_earlier_forecasts() -> None:
    job = waiting()
    at = Stage(*finished(40), running(), job)
    await at.looks.look()
    at.looks.reset()
    at.now += timedelta(minutes=3)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {}


async def test_clusters_of_a_placement_without_a_check_are_no_reason_to_know_nothing() -> None:
    job = waiting()
    at = Stage(*finished(40), running(), job)
    at.cache.put(constants.MULTIKUEUE_CLUSTER, an(constants.MULTIKUEUE_CLUSTER, "gone-a", labels=OURS))
    assert Key("placement", "gone") in at.cache.keys()  # noqa: SIM118  # no mapping
    await at.looks.look()
    at.now += timedelta(minutes=3)
    at.put(started(job, at.now))
    await at.looks.look()
    assert at.counted() == {"held": 1}


async def test_a_look_that_fails_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_forecasts, "LOOK_SECONDS", 0.01)
    at, looks = Stage(waiting()), 0
    enough = asyncio.Event()

    def fails(key: Key) -> Snapshot:
        nonlocal looks
        looks += 1
        if looks == 3:
            enough.set()
        raise ZeroDivisionError

    forecaster = StartForecaster(at.cache, fails, at.metrics, lambda: at.now)
    task = asyncio.create_task(forecaster.keep_looking(lambda: True))
    async with asyncio.timeout(30):
        await enough.wait()
    assert not task.done()
    task.cancel()


def test_without_our_dispatcher_no_run_is_remembered() -> None:
    assert Cache(policy=PlacementPolicy(dispatcher=False)).runs is None
