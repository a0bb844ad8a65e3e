"""
Keys to be worked on: one worker per key, duplicates merged, failures tried again with backoff.

Knows nothing of what the work is. A key that comes while it is worked on is
worked on once more; a key that failed waits longer each time, up to a cap.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from typing import Final, Generic, TypeVar

import structlog

from placement_ac.controller.precedence import Precedence
from placement_ac.observability.logs import Told, without_words
from placement_ac.observability.metrics import Load

K = TypeVar("K", bound=Hashable)
log = structlog.get_logger(__name__)

FIRST_BACKOFF_SECONDS: Final = 0.1
MOST_BACKOFF_SECONDS: Final = 30.0
JITTER: Final = 0.2
"""Each wait is made longer or shorter by up to this share, so that failures do not march in step."""
ECHO_SECONDS: Final = 0.05
"""How long the second look at a key waits, after its own write: in a burst it would be half of the work."""
ECHO_MOST_SECONDS: Final = 1.0
"""How long it waits when changes come in at that time."""
BUSY_SECONDS: Final = 0.5
"""After so long without a change there is time for what nobody waits for."""
PAUSE_SECONDS: Final = 0.003
"""How long the answer to a write is left alone: not as long as an API server with a disk behind it takes."""
ASIDE_SECONDS: Final = 1.0
"""For at most so long work that can wait gives way to others; then it waits for a slot, as they do."""
PROMPT_TRIES: Final = 3
PATIENCE_SECONDS: Final = 0.5
"""After so many failures in a row a change, too, is looked at only so long after the last try: somebody who
writes all the time to what we write to must not make us as busy as they are."""


class Retry(Exception):  # it asks for something, it is not an error
    """Raised by the work: try this key again, after `after` seconds at the earliest (None: backoff)."""

    def __init__(self, after: float | None = None) -> None:
        super().__init__(after)
        self.after = after


class Workqueue(Generic[K]):
    """Runs `work(key)` for the keys added; at most `parallel` at once."""

    def __init__(self, work: Callable[[K], Awaitable[None]], *, parallel: int = 32) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(parallel)
        self._holding: set[K] = set()
        """Keys that have a slot."""
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self._again: set[K] = set()
        self._outdated: set[K] = set()
        """Keys that have changed since their work began, if it has: an echo is no change."""
        self._waiting: dict[K, float] = {}
        """Keys that are not worked on yet, though they should be: since when."""
        self._working: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, float] = {}
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._echoes: dict[K, float] = {}
        """Keys whose second look waits, and until when it may."""
        self._changed = -BUSY_SECONDS
        """When a change came in last."""
        self._precedence: Precedence[K] = Precedence()
        """Keys are ahead that wait, and those that are worked on and have not given way."""
        self._closed = False
        self._told = Told()

    def add(self, *keys: K) -> None:
        """Work on `keys` at once: something has changed. A wait that the work asked for is kept, though."""
        now = self._changed = asyncio.get_running_loop().time()
        for key in keys:
            wait = self._not_before.get(key, now) - now
            if wait <= 0:
                self._outdated.add(key)
                if key in self._tasks:
                    self._precedence.recall(key)
                self._start(key)
            else:
                self.add_after(key, wait)

    def add_after(self, key: K, seconds: float) -> None:
        """Work on `key` in `seconds`; an earlier appointment stands unless the work asked to wait longer."""
        loop = asyncio.get_running_loop()
        not_before = self._not_before.get(key, 0.0)
        due = max(loop.time() + seconds, not_before)
        known = self._timers.get(key)
        if self._closed or (known and not_before <= known[0] <= due):
            return
        if known:
            known[1].cancel()
        self._timers[key] = (due, loop.call_at(due, self._ring, key))

    def add_echo(self, *keys: K) -> None:
        """Work on `keys`, as our own write has touched them; on one that is worked on, when there is time.

        What comes of its own write it has foreseen: the second look is for what follows, and may wait while
        changes are waited for.
        """
        for key in keys:
            if key in self._working:
                self._echoes[key] = asyncio.get_running_loop().time() + ECHO_MOST_SECONDS
                self.add_after(key, ECHO_SECONDS)
            else:
                self.add(key)

    def works_on(self, key: K) -> bool:
        """Whether `key` is worked on at this moment."""
        return key in self._working

    def pause(self, key: K) -> Awaitable[None] | None:
        """Wait for PAUSE_SECONDS, or until `key` changes again, and keep the slot: one key at a time does.

        To be called for the work on `key`. Returns what it is to wait for; None: there are other keys, `key`
        has changed already, or all ends.
        """
        if self._closed or key in self._outdated or not self._precedence.leads_alone(key):
            return None
        return self._precedence.stand_aside(key, PAUSE_SECONDS)

    def give_way(self, key: K) -> Awaitable[None] | None:
        """Let those keys go first whose work has not come as far; not for long, nor once `key` changes again.

        To be called by the work on `key`, when what is left of it can wait; others may take its slot. Returns
        what it is to wait for; None: `key` has changed already, or all ends.
        """
        self._precedence.leave(key)
        if self._closed or key in self._outdated:
            return None
        return self._stand_aside(key)

    async def _stand_aside(self, key: K) -> None:
        self._let_go(key)
        await self._precedence.stand_aside(key, ASIDE_SECONDS)
        await self._take_slot(key)

    async def _take_slot(self, key: K) -> None:
        await self._slots.acquire()
        self._holding.add(key)

    def _let_go(self, key: K) -> None:
        if key in self._holding:
            self._holding.discard(key)
            self._slots.release()

    @property
    def busy(self) -> bool:
        """Whether changes come in, or keys wait for others to be worked on."""
        return bool(self._waiting) or asyncio.get_running_loop().time() < self._changed + BUSY_SECONDS

    def try_now(self) -> None:
        """Try every key that has failed: what stood in the way may be over."""
        for key in tuple(self._failures):
            self._not_before.pop(key, None)
            if timer := self._timers.pop(key, None):
                timer[1].cancel()
            self._start(key)

    def drop(self) -> None:
        """Forget every key, and cancel what is under way."""
        for _, timer in self._timers.values():
            timer.cancel()
        for kept in (
            self._timers,
            self._again,
            self._outdated,
            self._waiting,
            self._failures,
            self._not_before,
            self._echoes,
        ):
            kept.clear()
        for task in self._tasks.values():
            task.cancel()

    async def close(self) -> None:
        """Take nothing more; let what is under way end with what it is writing."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._again.clear()
        self._waiting.clear()
        self._precedence.recall_all()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ring(self, key: K) -> None:
        self._timers.pop(key, None)
        now = asyncio.get_running_loop().time()
        latest = self._echoes.get(key, 0.0)
        if now < min(latest, self._changed + ECHO_SECONDS):
            self.add_after(key, latest - now)
            return
        self._not_before.pop(key, None)
        self._start(key)

    def load(self) -> Load:
        """Return how busy the queue is."""
        now = asyncio.get_running_loop().time()
        return Load(
            waiting=len(self._waiting),
            oldest=now - min(self._waiting.values(), default=now),
            longest=now - min(self._working.values(), default=now),
            retrying=len(self._failures),
        )

    def _start(self, key: K) -> None:
        if self._closed:
            return
        if self._echoes.pop(key, None) and (timer := self._timers.pop(key, None)):
            timer[1].cancel()  # this look is the second one
        self._waiting.setdefault(key, asyncio.get_running_loop().time())
        if key in self._tasks:
            self._again.add(key)
            return
        self._precedence.enter(key)
        # Not in the context of who adds: that is kopf's, which holds all of a session, and a connection to
        # the hub holds the context in which it was opened for as long as it is kept.
        task = asyncio.get_running_loop().create_task(self._run(key), context=Context())
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._done(key))

    async def _run(self, key: K) -> None:
        await self._take_slot(key)
        try:
            if not self._closed:
                await self._work_on(key)
        finally:
            self._let_go(key)

    async def _work_on(self, key: K) -> None:
        self._again.discard(key)
        self._outdated.discard(key)
        self._waiting.pop(key, None)
        self._working[key] = asyncio.get_running_loop().time()
        try:
            await self._work(key)
        except Retry as retry:
            self._fail(key, retry.after)
        except Exception as error:  # whatever it is, it must not lose the key
            why = without_words(error)
            level = self._told.level(key, why, logging.ERROR)
            log.log(level, "work failed unexpectedly", key=str(key), error=why)
            self._fail(key, None)
        else:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
            if self._told.over(key):
                log.info("works again", key=str(key))
        finally:
            del self._working[key]

    def _done(self, key: K) -> None:
        del self._tasks[key]
        self._precedence.leave(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _fail(self, key: K, after: float | None) -> None:
        tries = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(MOST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(tries - 1, 16))
        pause *= 1 + random.uniform(-JITTER, JITTER)  # noqa: S311  # no secret depends on it
        now = asyncio.get_running_loop().time()
        if after:
            self._waiting.pop(key, None)
            self._not_before[key] = now + after
        elif tries >= PROMPT_TRIES:
            self._not_before[key] = now + min(pause, PATIENCE_SECONDS)
        self.add_after(key, max(pause, after or 0.0))
