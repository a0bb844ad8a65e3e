"""
Budgets for the answers of API servers that are not trusted, such as workers.

An answer takes memory and the event loop's time: parsed, it may take 40 times its size. So each question has
an `AnswerBudget` of bytes, pages and seconds, and all servers together have a few `ReadSlots` for large
answers. Whatever is beyond raises TooLarge.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp

from placement_ac.core.api.errors import TooLarge

SLOT_SECONDS: Final = 3.0
"""How long a server may take to send the rest of a large answer, as others wait for its slot."""
SMALL_BYTES: Final = 16_000
"""An answer with at most that many bytes needs no slot."""


@dataclass(frozen=True, slots=True)
class AnswerBudget:
    """The most that is read for one question."""

    page_bytes: int
    """Of a page of a list; a page with more is asked for again with fewer objects."""
    answer_bytes: int
    """Of any other answer."""
    total_bytes: int
    """Of all answers together."""
    pages: int
    """Of one list."""
    seconds: float
    """For one list."""
    list_bytes: int = sys.maxsize
    """Of one list."""

    def check_list(self, pages: int, read: int, seconds: float) -> None:
        """Raise TooLarge if a list that goes on after so many pages, bytes and seconds is beyond it."""
        if read > self.list_bytes:
            raise TooLarge(f"a list of more than {self.list_bytes:,} bytes")
        if pages == self.pages:
            raise TooLarge(f"a list of more than {self.pages} pages")
        if seconds > self.seconds:
            raise TooLarge(f"a list for more than {self.seconds:g} s")


class BudgetSpent(TooLarge):
    """Nothing more is read for this question."""


class ReadSlots:
    """Slots for large answers, over all servers: so many are read and parsed at the same time.

    `seconds`: how long one answer may hold a slot; None: SLOT_SECONDS.
    """

    def __init__(self, slots: int, seconds: float | None = None) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._seconds = SLOT_SECONDS if seconds is None else seconds

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot. Raises BudgetSpent after `seconds` in it."""
        async with self._slots:
            try:
                async with asyncio.timeout(self._seconds) as timeout:
                    yield
            except TimeoutError:
                if timeout.expired():
                    raise BudgetSpent(f"an answer that is not whole after {self._seconds:g} s") from None
                raise


class BudgetedReader:
    """Reads the answers to one question within `budget`. A server has one slot at most."""

    def __init__(self, budget: AnswerBudget, slots: ReadSlots) -> None:
        self.budget = budget
        self._slots = slots
        self._turn = asyncio.Lock()
        self._read = 0
        self._spent: BudgetSpent | None = None

    async def read(self, answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
        """Return the body. Raises TooLarge."""
        if self._spent:
            raise BudgetSpent(self._spent.message)
        text = bytearray()
        chunks = answer.content.iter_any()
        while len(text) <= SMALL_BYTES:
            chunk = await anext(chunks, None)
            if chunk is None:
                return bytes(text)
            self._take(text, chunk, max_bytes)
        async with self._turn:
            try:
                async with self._slots.slot():
                    async for chunk in chunks:
                        self._take(text, chunk, max_bytes)
            except BudgetSpent as error:
                self._spent = error
                raise
        return bytes(text)

    def _take(self, text: bytearray, chunk: bytes, max_bytes: int) -> None:
        text += chunk
        self._read += len(chunk)
        if self._read > self.budget.total_bytes:
            self._spent = BudgetSpent(f"more than {self.budget.total_bytes:,} bytes in all")
            raise self._spent
        if len(text) > max_bytes:
            raise TooLarge(f"more than {max_bytes:,} bytes")
