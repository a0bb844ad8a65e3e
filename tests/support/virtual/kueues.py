"""Virtual Kueues with three workers, and a job that runs or waits."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.virtual.clock import Delays
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workloads import CHECK

ALL = ("worker1", "worker2", "worker3")
ONLY_MULTIKUEUE = (CHECK,)
NEVER = Delays(left_behind=0.0)
seeds = pytest.mark.parametrize("seed", range(3))


def kueue(seed: int, slots: int = 5, **more: Any) -> VirtualKueue:
    return VirtualKueue(seed, dict.fromkeys(ALL, slots), **{"delays": NEVER} | more)


def submitted(at: VirtualKueue, name: str = "b1", checks: tuple[str, ...] = ONLY_MULTIKUEUE) -> VirtualKueue:
    at.submit(name, checks)
    return at


def runs_on(at: VirtualKueue, worker: str, name: str = "b1") -> Callable[[], bool]:
    return lambda: at.placed(name) == worker and at.running(name) == {worker} and at.holds(name, "Admitted")


def placed_on(seed: int, worker: str, **more: Any) -> VirtualKueue:
    """A hub whose only job runs on `worker`; afterwards the other workers are released."""
    at = kueue(seed, **more)
    at.hold(*(name for name in ALL if name != worker))
    submitted(at).until(runs_on(at, worker))
    at.advance(3)
    at.release(*ALL)
    return at


def without(worker: str) -> list[str]:
    return [name for name in ALL if name != worker]


def trouble(at: VirtualKueue, name: str) -> None:
    """Apply a random fault to a job or to a worker."""
    worker = at.random.choice(ALL)
    happens: list[Callable[[], object]] = [
        lambda: at.answer(name, "Ready"),
        lambda: at.answer(name, "Retry"),
        lambda: at.evict(name),
        lambda: at.hold(worker),
        lambda: at.release(worker),
        lambda: at.activate(name, at.random.random() < 0.7),
        lambda: at.preempt(name, worker) if worker in at.running(name) else None,
    ]
    if at.state(name, "placement"):
        at.random.choice(happens)()
