"""
How long nothing may come over a stream: noted at every word, looked at once in a while.

A timer that is set anew with every word, as aiohttp has one, would be a good part of what a word costs.
"""

import asyncio
from types import TracebackType
from typing import Self

import aiohttp


class Silence:
    """Ends the wait for more on `stream` with TimeoutError when nothing has come for so many `seconds`.

    It counts as long as its `with` lasts.
    """

    def __init__(self, stream: aiohttp.StreamReader, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds
        self._now = asyncio.get_running_loop().time
        self.heard()

    def heard(self) -> None:
        """Note that something came."""
        self._heard = self._now()

    def __enter__(self) -> Self:
        self._look()
        return self

    def __exit__(self, _: type[BaseException] | None, __: object, ___: TracebackType | None) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = self._heard + self._seconds - self._now()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)
        else:
            self._stream.set_exception(TimeoutError(f"nothing came for {self._seconds:g} seconds"))
