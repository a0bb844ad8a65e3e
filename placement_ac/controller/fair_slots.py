"""
Slots for writes, shared fairly: writes that hang leave slots to other Placements and namespaces.

A write that an admission webhook holds keeps its connection for seconds. So a write counts among the few that
may run at once only while it is quick. Of those that hang, each Placement has a share in each namespace.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from placement_ac.core.api.errors import Postponed

QUICK_SLOTS: Final = 32
"""How many writes run at once, apart from those that hang: a burst of changes opens no more connections."""
QUICK_OF_FLOW: Final = 16
"""How many of them are of one flow."""
QUICK_SECONDS: Final = 0.25
"""A write that takes longer hangs."""
HANGING_SLOTS: Final = 96
"""How many writes may hang before no other is sent."""
HANGING_OF_FLOW: Final = 8
"""How many of them are of one flow before no other of it is sent."""
POSTPONED_SECONDS: Final = 1.0
"""How long a write waits of whose flow too many hang."""


class Flow(NamedTuple):
    """Whose writes they are: a Placement may serve many namespaces, and a namespace hold many Placements."""

    key: Hashable = ""
    """The Placement or cluster."""
    namespace: str = ""
    """Of the Workload, or of the Placement."""


class FairSlots:
    """The slots of one client's writes."""

    def __init__(self) -> None:
        self._quick: Counter[Flow] = Counter()
        self._hanging: Counter[Flow] = Counter()
        self._waiting: dict[Flow, deque[asyncio.Future[None]]] = {}
        """By flow: each in its turn gets a slot."""

    @asynccontextmanager
    async def hold(self, flow: Flow, on_hang: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        """Wait for a slot and hold it; `on_hang` is called when that lasts. Raises Postponed."""
        await self._acquire(flow)
        hangs = False

        def hang() -> None:
            nonlocal hangs
            hangs = True
            self._hanging[flow] += 1
            self._quick[flow] -= 1
            on_hang()
            if self._postponed(flow):
                self._end_postponed()
            self._grant()

        timer = asyncio.get_running_loop().call_later(QUICK_SECONDS, hang)
        try:
            yield
        finally:
            timer.cancel()
            if hangs:
                self._hanging[flow] -= 1
                self._hanging += Counter()  # forgets those of which none is left
            else:
                self._quick[flow] -= 1
            self._grant()

    async def _acquire(self, flow: Flow) -> None:
        if postponed := self._postponed(flow):
            raise postponed
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow, deque()).append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and not granted.exception():
                self._quick[flow] -= 1
                self._grant()
            raise

    def _grant(self) -> None:
        """Give the free slots to the flows that wait, one after another."""
        self._quick += Counter()
        free, blocked = QUICK_SLOTS - self._quick.total(), 0
        while free > 0 and len(self._waiting) > blocked:
            flow = next(iter(self._waiting))
            queue = self._waiting.pop(flow)
            if self._quick[flow] >= QUICK_OF_FLOW:
                blocked += 1
            else:
                blocked = 0
                if _end(queue.popleft()):
                    self._quick[flow] += 1
                    free -= 1
            if queue:
                self._waiting[flow] = queue

    def _end_postponed(self) -> None:
        """End the wait of every flow of which too many writes hang."""
        for flow in [*self._waiting]:
            if postponed := self._postponed(flow):
                for granted in self._waiting.pop(flow):
                    _end(granted, postponed)

    def _postponed(self, flow: Flow) -> Postponed | None:
        if self._hanging[flow] < HANGING_OF_FLOW and self._hanging.total() < HANGING_SLOTS:
            return None
        where = f" of namespace {flow.namespace}" if flow.namespace else ""
        return Postponed(f"too many writes{where} hang; waiting for them", retry_after=POSTPONED_SECONDS)


def _end(granted: asyncio.Future[None], error: Postponed | None = None) -> bool:
    """Whether somebody still waited for it."""
    if granted.done():
        return False
    if error:
        granted.set_exception(error)
    else:
        granted.set_result(None)
    return True
