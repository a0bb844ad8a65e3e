"""The streams of changes that pages have open: how many each browser may have, and all together."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

PER_CLIENT_MAX: Final = 5
"""Of one browser: it opens at most six connections to a host, and explanations need one."""
STREAMS_MAX: Final = 50


@dataclass(eq=False, slots=True)
class Stream:
    """The stream of one page. `replaced`: its browser has opened newer ones instead."""

    client: str
    task: "asyncio.Task[object] | None"
    replaced: bool = False


class Streams:
    """The open streams."""

    def __init__(self) -> None:
        self._open: list[Stream] = []

    @contextmanager
    def opened(self, client: str) -> Iterator[Stream | None]:
        """Count a stream of the current task as open; None if there are too many of others.

        The oldest stream of a client that has too many is replaced: its task is cancelled.
        """
        theirs = Counter(stream.client for stream in self._open)
        if theirs[client] >= PER_CLIENT_MAX:
            self._replace(next(stream for stream in self._open if stream.client == client))
        elif theirs.total() >= STREAMS_MAX:
            yield None
            return
        stream = Stream(client, asyncio.current_task())
        self._open.append(stream)
        try:
            yield stream
        finally:
            if not stream.replaced:
                self._open.remove(stream)

    def _replace(self, stream: Stream) -> None:
        self._open.remove(stream)
        stream.replaced = True
        if stream.task:
            stream.task.cancel()
