"""
How long is waited: for the end of a request, for the next word over a stream, and with reading an answer.

Timers that are looked at when they ring, and not set anew with every request and every word: to set one, and
to take it back, is a good part of what a word or a small request costs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_writer import StreamWriter

Pause = Callable[[], Awaitable[None] | None]
"""Begins a pause, and returns what it is to wait for; None: there is none."""

LOOKS: Final = 10
"""Into so many parts a silence is divided: as often it is looked whether anything came."""


class Silence:
    """Ends the wait for more on `stream` with TimeoutError when nothing came for so many `seconds`.

    That is seen when they are over, or up to a tenth of them before. It counts as long as its `with` lasts.
    """

    def __init__(self, stream: aiohttp.StreamReader, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds

    def __enter__(self) -> None:
        self._wait(LOOKS)

    def __exit__(self, _: type[BaseException] | None, __: object, ___: TracebackType | None) -> None:
        self._timer.cancel()

    def _wait(self, looks: int) -> None:
        """Look in a moment, and so often until it has been silent for too long."""
        came, loop = self._stream.total_bytes, asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds / LOOKS, self._look, looks - 1, came)

    def _look(self, left: int, came: int) -> None:
        if self._stream.total_bytes != came:
            self._wait(LOOKS - 1)  # maybe right after the last look
        elif left:
            self._wait(left)
        else:
            self._stream.set_exception(TimeoutError(f"nothing came for about {self._seconds:g} seconds"))


class Deadlines:
    """Ends what takes too long, each as `asyncio.timeout` does, and all of them with one timer."""

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        """Rings at the earliest of all that are open, or before it."""

    def close(self) -> None:
        """Let no timer stay, unless for what is still under way."""
        if not self._open:
            self._stop()

    def opened(self, one: "Deadline") -> None:
        """Take in one that is entered; for Deadline alone."""
        self._open.add(one)
        if self._timer is None or one.at < self._timer.when():
            self._set(one.at)

    def left(self, one: "Deadline") -> None:
        """Take in one that is left; for Deadline alone."""
        self._open.discard(one)

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _set(self, at: float) -> None:
        self._stop()
        self._timer = asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for one in [one for one in self._open if one.at <= now]:
            self._open.discard(one)
            one.pass_by()
        if self._open:
            self._set(min(one.at for one in self._open))


class Deadline:
    """What goes on in its `with` ends in TimeoutError after so many `seconds`."""

    __slots__ = ("_cancelling", "_deadlines", "_passed", "_seconds", "_task", "at")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._passed = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is for what a task does")
        self._task, self._cancelling = task, task.cancelling()
        self.at = asyncio.get_running_loop().time() + self._seconds
        self._deadlines.opened(self)

    def pass_by(self) -> None:
        """End the wait; for Deadlines alone."""
        self._passed = True
        self._task.cancel()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self._deadlines.left(self)
        if not self._passed:
            return
        # Somebody else may have cancelled the task as well: then it is cancelled.
        if self._task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            raise TimeoutError("no answer in time") from error  # without a figure: the same is told once


class Unhurried(aiohttp.BytesPayload):
    """The body of a request whose answer is not read before a pause is over; that begins when all is sent.

    Nor are `echoes`, connections on which the same may be told. To read it takes processors that others may
    need who are told as well.
    """

    def __init__(self, body: bytes, pause: Pause, echoes: Collection[asyncio.Transport] = ()) -> None:
        super().__init__(body)
        self._pause = pause
        self._echoes = echoes

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await super().write_with_length(writer, content_length)
        own = writer.transport if isinstance(writer, StreamWriter) else None
        wait = self._pause() if own else None
        if own and wait:
            with _unread(own, *self._echoes):
                await wait


@contextmanager
def _unread(*transports: asyncio.Transport) -> Iterator[None]:
    """Make nothing of what comes over these; what is encrypted is taken from its socket all the same.

    aiohttp stops and goes on for reasons of its own, which may end this early, or let one chunk more in.
    A transport that was closed twice has forgotten what it is of: AttributeError.
    """
    for transport in transports:
        with suppress(AttributeError):
            transport.pause_reading()
    try:
        yield
    finally:
        for transport in transports:
            with suppress(AttributeError):
                transport.resume_reading()
