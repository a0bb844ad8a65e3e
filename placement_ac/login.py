"""
Who we are to an API server: kubeconfig, in-cluster account or exec plugin, by the `kubernetes` package;
or, to a worker, an `Access`, for which no file is read and no program is run.

Gives aiohttp sessions that authenticate every request; a token that was renewed
(on disk, or by the plugin) is picked up without a restart. Never logs a header.
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
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import aiohttp
import structlog
import yaml
import yarl
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from placement_ac.access import Access
from placement_ac.errors import LoginFailed
from placement_ac.logs import Told

log = structlog.get_logger(__name__)

TOKEN_SECONDS = 30.0
"""How long a header is used before the `kubernetes` package is asked again (which re-reads files)."""
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


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
        access: Access | None = None,
    ) -> None:
        self._again = partial(_configured, access) if access else partial(_load, kubeconfig, context)
        self._configuration = self._again()
        self.server: str = self._configuration.host.rstrip("/")
        self.ssl = _trust(access) if access else _ssl_context(self._configuration)
        self._headers = _authorization(self._configuration) if access else {}
        self._valid_until = math.inf if access else 0.0
        self._refused = False
        self._renewing = asyncio.Lock()
        self._told = Told()

    def session(self, *, connections: int = 0, **options: object) -> aiohttp.ClientSession:
        """Return a new session; who asked for it closes it.

        It opens at most so many `connections` (0: any number). Options go to aiohttp.ClientSession.
        """
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=connections, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(self._authenticate,),
            proxy=getattr(self._configuration, "proxy", None),
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
        request.server_hostname = getattr(self._configuration, "tls_server_name", None) or None
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
            if refused:  # the package keeps a token that has no expiry for ever, wherever it is from
                self._configuration = self._again()
            headers = _authorization(self._configuration)
        except (LoginFailed, kubernetes_config.ConfigException, OSError, ValueError) as error:
            why = f"{type(error).__name__}: {_first_line(error)}"
            log.log(self._told.level(self, why), "cannot renew the login", error=why)
            self._refused = refused
            return self._headers
        if self._told.over(self):
            log.info("the login is renewed again")
        return headers


def _load(kubeconfig: Path | None, context: str | None) -> kubernetes_client.Configuration:
    configuration = kubernetes_client.Configuration()
    if kubeconfig and not kubeconfig.is_file():
        raise LoginFailed(f"cannot log in: there is no kubeconfig {kubeconfig}")
    try:
        if kubeconfig is None and context is None and IN_CLUSTER in os.environ:
            kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]  # the package has no types
                client_configuration=configuration
            )
        else:
            kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types here
                config_file=str(kubeconfig) if kubeconfig else None,
                context=context,
                client_configuration=configuration,
            )
    except (kubernetes_config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        message = f"cannot log in with {where}: {type(error).__name__}: {_first_line(error)}"
        raise LoginFailed(message) from None
    return configuration


def _configured(access: Access) -> kubernetes_client.Configuration:
    configuration = kubernetes_client.Configuration()
    configuration.host = access.server
    configuration.tls_server_name = access.server_name or None
    configuration.proxy = access.proxy or None
    if access.token:
        configuration.api_key["BearerToken"] = f"Bearer {access.token}"
    return configuration


def _trust(access: Access) -> ssl.SSLContext:
    """Return what verifies that server, and shows it our certificate. Raises LoginFailed."""
    try:
        context = ssl.create_default_context(cadata=access.authority or None)
    except ssl.SSLError:
        raise LoginFailed("has certificate-authority-data that is no certificate") from None
    if access.certificate:
        try:
            _show(context, access.certificate, access.key)
        except ssl.SSLError:
            raise LoginFailed("has a client certificate or key that is none, or they do not match") from None
    return context


def _show(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL takes them from a file only: one that nobody else can read, gone when this returns."""
    with _open_file() as (file, path):
        file.write(f"{certificate}\n{key}\n".encode())
        context.load_cert_chain(path, password="")  # or it asks for one at the terminal


@contextlib.contextmanager
def _open_file() -> Iterator[tuple[io.FileIO, Path]]:
    """Yield a file without a buffer, and its name; on Linux in memory, and so gone after a crash as well."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("client.pem"), "wb", buffering=0) as file:
            yield file, Path(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            with path.open("wb", buffering=0) as file:
                yield file, path


def _first_line(error: Exception) -> str:
    """The rest of a parser's message may quote the file, and so a token."""
    return (str(error).splitlines() or [""])[0][:300]


def _ssl_context(configuration: kubernetes_client.Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _authorization(configuration: kubernetes_client.Configuration) -> dict[str, str]:
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    if token:
        return {"Authorization": token}
    if configuration.username and configuration.password:
        return {"Authorization": aiohttp.encode_basic_auth(configuration.username, configuration.password)}
    return {}
