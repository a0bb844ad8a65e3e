"""
Requests that ask whether they may go out when nothing is left to wait for, no connection and no login.

A pause of the process between that question and the first byte cannot be ruled out; everything else can.
"""

from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

from placement_ac.core.api.errors import NotLeading

READ: Final = "GET"
"""The method of every request that changes nothing."""
WriteFence = Callable[[], float]
"""Tells for how many seconds from now a write may go on; raises NotLeading when none may go out."""


def fenced_request_class(write_fence: WriteFence) -> type[aiohttp.ClientRequest]:
    """Return requests that ask `write_fence`; for aiohttp.ClientSession.

    aiohttp sends what has no body in `send`, else head and body together in `write_bytes`.
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
                    conn.protocol.set_exception(refused)  # to whom waits for the answer
                return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
