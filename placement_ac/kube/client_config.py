"""
The ways to an API server, each as a `Door`: a worker's `Access`, a Pod's account, a kubeconfig.

A kubeconfig that has all it takes in it, a token or a client certificate and who has signed the server's, is
read as those of workers are. Any other one (files, exec plugins, several files in $KUBECONFIG, another
context) is left to the `kubernetes` package, which is imported only then: it takes 22 MB and 0.1 s. Never
logs a header.
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
from typing import TYPE_CHECKING, Final

import aiohttp
import yaml

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.access import ClusterAccess
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import Unusable

if TYPE_CHECKING:
    from kubernetes import client as kubernetes_client

Headers = dict[str, str]

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Kubernetes: where a Pod finds `token` and `ca.crt`. The token is renewed there."""
KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = Path(".kube") / "config"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The address of an API server, and the way in. Its repr tells no secret."""

    server: str
    trust: ssl.SSLContext = field(repr=False)
    """What verifies the server, and shows it our certificate."""
    headers: Callable[[], Headers] = field(repr=False)
    """Gives the headers that let in; may read files and run programs, and raises what comes of it."""
    proxy: str | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name in the server's certificate, if that is not the host's."""


def worker_client_config(access: ClusterAccess) -> ClientConfig:
    """Return the way into a worker, for which no file is read and no program is run. Raises LoginFailed."""
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    return ClientConfig(
        access.server.rstrip("/"),
        _trust(access),
        lambda: headers,
        access.proxy or None,
        access.server_name or None,
    )


def load_client_config(kubeconfig: Path | None, context: str | None) -> ClientConfig:
    """Return the way in that kubectl would take, or the Pod's. Raises LoginFailed."""
    if kubeconfig is None and context is None and IN_CLUSTER in os.environ:
        return _of_pod()
    path = _only_file(kubeconfig)
    plain = _plain(path) if path and context is None else None
    return worker_client_config(plain) if plain else _of_package(kubeconfig, context)


def _only_file(kubeconfig: Path | None) -> Path | None:
    """Return the one kubeconfig that counts; None where there are several."""
    if kubeconfig:
        return kubeconfig
    named = os.environ.get(KUBECONFIG)
    if named:
        return None if os.pathsep in named else Path(named)
    try:
        return Path.home() / HOME
    except RuntimeError:  # nobody's: a user without an entry in /etc/passwd
        return None


def _plain(path: Path) -> ClusterAccess | None:
    """Return what a kubeconfig tells that has all it takes in it; None for any other, whatever it is."""
    try:
        read = read_kubeconfig(path.read_bytes())
    except OSError:
        return None
    # Without https, a token is not sent; what is not for us is no way in for a person either.
    return None if isinstance(read, Unusable) or not read.server.startswith("https://") else read


def _of_pod() -> ClientConfig:
    host, port = os.environ[IN_CLUSTER], os.environ.get(PORT, "443")
    authority = ACCOUNT / "ca.crt"
    try:
        trust = ssl.create_default_context(cafile=str(authority))
        _token()
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise LoginFailed(f"cannot log in with the Pod's account: {ACCOUNT}: {first_line(error)}") from None
    address = f"[{host}]" if ":" in host else host
    return ClientConfig(f"https://{address}:{port}", trust, lambda: {"Authorization": f"Bearer {_token()}"})


def _token() -> str:
    """Return the Pod's token as it is now: the kubelet renews it."""
    token = (ACCOUNT / "token").read_text("utf-8").strip()
    if not token:
        raise OSError(0, "token is empty")
    return token


def _of_package(kubeconfig: Path | None, context: str | None) -> ClientConfig:
    from kubernetes import client, config  # noqa: PLC0415  # see above: most need it not

    configuration = client.Configuration()
    if kubeconfig and not kubeconfig.is_file():
        raise LoginFailed(f"cannot log in: there is no kubeconfig {kubeconfig}")
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types here
            config_file=str(kubeconfig) if kubeconfig else os.environ.get(KUBECONFIG),
            context=context,
            client_configuration=configuration,
        )
        trust = _verified(configuration)
    except (config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        where = kubeconfig or os.environ.get(KUBECONFIG) or "~/.kube/config"
        raise LoginFailed(
            f"cannot log in with {where}: {type(error).__name__}: {first_line(error)}"
        ) from None
    return ClientConfig(
        configuration.host.rstrip("/"),
        trust,
        partial(_authorization, configuration),
        getattr(configuration, "proxy", None),
        getattr(configuration, "tls_server_name", None) or None,
    )


def _trust(access: ClusterAccess) -> ssl.SSLContext:
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


def first_line(error: Exception) -> str:
    """The rest of a parser's message may quote the file, and so a token."""
    return (str(error).splitlines() or [""])[0][:300]


def _verified(configuration: "kubernetes_client.Configuration") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _authorization(configuration: "kubernetes_client.Configuration") -> Headers:
    token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    if token:
        return {"Authorization": token}
    if configuration.username and configuration.password:
        return {"Authorization": aiohttp.encode_basic_auth(configuration.username, configuration.password)}
    return {}
