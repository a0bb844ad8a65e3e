"""
Who we are to an API server: sessions that let every request in, with its `ClientConfig`.

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

from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client_config import first_line, load_client_config, worker_client_config
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

KEEPALIVE_SECONDS = 15.0
"""How long a connection is kept that nobody uses: asyncio holds 256 KiB for each that is encrypted."""
HEADERS_SECONDS = 30.0
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
        self._load_config = (
            partial(worker_client_config, access)
            if access
            else partial(load_client_config, kubeconfig, context)
        )
        self._config = self._load_config()
        self.server = self._config.server
        self.ssl = self._config.ssl_context
        self._headers = self._config.headers() if access else {}
        self._valid_until = math.inf if access else 0.0
        self._was_refused = False
        self._renewing = asyncio.Lock()
        self._logged = LogDeduplicator()

    def session(self, *, connections: int = 0, **options: object) -> aiohttp.ClientSession:
        """Return a new session; who asked for it closes it.

        It opens at most so many `connections` (0: any number). Options go to aiohttp.ClientSession.
        """
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=connections, keepalive_timeout=KEEPALIVE_SECONDS)
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(self._authenticate,),
            proxy=self._config.proxy,
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
        request.server_hostname = self._config.server_name
        answer = await send(request)
        if answer.status == 401:
            self._valid_until, self._was_refused = 0.0, True
        return answer

    async def _current_headers(self) -> dict[str, str]:
        if time.monotonic() < self._valid_until:
            return self._headers
        async with self._renewing:
            if time.monotonic() >= self._valid_until:
                # An exec plugin is a process and a token file is a disk: neither may block the loop.
                self._headers = await asyncio.to_thread(self._renew)
                self._valid_until = time.monotonic() + HEADERS_SECONDS
        return self._headers

    def _renew(self) -> dict[str, str]:
        """Return the header of now; what cannot be read (it may be half written) leaves the one of before."""
        was_refused, self._was_refused = self._was_refused, False
        try:
            if was_refused:  # some keep a token that has no expiry for ever, wherever it is from
                self._config = self._load_config()
            headers = self._config.headers()
        except Exception as error:  # a plugin, or the package that runs it, may raise whatever it likes
            problem = f"{type(error).__name__}: {first_line(error)}"
            log.log(self._logged.level(self, problem), "cannot renew the login", error=problem)
            self._was_refused = was_refused
            return self._headers
        if self._logged.ended(self):
            log.info("the login is renewed again")
        return headers
