"""
Keeps the cache up to date on one kind in one namespace, or in all: LIST by pages, then WATCH.

kopf lists a kind at once and keeps a memory for each object, so kinds with many objects (Workloads,
ManagedClusters, scores, MultiKueueClusters, Secrets) are followed by an `Informer`, which does what client-go
calls a Reflector. kopf does not say when its first list is complete, nor what vanished while its watch was
interrupted: a `Relister` lists the kinds that kopf follows at the start, after kopf and every minute.
Neither decides anything.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from placement_ac.cache.index import Id
from placement_ac.cache.listing import EVERYWHERE
from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import Resource
from placement_ac.core.api.decode import meta_of, version_of
from placement_ac.core.api.errors import ApiError, Garbled, Gone, Refused, Unavailable
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Client, Object
from placement_ac.observability.health import Reachability, WatchHealth
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

PAGE_SIZE: Final = 200
"""Objects in a page of a list, at most: a page is parsed at once."""
RELIST_SECONDS: Final = 600.0
"""How often everything is listed again although the watch goes on."""
KOPF_RELIST_SECONDS: Final = 60.0
"""How often the kinds that kopf follows are listed: that finds what vanished, or never came."""
KOPF_STARTS_SECONDS: Final = 2.0
"""When they are listed for the second time: kopf, which starts later than this, follows them by then."""
PAUSE_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after a request that was refused; the last one is repeated."""
UNREACHABLE_PAUSE_SECONDS: Final = 0.5
"""The longest pause while the API server does not answer: a failed request costs little."""

EnqueueKeys = Callable[[Iterable[Key]], None]
"""Enqueues the keys that an object or a list touches."""


@dataclass
class CacheList:
    """Lists one kind into the cache, in `namespace` or EVERYWHERE."""

    client: Client
    resource: Resource
    cache: Cache
    enqueue: EnqueueKeys
    """For single objects."""
    enqueue_after_list: EnqueueKeys
    """For a list that is complete."""
    health: WatchHealth
    namespace: str = EVERYWHERE
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The answer to an older list must not arrive after that of a newer one."""

    @property
    def log_keys(self) -> dict[str, str]:
        return {"kind": str(self.resource.of)} | ({"namespace": self.namespace} if self.namespace else {})

    async def list(self, *, resync: bool) -> str:
        """Put every object into the cache, and return the resourceVersion of the list. Raises ApiError.

        A concurrent watch does no harm: the cache compares versions. `resync`: all keys are touched.
        """
        async with self._lock:
            kind = self.resource.of
            present: set[Id] = set()
            version = ""
            async with aclosing(self.client.pages(self.resource, self.namespace, limit=PAGE_SIZE)) as pages:
                async for page in pages:
                    self.health.received()
                    version = page.resource_version
                    if page.first:
                        present.clear()
                        self.enqueue(self.cache.begin_replace(kind, version, self.namespace))
                    present |= self._put(page.items)
                    del page  # two pages at a time would take twice the memory
                    await asyncio.sleep(0)
            self._complete(present, version, resync=resync)
            self.health.list_completed()
            return version

    def _complete(self, present: set[Id], version: str, *, resync: bool) -> None:
        """Drop what was not in the list, and call `enqueue_after_list` with the touched keys, or `resync`.

        When the cache is complete for the first time, all keys are touched.
        """
        before = self.cache.has_synced
        touched = self.cache.end_replace(self.resource.of, present, version, self.namespace)
        if self.cache.has_synced:
            self.enqueue_after_list(touched if before and not resync else self.cache.keys())
            if not before:
                log.info("everything has been listed", keys=len(self.cache.keys()))

    def _put(self, items: Iterable[Object]) -> set[Id]:
        """Return the ids of those that the cache keeps."""
        kind = self.resource.of
        touched: set[Key] = set()
        for item in items:
            touched |= self.cache.put(kind, item)
        self.enqueue(touched)
        return {id_ for item in items if self.cache.holds(kind, id_ := meta_of(item).id)}


class Relister:
    """Lists a kind that kopf follows: twice at the start, after kopf, and every KOPF_RELIST_SECONDS."""

    def __init__(self, target: CacheList) -> None:
        self._target = target
        self._requested = asyncio.Event()
        self._logged = LogDeduplicator()

    def list_soon(self) -> None:
        """List now: something may have been missed."""
        self._requested.set()

    def tasks(self) -> list[Coroutine[object, object, None]]:
        """Return the coroutines to run, each in a task of its own; they end only when cancelled."""
        return [self._list_again_and_again()]

    async def _list_again_and_again(self) -> None:
        pause = min(KOPF_STARTS_SECONDS, KOPF_RELIST_SECONDS)
        while True:
            self._requested.clear()
            await self._list_until_it_succeeds()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._requested.wait()
                    continue
            pause = KOPF_RELIST_SECONDS

    async def _list_until_it_succeeds(self) -> None:
        failures = 0
        while True:
            try:
                await self._target.list(resync=False)
            except ApiError as error:
                self._target.health.request_failed(error)
                _log_failure(error, self._logged, self._target.log_keys)
                pause = error.retry_after or PAUSE_SECONDS[min(failures, len(PAUSE_SECONDS) - 1)]
                failures += 1
                await asyncio.sleep(pause if error.status else min(pause, UNREACHABLE_PAUSE_SECONDS))
            else:
                if self._logged.ended("failure"):
                    log.info("follows again", **self._target.log_keys)
                return


class Informer:
    """Lists and watches a kind. Calls `on_recovery` when it works again after a failure."""

    def __init__(
        self,
        target: CacheList,
        *,
        on_recovery: Callable[[], None] = lambda: None,
        reachability: Reachability | None = None,
    ) -> None:
        self._target = target
        self._health = target.health
        self._on_recovery = on_recovery
        self._reachability = reachability or Reachability()
        self._logged = LogDeduplicator()
        self._resource_version = ""
        """The version from which to watch; "": list first."""
        self._failures = 0
        self._was_answered = True
        """Whether the API server answered the last request that failed."""
        self._interrupted = False

    def tasks(self) -> list[Coroutine[object, object, None]]:
        """Return the coroutines to run, each in a task of its own; they end only when cancelled."""
        return [self._follow(), self._relist()]

    async def _follow(self) -> None:
        while True:
            try:
                if not self._resource_version:
                    self._resource_version = await self._target.list(resync=False)
                pause = await self._watch()
            except ApiError as error:
                pause = self.pause_after(error)
            await asyncio.sleep(pause)

    async def _relist(self) -> None:
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                self._resource_version = await self._target.list(resync=True)
            except ApiError as error:
                self._health.request_failed(error)
                log.debug("cannot list again yet", **self._target.log_keys, error=error.message)
                self._resource_version = ""

    async def _watch(self) -> float:
        """Return the pause before the next watch, in case the server ends watches at once."""
        began, target = asyncio.get_running_loop().time(), self._target
        watch = target.client.watch(target.resource, self._resource_version, target.namespace, self._on_open)
        async with aclosing(watch) as events:
            async for change, item in events:
                self._health.received()
                self._update_cache(change, item)
                self._recovered()
        self._health.received()  # a server that ends the watch in time is alive
        self._recovered()
        return max(0.0, began + PAUSE_SECONDS[0] - asyncio.get_running_loop().time())

    def _on_open(self) -> None:
        self._reachability.answered()
        self._health.opened()

    def _update_cache(self, change: str, item: Object) -> None:
        if change != "BOOKMARK":
            cache = self._target.cache
            take = cache.remove if change == "DELETED" else cache.put
            self._target.enqueue(take(self._target.resource.of, item))
        self._resource_version = version_of(item).resource_version or self._resource_version

    def pause_after(self, error: ApiError) -> float:
        """Return the pause before the next try; `error` decides whether that begins with a list."""
        self._health.request_failed(error)
        if error.status:
            self._health.received()
            if not self._was_answered:
                self._failures = 0  # after an outage, try again soon
        self._was_answered = bool(error.status)
        if isinstance(error, Gone | Garbled):
            self._resource_version = ""
        self._interrupted |= not isinstance(error, Gone)
        self._log_failure(error)
        pause = error.retry_after or PAUSE_SECONDS[min(self._failures, len(PAUSE_SECONDS) - 1)]
        self._failures += 1
        return pause if error.status else min(pause, UNREACHABLE_PAUSE_SECONDS)

    def _recovered(self) -> None:
        self._failures = 0
        if self._interrupted:
            self._interrupted = False
            level = logging.INFO if self._logged.ended("failure") else logging.DEBUG
            log.log(level, "follows again", **self._target.log_keys)
            self._on_recovery()

    def _log_failure(self, error: ApiError) -> None:
        """Log a failure once, and once more if it becomes one that an admin has to fix."""
        if isinstance(error, Gone):  # it happens to every watch after a long interruption
            log.debug("forgotten by the hub; listing again", **self._target.log_keys)
            return
        if not error.status and isinstance(error, Unavailable) and self._failures:
            # A watch that was cut off does not matter as long as the next one is answered.
            self._reachability.unanswered(error.message)
        _log_failure(error, self._logged, self._target.log_keys)


def _log_failure(error: ApiError, logged: LogDeduplicator, keys: Mapping[str, str]) -> None:
    if not error.status and isinstance(error, Unavailable):  # `Reachability` logs that once for all kinds
        log.debug("cut off; trying again", **keys, error=error.message)
    elif isinstance(error, Refused):
        level = logged.level("failure", "refused")
        keys = {**keys, "needed": "list, watch"}
        log.log(level, "may not follow; trying again", **keys, error=error.message)
    else:
        level = logged.level("failure", "fails")
        log.log(level, "cannot follow; trying again", **keys, error=error.message)
