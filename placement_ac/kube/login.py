"""
Log in to an API server, and open HTTP sessions that do so with each request.

The hub is that of `clientcmd`; a worker is the result of `core.kubeconfig`, in memory. A token, a CA or a
client certificate renewed on disk or by a plugin is used without a restart. While there are no credentials,
nothing is sent. Never logs a header or a file.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from ssl import SSLContext

import aiohttp
import structlog
import yarl
from aiohttp.client_reqrep import ConnectionKey

from placement_ac.core.api.errors import LoginFailed, PlacementAcError
from placement_ac.core.kubeconfig.parse import NO_IMPERSONATION, Impersonation
from placement_ac.core.kubeconfig.read import with_credentials
from placement_ac.core.kubeconfig.refusals import KubeconfigRefused
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.clientcmd import ClientConfig, hub_client_config, id_token, read_token
from placement_ac.kube.exec_plugin import ExecCredentials, PluginFailed, Show, run_plugin
from placement_ac.kube.proxies import connector, is_socks, proxy_of_environment
from placement_ac.kube.tls import Digests, digests_of, is_tls_error, ssl_context, tls_digest
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

Headers = tuple[tuple[str, str], ...]
"""Names and values; a name may occur more than once."""

KEEPALIVE_SECONDS = 15.0
"""How long an idle connection is kept: it takes memory, more if it is encrypted."""
HEADERS_SECONDS = 30.0
"""How long headers are used before they are renewed (which reads files again)."""
RENEW_SECONDS = 1.0
"""The same after a connection has failed: its certificate may have changed, and many may fail at once."""
_PLUGIN_MESSAGE = "a message of the plugin"


class NoCredentials(aiohttp.ClientConnectionError):
    """There are no credentials, so nothing was sent. Its text says why, and what to do."""


class Login:
    """The address and credentials of one API server. Raises LoginFailed.

    `kubeconfig` and `context` as with kubectl. `access` replaces both. `show` gets what a credential plugin
    writes to stderr; without it, it is logged. A plugin is run for the first request, not before.
    """

    def __init__(
        self,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        impersonation: Impersonation = NO_IMPERSONATION,
        access: ClusterAccess | None = None,
        show: Show | None = None,
    ) -> None:
        self._load_config = (
            partial(ClientConfig, access)
            if access
            else partial(hub_client_config, kubeconfig, context, impersonation)
        )
        self._show = show
        self._config = self._load_config()
        self.server = self._config.access.server
        self._proxy = self._config.access.proxy or proxy_of_environment(self.server, os.environ)
        self._ssl = self._new_context(self._config.access)
        self._tls_digest = tls_digest(self._config.access)
        self._headers: Headers | None = _headers_of(self._config, access) if access else None
        """None: there are none yet."""
        self._credentials: ExecCredentials | None = None
        """The plugin's, until they expire or are not accepted."""
        self._valid_until = math.inf if access else 0.0
        self._must_reload = False
        self._renewed_at = -math.inf
        """When the headers were last renewed, or it was tried."""
        self._renewing = asyncio.Lock()
        self._logged = LogDeduplicator()

    @property
    def described_as(self) -> str:
        """The server and the context, for a person."""
        config = self._config
        return f"{self.server}, {f'context {config.context}' if config.context else config.source}"

    @property
    def access(self) -> ClusterAccess:
        """The server, and the credentials that need no file and no plugin."""
        return self._config.access

    @property
    def namespace(self) -> str:
        """The namespace of the context, as kubectl takes it without `-n`."""
        return self._config.namespace or "default"

    async def bearer_token(self) -> str:
        """Return the token that requests carry now; "" if they carry none. Raises NoCredentials."""
        scheme, _, token = dict(await self._current_headers()).get("Authorization", "").partition(" ")
        return token if scheme == "Bearer" else ""

    @property
    def ssl(self) -> SSLContext:
        """The context for the next connection; another one when a CA or a client certificate has changed."""
        return self._ssl

    def session(
        self,
        *,
        connections: int = 0,
        request_class: type[aiohttp.ClientRequest] = aiohttp.ClientRequest,
        **options: object,
    ) -> aiohttp.ClientSession:
        """Return a new session, which the caller closes.

        `connections`: the most that it opens (0: any number). `options` go to aiohttp.ClientSession.
        """
        return aiohttp.ClientSession(
            connector=connector(
                self._proxy, ssl=self.ssl, limit=connections, keepalive_timeout=KEEPALIVE_SECONDS
            ),
            middlewares=(self._authenticate,),
            request_class=_request_class(request_class, lambda: self.ssl),
            proxy=None if is_socks(self._proxy) else self._proxy or None,
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
        request.server_hostname = self._config.access.server_name or None
        try:
            answer = await send(request)
        except aiohttp.ClientError as error:
            # A server that does not accept our certificate may close the connection without an alert.
            self._valid_until = min(self._valid_until, self._renewed_at + RENEW_SECONDS)
            self._must_reload |= is_tls_error(error)
            raise
        if answer.status == 401:
            self._valid_until, self._must_reload = 0.0, True
        return answer

    async def _current_headers(self) -> Headers:
        """Return the headers for a request. Raises NoCredentials."""
        if self._headers is None or time.monotonic() >= self._valid_until:
            async with self._renewing:
                if self._headers is None or time.monotonic() >= self._valid_until:
                    self._headers = await self._renew()
                    self._valid_until = self._renewed_at + HEADERS_SECONDS
        return self._headers

    async def _renew(self) -> Headers:
        """Return the current headers, or the last ones if there are no current ones. Raises NoCredentials."""
        try:
            try:
                # A token file is a disk: it may not block the loop.
                await asyncio.to_thread(self._reload_if_changed)
            finally:  # a file may be half written: the config that worked until now may go on working
                headers = await self._new_headers()
        except PlacementAcError as error:
            if self._headers is None:
                raise NoCredentials(f"cannot log in with {self._config.source}: {_reason(error)}") from None
            log.log(self._logged.level(self, str(error)), "cannot renew the login", error=str(error))
            return self._headers
        else:
            if self._logged.ended(self):
                log.info("the login is renewed again")
            return headers
        finally:
            self._renewed_at = time.monotonic()

    async def _new_headers(self) -> Headers:
        """Return the headers by the present config; runs its plugin if need be. Raises PlacementAcError."""
        config, access = self._config, self._config.access
        if config.plugin and not (access.token or config.token_file or config.basic):
            access = await self._plugin_access(config)
        return await asyncio.to_thread(self._use, config, access)

    async def _plugin_access(self, config: ClientConfig) -> ClusterAccess:
        got = self._credentials
        expires = got.expiration_timestamp if got else None
        if config.plugin and (got is None or (expires and expires <= datetime.now(UTC))):
            self._credentials = None
            got = await run_plugin(config.plugin, config.plugin_cluster, self._show or self._log_message)
            if not (got.token or got.client_certificate_data or got.client_key_data):
                raise PluginFailed(f"plugin {config.plugin.command} gave no token and no certificate")
            self._credentials = got
        if got is None:
            return config.access
        certificate = got.client_certificate_data or config.access.certificate
        key = got.client_key_data or config.access.key
        try:
            return with_credentials(config.access, got.token, certificate, key)
        except KubeconfigRefused as refused:
            self._credentials = None
            raise PluginFailed(f"{config.plugin and config.plugin.command}: {refused}") from None

    def _log_message(self, text: str) -> None:
        """Log what a plugin writes; the same again only for debugging."""
        for line in filter(None, map(str.strip, text.splitlines())):
            level = self._logged.level(_PLUGIN_MESSAGE, line, logging.INFO)
            log.log(level, "a credential plugin has a message", message=line)

    def _use(self, config: ClientConfig, access: ClusterAccess) -> Headers:
        """Return the headers of `access`, and let new connections use its certificates."""
        headers = _headers_of(config, access)
        digest = tls_digest(access)
        if digest != self._tls_digest:
            self._ssl, self._tls_digest = self._new_context(access), digest
            log.info("the CA or the client certificate has changed; new connections use it")
        return headers

    def _new_context(self, access: ClusterAccess) -> SSLContext:
        try:
            return ssl_context(access)
        except LoginFailed as failed:
            if not self._config.source:
                raise
            raise LoginFailed(f"cannot log in with {self._config.source}: it {failed}") from None

    def _reload_if_changed(self) -> None:
        """Load the config again if a file has changed, or the server does not accept us.

        Raises LoginFailed.
        """
        if not (self._must_reload or _have_changed(self._config.files)):
            return
        config = self._load_config()
        if config.access.server != self.server:
            raise LoginFailed("the kubeconfig names another server; restart to use it")
        if self._must_reload or config.plugin != self._config.plugin:
            self._credentials = None
        self._config, self._must_reload = config, False


def _headers_of(config: ClientConfig, access: ClusterAccess) -> Headers:
    """Return the headers for a request; may read a token file. Raises LoginFailed."""
    token = (config.token_file and read_token(config.token_file)) or access.token
    if config.token_file and not token:
        raise LoginFailed(f"{config.token_file} has no token, or cannot be read")
    if config.auth_provider and not (token or config.basic):
        token = id_token(config.auth_provider, datetime.now(UTC))
    authorization = f"Bearer {token}" if token else config.basic
    return (*access.impersonation, *((("Authorization", authorization),) if authorization else ()))


def _reason(error: PlacementAcError) -> str:
    return str(error).partition(": ")[2] if str(error).startswith("cannot log in") else str(error)


def _have_changed(files: Digests) -> bool:
    """Whether a file has another content; one that is gone has none."""
    return any(digest not in ("", files[path]) for path, digest in digests_of(files).items())


def _request_class(
    base: type[aiohttp.ClientRequest], newest: Callable[[], SSLContext]
) -> type[aiohttp.ClientRequest]:
    """Return a request class whose requests use the newest context, and no connection of an older one."""

    class NewestContextRequest(base):  # type: ignore[valid-type,misc]  # mypy knows no variable as a base
        @property
        def ssl(self) -> SSLContext:
            return newest()

        @property
        def connection_key(self) -> ConnectionKey:
            key: ConnectionKey = super().connection_key
            return key._replace(ssl=self.ssl)

    return NewestContextRequest
