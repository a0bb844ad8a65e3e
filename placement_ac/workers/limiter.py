"""
Who of many workers is asked now: so many at once, and those that did not answer last time beside the others.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from placement_ac.workers.connector import WorkerTimeout

SLOW_AT_ONCE: Final = 4
"""How many of those that did not answer last time are asked at once, beside the others."""


class ProbeLimiter:
    """Places for `parallel` questions at once.

    With `patience`, a question that takes longer than so many seconds goes on, but its place is free: a
    worker that has just died keeps nobody waiting. So at most `parallel` are begun in that time.
    """

    def __init__(self, parallel: int, *, patience: float | None = None) -> None:
        self._patience = patience
        self._lane = asyncio.Semaphore(parallel)
        self._slow_lane = asyncio.Semaphore(SLOW_AT_ONCE)
        self.slow: set[Hashable] = set()
        """Whose last question ended with TooSlow."""

    @asynccontextmanager
    async def place(self, who: Hashable) -> AsyncIterator[None]:
        """Wait for a place. It is one question to `who`, and tells by TooSlow that there was no answer."""
        lane = self._slow_lane if who in self.slow else self._lane
        await lane.acquire()
        leaving = ExitStack()
        leaving.callback(lane.release)
        timer = self._patience and asyncio.get_running_loop().call_later(self._patience, leaving.close)
        try:
            yield
            self.slow.discard(who)
        except WorkerTimeout:
            self.slow.add(who)
            raise
        except Exception:  # any other end is an answer; it goes on to who asked
            self.slow.discard(who)
            raise
        finally:
            if timer:
                timer.cancel()
            leaving.close()
