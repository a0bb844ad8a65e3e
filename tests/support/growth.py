"""The cost of code in figures that no busy machine and no tracer changes: calls, growth with the input."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

TIMES: Final = 16
"""The large input is so many times the small one. Linear code takes 16 times as long, quadratic 256 times."""
LINEAR: Final = 64
"""The geometric mean of both."""


def calls_of(run: Callable[[], object]) -> int:
    """Return how many functions it calls, those in C included."""
    calls = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def growth_of(run: Callable[[int], object], size: int) -> float:
    """Return how many times as long it takes with TIMES the size: for loops in C, which make no calls.

    The CPU time of this thread, of the fastest of three runs.
    """
    return _fastest(run, TIMES * size) / _fastest(run, size)


def _fastest(run: Callable[[int], object], size: int) -> float:
    found = []
    for _ in range(3):
        began = time.thread_time_ns()
        run(size)
        found.append(time.thread_time_ns() - began)
    return min(found)
