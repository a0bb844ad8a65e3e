"""
Who of many workers is asked now: so many at once, and those that did not answer last time beside the others.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from placement_ac.workers.connector import WorkerTimeout

MAX_SLOW: Final = 4
"""How many of those that did not answer last time are asked at once, beside the others."""


class ProbeLimiter:
    """Places for `parallel` questions at once.

    With `patience`, a question that takes longer than so many seconds goes on, but its place is free: a
    worker that has just died keeps nobody waiting. So at most `parallel` are begun in that time.
    """

    def __init__(self, parallel: int, *, slot_seconds: float | None = None) -> None:
        self._slot_seconds = slot_seconds
        self._slots = asyncio.Semaphore(parallel)
        self._slow_slots = asyncio.Semaphore(MAX_SLOW)
        self.slow: set[Hashable] = set()
        """Whose last question ended with WorkerTimeout."""

    @asynccontextmanager
    async def slot(self, worker: Hashable) -> AsyncIterator[None]:
        """Wait for a slot for one question to `worker`; WorkerTimeout inside means that it did not answer."""
        slots = self._slow_slots if worker in self.slow else self._slots
        await slots.acquire()
        leaving = ExitStack()
        leaving.callback(slots.release)
        timer = self._slot_seconds and asyncio.get_running_loop().call_later(
            self._slot_seconds, leaving.close
        )
        try:
            yield
            self.slow.discard(worker)
        except WorkerTimeout:
            self.slow.add(worker)
            raise
        except Exception:  # any other end is an answer; it goes on to who asked
            self.slow.discard(worker)
            raise
        finally:
            if timer:
                timer.cancel()
            leaving.close()
