"""
`Hub`: a Kubernetes API server in a thread of this process.

The thread runs an event loop, and only that loop accesses the store. The methods of `Hub` may be
called from any thread.
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
from typing import TYPE_CHECKING, Any, Literal, Self

import trustme

from placement_ac.lab.hub import kinds
from placement_ac.lab.hub.access_control import AccessControl
from placement_ac.lab.hub.api import ApiHandler
from placement_ac.lab.hub.catalog import Catalog
from placement_ac.lab.hub.errors import gone, internal
from placement_ac.lab.hub.faults import Faults, RecordedRequest
from placement_ac.lab.hub.frontend import HttpFrontend
from placement_ac.lab.hub.listener import Listener
from placement_ac.lab.hub.store import Store
from placement_ac.lab.hub.watch import GARBAGE, error_line

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine, Iterator, Sequence

ADMIN = "kubernetes-admin"
CONTEXT = "placement-ac-hub"  # the context in its kubeconfig, which identifies the file
LAST_LINES: dict[str, bytes] = {
    "close": b"",
    "garbage": GARBAGE,
    "error-410": error_line(gone("too old resource version")),
    "error-500": error_line(internal("the watch was dropped")),
}


class Hub:
    """
    A Kubernetes API server in memory.

    `crds`: the CustomResourceDefinitions to install, None for the bundled ones. `history`: the number of
    changes kept per kind, for watches. `shortest_token_seconds`: the minimum lifetime of a token.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None = None,
        crds: Sequence[dict[str, Any]] | None = None,
        history: int = 1000,
        shortest_token_seconds: int = 600,
    ) -> None:
        self.host, self._wanted_port = host, port
        self.journal: list[RecordedRequest] = []
        self.faults = Faults()
        self._store = Store(history)
        self.access = AccessControl(self._store, shortest_token_seconds)
        self.token = self.access.add(ADMIN, token)
        self._ca = trustme.CA()
        self._client_ca: trustme.CA | None = None
        self._loop = asyncio.new_event_loop()
        self._api = ApiHandler(self._store, Catalog(), self.access, self._loop.call_soon)
        self._api.install(kinds.bundled() if crds is None else crds)
        self._frontend = HttpFrontend(self._api, self.faults, self.journal)
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None

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
        self._listener = Listener(self.host, self._wanted_port, self._frontend.server(), self._tls())
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
    def watched(self) -> dict[tuple[str, str], int]:
        """The bytes that watches have sent so far, by User-Agent and plural name of the kind."""
        return dict(self._frontend.watched)

    def watchers(self, resource: str) -> int:
        """Return how many watches of a kind, given by its plural name, are open."""
        kinds = tuple(self._store.by_resource.values())
        return sum(len(kind.watchers) for kind in kinds if kind.resource.plural == resource)

    def add_user(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        """
        Register a user and return its bearer token.

        Without `groups` the user may do everything (system:masters); with groups, even an empty list,
        the roles in the hub decide.
        """
        return self.access.add(name, token, groups)

    def expire_token(self, token: str) -> None:
        """Reject a user's token with 401 from now on; open watches continue."""
        self.access.expire(token)

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
        """Write the kubeconfig (as JSON) atomically, readable only by its owner."""
        target = Path(path)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self.kubeconfig(), file, indent=2)
            Path(name).replace(target)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _tls(self) -> ssl.SSLContext:
        names = {self.host, "localhost", "127.0.0.1", "::1"} - {"0.0.0.0", "::"}  # noqa: S104 compared, not bound
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*sorted(names)).configure_cert(context)
        if self._client_ca is not None:
            self._client_ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    # -- fault injection (for single requests: `faults`)

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

    def forget_history(self) -> None:
        """Forget all changes: watches from any earlier resourceVersion get 410."""
        self._in_loop(self._store.forget)

    def drop_watches(
        self,
        how: Literal["close", "hang", "garbage", "error-410", "error-500"] = "close",
        resource: str | None = None,
        agent: str | tuple[str, ...] = "",
    ) -> None:
        """
        End all watches, or those of `resource` (a plural name such as "placements"), or those whose
        User-Agent begins with `agent` (or one of them).

        `close`: as after a timeout; `hang`: they stay open, but send no more events; the others send
        half an event or an ERROR event first.
        """

        def drop() -> None:
            for watch, by in tuple(self._frontend.watches.items()):
                if resource in (None, watch.shelf.resource.plural) and by.startswith(agent):
                    watch.hang() if how == "hang" else watch.finish(LAST_LINES[how])

        self._in_loop(drop)

    def repeat_history(self, chance: random.Random, agent: str | tuple[str, ...] = "") -> None:
        """Send all remembered changes to these watches again: each change twice, in random order."""

        def repeat() -> None:
            for watch, by in tuple(self._frontend.watches.items()):
                if by.startswith(agent):
                    watch.replay(chance)

        self._in_loop(repeat)
