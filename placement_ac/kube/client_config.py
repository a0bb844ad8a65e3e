"""
How to connect to an API server, as a `ClientConfig`: address, trust, headers.

The `kubernetes` package loads kubeconfigs, a Pod's account and exec plugins for the hub. It would write a
worker's key to the disk, so workers use the result of `core.kubeconfig` directly. Never logs a header.
"""

import contextlib
import io
import os
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from kubernetes import client, config

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.access import ClusterAccess

Headers = dict[str, str]

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = "~/.kube/config"


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


def worker_client_config(access: ClusterAccess) -> ClientConfig:
    """Return the config for a worker; reads no file and runs no program. Raises LoginFailed."""
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    return ClientConfig(
        access.server.rstrip("/"),
        _worker_ssl_context(access),
        lambda: headers,
        access.proxy or None,
        access.server_name or None,
    )


def load_client_config(kubeconfig: Path | None, context: str | None) -> ClientConfig:
    """Return the config that kubectl would use, or in a Pod its account. Raises LoginFailed."""
    configuration = client.Configuration()
    in_pod = kubeconfig is None and context is None and IN_CLUSTER in os.environ
    source = "the Pod's account" if in_pod else str(kubeconfig or os.environ.get(KUBECONFIG) or HOME)
    if kubeconfig and not kubeconfig.is_file():
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
            f"cannot log in with {source}: {type(error).__name__}: {first_line(error)}"
        ) from None
    return ClientConfig(
        configuration.host.rstrip("/"),
        ssl_context,
        partial(_authorization_headers, configuration),
        getattr(configuration, "proxy", None),
        getattr(configuration, "tls_server_name", None) or None,
    )


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


def first_line(error: Exception) -> str:
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
