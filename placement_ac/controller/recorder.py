"""
Posts Kubernetes events on AdmissionChecks, Workloads and generated objects, in a task of its own.

An event that cannot be posted is only logged. An event about a lasting state is posted at most every ten
minutes. Of each check, a bounded number of events wait; one more drops the oldest.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog
from cachetools import TTLCache

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

PAUSES: Final = (1.0, 5.0)
"""Seconds between the tries to post one event."""
AT_ONCE: Final = 20
PER_SECOND: Final = 50.0
"""The burst and the rate at which events are posted."""


class Recorder:
    """Posts events one after another; `clock` returns the time of day (UTC), `per_second` is their rate."""

    def __init__(
        self,
        client: Client,
        resources: Mapping[Kind, Resource],
        clock: Callable[[], datetime],
        *,
        per_second: float = PER_SECOND,
    ) -> None:
        self._writer = EventWriter(client, resources)
        self._clock = clock
        self._lasting: TTLCache[EventKey, bool] = TTLCache(
            REMEMBERED, REPEAT_SECONDS, timer=lambda: asyncio.get_running_loop().time()
        )
        self._queue = FairQueue()
        self._bucket = TokenBucket(per_second, AT_ONCE)
        self._sending: asyncio.Task[None] | None = None
        self._refusals = LogDeduplicator()
        """Refused writes by namespace."""
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
            self._sending = asyncio.get_running_loop().create_task(self._send(), name="post events")

    async def close(self) -> None:
        """Drop the queue and stop."""
        self._closed = True
        self._queue.clear()
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _enqueue(self, event: QueuedEvent) -> None:
        if event.post.lasts and event.key in self._lasting:
            return
        self._lasting[event.key] = True
        if dropped := self._queue.put(event):
            self._lasting.pop(dropped.key, None)
            log.debug("an event was dropped: too many wait", reason=dropped.post.reason)

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
            log.debug("an event could not be posted", reason=event.post.reason, error=error.message)
