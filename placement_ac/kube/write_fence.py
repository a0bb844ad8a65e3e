"""
Write requests that check right before they are sent, after connection and login, whether they may be.

A pause of the process between that check and the first byte cannot be ruled out; everything else can.
"""

from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

from placement_ac.core.api.errors import NotLeading

READ: Final = "GET"
"""The method of every request that does not write."""
WriteFence = Callable[[], float]
"""Returns for how many seconds from now a write may go on; raises NotLeading when none may be sent."""


def fenced_request_class(write_fence: WriteFence) -> type[aiohttp.ClientRequest]:
    """Return a request class for aiohttp.ClientSession that calls `write_fence` before a write.

    aiohttp sends a request without a body in `send`, otherwise head and body together in `write_bytes`.
    """

    class FencedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            if self.method != READ:
                write_fence()
            return await super().send(conn)

        async def write_bytes(
            self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
        ) -> None:
            try:
                if self.method != READ:
                    write_fence()
            except NotLeading as refused:
                if conn.protocol is not None:
                    conn.protocol.set_exception(refused)  # raised where the answer is awaited
                return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
