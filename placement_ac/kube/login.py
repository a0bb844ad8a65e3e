"""
Log in to an API server: its `ClientConfig` (address, trust, headers), and HTTP sessions that use it.

The `kubernetes` package loads kubeconfigs, a Pod's account and exec plugins for the hub. It would write a
worker's key to the disk, so workers use the result of `core.kubeconfig` directly. A token, a CA or a client
certificate renewed on disk or by a plugin is used without a restart. Never logs a header or a file.
"""

import asyncio
import math
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import structlog
import yaml
import yarl
from aiohttp.client_reqrep import ConnectionKey
from kubernetes import client, config

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.core.safe_yaml import yaml_problem
from placement_ac.kube.tls import (
    Digests,
    digests_of,
    hub_ssl_context,
    is_tls_error,
    tls_files,
    worker_ssl_context,
)
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

Headers = dict[str, str]

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = "~/.kube/config"
_NOT_YAML: Final = (yaml.YAMLError, UnicodeDecodeError, RecursionError)
"""The errors of a text that is not YAML."""
KEEPALIVE_SECONDS = 15.0
"""How long an idle connection is kept: asyncio holds 256 KiB for each that is encrypted."""
HEADERS_SECONDS = 30.0
"""How long headers are used before they are renewed (which reads files again)."""
RENEW_SECONDS = 1.0
"""The same after a connection has failed: its certificate may have changed, and many may fail at once."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The address and credentials of an API server. Its repr contains no secret."""

    server: str
    ssl_context: ssl.SSLContext = field(repr=False)
    """Verifies the server, and has our client certificate."""
    headers: Callable[[], Headers] = field(repr=False)
    """Returns the authorization headers; may read files and run programs, and raises their errors."""
    proxy: str | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name in the server's certificate, if it differs from the host's."""
    files: Digests = field(default_factory=dict, repr=False)
    """The files that were read, as they were."""
    tls_digest: tuple[object, ...] = field(default=(), repr=False)
    """Of the files behind `ssl_context`; it differs if they do."""


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
        load_worker = partial(_worker_client_config, access) if access else None
        self._load_config = load_worker or partial(_hub_client_config, kubeconfig, context)
        self._config = self._load_config()
        self.server = self._config.server
        self._headers = self._config.headers() if access else {}
        self._valid_until = math.inf if access else 0.0
        self._must_reload = False
        self._renewed_at = -math.inf
        """When the headers were last renewed, or it was tried."""
        self._renewing = asyncio.Lock()
        self._logged = LogDeduplicator()

    @property
    def ssl(self) -> ssl.SSLContext:
        """The context for the next connection; another one when a CA or a client certificate has changed."""
        return self._config.ssl_context

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
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=connections, keepalive_timeout=KEEPALIVE_SECONDS)
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(self._authenticate,),
            request_class=_request_class(request_class, lambda: self.ssl),
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

    async def _current_headers(self) -> dict[str, str]:
        if time.monotonic() < self._valid_until:
            return self._headers
        async with self._renewing:
            if time.monotonic() >= self._valid_until:
                # An exec plugin is a process and a token file is a disk: neither may block the loop.
                self._headers = await asyncio.to_thread(self._renew)
                self._renewed_at = time.monotonic()
                self._valid_until = self._renewed_at + HEADERS_SECONDS
        return self._headers

    def _renew(self) -> Headers:
        """Return the current headers, or the last ones if they cannot be read. Logs what cannot be read."""
        headers = self._headers
        try:
            try:
                if self._must_reload or _have_changed(self._config.files):
                    self._reload()
            finally:  # a file may be half written: the config that worked until now may go on working
                headers = self._config.headers()
        except Exception as error:  # a plugin, or the package that runs it, may raise anything
            problem = _problem(error)
            log.log(self._logged.level(self, problem), "cannot renew the login", error=problem)
        else:
            if self._logged.ended(self):
                log.info("the login is renewed again")
        return headers

    def _reload(self) -> None:
        """Load the config again. The context stays while its files do, and its connections with it."""
        config = self._load_config()
        if config.server != self.server:
            raise LoginFailed("the kubeconfig names another server; restart to use it")
        if config.tls_digest == self._config.tls_digest:
            config = replace(config, ssl_context=self._config.ssl_context)
        else:
            log.info("the CA or the client certificate has changed; new connections use it")
        self._config, self._must_reload = config, False


def _have_changed(files: Digests) -> bool:
    """Whether a file has another content; one that is gone has none."""
    return any(digest not in ("", files[path]) for path, digest in digests_of(files).items())


def _request_class(
    base: type[aiohttp.ClientRequest], newest: Callable[[], ssl.SSLContext]
) -> type[aiohttp.ClientRequest]:
    """Return a request class whose requests use the newest context, and no connection of an older one."""

    class NewestContextRequest(base):  # type: ignore[valid-type,misc]  # mypy knows no variable as a base
        @property
        def ssl(self) -> ssl.SSLContext:
            return newest()

        @property
        def connection_key(self) -> ConnectionKey:
            key: ConnectionKey = super().connection_key
            return key._replace(ssl=self.ssl)

    return NewestContextRequest


def _worker_client_config(access: ClusterAccess) -> ClientConfig:
    """Return the config for a worker; reads no file and runs no program. Raises LoginFailed."""
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    return ClientConfig(
        access.server.rstrip("/"),
        worker_ssl_context(access),
        lambda: headers,
        access.proxy or None,
        access.server_name or None,
    )


def _hub_client_config(kubeconfig: Path | None, context: str | None) -> ClientConfig:
    """Return the config that kubectl would use, or in a Pod its account. Raises LoginFailed."""
    configuration = client.Configuration()
    in_pod = kubeconfig is None and context is None and IN_CLUSTER in os.environ
    source = "the Pod's account" if in_pod else str(kubeconfig or os.environ.get(KUBECONFIG) or HOME)
    if kubeconfig and not _is_file(kubeconfig):
        raise LoginFailed(f"cannot log in: there is no kubeconfig {kubeconfig}")
    files = digests_of([] if in_pod else _kubeconfig_files(kubeconfig))
    try:
        if in_pod:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types here
                config_file=str(kubeconfig) if kubeconfig else os.environ.get(KUBECONFIG),
                context=context,
                client_configuration=configuration,
            )
        # Before the context: what changes in between differs from it the next time.
        tls = digests_of(tls_files(configuration))
        ssl_context = hub_ssl_context(configuration)
    except (config.ConfigException, OSError, *_NOT_YAML) as error:
        raise LoginFailed(f"cannot log in with {source}: {_problem(error)}") from None
    except Exception:  # the package raises anything for a file of another shape, and may quote it
        raise LoginFailed(
            f"cannot log in with {source}: it is not a kubeconfig, or one of its fields is wrong"
        ) from None
    return ClientConfig(
        configuration.host.rstrip("/"),
        ssl_context,
        partial(_authorization_headers, configuration),
        getattr(configuration, "proxy", None),
        getattr(configuration, "tls_server_name", None) or None,
        files={**files, **tls},
        tls_digest=(configuration.verify_ssl, *tls.values()),
    )


def _kubeconfig_files(kubeconfig: Path | None) -> list[str]:
    paths = [str(kubeconfig)] if kubeconfig else os.environ.get(KUBECONFIG, HOME).split(os.pathsep)
    return [str(Path(path).expanduser()) for path in paths if path]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # its name is too long
        return False


def _problem(error: Exception) -> str:
    """Return why a login failed: of YAML what is wrong, which quotes nothing; else the error's first line."""
    if isinstance(error, _NOT_YAML):
        return yaml_problem(error)
    line = (str(error).splitlines() or [""])[0][:300]
    return f"{type(error).__name__}: {line}"


def _authorization_headers(configuration: client.Configuration) -> Headers:
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    if token:
        return {"Authorization": token}
    if configuration.username and configuration.password:
        return {"Authorization": aiohttp.encode_basic_auth(configuration.username, configuration.password)}
    return {}
