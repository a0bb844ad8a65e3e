"""Limits concurrent queries of workers: those that did not answer last time have slots of their own."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from placement_ac.workers.connector import WorkerTimeout

MAX_SLOW: Final = 4
"""Slots for workers that did not answer last time."""


class ProbeLimiter:
    """`parallel` slots for queries.

    With `slot_seconds`, a query that takes longer goes on, but its slot is free: a worker that has just died
    delays no other. So at most `parallel` queries begin within that time.
    """

    def __init__(self, parallel: int, *, slot_seconds: float | None = None) -> None:
        self.slot_seconds = slot_seconds
        self._slots = asyncio.Semaphore(parallel)
        self._slow_slots = asyncio.Semaphore(MAX_SLOW)
        self.slow: set[Hashable] = set()
        """Workers whose last query ended with WorkerTimeout."""

    @asynccontextmanager
    async def slot(self, worker: Hashable) -> AsyncIterator[None]:
        """Wait for a slot for one query of `worker`; WorkerTimeout inside means that it did not answer."""
        slots = self._slow_slots if worker in self.slow else self._slots
        await slots.acquire()
        release = ExitStack()  # which releases the slot once
        release.callback(slots.release)
        loop = asyncio.get_running_loop()
        timer = self.slot_seconds and loop.call_later(self.slot_seconds, release.close)
        try:
            yield
            self.slow.discard(worker)
        except WorkerTimeout:
            self.slow.add(worker)
            raise
        except Exception:  # any other error means that the worker has answered in time
            self.slow.discard(worker)
            raise
        finally:
            if timer:
                timer.cancel()
            release.close()
