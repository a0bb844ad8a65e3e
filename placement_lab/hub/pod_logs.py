"""
The logs of containers, as a kubelet keeps them, and `GET …/pods/NAME/log`.

Lines are kept in memory, the last 10,000 of a container and of its previous run. Messages and parameters are
Kubernetes' (pkg/registry/core/pod/strategy.go, pkg/kubelet).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from placement_lab.hub import options
from placement_lab.hub.errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from placement_lab.hub.store import StoreChange

LINES_KEPT = 10_000
BATCH = 64 * 1024  # bytes that are sent at once
Line = tuple[float, bytes]  # when it was written, and its text with the line break
Place = tuple[str, str, str]  # namespace, Pod, container


@dataclass(slots=True, eq=False)
class ContainerLog:
    """The lines of one run of a container; `written`: of all, also those that are no longer kept."""

    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    written: int = 0
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self) -> None:
        """Wake those that follow it."""
        self.changed.set()
        self.changed = asyncio.Event()


class PodLogs:
    """The logs of all containers. Its methods are called in the hub's thread."""

    def __init__(self) -> None:
        self._now: dict[Place, ContainerLog] = {}
        self._previous: dict[Place, ContainerLog] = {}

    def write(self, place: Place, texts: Iterable[str]) -> None:
        """Append lines to the log of a container, which begins with them if it has none."""
        log = self._now.setdefault(place, ContainerLog())
        for text in texts:
            log.lines.append((time.time(), f"{text}\n".encode()))
            log.written += 1
        log.notify()

    def end(self, place: Place, *, restarts: bool = False) -> None:
        """End a log: the container has ended, or restarts."""
        if log := self._now.get(place):
            log.ended = True
            log.notify()
            if restarts:
                self._previous[place] = self._now.pop(place)

    def on_change(self, change: StoreChange | None) -> None:
        """Remove the logs of a Pod that was deleted."""
        if change is None or change.now is not None:
            return
        for place in [place for place in (*self._now, *self._previous) if place[:2] == change.key]:
            self.end(place)
            self._now.pop(place, None)
            self._previous.pop(place, None)

    def open(self, pod: dict[str, Any], query: dict[str, str]) -> LogStream:
        """Return the log that a request names. Raises 400 as Kubernetes does."""
        meta = pod["metadata"]
        container = _container(pod, query.get("container", ""))
        place = meta["namespace"], meta["name"], container
        previous = bool(options.flag(query, "previous"))
        log = (self._previous if previous else self._now).get(place)
        if log is None and previous:
            what = f'previous terminated container "{container}" in pod "{meta["name"]}" not found'
            raise bad_request(what)
        if log is None:
            state = f'container "{container}" in pod "{meta["name"]}" is waiting to start: ContainerCreating'
            raise bad_request(state)
        return LogStream(log, query)


class LogStream:
    """The part of a log that a request asks for, sent as text."""

    def __init__(self, log: ContainerLog, query: dict[str, str]) -> None:
        self._log = log
        self._follow = bool(options.flag(query, "follow"))
        self._stamps = bool(options.flag(query, "timestamps"))
        self._left = _number(query, "limitBytes", least=1)
        self._tail = _number(query, "tailLines", least=0)
        self._since = _since(query)

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the lines until the end of the log, or of what is asked for."""
        log = self._log
        position = log.written
        first = [line for line in log.lines if line[0] >= self._since]
        await self._send(first[len(first) - self._tail :] if self._tail is not None else first, send)
        while self._follow and self._left != 0:
            changed = log.changed
            new = log.written - position
            if new:
                position = log.written
                await self._send(list(log.lines)[-min(new, len(log.lines)) :], send)
            elif log.ended:
                return
            else:
                await changed.wait()

    async def _send(self, lines: list[Line], send: Callable[[bytes], Awaitable[None]]) -> None:
        batch = b""
        for text in self._texts(lines):
            batch += text
            if len(batch) >= BATCH:
                await send(batch)
                batch = b""
        if batch:
            await send(batch)

    def _texts(self, lines: list[Line]) -> Iterator[bytes]:
        for when, line in lines:
            if self._left == 0:
                return
            text = _stamp(when) + line if self._stamps else line
            if self._left is not None:
                text = text[: self._left]
                self._left -= len(text)
            yield text


def _container(pod: dict[str, Any], asked: str) -> str:
    """Return the container that a request means."""
    names = [item["name"] for item in pod["spec"].get("containers") or ()]
    others = [item["name"] for item in pod["spec"].get("initContainers") or ()]
    name = pod["metadata"]["name"]
    if asked and asked not in (*names, *others):
        raise bad_request(f"container {asked} is not valid for pod {name}")
    if not asked and len(names) > 1:
        choice = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{choice}]")
    return asked or names[0]


def _number(query: dict[str, str], name: str, *, least: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.lstrip("-").isdecimal() or int(text) < least:
        problem = f"Invalid value: {text}: must be greater than or equal to {least}"
        raise StatusError(422, "Invalid", f"PodLogOptions is invalid: {name}: {problem}")
    return int(text)


def _since(query: dict[str, str]) -> float:
    seconds = _number(query, "sinceSeconds", least=1)
    if seconds is not None:
        return time.time() - seconds
    if "sinceTime" not in query:
        return 0.0
    try:
        # An API server sends it to the kubelet in whole seconds (metav1.Time as a query parameter).
        return math.floor(datetime.fromisoformat(query["sinceTime"]).timestamp())
    except ValueError:
        raise bad_request(f"sinceTime: invalid value {query['sinceTime']!r}") from None


def _stamp(when: float) -> bytes:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()
