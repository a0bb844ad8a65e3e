"""
The quota of one ClusterQueue in a simulation, and the jobs that wait for it in Kueue's order.

Pure, but for its own state: amounts are taken and given back.
"""

import heapq
from collections.abc import Container, Iterator

from placement_ac.core.expected_start.model import Asked, Order, PoolSpec, SimulatedJob

Taken = tuple[tuple[int, int], ...]
"""The flavors, by their index, and how much was taken of each."""
_Waiting = tuple[Order, str, SimulatedJob]


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
        self._demand = 0
        """How much those that wait ask for, of the first resource that each asks for."""
        self._ranks: dict[Asked, tuple[bool, float]] = {}
        """The answers of `rank` since something changed here: jobs ask their candidates again and again."""

    def join(self, uid: str, job: SimulatedJob, order: Order) -> None:
        """Let a job wait here, in that place."""
        self._add_demand(self._first(job.asked))
        heapq.heappush(self._waiting.setdefault(job.asked, []), (order, uid, job))

    def holds(self, asked: Asked) -> bool:
        """Whether it could ever have room for a job."""
        asks = self._asks_of(asked)
        return all(any(self._all[at] >= amount for at in flavors) for flavors, amount in asks)

    def room(self, asked: Asked) -> Taken | None:
        """Return what a job would take now; None: there is no room."""
        free, asks = self._free, self._asks.get(asked) or self._asks_of(asked)
        if len(asks) == 1:
            [(flavors, amount)] = asks
            for at in flavors:
                if free[at] >= amount:
                    return ((at, amount),)
            return None
        taken: list[tuple[int, int]] = []
        for flavors, amount in asks:
            chosen = next((at for at in flavors if free[at] >= amount), None)
            if chosen is None:
                break
            free[chosen] -= amount
            taken.append((chosen, amount))
        for at, amount in taken:
            free[at] += amount
        return tuple(taken) if len(taken) == len(asks) else None

    def take(self, asked: Asked) -> Taken:
        """Take what a job holds already, from the flavor with most if none has room."""
        self._ranks.clear()
        taken: list[tuple[int, int]] = []
        for flavors, amount in self._asks_of(asked):
            fits = (at for at in flavors if self._free[at] >= amount)
            chosen = next(fits, None)
            if chosen is None:
                chosen = max(flavors, key=self._free.__getitem__)
            self._free[chosen] -= amount
            taken.append((chosen, amount))
        return tuple(taken)

    def release(self, taken: Taken) -> None:
        self._ranks.clear()
        for at, amount in taken:
            self._free[at] += amount

    def admit(self, done: Container[str]) -> Iterator[tuple[str, SimulatedJob, Taken]]:
        """Yield the jobs that get quota now, in their order, and take it. `done`: those that have some."""
        waiting = [asked for asked in list(self._waiting) if self._head(asked, done)]
        heads = [(self._waiting[asked][0][0], asked) for asked in waiting]
        heapq.heapify(heads)
        while heads:
            order, asked = heapq.heappop(heads)
            if not self._head(asked, done):
                continue
            first, uid, job = self._waiting[asked][0]
            if first != order:  # the one before it has got quota elsewhere since
                heapq.heappush(heads, (first, asked))
                continue
            taken = self.room(asked)
            if taken is not None:
                heapq.heappop(self._waiting[asked])
                self._add_demand(-self._first(asked))
                self.reserve(taken)
                yield uid, job, taken
                if self._head(asked, done):
                    heapq.heappush(heads, (self._waiting[asked][0][0], asked))
            elif self._strict:
                return

    def admits(self, asked: Asked, done: Container[str]) -> bool:
        """Whether a job that comes now gets quota at once, if all that wait have been looked at."""
        if self.room(asked) is None:
            return False
        return not self._strict or not any(self._head(other, done) for other in list(self._waiting))

    def rank(self, asked: Asked) -> tuple[bool, float]:
        """Return a sort key for a job that chooses: whether it has no room, and its headroom, most first."""
        rank = self._ranks.get(asked)
        if rank is None:
            rank = self._ranks[asked] = self.room(asked) is None, -self.headroom(asked)
        return rank

    def headroom(self, asked: Asked) -> float:
        """Return points as the score Headroom gives them, for the first resource that a job asks for."""
        asks = self._asks_of(asked)
        if not asks:
            return 0.0
        flavors, amount = asks[0]
        unused = sum([self._free[at] for at in flavors]) - self._demand
        if unused >= amount:
            return 100.0 - 50.0 * amount / unused
        most = sum([self._all[at] for at in flavors])
        return 25.0 * most / (most - unused + amount)

    def _first(self, asked: Asked) -> int:
        asks = self._asks_of(asked)
        return asks[0][1] if asks else 0

    def reserve(self, taken: Taken) -> None:
        self._ranks.clear()
        for at, amount in taken:
            self._free[at] -= amount

    def _head(self, asked: Asked, done: Container[str]) -> bool:
        """Whether a job with that request waits; those that have quota elsewhere leave the heap."""
        waiting = self._waiting[asked]
        while waiting and waiting[0][1] in done:
            heapq.heappop(waiting)
            self._add_demand(-self._first(asked))
        if not waiting:
            del self._waiting[asked]
        return bool(waiting)

    def _add_demand(self, amount: int) -> None:
        self._demand += amount
        self._ranks.clear()

    def _asks_of(self, asked: Asked) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Return the flavors for each amount; resources without quota count nothing."""
        known = self._asks.get(asked)
        if known is None:
            named = ((self._flavors.get(name), amount) for podset in asked for name, amount in podset)
            known = self._asks[asked] = tuple((flavors, amount) for flavors, amount in named if flavors)
        return known
