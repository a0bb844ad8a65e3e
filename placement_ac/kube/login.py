"""
Who we are to an API server: sessions that let every request in, by one of the `doors`.

A token that was renewed (on disk, or by a plugin) is picked up without a restart. Never logs a header.
"""

import asyncio
import math
import time
from functools import partial
from pathlib import Path

import aiohttp
import structlog
import yarl

from placement_ac.core.kubeconfig.access import ClusterAccess
from placement_ac.kube.client_config import first_line, load_client_config, worker_client_config
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

KEPT_SECONDS = 15.0
"""How long a connection is kept that nobody uses: asyncio holds 256 KiB for each that is encrypted."""
TOKEN_SECONDS = 30.0
"""How long a header is used before it is asked for again (which reads files anew)."""


class Login:
    """The address of one API server and the way in.

    `kubeconfig` and `context` as kubectl has them; with neither, $KUBECONFIG and ~/.kube/config
    count unless this runs in a Pod. With `access` that alone counts. Raises LoginFailed.
    """

    def __init__(
        self,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        access: ClusterAccess | None = None,
    ) -> None:
        self._again = (
            partial(worker_client_config, access)
            if access
            else partial(load_client_config, kubeconfig, context)
        )
        self._door = self._again()
        self.server = self._door.server
        self.ssl = self._door.trust
        self._headers = self._door.headers() if access else {}
        self._valid_until = math.inf if access else 0.0
        self._refused = False
        self._renewing = asyncio.Lock()
        self._told = LogDeduplicator()

    def session(self, *, connections: int = 0, **options: object) -> aiohttp.ClientSession:
        """Return a new session; who asked for it closes it.

        It opens at most so many `connections` (0: any number). Options go to aiohttp.ClientSession.
        """
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=connections, keepalive_timeout=KEPT_SECONDS)
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(self._authenticate,),
            proxy=self._door.proxy,
            trust_env=False,
            **options,  # type: ignore[arg-type]  # whatever aiohttp takes
        )

    async def _authenticate(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if request.url.origin() != yarl.URL(self.server).origin():
            raise aiohttp.ClientConnectionError("it leads elsewhere: a token is for its own server only")
        request.headers.update(await self._current_headers())
        # aiohttp takes it from each request only, and goes by the host behind a proxy.
        request.server_hostname = self._door.server_name
        answer = await send(request)
        if answer.status == 401:
            self._valid_until, self._refused = 0.0, True
        return answer

    async def _current_headers(self) -> dict[str, str]:
        if time.monotonic() < self._valid_until:
            return self._headers
        async with self._renewing:
            if time.monotonic() >= self._valid_until:
                # An exec plugin is a process and a token file is a disk: neither may block the loop.
                self._headers = await asyncio.to_thread(self._renew)
                self._valid_until = time.monotonic() + TOKEN_SECONDS
        return self._headers

    def _renew(self) -> dict[str, str]:
        """Return the header of now; what cannot be read (it may be half written) leaves the one of before."""
        refused, self._refused = self._refused, False
        try:
            if refused:  # some keep a token that has no expiry for ever, wherever it is from
                self._door = self._again()
            headers = self._door.headers()
        except Exception as error:  # a plugin, or the package that runs it, may raise whatever it likes
            why = f"{type(error).__name__}: {first_line(error)}"
            log.log(self._told.level(self, why), "cannot renew the login", error=why)
            self._refused = refused
            return self._headers
        if self._told.ended(self):
            log.info("the login is renewed again")
        return headers
