"""
Log in to an API server: its `ClientConfig` (address, trust, headers), and HTTP sessions that use it.

The `kubernetes` package loads kubeconfigs, a Pod's account and exec plugins for the hub. It would write a
worker's key to the disk, so workers use the result of `core.kubeconfig` directly. A token renewed on disk
or by a plugin is used without a restart. Never logs a header.
"""

import asyncio
import contextlib
import io
import math
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import structlog
import yaml
import yarl
from kubernetes import client, config

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

Headers = dict[str, str]

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = "~/.kube/config"
KEEPALIVE_SECONDS = 15.0
"""How long an idle connection is kept: asyncio holds 256 KiB for each that is encrypted."""
HEADERS_SECONDS = 30.0
"""How long headers are used before they are renewed (which reads files again)."""


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
            problem = f"{type(error).__name__}: {_first_line(error)}"
            log.log(self._logged.level(self, problem), "cannot renew the login", error=problem)
            self._was_refused = was_refused
            return self._headers
        if self._logged.ended(self):
            log.info("the login is renewed again")
        return headers


def _worker_client_config(access: ClusterAccess) -> ClientConfig:
    """Return the config for a worker; reads no file and runs no program. Raises LoginFailed."""
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    return ClientConfig(
        access.server.rstrip("/"),
        _worker_ssl_context(access),
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
    try:
        if in_pod:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types here
                config_file=str(kubeconfig) if kubeconfig else os.environ.get(KUBECONFIG),
                context=context,
                client_configuration=configuration,
            )
        ssl_context = _hub_ssl_context(configuration)
    except (config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        raise LoginFailed(
            f"cannot log in with {source}: {type(error).__name__}: {_first_line(error)}"
        ) from None
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
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # its name is too long
        return False


def _worker_ssl_context(access: ClusterAccess) -> ssl.SSLContext:
    """Raises LoginFailed."""
    try:
        context = ssl.create_default_context(cadata=access.authority or None)
    except ssl.SSLError:
        raise LoginFailed("has certificate-authority-data that is no certificate") from None
    if access.certificate:
        try:
            _load_client_certificate(context, access.certificate, access.key)
        except ssl.SSLError:
            raise LoginFailed("has a client certificate or key that is none, or they do not match") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load them from a private file, removed on return: OpenSSL reads certificates from files only."""
    with _private_file() as (file, path):
        file.write(f"{certificate}\n{key}\n".encode())
        context.load_cert_chain(path, password="")  # or it asks for one at the terminal


@contextlib.contextmanager
def _private_file() -> Iterator[tuple[io.FileIO, Path]]:
    """Yield an unbuffered file and its name; on Linux it is in memory, and so gone after a crash as well."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("client.pem"), "wb", buffering=0) as file:
            yield file, Path(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            with path.open("wb", buffering=0) as file:
                yield file, path


def _first_line(error: Exception) -> str:
    """Return the first line: the rest of a parser's message may quote the file, and so a token."""
    return (str(error).splitlines() or [""])[0][:300]


def _hub_ssl_context(configuration: client.Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _authorization_headers(configuration: client.Configuration) -> Headers:
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    if token:
        return {"Authorization": token}
    if configuration.username and configuration.password:
        return {"Authorization": aiohttp.encode_basic_auth(configuration.username, configuration.password)}
    return {}
