"""An event loop on the clock of a `VirtualKueue`: nothing sleeps."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from tests.support.virtual.kueue import VirtualKueue

T = TypeVar("T")
RESOLUTION: Final = 1e-6
"""Of the loop's clock: asyncio's own value is below the precision of a float of that size."""


class _Clockwork(selectors.SelectSelector):
    """A selector that advances the virtual time instead of waiting for files."""

    def __init__(self, kueue: VirtualKueue) -> None:
        super().__init__()
        self._kueue = kueue
        self.is_woken = False
        """Whether the loop has something new to do."""

    def select(self, timeout: float | None = None) -> list[Any]:
        """Run the events of the world until one of them concerns the loop, or for so long."""
        kueue, self.is_woken = self._kueue, timeout is not None and timeout <= 0
        end = None if timeout is None else kueue.now + timeout
        while not self.is_woken and (end is None or kueue.now + RESOLUTION <= end):
            kueue.step(None if end is None else end - kueue.now)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on Kueue's clock."""

    def __init__(self, kueue: VirtualKueue) -> None:
        self._clockwork = _Clockwork(kueue)
        super().__init__(self._clockwork)
        self._kueue = kueue
        self._clock_resolution = RESOLUTION

    def time(self) -> float:
        return self._kueue.now

    def call_soon(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self._clockwork.is_woken = True
        return super().call_soon(*args, **kwargs)

    def call_at(self, when: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self._clockwork.is_woken = True
        now = self.time()
        if when > now:  # within the resolution, no time would pass: it would set itself again for ever
            when = max(when, now + 2 * RESOLUTION)
        return super().call_at(when, *args, **kwargs)


def play(kueue: VirtualKueue, story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and its tasks in virtual time."""
    loop = VirtualLoop(kueue)
    try:
        return loop.run_until_complete(story)
    finally:
        loop.run_until_complete(_end_all())
        loop.close()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
