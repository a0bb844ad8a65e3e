"""
Reads of the hub that all pages share: one at a time, and with a pause between two.

So pages that ask faster wait, and the hub gets no more requests than from one of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Calls `read` for everybody who asks. `pause`: seconds from the start of a read to the next one."""

    def __init__(self, read: Callable[[], Awaitable[T]], pause: float) -> None:
        self._read, self._pause = read, pause
        self._next: asyncio.Task[T] | None = None
        self._running = asyncio.Lock()
        self._began = float("-inf")

    async def get(self) -> T:
        """Return the result of a read that begins after this call. Raises what the read raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._begin())
            self._next.add_done_callback(_is_retrieved)
        return await asyncio.shield(self._next)  # one who goes away does not end the read of the others

    async def _begin(self) -> T:
        async with self._running:
            clock = asyncio.get_running_loop().time
            await asyncio.sleep(self._began + self._pause - clock())
            self._next, self._began = None, clock()
            return await self._read()


def _is_retrieved(task: asyncio.Task[T]) -> None:
    """Take note of a failure: nobody may have waited for it."""
    if not task.cancelled():
        task.exception()
