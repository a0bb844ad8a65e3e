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
"""So many count if there is no time for all; each of them has an equal share of the time."""
HANDOVER_P50_SECONDS: Final = 1.0
HANDOVER_P90_SECONDS: Final = 3.0
"""Kueue takes so long from free quota to a job that is placed, most of it until the hub hears of it."""
SIMULATION_SECONDS: Final = 8.0
"""For so long at most all jobs of a hub are simulated, by the controller and by a command."""
TOO_SLOW: Final = (
    f"ask again when fewer jobs wait: those before it cannot all be simulated within {SIMULATION_SECONDS:g} s"
)
TOO_LATE: Final = "in too many cases it does not start within what is simulated"
T = TypeVar("T")


def no_limit() -> float:
    """Return that no time is gone: the simulations take as long as they take."""
    return 0.0


def expected_starts(
    world: World,
    wanted: Container[str] | None = None,
    runs: int = RUNS,
    spent: Callable[[], float] = no_limit,
) -> Generator[None, None, Mapping[str, ExpectedStart]]:
    """Return uid → the expected start of each job that waits; yield after each few milliseconds.

    `wanted`: only these; None: all. `spent`: the share of the time that there is, 0 to 1, that is gone: if
    the simulations would take longer, they are cut short, and those jobs are unknown that start later.
    """
    waiting = [job.uid for job in world.jobs if job.runs_in is None]
    starts: dict[str, list[float]] = {uid: [] for uid in waiting if wanted is None or uid in wanted}
    begun, needed, is_cut = spent(), min(runs, RUNS_ENOUGH), False
    if begun >= 1.0:
        return dict.fromkeys(starts, Unknown(TOO_SLOW))
    for number in range(runs if starts else 0):
        until = begun + (1.0 - begun) * min((number + 1) / needed, 1.0)
        simulation = Simulation(world, number, starts.keys())
        has_ended = yield from _run(simulation, spent, until)
        if not has_ended and number >= needed:
            break
        is_cut |= not has_ended
        for uid, found in starts.items():
            found.append(simulation.starts.get(uid, math.inf))
        if all(found.count(math.inf) > runs - _place(0.9, runs) for found in starts.values()):
            break  # more runs change nothing
    too_late = Unknown(TOO_SLOW if is_cut else TOO_LATE)
    return {uid: interval(found) or too_late for uid, found in starts.items()}


def _run(simulation: Simulation, spent: Callable[[], float], until: float) -> Generator[None, None, bool]:
    """Run a simulation, or a part of it; return whether it has ended in time."""
    yield
    for _ in simulation.steps():
        if spent() >= until:
            return False
        yield
    return True


def interval(starts: Iterable[float]) -> Interval | None:
    """Return the interval of simulated starts, in seconds; infinite: it did not start. None: too many."""
    order = sorted(starts)
    p10, p50, p90 = (_quantile(order, share) for share in (0.1, 0.5, 0.9))
    if math.isinf(p90):
        return None
    return Interval(p50 + HANDOVER_P50_SECONDS, p90 + HANDOVER_P90_SECONDS, p10)


def _quantile(order: Sequence[float], share: float) -> float:
    """Return the value that another one of the same kind is below in that share of cases: k of n + 1."""
    return order[_place(share, len(order)) - 1]


def _place(share: float, number: int) -> int:
    """Return the place of a quantile among so many values in order, from 1."""
    return min(max(round(share * (number + 1)), 1), number)


def all_steps(work: Generator[None, None, T]) -> T:
    """Return what a computation returns that is not left in between."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
