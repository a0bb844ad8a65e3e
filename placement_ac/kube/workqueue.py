"""
A queue of keys to reconcile: never two workers on one key, duplicates merged, failures retried with backoff.

It knows nothing of the work itself. A key that is added while it is being worked on is
worked on once more; a key that failed waits longer each time, up to a cap.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from typing import Final, Generic, TypeVar

import structlog

from placement_ac.core.api.errors import error_place
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metric_definitions import QueueLoad

K = TypeVar("K", bound=Hashable)
log = structlog.get_logger(__name__)

BACKOFF_SECONDS: Final = (0.1, 30.0)
"""Before the second try, and before any at most."""
JITTER: Final = 0.2
"""Each wait is made longer or shorter by up to this share, so that retries spread out."""
PARALLEL: Final = 1024
"""A key that waits for its writes takes no processor: what is scarce are the slots of `fair_slots`."""
IMMEDIATE_TRIES: Final = 3
CHANGED_KEY_DELAY_SECONDS: Final = 0.5
"""After IMMEDIATE_TRIES failures in a row a key that changes again waits this long, so that another writer of
the same objects does not keep us busy."""


class Requeue(Exception):  # it asks for something, it is not an error
    """Raised by the work: try this key again, after `after` seconds at the earliest (None: backoff)."""

    def __init__(self, after: float | None = None) -> None:
        super().__init__(after)
        self.after = after


class Workqueue(Generic[K]):
    """Runs `work(key)` for the keys added, at most `parallel` at once; `backoff` as in BACKOFF_SECONDS."""

    def __init__(
        self,
        work: Callable[[K], Awaitable[None]],
        *,
        parallel: int = PARALLEL,
        backoff: tuple[float, float] = BACKOFF_SECONDS,
    ) -> None:
        self._work = work
        self._backoff = backoff
        self._slots = asyncio.Semaphore(parallel)
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self._readded: set[K] = set()
        """Keys that were added while they were being worked on."""
        self._waiting: dict[K, float] = {}
        """Keys that wait for a worker, and since when."""
        self._processing: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, float] = {}
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._closed = False
        self._logged = LogDeduplicator()

    def add(self, *keys: K) -> None:
        """Work on `keys` now, or after the wait of their last failure."""
        now = asyncio.get_running_loop().time()
        for key in keys:
            wait = self._not_before.get(key, now) - now
            if wait <= 0:
                self._start(key)
            else:
                self.add_after(key, wait)

    def add_after(self, key: K, seconds: float) -> None:
        """Work on `key` in `seconds`; an earlier timer is kept unless the work asked to wait longer."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        not_before = self._not_before.get(key, 0.0)
        due = max(loop.time() + seconds, not_before)
        known = self._timers.get(key)
        if self._closed or (known and not_before <= known[0] <= due):
            return
        if known:
            known[1].cancel()
        self._timers[key] = (due, loop.call_at(due, self._timer_fired, key))

    def retry_failed(self) -> None:
        """Retry every key that has failed now."""
        for key in tuple(self._failures):
            self._not_before.pop(key, None)
            if timer := self._timers.pop(key, None):
                timer[1].cancel()
            self._start(key)

    def clear(self) -> None:
        """Forget every key, and cancel the running work."""
        self._cancel_timers()
        for kept in (self._readded, self._waiting, self._failures, self._not_before):
            kept.clear()
        for task in self._tasks.values():
            task.cancel()

    async def close(self) -> None:
        """Take no more keys, and wait until the running work has ended."""
        self._closed = True
        self._cancel_timers()
        self._readded.clear()
        self._waiting.clear()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    @property
    def processing(self) -> tuple[K, ...]:
        """The keys that are being worked on."""
        return tuple(self._processing)

    def load(self) -> QueueLoad:
        """Return how busy the queue is."""
        now = asyncio.get_running_loop().time()
        return QueueLoad(
            waiting=len(self._waiting),
            oldest=now - min(self._waiting.values(), default=now),
            longest=now - min(self._processing.values(), default=now),
            retrying=len(self._failures),
        )

    def _cancel_timers(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _timer_fired(self, key: K) -> None:
        self._timers.pop(key, None)
        self._not_before.pop(key, None)
        self._start(key)

    def _start(self, key: K) -> None:
        if self._closed:
            return
        self._waiting.setdefault(key, asyncio.get_running_loop().time())
        if key in self._tasks:
            self._readded.add(key)
            return
        # With a context of its own: that of kopf's handlers holds a whole session, and a connection to the
        # hub would keep it for as long as it is open.
        task = asyncio.get_running_loop().create_task(self._run(key), context=Context())
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._done(key))

    async def _run(self, key: K) -> None:
        async with self._slots:
            if not self._closed:
                await self._work_on(key)

    async def _work_on(self, key: K) -> None:
        self._readded.discard(key)
        self._waiting.pop(key, None)
        self._processing[key] = asyncio.get_running_loop().time()
        try:
            await self._work(key)
        except Requeue as requeue:
            self._fail(key, requeue.after)
        except Exception as error:  # whatever it is, it must not lose the key
            why = error_place(error)
            level = self._logged.level(key, why, logging.ERROR)
            log.log(level, "work failed unexpectedly", key=str(key), error=why)
            self._fail(key, None)
        else:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
            if self._logged.ended(key):
                log.info("works again", key=str(key))
        finally:
            del self._processing[key]

    def _done(self, key: K) -> None:
        del self._tasks[key]
        if key in self._readded:
            self._readded.discard(key)
            self.add(key)

    def _fail(self, key: K, after: float | None) -> None:
        tries = self._failures[key] = self._failures.get(key, 0) + 1
        first, longest = self._backoff
        pause = min(longest, first * 2 ** min(tries - 1, 16))
        pause *= 1 + random.uniform(-JITTER, JITTER)  # noqa: S311  # no secret depends on it
        now = asyncio.get_running_loop().time()
        if after:
            self._waiting.pop(key, None)
            self._not_before[key] = now + after
        elif tries >= IMMEDIATE_TRIES:
            self._not_before[key] = now + min(pause, CHANGED_KEY_DELAY_SECONDS)
        self.add_after(key, max(pause, after or 0.0))
