"""
Follows one kind of an API server: LIST by pages, then WATCH. client-go calls it a Reflector.

Everything that follows a hub uses it: the informers of the controller, `--watch` and the page, the stand-ins
and the bench. It keeps no objects and decides nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from placement_ac.core.api.constants import Resource
from placement_ac.core.api.errors import Gone, Malformed
from placement_ac.kube.client import Client, Listing, WatchEvent

PAGE_SIZE: Final = 200
"""Objects in a page of a list, at most: a page is parsed at once."""
WATCH_PAUSE_SECONDS: Final = 0.2
"""Between the beginnings of two watches, in case the server ends them at once."""
WATCH_PAUSE_MAX: Final = 5.0
"""The same, after several that ended at once: it doubles each time."""
AT_ONCE_SECONDS: Final = 1.0
"""A watch that ends sooner, without an event, has ended at once."""
BOOKMARK: Final = "BOOKMARK"
"""The type of an event that says only that the watch is alive; its object is to be ignored."""


class Reflector:
    """Lists and watches `resource` in a namespace, or in all.

    `version`: the resourceVersion from which it watches; "": it lists first.
    """

    def __init__(self, client: Client, resource: Resource, namespace: str = "", version: str = "") -> None:
        self.client, self.resource, self.namespace, self.version = client, resource, namespace, version
        self._listing = asyncio.Lock()
        """The answer to an older list must not arrive after that of a newer one."""
        self._ended_at_once = 0
        """How many watches in a row have."""

    async def follow(self) -> AsyncGenerator[Listing | WatchEvent]:
        """Yield the pages of a list and then the events, watch after watch, without an end. Raises ApiError.

        To go on after an error, follow again: from the last event, or with a list if the server forgot it.
        """
        now = asyncio.get_running_loop().time
        while True:
            if not self.version:
                async with aclosing(self.pages()) as pages:
                    async for page in pages:
                        yield page
                        del page  # two pages at a time would take twice the memory
            began = now()
            async with aclosing(self.events()) as events:
                async for event in events:
                    yield event
            doublings = min(max(self._ended_at_once - 1, 0), 10)
            pause = min(WATCH_PAUSE_SECONDS * 2**doublings, WATCH_PAUSE_MAX)
            await asyncio.sleep(began + pause - now())

    async def pages(self) -> AsyncGenerator[Listing]:
        """Yield the pages of a list; the next watch begins after it. A watch that goes on does no harm."""
        async with self._listing:
            listing = self.client.pages(self.resource, self.namespace, limit=PAGE_SIZE)
            async with aclosing(listing) as pages:
                async for page in pages:
                    if page.last:
                        self.version = page.resource_version
                    yield page
                    del page
                    await asyncio.sleep(0)

    async def events(self) -> AsyncGenerator[WatchEvent]:
        """Yield the events of one watch, and a bookmark when the server ends it in time."""
        now = asyncio.get_running_loop().time
        began, is_idle = now(), True
        try:
            watch = self.client.watch(self.resource, self.version, self.namespace, self.opened)
            async with aclosing(watch) as events:
                async for change, item in events:
                    yield change, item
                    is_idle = is_idle and change == BOOKMARK
                    self.version = str(item["metadata"].get("resourceVersion") or self.version)
        except (Gone, Malformed):
            self.version = ""
            raise
        is_at_once = is_idle and now() - began < AT_ONCE_SECONDS
        self._ended_at_once = self._ended_at_once + 1 if is_at_once else 0
        yield BOOKMARK, {}

    def opened(self) -> None:
        """Take in that the server has accepted a watch."""
