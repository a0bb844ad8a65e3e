"""A queue of keys to reconcile, one at a time, as in a controller with one worker."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import structlog

from placement_ac.core.api.errors import ApiError

Key = tuple[str, ...]
"""The key of a reconcile request; each stand-in defines its own parts."""

FIRST_BACKOFF_SECONDS = 0.05
LONGEST_BACKOFF_SECONDS = 0.5
"""Short, so that a stand-in notices the end of an outage as soon as the controller does."""

log = structlog.get_logger(__name__)


def backoff() -> Iterator[float]:
    """Yield the seconds to wait after each consecutive failure."""
    return (min(FIRST_BACKOFF_SECONDS * 2 ** min(n, 16), LONGEST_BACKOFF_SECONDS) for n in count())


class KeyQueue:
    """Reconciles one key at a time; a key that is added several times is reconciled once.

    If `reconcile` raises an ApiError, the key is added again with exponential backoff. `name` is for the log.
    """

    def __init__(self, name: str, reconcile: Callable[[Key], Awaitable[None]]) -> None:
        self._name = name
        self._reconcile = reconcile
        self._keys: dict[Key, None] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._work = asyncio.Event()
        self._failures: defaultdict[Key, Iterator[float]] = defaultdict(backoff)

    def add(self, key: Key, *, after: float = 0.0) -> None:
        """Add `key`, `after` seconds from now, or earlier if it is to be added earlier anyway."""
        if after > 0:
            self._add_later(key, after)
        else:
            self._keys[key] = None
            self._work.set()

    def _add_later(self, key: Key, after: float) -> None:
        """Keep one timer for each key, the earliest, as controller-runtime's workqueue does."""
        loop = asyncio.get_running_loop()
        waiting = self._later.get(key)
        if waiting and waiting.when() <= loop.time() + after:
            return
        if waiting:
            waiting.cancel()
        self._later[key] = loop.call_later(after, self._add_now, key)

    def _add_now(self, key: Key) -> None:
        del self._later[key]
        self.add(key)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        while True:
            await self._work.wait()
            await self._reconcile_next()

    async def _reconcile_next(self) -> None:
        key = next(iter(self._keys))
        del self._keys[key]
        if not self._keys:
            self._work.clear()
        try:
            await self._reconcile(key)
        except ApiError as error:
            wait = next(self._failures[key])
            log.debug("trying again", queue=self._name, key=key, error=error.message, wait=wait)
            self.add(key, after=wait)
        else:
            self._failures.pop(key, None)
