"""
`HttpServer`: serve HTTP and HTTPS on one port, in a thread of this process.

It can go down and come back, and change its certificate. Its methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import ssl
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import trustme

from placement_lab.hub.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from aiohttp import web

ADMIN = "kubernetes-admin"
CONTEXT = "placement-ac-hub"  # the context in its kubeconfig, which identifies the file


def write_kubeconfig(path: str | os.PathLike[str], kubeconfig: dict[str, Any]) -> None:
    """Write a kubeconfig (as JSON) atomically, readable only by its owner. Raises OSError."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(kubeconfig, file, indent=2)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


class HttpServer:
    """
    Serves HTTP and HTTPS. A subclass has the `token` of its admin and returns its handler in `_handler`.

    Raises OSError on start if the port is in use.
    """

    token: str

    def __init__(self, host: str, port: int) -> None:
        self.host, self._wanted_port = host, port
        self._ca = trustme.CA()
        self._client_ca: trustme.CA | None = None
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None

    def _handler(self) -> web.Server:
        """Return the handler of connections; called in the event loop."""
        raise NotImplementedError

    # -- start and stop

    def start(self) -> Self:
        """Start serving; returns when connections are accepted. Raises OSError if the port is in use."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="hub", daemon=True)
        self._thread.start()
        try:
            self._run(self._listen())
        except OSError:
            self.stop()
            raise
        return self

    async def _listen(self) -> None:
        self._listener = Listener(self.host, self._wanted_port, self._handler(), self._tls())
        self._listener.up()

    def stop(self) -> None:
        """Close all connections and end the thread; a stopped hub cannot be started again."""
        if self._thread is None:
            return
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None
        self._loop.close()

    async def _close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        mine = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not mine]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _in_loop(self, act: Callable[[], None]) -> None:
        async def work() -> None:
            act()

        self._run(work())

    # -- addresses and credentials

    @property
    def port(self) -> int:
        if self._listener is None:
            raise RuntimeError("the hub was not started")
        return self._listener.port

    @property
    def url(self) -> str:
        """The URL for plain HTTP."""
        return f"http://{self._address}"

    @property
    def secure_url(self) -> str:
        """The URL for HTTPS on the same port; the CA in the kubeconfig has signed the certificate."""
        return f"https://{self._address}"

    @property
    def _address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def ca_certificate(self) -> bytes:
        """The certificate of the hub's CA, as PEM."""
        return self._ca.cert_pem.bytes()

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig for the hub's admin: HTTPS, the CA's certificate, a token."""
        ca = base64.b64encode(self.ca_certificate).decode()
        cluster = {"server": self.secure_url, "certificate-authority-data": ca}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": ADMIN, "user": {"token": self.token}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": ADMIN}}],
            "current-context": CONTEXT,
        }

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> None:
        """Write the kubeconfig."""
        write_kubeconfig(path, self.kubeconfig())

    def _tls(self) -> ssl.SSLContext:
        names = {self.host, "localhost", "127.0.0.1", "::1"} - {"0.0.0.0", "::"}  # noqa: S104 compared, not bound
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*sorted(names)).configure_cert(context)
        if self._client_ca is not None:
            self._client_ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    # -- outages and certificates

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Make the hub unreachable during the `with`; afterwards it serves the same data on the same port."""
        self.go_down()
        try:
            yield
        finally:
            self.come_back()

    def go_down(self) -> None:
        if self._listener is not None:
            self._run(self._listener.down())

    def come_back(self) -> None:
        if self._listener is not None:
            self._in_loop(self._listener.up)

    def rotate_ca(self, ca: trustme.CA | None = None) -> None:
        """Use a certificate of `ca` (None: of a new one) for new connections, and have it in `kubeconfig`."""
        self._ca = ca or trustme.CA()
        self._renew_tls()

    def require_client_certificates(self, ca: trustme.CA) -> None:
        """Accept new TLS connections only with a client certificate of `ca`; it names no user."""
        self._client_ca = ca
        self._renew_tls()

    def _renew_tls(self) -> None:
        if self._listener is not None:
            self._listener.tls = self._tls()
