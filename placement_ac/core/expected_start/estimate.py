"""
The expected start of every job that waits, from many simulations.

Pure. It can be left between two steps and be gone on with later, so that nobody waits for all of it.
"""

import math
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from placement_ac.core.expected_start.model import ExpectedStart, Interval, Unknown, World
from placement_ac.core.expected_start.simulation import Simulation

RUNS: Final = 40
RUNS_ENOUGH: Final = 20
"""From so many on, the simulations that have ended count if there is no time for all."""
HANDOVER_P50_SECONDS: Final = 1.0
HANDOVER_P90_SECONDS: Final = 3.0
"""Kueue takes so long from free quota to a job that is placed, most of it until the hub hears of it."""
TOO_SLOW: Final = "too many jobs wait to simulate often enough when each starts"
TOO_LATE: Final = "in too many cases it does not start within what is simulated"
T = TypeVar("T")


def expected_starts(
    world: World,
    wanted: Container[str] | None = None,
    runs: int = RUNS,
    is_over: Callable[[], bool] = lambda: False,
) -> Generator[None, None, Mapping[str, ExpectedStart]]:
    """Return uid → the expected start of each job that waits; yield after each few milliseconds.

    `wanted`: only these; None: all. `is_over`: whether there is no time for more simulations.
    """
    waiting = [job.uid for job in world.jobs if job.runs_in is None]
    starts: dict[str, list[float]] = {uid: [] for uid in waiting if wanted is None or uid in wanted}
    enough = min(runs, RUNS_ENOUGH)
    for ended in range(runs if starts else 0):
        has_ended = yield from _simulate(world, ended, starts, is_over)
        if not has_ended and ended < enough:
            return dict.fromkeys(starts, Unknown(TOO_SLOW))
        if not has_ended:
            break
    return {uid: interval(found) for uid, found in starts.items()}


def _simulate(
    world: World, number: int, starts: Mapping[str, list[float]], is_over: Callable[[], bool]
) -> Generator[None, None, bool]:
    """Add the starts of one simulation; return whether it has ended in time."""
    simulation = Simulation(world, number, starts.keys())
    yield
    for _ in simulation.steps():
        if is_over():
            return False
        yield
    if is_over():
        return False
    for uid, found in starts.items():
        found.append(simulation.starts.get(uid, math.inf))
    return True


def interval(starts: Iterable[float]) -> ExpectedStart:
    """Return the interval of simulated starts, in seconds; infinite: it did not start."""
    order = sorted(starts)
    p10, p50, p90 = (_quantile(order, share) for share in (0.1, 0.5, 0.9))
    if math.isinf(p90):
        return Unknown(TOO_LATE)
    return Interval(p50 + HANDOVER_P50_SECONDS, p90 + HANDOVER_P90_SECONDS, p10)


def _quantile(order: Sequence[float], share: float) -> float:
    """Return the value that another one of the same kind is below in that share of cases: k of n + 1."""
    return order[min(max(round(share * (len(order) + 1)), 1), len(order)) - 1]


def all_steps(work: Generator[None, None, T]) -> T:
    """Return what a computation returns that is not left in between."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
