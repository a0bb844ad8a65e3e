"""
A listener for HTTP and HTTPS on one port, which can be closed and opened again.

A connection whose first byte is 0x16 begins with a TLS handshake. Runs in the hub's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

TLS_HANDSHAKE = b"\x16"


class Listener:
    """Accepts connections for `handler` on one port, and keeps the port bound while it is down."""

    def __init__(self, host: str, port: int, handler: web.Server, tls: ssl.SSLContext) -> None:
        self.host, self.handler, self.tls = host, handler, tls
        self._socket = self._bound(port)
        self.port: int = self._socket.getsockname()[1]
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.Transport] = set()

    def _bound(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.host, port))
        sock.setblocking(False)
        return sock

    def up(self) -> None:
        self._socket.listen(1024)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def down(self) -> None:
        """Close all connections and refuse new ones."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._accepting = None
        self._socket.close()
        self._socket = self._bound(self.port)  # bound but not listening: connections are refused
        for task in tuple(self._handshakes):
            task.cancel()
        for transport in tuple(self._open):
            with contextlib.suppress(AttributeError):  # Python 3.11.2: already closed
                transport.abort()
        self._open.clear()
        await asyncio.sleep(0)

    async def close(self) -> None:
        await self.down()
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(0.05)  # such as no free file descriptors: keep serving
                continue
            task = loop.create_task(self._serve(sock))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _serve(self, sock: socket.socket) -> None:
        """Detect TLS by the first byte, and pass the connection to the handler."""
        loop = asyncio.get_running_loop()
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await _readable(sock)
            tls = self.tls if sock.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE else None
        except (OSError, asyncio.CancelledError):
            sock.close()
            return
        try:
            transport, _ = await loop.connect_accepted_socket(self.handler, sock, ssl=tls)
        except (OSError, asyncio.CancelledError):
            return  # asyncio closes the socket: until then, no other connection may get its descriptor
        self._open = {known for known in self._open if not known.is_closing()}
        self._open.add(transport)


def _set_ready(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, _set_ready, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sock)
