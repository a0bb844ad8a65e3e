"""
Follow a kind of which there may be 100,000 objects: LIST page by page, then WATCH from there.

kopf lists a kind at once and starts a task for each object. Here each object is
shown to the world and dropped; the world keeps the few that matter. Decides nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final, Protocol

import structlog

from placement_ac.errors import ApiError, Garbled, Gone
from placement_ac.index import Id
from placement_ac.kube import Client, Object
from placement_ac.model import meta_of
from placement_ac.names import Resource
from placement_ac.snapshot import Key
from placement_ac.vitals import Sign
from placement_ac.world import World

log = structlog.get_logger(__name__)

PAGE: Final = 200
"""Objects asked for at once: a page is parsed in one go, and a Workload may have 20 KB."""
RELIST_SECONDS: Final = 600.0
"""How often everything is listed again although the watch goes on."""
PAUSE_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after a request that failed; the last one is repeated."""


class Settled(Protocol):
    """Told the end of a list; `Sync.settled`."""

    def __call__(self, settle: Callable[[], set[Key]], *, everything: bool) -> None: ...


class Feed:
    """Keeps the world up to date on one kind, and tells `touched` the keys to look at."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        world: World,
        *,
        touched: Callable[[Iterable[Key]], None],
        settled: Settled,
        sign: Sign,
    ) -> None:
        self._client = client
        self._resource = resource
        self._world = world
        self._touched = touched
        self._settled = settled
        self._sign = sign
        self._version = ""
        """The last version seen, to go on from; "": only a list can tell."""
        self._failures = 0

    def parts(self) -> list[Coroutine[object, object, None]]:
        """Return what is to be run, each as a task of its own; they end only when cancelled."""
        return [self._follow(), self._relist()]

    async def _follow(self) -> None:
        while True:
            try:
                if not self._version:
                    await self._list(everything=False)
                await self._watch()
                pause = PAUSE_SECONDS[0]  # else a server that ends watches at once would be hammered
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
                log.debug("cannot list again yet", kind=str(self._resource.of), error=error.message)
                self._version = ""

    async def _list(self, *, everything: bool) -> None:
        """Show the world every object; a watch that goes on meanwhile does no harm, versions tell."""
        kind = self._resource.of
        present: set[Id] = set()
        version = ""
        async with aclosing(self._client.pages(self._resource, limit=PAGE)) as pages:
            async for page in pages:
                self._sign.heard()
                version = page.resource_version
                if page.first:
                    present.clear()
                    self._touched(self._world.begin(kind, version))
                present |= self._show(page.items)
                await asyncio.sleep(0)
        self._settled(partial(self._world.settle, kind, present, version), everything=everything)
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

    async def _watch(self) -> None:
        async with aclosing(self._client.watch(self._resource, self._version)) as events:
            async for change, item in events:
                self._sign.heard()
                self._take(change, item)
                self._failures = 0
        self._sign.heard()  # a server that says nothing but ends the watch in time is there
        self._failures = 0

    def _take(self, change: str, item: Object) -> None:
        if change != "BOOKMARK":
            take = self._world.remove if change == "DELETED" else self._world.put
            self._touched(take(self._resource.of, item))
        self._version = meta_of(item).resource_version or self._version

    def _failed(self, error: ApiError) -> float:
        """Return how long to wait before going on; from where, `error` tells."""
        self._sign.failed(error)
        if error.status:
            self._sign.heard()
        if isinstance(error, Gone | Garbled):
            self._version = ""
        tell = log.debug if self._failures else log.warning
        tell("cannot follow; trying again", kind=str(self._resource.of), error=error.message)
        pause = error.retry_after or PAUSE_SECONDS[min(self._failures, len(PAUSE_SECONDS) - 1)]
        self._failures += 1
        return pause
