"""
List every watched kind that kopf watches, at the start and after every gap in its watch.

A watch does not say when its first list is complete, nor what vanished in a
gap; a list of our own, begun after the watch's, says both.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import WATCHED_KINDS, Kind, Resource
from placement_ac.core.api.errors import ApiError
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Client
from placement_ac.observability.health import WatchHealth
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

RELIST_SECONDS: Final = 600.0
"""How often everything is listed again although no gap was seen."""
RETRY_SECONDS: Final = (0.2, 0.5)
"""Pauses after a list that failed; the last one is repeated."""
STALLED_SECONDS: Final = 30.0
"""After this long without a complete world, the log says what it waits for."""


class Sync:
    """Lists kinds on request, each by a task of its own, and tells `touched` the keys to look at.

    `kinds` are all that the world waits for; those that `resources` lacks are not there at all.
    `fed` are kinds that a feed lists; it too calls `settled` at the end of each list.
    """

    def __init__(
        self,
        client: Client,
        resources: Mapping[Kind, Resource],
        world: Cache,
        *,
        touched: Callable[[Iterable[Key]], None],
        signs: Mapping[Kind, WatchHealth],
        fed: Collection[Kind] = (),
        kinds: Collection[Kind] = WATCHED_KINDS,
    ) -> None:
        self._client = client
        self._resources = resources
        self._world = world
        self._touched = touched
        self._signs = signs
        self._kinds = kinds
        self._told = LogDeduplicator()
        self._due = {kind: asyncio.Event() for kind in resources if kind not in fed}

    def request(self, kind: Kind) -> None:
        """List `kind` soon: its watch has just begun anew."""
        self._due[kind].set()

    def parts(self) -> list[Coroutine[object, object, None]]:
        """Return what is to be run, each as a task of its own; they end only when cancelled."""
        for kind in self._kinds:
            if kind not in self._resources:
                log.info("not served by this hub; going on without", kind=str(kind))
                self._world.replace(kind, (), "")
        return [*map(self._keep, self._due), self._tell_when_stalled()]

    async def _keep(self, kind: Kind) -> None:
        due = self._due[kind]
        while True:
            try:
                async with asyncio.timeout(RELIST_SECONDS):  # not wait_for: see `Session.run`
                    await due.wait()
            except TimeoutError:
                log.debug("time to list again", kind=str(kind))
            everything = not due.is_set()
            due.clear()
            await self._list(kind, everything=everything)

    async def _list(self, kind: Kind, *, everything: bool) -> None:
        tries = 0
        while True:
            try:
                listing = await self._client.list(self._resources[kind])
            except ApiError as error:
                self._signs[kind].failed(error)
                pause = error.retry_after or RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)]
                level = self._told.level(kind, error.message)
                log.log(level, "cannot list; trying again", kind=str(kind), error=error.message)
                tries += 1
                await asyncio.sleep(pause)
            else:
                break
        if self._told.ended(kind):
            log.info("listed again", kind=str(kind))
        settle = partial(self._world.replace, kind, listing.items, listing.resource_version)
        self.settled(settle, everything=everything)
        self._signs[kind].listed()

    def settled(self, settle: Callable[[], set[Key]], *, everything: bool) -> None:
        """Complete a list by `settle` and tell the keys to look at: those it touched, or `everything`."""
        before = self._world.complete
        touched = settle()
        if self._world.complete:
            # The first complete world, and every slow relist, is a reason to look at everything.
            self._touched(touched if before and not everything else self._world.keys())
            if not before:
                log.info("everything has been listed", keys=len(self._world.keys()))

    async def _tell_when_stalled(self) -> None:
        while True:
            await asyncio.sleep(STALLED_SECONDS)
            if not self._world.complete:
                missing = self._world.unlisted()
                level = self._told.level("stalled", str(missing))
                log.log(level, "still waiting for the first list", kinds=missing)
