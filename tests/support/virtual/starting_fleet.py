"""
Jobs of mixed size on the virtual clock, of which the real controller says when they will start.

Each worker admits copies in the order of a BestEffortFIFO queue, as Kueue does.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from placement_ac.core.expected_start.outcomes import RESULTS
from placement_ac.core.inputs.state import PlacementPolicy
from placement_ac.observability.metrics import Metrics
from tests.support.virtual.loop import play
from tests.support.virtual.moving_fleet import MovingFleet

GPUS: Final = {"a": 8, "b": 8, "c": 16, "d": 16, "e": 32}
"""GPUs of each worker."""
SIZES: Final = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs of a job → how many jobs in a hundred have that size."""
MEAN_SECONDS: Final = 300.0
MINUTES_MOST: Final = 600
STEP_SECONDS: Final = 0.002
"""How long a step of a forecast takes."""
MEAN_GPUS: Final = sum(gpus * share for gpus, share in SIZES.items()) / 100
RunTimeLaw = Callable[[random.Random], float]
LAWS: Final[dict[str, RunTimeLaw]] = {
    "exponential": lambda dice: dice.expovariate(1 / MEAN_SECONDS),
    "lognormal": lambda dice: dice.lognormvariate(5.2, 1.0),  # the mean is 299
    "two kinds": lambda dice: dice.uniform(30, 90) if dice.random() < 0.75 else dice.uniform(600, 1500),
}


@dataclass(frozen=True)
class Day:
    """`load`: the GPU seconds that come, by those that there are; `number`: how many jobs."""

    seed: int
    law: str = "exponential"
    load: float = 0.95
    number: int = 500
    step_size: int = 1
    profile: str = "headroom"


def arrivals(day: Day) -> Iterator[tuple[float, float, int]]:
    """Yield for each job the seconds until it comes, how long it runs, and its GPUs."""
    dice = random.Random(day.seed)
    per_second = day.load * sum(GPUS.values()) / (MEAN_SECONDS * MEAN_GPUS)
    for _ in range(day.number):
        [gpus] = dice.choices([*SIZES], [*SIZES.values()])
        yield dice.expovariate(per_second), max(LAWS[day.law](dice), 5.0), gpus


def play_day(day: Day) -> Counter[str]:
    """Return result → how many jobs, as the controller's metric counts them."""
    random.seed(day.seed)  # the backoff of the queue
    policy = PlacementPolicy(dispatcher=True, dispatch_profile=day.profile, step_size=day.step_size)
    fleet = MovingFleet(day.seed, GPUS, policy, forecast_step=STEP_SECONDS)
    fleet.kueue.in_order = True
    return play(fleet.kueue, _story(fleet, day))


async def _story(fleet: MovingFleet, day: Day) -> Counter[str]:
    fleet.start()
    await asyncio.sleep(30)
    for number, (after, seconds, gpus) in enumerate(arrivals(day)):
        await asyncio.sleep(after)
        fleet.submit(f"j{number}", seconds, movable=False, gpus=gpus)
    for _ in range(MINUTES_MOST):
        if all(fleet.kueue.starts[name] for name in fleet.seconds):
            break
        await asyncio.sleep(60)
    await asyncio.sleep(130)  # for the last look
    return results(fleet.controller.metrics)


def results(metrics: Metrics | None) -> Counter[str]:
    """Return result → how many jobs, by the metric."""
    assert metrics is not None
    name = "placement_ac_expected_starts_total"
    return Counter(
        {result: int(metrics.registry.get_sample_value(name, {"result": result}) or 0) for result in RESULTS}
    )
