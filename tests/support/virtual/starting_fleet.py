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

from placement_ac.core.inputs.state import PlacementPolicy
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play
from tests.support.virtual.moving_fleet import MovingFleet

GPUS: Final = {"a": 8, "b": 8, "c": 16, "d": 16, "e": 32}
"""GPUs of each worker."""
SIZES: Final = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs of a job → how many jobs in a hundred have that size."""
MEAN_SECONDS: Final = 300.0
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
    policy = PlacementPolicy(dispatcher=True, dispatch_profile=day.profile, step_size=day.step_size)
    fleet = MovingFleet(day.seed, GPUS, policy)
    fleet.kueue.in_order = True
    return play(fleet.kueue, _story(fleet, day))


async def _story(fleet: MovingFleet, day: Day) -> Counter[str]:
    fleet.start()
    await asyncio.sleep(30)
    for number, (after, seconds, gpus) in enumerate(arrivals(day)):
        await asyncio.sleep(after)
        fleet.submit(f"j{number}", seconds, movable=False, gpus=gpus)
    while any(not fleet.kueue.starts[name] for name in fleet.seconds):
        await asyncio.sleep(60)
    await asyncio.sleep(130)
    return results(fleet.controller.metrics)


def results(metrics: object) -> Counter[str]:
    registry = metrics.registry  # type: ignore[attr-defined]
    samples = (one for family in registry.collect() for one in family.samples)
    return Counter(
        {
            one.labels["result"]: int(one.value)
            for one in samples
            if one.name == "placement_ac_expected_starts_total"
        }
    )


__all__ = ["GPUS", "LAWS", "Day", "VirtualKueue", "arrivals", "play_day"]
