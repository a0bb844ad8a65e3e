"""
HTTP sessions that authenticate every request to an API server with its `ClientConfig`.

A token that was renewed (on disk, or by a plugin) is used without a restart. Never logs a header.
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

KEEPALIVE_SECONDS = 15.0
"""How long an idle connection is kept: asyncio holds 256 KiB for each that is encrypted."""
HEADERS_SECONDS = 30.0
"""How long headers are used before they are renewed (which reads files again)."""


class Login:
    """The address and credentials of one API server. Raises LoginFailed.

    `kubeconfig` and `context` as with kubectl; with neither, a Pod's account, or else $KUBECONFIG or
    ~/.kube/config. `access` replaces all of them.
    """

    def __init__(
        self,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        access: ClusterAccess | None = None,
    ) -> None:
        load_worker = partial(worker_client_config, access) if access else None
        self._load_config = load_worker or partial(load_client_config, kubeconfig, context)
        self._config = self._load_config()
        self.server = self._config.server
        self.ssl = self._config.ssl_context
        self._headers = self._config.headers() if access else {}
        self._valid_until = math.inf if access else 0.0
        self._was_refused = False
        self._renewing = asyncio.Lock()
        self._logged = LogDeduplicator()

    def session(self, *, connections: int = 0, **options: object) -> aiohttp.ClientSession:
        """Return a new session, which the caller closes.

        `connections`: the most that it opens (0: any number). `options` go to aiohttp.ClientSession.
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
        # Only a request can have it: aiohttp would verify the host's name behind a proxy.
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
        """Return the current headers; if they cannot be read (a file may be half written), the last ones."""
        was_refused, self._was_refused = self._was_refused, False
        try:
            if was_refused:  # some sources cache a token without expiry for ever
                self._config = self._load_config()
            headers = self._config.headers()
        except Exception as error:  # a plugin, or the package that runs it, may raise anything
            problem = f"{type(error).__name__}: {first_line(error)}"
            log.log(self._logged.level(self, problem), "cannot renew the login", error=problem)
            self._was_refused = was_refused
            return self._headers
        if self._logged.ended(self):
            log.info("the login is renewed again")
        return headers
