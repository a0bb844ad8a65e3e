"""
Post Kubernetes events on AdmissionChecks and Workloads, beside the work; the same one is counted up.

An event is a courtesy: nobody waits for one, and one that cannot be posted is logged, at most.
Its name follows from what it says, so that whoever says the same, before a restart or on
another replica, finds it there and counts it up. What lasts is not said again within ten minutes; what
happens again and again is counted here, and posted after ten seconds, then after twice as long each time.
"""

import asyncio
import hashlib
import math
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    EVENT,
    EVENTS,
    EVENTS_NAMESPACE,
    FIELD_MANAGER,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, Refused, Unavailable
from placement_ac.core.api.objects import Check, Meta
from placement_ac.core.plan.event_intents import PostableEvent
from placement_ac.kube.client import Client, Object
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 600.0
COUNT_SECONDS: Final = 10.0
"""Clusters may come and go in turns: an event for each turn would be two writes a turn."""
COUNT_MOST_SECONDS: Final = 300.0
"""How long the same event is counted at most, before its count is posted."""
REMEMBERED: Final = 10_000
QUEUED: Final = 500
"""Events that wait to be posted, at most."""
PAUSES: Final = (1.0, 5.0)
"""Seconds between the tries to post one event."""
AT_ONCE: Final = 20
PER_SECOND: Final = 50.0
"""So many events go out at once, then so many a second: to the API server each is a write like any other."""
NAME_MAX: Final = 200
"""Characters of an object's name in the name of an event on it (Kubernetes: 253 in all)."""
MESSAGE_MAX: Final = 1024
"""Kubernetes: characters in an event's message."""
RESOURCE: Final = EVENT.at("v1")


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event on its way: what it says, on what, when that was last, and how often."""

    post: PostableEvent
    kind: Kind
    meta: Meta
    when: datetime
    times: int = 1

    @property
    def message(self) -> str:
        return self.post.message[:MESSAGE_MAX]

    @property
    def is_warning(self) -> bool:
        return EVENTS[self.post.reason][0] == "Warning"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.meta.uid, self.post.reason, self.message

    @property
    def name(self) -> str:
        """The event's name: the same for who says the same on the same object."""
        said = hashlib.sha256("\0".join(self.key).encode()).hexdigest()[:16]
        return f"{self.meta.name[:NAME_MAX].rstrip('-.')}.{said}"

    @property
    def namespace(self) -> str:
        return self.meta.namespace or EVENTS_NAMESPACE


class TokenBucket:
    """Lets so many through at once, and then so many a second."""

    def __init__(self) -> None:
        self._left, self._when = 0.0, -math.inf

    def wait(self, now: float, per_second: float, at_once: int) -> float:
        """Return for how many seconds the next one, which is taken for gone, has to wait."""
        self._left = min(self._left + (now - self._when) * per_second, at_once) - 1
        self._when = now
        return max(-self._left / per_second, 0.0)


class RepeatWindow(NamedTuple):
    """Until when an event that was posted is only counted, in seconds of the event loop; and for how long."""

    until: float = 0.0
    seconds: float = 0.0

    def after(self, now: float, first: float) -> "RepeatWindow":
        """Return what follows on a post: a longer time if it happened again soon after this one."""
        again = now < self.until + self.seconds
        seconds = min(self.seconds * 2, COUNT_MOST_SECONDS) if again else first
        return RepeatWindow(now + seconds, seconds)


_NEVER: Final = RepeatWindow()


class Recorder:
    """Posts what it is given, one after another; `clock` gives the time of day (UTC).

    `count_seconds`: how long the same event is counted before its count is posted for the first time; then it
    is twice as long each time. `per_second`: how many are posted when there are many.
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
        self._client = client
        self._resources = resources
        self._clock = clock
        self._count_seconds = count_seconds
        self._instance = socket.gethostname()
        self._told: TTLCache[tuple[str, str, str], bool] = TTLCache(REMEMBERED, AGAIN_SECONDS)
        self._counts: LRUCache[tuple[str, str, str], int] = LRUCache(REMEMBERED)
        """How often each event was told that we have posted."""
        self._quiet: LRUCache[tuple[str, str, str], RepeatWindow] = LRUCache(REMEMBERED)
        """Events that were posted, or are about to be: until when they are only counted."""
        self._counted: dict[tuple[str, str, str], tuple[QueuedEvent, asyncio.TimerHandle]] = {}
        """Those of them that have happened again since."""
        self._warnings: deque[QueuedEvent] = deque()
        self._news: deque[QueuedEvent] = deque()
        self._pace = TokenBucket()
        self._per_second = per_second
        self._sending: asyncio.Task[None] | None = None
        self._refusals = LogDeduplicator()
        """By namespace."""
        self._full = False
        """Whether it has been told that too many wait."""

    def post(self, posts: Iterable[PostableEvent], checks: Iterable[Check]) -> None:
        """Queue each event, on its Workload or on all `checks`; return at once."""
        checks, now = tuple(checks), self._clock()
        for post in posts:
            if post.about:
                self._put(QueuedEvent(post, WORKLOAD, post.about.meta, now))
            else:
                for check in checks:
                    self._put(QueuedEvent(post, ADMISSION_CHECK, check.meta, now))
        self._begin()

    @property
    def _queued(self) -> int:
        return len(self._warnings) + len(self._news)

    def _begin(self) -> None:
        if self._queued and (self._sending is None or self._sending.done()):
            self._full = False
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def close(self) -> None:
        """Post nothing any more."""
        self._warnings.clear()
        self._news.clear()
        for _, timer in self._counted.values():
            timer.cancel()
        self._counted.clear()
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _put(self, event: QueuedEvent) -> None:
        key = event.key
        if event.post.lasts and key in self._told:
            return
        now = asyncio.get_running_loop().time()
        quiet = self._quiet.get(key, _NEVER)
        if now < quiet.until:
            self._count_on(event, quiet.until)
        elif self._queued < QUEUED:
            self._told[key] = True
            self._quiet[key] = quiet.after(now, self._count_seconds)
            (self._warnings if event.is_warning else self._news).append(event)
        elif not self._full:
            self._full = True
            log.debug("too many events; some are not posted", waiting=self._queued)

    def _count_on(self, event: QueuedEvent, until: float) -> None:
        """Count what has been posted just now, and post the count later."""
        known = self._counted.get(event.key)
        timer = known[1] if known else asyncio.get_running_loop().call_at(until, self._due, event.key)
        times = known[0].times if known else 0
        self._counted[event.key] = replace(event, times=times + event.times), timer

    def _due(self, key: tuple[str, str, str]) -> None:
        event, _ = self._counted.pop(key)
        self._put(event)
        self._begin()

    async def _send(self) -> None:
        while self._queued:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(self._pace.wait(now, self._per_second, AT_ONCE))
            event = self._next()
            try:
                await self._try(event)
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

    def _next(self) -> QueuedEvent:
        """Take a warning before all that is no more than news."""
        return (self._warnings or self._news).popleft()

    async def _try(self, event: QueuedEvent) -> None:
        for pause in PAUSES:
            try:
                await self._write(event)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after or pause)
            else:
                return
        await self._write(event)

    def _failed(self, event: QueuedEvent, error: ApiError) -> None:
        if isinstance(error, Refused):
            level = self._refusals.level(event.namespace, error.message)
            log.log(level, "an event was refused", namespace=event.namespace, error=error.message)
        else:
            self._told.pop(event.key, None)  # whoever finds it so again may try again
            self._quiet.pop(event.key, None)
            log.debug("an event could not be posted", reason=event.post.reason, error=error.message)

    async def _write(self, event: QueuedEvent) -> None:
        before = self._counts.pop(event.key, None)
        try:
            if before is None:
                await self._client.create(RESOURCE, self._body(event))
                self._counts[event.key] = event.times
            else:
                await self._raise(event, before)
        except NotFound:  # it has expired
            await self._client.create(RESOURCE, self._body(event))
            self._counts[event.key] = event.times
        except Conflict:
            try:
                await self._count(event)
            except NotFound:  # it has expired in between
                await self._client.create(RESOURCE, self._body(event))

    async def _count(self, event: QueuedEvent) -> None:
        """Count up the event that is there: a patch of nothing gives it, so no other right is needed."""
        found = await self._merge(event, {})
        since = str(found.get("lastTimestamp") or "")
        if event.post.lasts and since > _time(event.when - timedelta(seconds=AGAIN_SECONDS)):
            return
        before = found.get("count")
        await self._raise(event, before if isinstance(before, int) else 1)

    async def _raise(self, event: QueuedEvent, before: int) -> None:
        count = before + event.times
        await self._merge(event, {"count": count, "lastTimestamp": _time(event.when)})
        self._counts[event.key] = count

    async def _merge(self, event: QueuedEvent, patch: Object) -> Object:
        return await self._client.merge(RESOURCE, event.name, patch, namespace=event.namespace)

    def _body(self, event: QueuedEvent) -> Object:
        now = _time(event.when)
        return {
            "apiVersion": "v1",
            "kind": EVENT.kind,
            "metadata": {"name": event.name, "namespace": event.namespace},
            "involvedObject": {
                "apiVersion": self._resources[event.kind].api_version,
                "kind": event.kind.kind,
                "name": event.meta.name,
                **({"namespace": event.meta.namespace} if event.meta.namespace else {}),
                "uid": event.meta.uid,
                "resourceVersion": event.meta.resource_version,
            },
            "type": EVENTS[event.post.reason][0],
            "reason": event.post.reason,
            "message": event.message,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": event.times,
        }


def _time(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
