"""
Watches: turn changes in the store into lines of a response.

The store appends events to a watch in the hub's thread, and the task of the connection sends them.
All watches share the JSON of an object.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import orjson

from placement_lab.hub import options
from placement_lab.hub.errors import StatusError, internal

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from placement_lab.hub.kinds import ServedVersion
    from placement_lab.hub.selectors import Test
    from placement_lab.hub.store import Record, ResourceStore, StoreChange

    Render = Callable[[Record], bytes]  # returns an object in the representation of the watch

BOOKMARK_EVERY = 60.0  # seconds, as in Kubernetes' watch cache
NEVER = math.inf
GARBAGE = b'{"type":"MODIFIED","object":{"kind"\n'


def line(kind: str, blob: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), blob)


def error_line(error: StatusError) -> bytes:
    return line("ERROR", orjson.dumps(error.status()))


class WatchStream:
    """
    A client's watch of the objects of one kind and version that `selects` accepts.

    `query`: the parameters of the request. Raises 500 for a resourceVersion that is not a number, as
    Kubernetes does. If the version is too old, the first and only line is an ERROR event.
    """

    def __init__(
        self,
        store: ResourceStore,
        version: ServedVersion,
        namespace: str,
        selects: Test,
        render: Render,
        query: dict[str, str],
    ) -> None:
        self.shelf, self.version, self.namespace = store, version, namespace
        self.selects, self.render = selects, render
        self.bookmarks = bool(options.flag(query, "allowWatchBookmarks"))
        self.timeout = options.number(query, "timeoutSeconds") or None
        self.lines: list[bytes] = []
        self.ended = self.hung = False
        self._wake = asyncio.Event()
        try:
            self._start(options.version(query), options.flag(query, "sendInitialEvents"))
        except ValueError as error:
            raise internal(str(error)) from None

    def _start(self, since: int, initial: bool | None) -> None:
        """Begin after a version; `initial`: whether objects come first, None: if there is no version."""
        self.since = since
        if initial is False and not since:
            self.since = self.shelf.current_version()
        elif initial or not since:
            records = (record for record in self.shelf.between(self.namespace) if self.selects(record.obj))
            self.lines = [line("ADDED", self.render(record)) for record in records]
            self.since = 0
            if initial and self.bookmarks:
                self.lines.append(self.bookmark({"k8s.io/initial-events-end": "true"}))
        else:
            try:
                for change in self.shelf.since(since):
                    self.notify(change)
            except StatusError as error:
                self.finish(error_line(error))
        self.shelf.watchers[self.notify] = None

    def notify(self, change: StoreChange | None) -> None:
        """Handle a change in the store; None: the kind was removed."""
        if change is None:
            self.finish()
        elif not self.hung and change.rv > self.since and self._in_namespace(change):
            self._append_event(change)

    def _in_namespace(self, change: StoreChange) -> bool:
        return not self.namespace or change.key[0] == self.namespace

    def _append_event(self, change: StoreChange) -> None:
        was = change.before is not None and self.selects(change.before.obj)
        now = change.now is not None and self.selects(change.now.obj)
        if now or was:
            kind = "DELETED" if not now else "MODIFIED" if was else "ADDED"
            self.lines.append(line(kind, self.render(change.last)))
            self._wake.set()

    def replay(self, chance: random.Random) -> None:
        """Send all remembered changes again: each change twice, in random order."""
        changes = [change for change in self.shelf.changes for _ in range(2) if self._in_namespace(change)]
        chance.shuffle(changes)
        for change in changes:
            self._append_event(change)

    def finish(self, last: bytes = b"") -> None:
        """End the watch after sending the pending lines and `last`."""
        if last:
            self.lines.append(last)
        self.ended = True
        self._wake.set()

    def hang(self) -> None:
        """Keep the connection open, but send no more events."""
        self.hung = True

    def bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self.shelf.current_version())}
        if annotations:
            metadata["annotations"] = annotations
        resource = self.shelf.resource
        api_version = resource.api_version(self.version.name)
        obj = {"kind": resource.kind, "apiVersion": api_version, "metadata": metadata}
        return line("BOOKMARK", orjson.dumps(obj))

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send lines until the timeout, the removal of the kind, or an error in `send`."""
        end = time.monotonic() + self.timeout if self.timeout else NEVER
        mark = time.monotonic() + BOOKMARK_EVERY if self.bookmarks else NEVER
        while True:
            await self.flush(send)
            if self.ended or time.monotonic() >= end:
                return
            if time.monotonic() >= mark:
                mark += BOOKMARK_EVERY
                if not self.hung:
                    self.lines.append(self.bookmark())
                continue
            await self._wait(min(mark, end))

    def unsubscribe(self) -> None:
        """Stop receiving changes from the store."""
        self.shelf.watchers.pop(self.notify, None)

    async def flush(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        while self.lines:
            lines, self.lines = self.lines, []
            await send(b"".join(lines))

    async def _wait(self, deadline: float) -> None:
        self._wake.clear()
        if self.ended or self.lines:
            return
        try:
            async with asyncio.timeout(None if deadline == NEVER else max(0.0, deadline - time.monotonic())):
                await self._wake.wait()
        except TimeoutError:
            pass  # a bookmark or the timeout is due
