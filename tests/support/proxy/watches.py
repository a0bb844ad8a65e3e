"""Watches through the proxy: each line goes on as soon as it is complete."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable

from placement_lab.hub.server import LAST_LINES

REMEMBERED = 1000
"""Events for each path and selector, as the embedded hub keeps changes for each kind."""
LOOK_SECONDS = 0.1
"""How often a watch without events checks that its client is still there."""
CHANGES = tuple(b'{"type":"%b"' % kind for kind in (b"ADDED", b"MODIFIED", b"DELETED"))


class WatchRelay:
    """
    One watch. `resource`: the plural name of its kind; `agent`: its client's User-Agent.

    `lines`: False for a format that has no lines, such as protobuf; it goes on as it comes.
    """

    def __init__(
        self, resource: str, agent: str, past: "PastEvents", chunks: AsyncIterator[bytes], *, lines: bool
    ) -> None:
        self.resource, self.agent = resource, agent
        self._past, self._chunks, self._has_lines = past, chunks, lines
        self._waiting: list[bytes] = []
        self._ended = self._hung = False
        self._wake = asyncio.Event()

    async def run(self, send: Callable[[bytes], Awaitable[None]], is_open: Callable[[], bool]) -> None:
        """Send what comes until either side ends."""
        pump = asyncio.create_task(self._pump())
        try:
            while True:
                await self._flush(send)
                if self._ended or not is_open():
                    return
                await self._wait()
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _pump(self) -> None:
        rest = b""
        try:
            async for chunk in self._chunks:
                whole, rest = self._split(rest + chunk)
                self._append(whole)
        finally:
            self._append(rest)
            self.finish()

    def _split(self, data: bytes) -> tuple[bytes, bytes]:
        if not self._has_lines:
            return data, b""
        end = data.rfind(b"\n") + 1
        return data[:end], data[end:]

    def _append(self, data: bytes) -> None:
        if not data or self._hung or self._ended:
            return
        if self._has_lines:
            self._past.remember(data)
        self._waiting.append(data)
        self._wake.set()

    async def _flush(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            await send(b"".join(waiting))

    async def _wait(self) -> None:
        self._wake.clear()
        if self._ended or self._waiting:
            return
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass  # time to look whether the client is still there

    def drop(self, how: str) -> None:
        """End it in that way; see `Hub.drop_watches`."""
        if how == "hang":
            self._hung = True
        else:
            self.finish(LAST_LINES[how])

    def finish(self, last: bytes = b"") -> None:
        if last:
            self._waiting.append(last)
        self._ended = True
        self._wake.set()

    def replay(self, chance: random.Random) -> None:
        """Send all events of the past again: each twice, in random order."""
        lines = [line for line in self._past.lines for _ in range(2)]
        chance.shuffle(lines)
        self._waiting += lines
        self._wake.set()


class PastEvents:
    """The last events of one path and selector, whichever watch has had them."""

    def __init__(self) -> None:
        self.lines: deque[bytes] = deque(maxlen=REMEMBERED)
        self._known: set[bytes] = set()

    def remember(self, data: bytes) -> None:
        for line in data.splitlines(keepends=True):
            if line.startswith(CHANGES) and line not in self._known:
                self._known.add(line)
                self.lines.append(line)


class Watches:
    """The open watches of the proxy, and their past. Used in its event loop."""

    def __init__(self) -> None:
        self.open: dict[WatchRelay, None] = {}
        self.sent: Counter[tuple[str, str]] = Counter()
        self._past: dict[tuple[str, str, str], PastEvents] = {}

    def past_of(self, path: str, query: dict[str, str]) -> PastEvents:
        key = path, query.get("labelSelector", ""), query.get("fieldSelector", "")
        return self._past.setdefault(key, PastEvents())

    def chosen(self, resource: str | None, agent: str | tuple[str, ...]) -> list[WatchRelay]:
        return [
            watch
            for watch in self.open
            if resource in (None, watch.resource) and watch.agent.startswith(agent)
        ]

    def forget(self) -> None:
        """Forget the past and the counts."""
        self._past.clear()
        self.sent.clear()
