"""
Who goes first: the work that somebody waits for goes before what is left of the other work.

Knows nothing of what the work is.
"""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Precedence(Generic[K]):
    """Keys that are ahead, and those that have stood aside until none is ahead any more."""

    def __init__(self) -> None:
        self._ahead: set[K] = set()
        self._aside: dict[K, asyncio.Future[None]] = {}

    def enter(self, key: K) -> None:
        """Let `key` be ahead, until it leaves."""
        self._ahead.add(key)

    def leave(self, key: K) -> None:
        """Let `key` be ahead no more; after the last one those go on that stood aside."""
        self._ahead.discard(key)
        if not self._ahead:
            self.recall(*self._aside)

    def recall(self, *keys: K) -> None:
        """Let those of `keys` go on that stand aside."""
        for key in keys:
            if (waits := self._aside.get(key)) and not waits.done():
                waits.set_result(None)

    def recall_all(self) -> None:
        """Let everybody go on; nobody is ahead any more."""
        self._ahead.clear()
        self.recall(*self._aside)

    @property
    def contested(self) -> bool:
        """Whether somebody is ahead."""
        return bool(self._ahead)

    async def stand_aside(self, key: K, seconds: float) -> None:
        """Wait until `key` may go on: until nobody is ahead, it is recalled, or for so long."""
        loop = asyncio.get_running_loop()
        waits = self._aside[key] = loop.create_future()
        timer = loop.call_later(seconds, self.recall, key)
        try:
            await waits
        finally:
            timer.cancel()
            del self._aside[key]
