"""
Who goes first: the work that somebody waits for goes before what is left of the other work.

Knows nothing of what the work is.
"""

import asyncio
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

MOMENT_SECONDS: Final = 0.005
"""So long nobody must have been ahead. In a burst one key comes after the other; and who else is on this
machine, as the API server may be, has more to do right after a write than before."""


class Precedence(Generic[K]):
    """Keys that are ahead, and those that stand aside until a moment after the last of them."""

    def __init__(self) -> None:
        self._ahead: set[K] = set()
        self._aside: dict[K, asyncio.Future[None]] = {}
        self._calm: asyncio.TimerHandle | None = None
        """Runs while nobody is ahead, and somebody stands aside."""

    def enter(self, key: K) -> None:
        """Let `key` be ahead, until it leaves."""
        self._ahead.add(key)
        if self._calm:
            self._stop()

    def leads_alone(self, key: K) -> bool:
        """Whether `key` is ahead, and there is nobody else, not even aside."""
        return self._ahead == {key} and not self._aside

    def leave(self, key: K) -> None:
        """Let `key` be ahead no more; a moment after the last one those go on that stood aside."""
        self._ahead.discard(key)
        self._wait_for_calm()

    def _wait_for_calm(self) -> None:
        if self._aside and not self._ahead and not self._calm:
            self._calm = asyncio.get_running_loop().call_later(MOMENT_SECONDS, self._go_on)

    def _stop(self) -> None:
        if self._calm:
            self._calm.cancel()
            self._calm = None

    def _go_on(self) -> None:
        self._calm = None
        self.recall(*self._aside)

    def recall(self, *keys: K) -> None:
        """Let those of `keys` go on that stand aside."""
        for key in keys:
            if (waits := self._aside.get(key)) and not waits.done():
                waits.set_result(None)

    def recall_all(self) -> None:
        """Let everybody go on; nobody is ahead any more."""
        self._ahead.clear()
        self._stop()
        self.recall(*self._aside)

    async def stand_aside(self, key: K, seconds: float) -> None:
        """Wait until nobody has been ahead for a moment, `key` is recalled, or so long."""
        loop = asyncio.get_running_loop()
        waits = self._aside[key] = loop.create_future()
        timer = loop.call_later(seconds, self.recall, key)
        self._wait_for_calm()
        try:
            await waits
        finally:
            timer.cancel()
            del self._aside[key]
