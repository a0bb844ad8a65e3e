"""
The quota of one ClusterQueue in a simulation, and the jobs that wait for it in Kueue's order.

Pure, but for its own state: amounts are taken and given back.
"""

import heapq
from collections.abc import Container

from placement_ac.core.expected_start.model import Asked, Order, PoolSpec, SimulatedJob

Taken = tuple[tuple[int, int], ...]
"""The flavors, by their index, and how much was taken of each."""
_Waiting = tuple[Order, SimulatedJob]


class Pool:
    """The free quota, and who waits for it. Jobs that ask for the same are one heap."""

    def __init__(self, spec: PoolSpec) -> None:
        self._strict = spec.strict
        self._free: list[int] = []
        self._flavors: dict[str, tuple[int, ...]] = {}
        for resource, amounts in spec.quotas.items():
            first = len(self._free)
            self._free.extend(amounts)
            self._flavors[resource] = tuple(range(first, len(self._free)))
        self._all = tuple(self._free)
        self._asks: dict[Asked, tuple[tuple[tuple[int, ...], int], ...]] = {}
        self._waiting: dict[Asked, list[_Waiting]] = {}

    def join(self, job: SimulatedJob, order: Order) -> None:
        """Let a job wait here, in that place."""
        heapq.heappush(self._waiting.setdefault(job.asked, []), (order, job))

    def holds(self, asked: Asked) -> bool:
        """Whether it could ever have room for a job."""
        asks = self._asks_of(asked)
        return all(any(self._all[at] >= amount for at in flavors) for flavors, amount in asks)

    def room(self, asked: Asked) -> Taken | None:
        """Return what a job would take now; None: there is no room."""
        taken: list[tuple[int, int]] = []
        for flavors, amount in self._asks_of(asked):
            chosen = next((at for at in flavors if self._free[at] >= amount), None)
            if chosen is None:
                break
            self._free[chosen] -= amount
            taken.append((chosen, amount))
        else:
            self.release(taken)
            return tuple(taken)
        self.release(taken)
        return None

    def take(self, asked: Asked) -> Taken:
        """Take what a job holds already, from the flavor with most if none has room."""
        taken: list[tuple[int, int]] = []
        for flavors, amount in self._asks_of(asked):
            fits = (at for at in flavors if self._free[at] >= amount)
            chosen = next(fits, None)
            if chosen is None:
                chosen = max(flavors, key=self._free.__getitem__)
            self._free[chosen] -= amount
            taken.append((chosen, amount))
        return tuple(taken)

    def release(self, taken: Taken | list[tuple[int, int]]) -> None:
        for at, amount in taken:
            self._free[at] += amount

    def next(self, done: Container[str]) -> tuple[SimulatedJob, Taken] | None:
        """Return the next job that gets quota, and take it; None: none does. `done`: those that have some."""
        blocked: set[Asked] = set()
        while True:
            others = [asked for asked in self._waiting if asked not in blocked]
            heads = [asked for asked in others if self._head(asked, done)]
            if not heads:
                return None
            first = min(heads, key=lambda asked: self._waiting[asked][0][0])
            taken = self.room(first)
            if taken is not None:
                _, job = heapq.heappop(self._waiting[first])
                self._reserve(taken)
                return job, taken
            if self._strict:
                return None
            blocked.add(first)

    def _reserve(self, taken: Taken) -> None:
        for at, amount in taken:
            self._free[at] -= amount

    def _head(self, asked: Asked, done: Container[str]) -> bool:
        """Whether a job with that request waits; those that have quota elsewhere leave the heap."""
        waiting = self._waiting[asked]
        while waiting and waiting[0][1].uid in done:
            heapq.heappop(waiting)
        if not waiting:
            del self._waiting[asked]
        return bool(waiting)

    def _asks_of(self, asked: Asked) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Return the flavors for each amount; resources without quota count nothing."""
        if asked not in self._asks:
            named = ((self._flavors.get(name), amount) for podset in asked for name, amount in podset)
            self._asks[asked] = tuple((flavors, amount) for flavors, amount in named if flavors)
        return self._asks[asked]
