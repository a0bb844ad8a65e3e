"""A virtual clock: events in their order, delays from one seed, and a log."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from placement_lab.standins.multikueue import objects as of

Obj = dict[str, Any]

START = 1_790_000_000.0
"""The virtual POSIX time at the start of every run."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds, each a range to draw from (shared/kueue); `left_behind` is a share of 1.

    `left_behind`: how often quota is reserved again before MultiKueue looks.
    """

    cache: tuple[float, float] = (0.001, 0.05)
    look: tuple[float, float] = (0.001, 0.02)
    operation: tuple[float, float] = (0.002, 0.02)
    schedule: tuple[float, float] = (0.01, 0.05)
    reschedule: tuple[float, float] = (0.15, 2.0)
    worker: tuple[float, float] = (0.01, 0.05)
    start: tuple[float, float] = (0.0, 0.5)
    batch: tuple[float, float] = (0.9, 1.1)
    refused: tuple[float, float] = (0.05, 0.3)
    reconnect: tuple[float, float] = (0.0, 5.0)
    left_behind: float = 1 / 8


class VirtualClock:
    """The time, and what is due. `random` and `delays` give the same run for the same seed."""

    def __init__(self, seed: int, delays: Delays | None = None) -> None:
        self.random = random.Random(seed)
        self.delays = delays or Delays()
        self.now = START
        self.logs = True
        """Whether `log` is kept: it grows with every change."""
        self.log: list[tuple[float, str, str]] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)
        self._version = 0

    @property
    def version(self) -> str:
        """The current resourceVersion of a list."""
        return str(self._version)

    def advance(self, seconds: float) -> None:
        """Run everything that is due within `seconds`, in order."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self._next()
        self.now = end

    def until(self, reached: Callable[[], bool], limit: float = 30.0) -> float:
        """Advance until `reached` holds; return the seconds that it took, fail after `limit`."""
        start = self.now
        while not reached():
            if not self._events or self._events[0][0] > start + limit:
                raise AssertionError(f"not reached within {limit} s; last of the log: {self.log[-12:]}")
            self._next()
        return self.now - start

    def step(self, most: float | None) -> None:
        """Run the next event, or let `most` seconds pass if none is due by then: for an outer clock."""
        due = self._events[0][0]
        if most is not None and due > self.now + most:
            self.now += most
        else:
            self._next()

    def _next(self) -> None:
        at, _, event = heapq.heappop(self._events)
        self.now = max(self.now, at)
        event()

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Schedule `event` in `seconds`."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def _draw(self, kind: str) -> float:
        return self.random.uniform(*getattr(self.delays, kind))

    def _log(self, name: str, what: Callable[[], str]) -> None:
        if self.logs:
            self.log.append((self.now, name, what()))

    # Objects

    def _born(self, item: Obj) -> Obj:
        number = next(self._numbers)
        uid = f"00000000-0000-4000-8000-{number:012d}"
        created = of.format_time(self.now)
        item["metadata"] |= {"uid": uid, "generation": 1, "creationTimestamp": created}
        return self._numbered(item)

    def _numbered(self, item: Obj) -> Obj:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        return item
