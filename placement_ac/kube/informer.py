"""
Keeps the cache up to date on one kind in one namespace, or in all.

kopf lists a kind at once and keeps a memory for each object, so kinds with many objects (Workloads,
ManagedClusters, scores, MultiKueueClusters, Secrets), and those of which every change of a selection is one
(decisions, MultiKueueConfigs), are followed by an `Informer`. kopf does not say when its first list is
complete, nor what vanished while its watch was interrupted, so a `KopfInformer` lists the kinds that kopf
watches at the start, after a gap and every minute. Neither decides anything.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import structlog

from placement_ac.cache.index import Id
from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.decode import meta_of
from placement_ac.core.api.errors import ApiError, Gone, Refused, Unavailable
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Client, Listing, Object, WatchEvent
from placement_ac.kube.reflector import BOOKMARK, Reflector
from placement_ac.observability.health import WatchHealth
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

RELIST_SECONDS: Final = 600.0
"""How often everything is listed again although the watch goes on."""
KOPF_RELIST_SECONDS: Final = 60.0
"""How often the kinds that kopf watches are listed: that finds what vanished, or never came."""
KOPF_STARTS_SECONDS: Final = (2.0, 4.0, 8.0)
"""The pauses between the first lists: kopf says nothing of what vanishes before it watches."""
PAUSE_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after a request that was refused; the last one is repeated."""
UNREACHABLE_PAUSE_SECONDS: Final = 0.5
"""The longest pause while the API server does not answer: a failed request costs little."""

EnqueueKeys = Callable[[Iterable[Key]], None]
"""Enqueues the keys that an object or a list touches."""


class Informer(Reflector):
    """Follows a kind into the cache.

    `enqueue` is for single objects, `enqueue_after_list` for a list that is complete. `on_recovery` is called
    when it works again after a failure. With the same `outages`, informers log once that the server is away.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespace: str,
        cache: Cache,
        health: WatchHealth,
        *,
        enqueue: EnqueueKeys,
        enqueue_after_list: EnqueueKeys,
        on_recovery: Callable[[], None] = lambda: None,
        outages: LogDeduplicator | None = None,
    ) -> None:
        super().__init__(client, resource, namespace)
        self._cache = cache
        self._health = health
        self._enqueue = enqueue
        self._enqueue_after_list = enqueue_after_list
        self._on_recovery = on_recovery
        self._outages = outages or LogDeduplicator()
        self._log_keys = {"kind": str(resource.of)} | ({"namespace": namespace} if namespace else {})
        self._logged = LogDeduplicator()
        self._present = set[Id]()
        """The ids in the pages so far of the list that is being read."""
        self._failures = 0
        self._was_answered = True
        """Whether the API server answered the last request that failed."""

    def tasks(self) -> list[Coroutine[object, object, None]]:
        """Return the coroutines to run, each in a task of its own; they end only when cancelled."""
        return [self._follow(), self._relist()]

    async def _follow(self) -> None:
        while True:
            try:
                await self._take_all(self.follow())
            except ApiError as error:
                await asyncio.sleep(self.pause_after(error))

    async def _relist(self) -> None:
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                await self._take_all(self.pages(), resync=True)
            except ApiError as error:
                self._health.request_failed(error)
                log.debug("cannot list again yet", **self._log_keys, error=error.message)
                self.version = ""

    async def _take_all(self, parts: AsyncGenerator[Listing | WatchEvent], *, resync: bool = False) -> None:
        async with aclosing(parts):
            async for part in parts:
                if isinstance(part, Listing):
                    self._take_page(part, resync=resync)
                else:
                    self._take_event(*part)
                del part  # two pages at a time would take twice the memory

    def _take_page(self, page: Listing, *, resync: bool) -> None:
        """Put a page into the cache, which compares versions with those of the watch.

        After the last one, drop what was not in the list; all keys are touched when the cache is complete for
        the first time, and with `resync`.
        """
        kind, cache = self.resource.of, self._cache
        self._health.received()
        if page.first:
            self._present = set[Id]()
            self._enqueue(cache.begin_replace(kind, page.resource_version, self.namespace))
        touched: set[Key] = set()
        for item in page.items:
            touched |= cache.put(kind, item)
            if cache.holds(kind, id_ := meta_of(item).id):
                self._present.add(id_)
        self._enqueue(touched)
        if page.last:
            before = cache.has_synced
            touched = cache.end_replace(kind, self._present, page.resource_version, self.namespace)
            if cache.has_synced:
                self._enqueue_after_list(touched if before and not resync else cache.keys())
                if not before:
                    log.info("everything has been listed", keys=len(cache.keys()))
            self._health.list_completed()

    def take(self, change: str | None, item: Mapping[str, Any]) -> None:
        """Put an object into the cache that has changed; `change` None: kopf has listed it."""
        self._health.received()
        if change != BOOKMARK:
            take = self._cache.remove if change == "DELETED" else self._cache.put
            self._enqueue(take(self.resource.of, item))

    def _take_event(self, change: str, item: Object) -> None:
        self.take(change, item)
        if self._failures:
            self._failures = 0
            level = logging.INFO if self._logged.ended("failure") else logging.DEBUG
            log.log(level, "follows again", **self._log_keys)
            self._on_recovery()

    def opened(self) -> None:
        if self._outages.ended("hub"):
            log.info("the API server answers again")
        self._health.opened()

    def pause_after(self, error: ApiError) -> float:
        """Return the pause before the next try."""
        self._health.request_failed(error)
        if error.status:
            self._health.received()
            if not self._was_answered:
                self._failures = 0  # after an outage, try again soon
        self._was_answered = bool(error.status)
        self._log_failure(error)
        pause = error.retry_after or PAUSE_SECONDS[min(self._failures, len(PAUSE_SECONDS) - 1)]
        self._failures += 1
        return pause if error.status else min(pause, UNREACHABLE_PAUSE_SECONDS)

    def _log_failure(self, error: ApiError) -> None:
        """Log a failure once, and once more if it becomes one that an admin has to fix."""
        keys = self._log_keys | {"error": error.message}
        if isinstance(error, Gone):  # it happens to every watch after a long interruption
            log.debug("forgotten by the hub; listing again", **keys)
        elif not error.status and isinstance(error, Unavailable):
            # A watch that was cut off does not matter as long as the next one is answered.
            if self._failures:
                level = self._outages.level("hub", "")
                log.log(level, "the API server does not answer; trying again", error=error.message)
            log.debug("cut off; trying again", **keys)
        elif isinstance(error, Refused):
            level = self._logged.level("failure", "refused")
            log.log(level, "may not follow; trying again", **keys, needed="list, watch")
        else:
            log.log(self._logged.level("failure", "fails"), "cannot follow; trying again", **keys)


class KopfInformer(Informer):
    """For a kind that kopf watches: lists it a few times while kopf starts, and every KOPF_RELIST_SECONDS."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pauses = iter(KOPF_STARTS_SECONDS)
        self._requested = asyncio.Event()

    def tasks(self) -> list[Coroutine[object, object, None]]:
        return [self._follow()]

    def list_soon(self) -> None:
        """List now: kopf may have missed something."""
        self._requested.set()

    async def events(self) -> AsyncGenerator[WatchEvent]:
        """End when it is time to list again."""
        yield BOOKMARK, {}
        pause = min(next(self._pauses, KOPF_RELIST_SECONDS), KOPF_RELIST_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._requested.wait()
        self._requested.clear()
        self.version = ""
