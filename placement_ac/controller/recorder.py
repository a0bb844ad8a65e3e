"""
Posts Kubernetes events on AdmissionChecks, Workloads and generated objects, in a task of its own.

An event that cannot be posted is only logged. An event about a lasting state is posted at most every ten
minutes. An event that repeats is counted, and its count is posted after ten seconds, then after twice as long
each time.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache

from placement_ac.controller.event_queue import FairQueue
from placement_ac.controller.event_writer import (
    REMEMBERED,
    REPEAT_SECONDS,
    EventKey,
    EventWriter,
    QueuedEvent,
)
from placement_ac.core.api.constants import ADMISSION_CHECK, Kind, Resource
from placement_ac.core.api.errors import ApiError, Refused, Unavailable
from placement_ac.core.api.objects import Check
from placement_ac.core.plan.event_intents import PostableEvent
from placement_ac.core.token_bucket import TokenBucket
from placement_ac.kube.client import Client
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

COUNT_SECONDS: Final = 10.0
"""How long an event that repeats is counted at first, before its count is posted."""
COUNT_MOST_SECONDS: Final = 300.0
"""How long it is counted at most."""
PAUSES: Final = (1.0, 5.0)
"""Seconds between the tries to post one event."""
AT_ONCE: Final = 20
PER_SECOND: Final = 50.0
"""The burst and the rate at which events are posted."""


class RepeatWindow(NamedTuple):
    """How long an event that was posted is only counted; until when, in seconds of the event loop."""

    until: float = 0.0
    seconds: float = 0.0

    def after(self, now: float, first: float) -> "RepeatWindow":
        """Return the window after a post: a longer one if the event has repeated soon after this window."""
        again = now < self.until + self.seconds
        seconds = min(self.seconds * 2, COUNT_MOST_SECONDS) if again else first
        return RepeatWindow(now + seconds, seconds)


_NEVER: Final = RepeatWindow()


class Recorder:
    """Posts events one after another; `clock` returns the time of day (UTC).

    `count_seconds`: how long an event that repeats is counted at first; `per_second`: the rate of a burst.
    """

    def __init__(
        self,
        client: Client,
        resources: Mapping[Kind, Resource],
        clock: Callable[[], datetime],
        *,
        count_seconds: float = COUNT_SECONDS,
        per_second: float = PER_SECOND,
    ) -> None:
        self._writer = EventWriter(client, resources)
        self._clock = clock
        self._count_seconds = count_seconds
        self._lasting: TTLCache[EventKey, bool] = TTLCache(
            REMEMBERED, REPEAT_SECONDS, timer=lambda: asyncio.get_running_loop().time()
        )
        self._windows: LRUCache[EventKey, RepeatWindow] = LRUCache(REMEMBERED)
        """Events that were posted or queued."""
        self._repeats: dict[EventKey, tuple[QueuedEvent, asyncio.TimerHandle]] = {}
        """Events that have repeated in their windows, and the timers that post the counts."""
        self._queue = FairQueue()
        self._bucket = TokenBucket(per_second, AT_ONCE)
        self._sending: asyncio.Task[None] | None = None
        self._refusals = LogDeduplicator()
        """Refused writes by namespace."""
        self._full = False
        """Whether it was logged that the queue is full."""
        self._closed = False

    def post(self, posts: Iterable[PostableEvent], checks: Iterable[Check]) -> None:
        """Queue each event, on its object or on all `checks`; return at once; after `close` do nothing."""
        if self._closed:
            return
        checks, now = tuple(checks), self._clock()
        of = checks[0].meta.uid if checks else ""
        for post in posts:
            if post.about:
                self._enqueue(QueuedEvent(post, post.about_kind, post.about.meta, now, of=of))
            else:
                for check in checks:
                    self._enqueue(QueuedEvent(post, ADMISSION_CHECK, check.meta, now, of=of))
        self._start_sending()

    def _start_sending(self) -> None:
        if self._queue and (self._sending is None or self._sending.done()):
            self._full = False
            self._sending = asyncio.get_running_loop().create_task(self._send(), name="post events")

    async def close(self) -> None:
        """Drop the queue and stop."""
        self._closed = True
        self._queue.clear()
        for _, timer in self._repeats.values():
            timer.cancel()
        self._repeats.clear()
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _enqueue(self, event: QueuedEvent) -> None:
        key = event.key
        if event.post.lasts and key in self._lasting:
            return
        now = asyncio.get_running_loop().time()
        window = self._windows.get(key, _NEVER)
        if now < window.until:
            self._count_repeat(event, window.until)
        elif self._queue.put(event):
            self._lasting[key] = True
            self._windows[key] = window.after(now, self._count_seconds)
        elif not self._full:
            self._full = True
            log.debug("too many events; some are not posted", waiting=len(self._queue))

    def _count_repeat(self, event: QueuedEvent, until: float) -> None:
        """Count an event in its window, and post the count at the end of the window."""
        known = self._repeats.get(event.key)
        timer = known[1] if known else asyncio.get_running_loop().call_at(until, self._post_count, event.key)
        times = known[0].times if known else 0
        self._repeats[event.key] = replace(event, times=times + event.times), timer

    def _post_count(self, key: EventKey) -> None:
        event, _ = self._repeats.pop(key)
        self._enqueue(event)
        self._start_sending()

    async def _send(self) -> None:
        while self._queue:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(self._bucket.reserve(now))
            event = self._queue.take()
            try:
                await self._write_with_retries(event)
            except ApiError as error:
                self._failed(event, error)
            else:
                self._refusals.ended(event.namespace)
                log.info(
                    "event",
                    kind=event.kind.kind,
                    name=event.meta.name,
                    reason=event.post.reason,
                    message=event.message,
                )

    async def _write_with_retries(self, event: QueuedEvent) -> None:
        for pause in PAUSES:
            try:
                await self._writer.write(event)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after or pause)
            else:
                return
        await self._writer.write(event)

    def _failed(self, event: QueuedEvent, error: ApiError) -> None:
        if isinstance(error, Refused):
            level = self._refusals.level(event.namespace, error.message)
            log.log(level, "an event was refused", namespace=event.namespace, error=error.message)
        else:
            self._lasting.pop(event.key, None)  # the next one is tried again
            self._windows.pop(event.key, None)
            log.debug("an event could not be posted", reason=event.post.reason, error=error.message)
