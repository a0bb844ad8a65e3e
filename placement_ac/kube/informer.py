"""
Follow a kind in one namespace, or one of which there may be 100,000 objects: LIST by pages, then WATCH.

kopf follows a kind everywhere or nowhere, lists it at once, and keeps a task and a memory for each object.
Here a Role is right enough, and each object is shown to the world and dropped; the world keeps what matters.
Decides nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final, Protocol

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

PAGE: Final = 200
"""Objects asked for at once: a page is parsed in one go, and a Workload may have 20 KB."""
RELIST_SECONDS: Final = 600.0
"""How often everything is listed again although the watch goes on."""
PAUSE_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after a request that was refused; the last one is repeated."""
AWAY_SECONDS: Final = 0.5
"""The longest pause while nobody answers: to ask in vain costs little."""


class ListCompleted(Protocol):
    """Told the end of a list; `Sync.settled`."""

    def __call__(self, settle: Callable[[], set[Key]], *, everything: bool) -> None: ...


class Informer:
    """Keeps the world up to date on one kind, and tells `touched` the keys to look at.

    Asks for what is in `namespace` alone; "": for what there is in all of them. Calls `back` when it can
    follow again after it could not.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        world: Cache,
        *,
        namespace: str = EVERYWHERE,
        touched: Callable[[Iterable[Key]], None],
        settled: ListCompleted,
        sign: WatchHealth,
        back: Callable[[], None] = lambda: None,
        reach: Reachability | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._world = world
        self._namespace = namespace
        self._touched = touched
        self._settled = settled
        self._sign = sign
        self._back = back
        self._reach = reach or Reachability()
        self._version = ""
        """The last version seen, to go on from; "": only a list can tell."""
        self._listing = asyncio.Lock()
        """An answer that comes after that of a later list would pass for a history that begins anew."""
        self._failures = 0
        self._answered = True
        """Whether the hub answered the last request that failed."""
        self._troubled = False
        self._told = LogDeduplicator()
        self._keys = {"kind": str(resource.of)} | ({"namespace": namespace} if namespace else {})

    def parts(self) -> list[Coroutine[object, object, None]]:
        """Return what is to be run, each as a task of its own; they end only when cancelled."""
        return [self._follow(), self._relist()]

    async def _follow(self) -> None:
        while True:
            try:
                if not self._version:
                    await self._list(everything=False)
                pause = await self._watch()
            except ApiError as error:
                pause = self._failed(error)
            await asyncio.sleep(pause)

    async def _relist(self) -> None:
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                await self._list(everything=True)
            except ApiError as error:
                self._sign.failed(error)
                log.debug("cannot list again yet", **self._keys, error=error.message)
                self._version = ""

    async def _list(self, *, everything: bool) -> None:
        async with self._listing:
            await self._list_all(everything=everything)

    async def _list_all(self, *, everything: bool) -> None:
        """Show the world every object; a watch that goes on meanwhile does no harm, versions tell."""
        kind = self._resource.of
        present: set[Id] = set()
        version = ""
        async with aclosing(self._client.pages(self._resource, self._namespace, limit=PAGE)) as pages:
            async for page in pages:
                self._sign.heard()
                version = page.resource_version
                if page.first:
                    present.clear()
                    self._touched(self._world.begin(kind, version, self._namespace))
                present |= self._show(page.items)
                await asyncio.sleep(0)
        settle = partial(self._world.settle, kind, present, version, self._namespace)
        self._settled(settle, everything=everything)
        self._version = version
        self._sign.listed()

    def _show(self, items: Iterable[Object]) -> set[Id]:
        """Return the ids of those that the world keeps."""
        kind = self._resource.of
        touched: set[Key] = set()
        for item in items:
            touched |= self._world.put(kind, item)
        self._touched(touched)
        return {id_ for item in items if self._world.holds(kind, id_ := meta_of(item).id)}

    async def _watch(self) -> float:
        """Return how long to wait before going on: a server that ends watches at once is not hammered."""
        began = asyncio.get_running_loop().time()
        watch = self._client.watch(self._resource, self._version, self._namespace, self._reach.back)
        async with aclosing(watch) as events:
            async for change, item in events:
                self._sign.heard()
                self._take(change, item)
                self._works()
        self._sign.heard()  # a server that says nothing but ends the watch in time is there
        self._works()
        return max(0.0, began + PAUSE_SECONDS[0] - asyncio.get_running_loop().time())

    def _take(self, change: str, item: Object) -> None:
        if change != "BOOKMARK":
            take = self._world.remove if change == "DELETED" else self._world.put
            self._touched(take(self._resource.of, item))
        self._version = version_of(item).resource_version or self._version

    def _failed(self, error: ApiError) -> float:
        """Return how long to wait before going on; from where, `error` tells."""
        self._sign.failed(error)
        if error.status:
            self._sign.heard()
            if not self._answered:
                self._failures = 0  # a hub that is back is asked soon
        self._answered = bool(error.status)
        if isinstance(error, Gone | Garbled):
            self._version = ""
        self._troubled |= not isinstance(error, Gone)
        self._tell(error)
        pause = error.retry_after or PAUSE_SECONDS[min(self._failures, len(PAUSE_SECONDS) - 1)]
        self._failures += 1
        return pause if error.status else min(pause, AWAY_SECONDS)

    def _works(self) -> None:
        self._failures = 0
        if self._troubled:
            self._troubled = False
            level = logging.INFO if self._told.ended(self) else logging.DEBUG
            log.log(level, "follows again", **self._keys)
            self._back()

    def _tell(self, error: ApiError) -> None:
        """Tell of trouble once; once more when it turns out that a person has to do something about it."""
        if isinstance(error, Gone):  # it happens to every watch that was away for long
            log.debug("forgotten by the hub; listing again", **self._keys)
        elif not error.status and isinstance(error, Unavailable):
            if self._failures:  # a watch that was cut off is nothing as long as the next one is answered
                self._reach.lost(error.message)
            log.debug("cut off; trying again", **self._keys, error=error.message)
        elif isinstance(error, Refused):
            level = self._told.level(self, "refused")
            needed = "list, watch"
            log.log(level, "may not follow; trying again", **self._keys, needed=needed, error=error.message)
        else:
            level = self._told.level(self, "fails")
            log.log(level, "cannot follow; trying again", **self._keys, error=error.message)
