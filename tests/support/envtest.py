"""A kube-apiserver with its etcd, from the folder in KUBEBUILDER_ASSETS.

It starts once for all tests; `tests.support.real_hub` puts the proxy of the tests in front of it.
"""

import base64
import contextlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
import requests
import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from placement_lab.hub import Hub
from placement_lab.hub.service_accounts import AUDIENCE

Object = dict[str, Any]

VARIABLE = "KUBEBUILDER_ASSETS"
PROGRAMS = ("kube-apiserver", "etcd")
HINT = "name a folder with kube-apiserver and etcd (`setup-envtest use -p path` prints one)"
ADMIN = "kubernetes-admin"
START_SECONDS = 120.0
STOP_SECONDS = 10.0
KEPT = tuple(
    f"/registry/{kept}/".encode()
    for kept in (
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "flowschemas",
        "leases/kube-system",
        "masterleases",
        "prioritylevelconfigurations",
        "ranges",
        "services/specs/default",
    )
)
"""Keys that stay: CRDs, which `tests.support.installed_crds` restores, and those of the API server itself."""
AT_ONCE = 100
"""etcd: at most 128 operations in a transaction."""


class Missing(Exception):
    """A required file or variable is missing; the message names it in one line."""


def assets() -> Path:
    """Return the folder with the programs. Raises Missing."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise Missing(f"{VARIABLE} is not set: {HINT}")
    folder = Path(named)
    absent = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK) or (folder / name).is_dir()]
    if not folder.is_dir():
        raise Missing(f"{VARIABLE}={named} is not a folder: {HINT}")
    if absent:
        raise Missing(f"{VARIABLE}={named} holds no program {' and no '.join(absent)}: {HINT}")
    return folder


def crds_in(folder: Path) -> list[Object]:
    """Return the CRDs in the YAML files of a folder. Raises Missing."""
    texts = [path.read_text() for path in sorted(folder.glob("*.yaml"))]
    found = [one for text in texts for one in yaml.safe_load_all(text) if one]
    crds = [one for one in found if one.get("kind") == "CustomResourceDefinition"]
    if not crds:
        raise Missing(
            f"{folder} holds no CustomResourceDefinition: name a folder that does (make test-envtest CRDS=…)"
        )
    return crds


class KubeApiServer:
    """
    A kube-apiserver with its etcd. Use as a context manager.

    `assets`: the folder with the programs; `folder`: for its own files.
    """

    rbac_lag = 0.2

    def __init__(self, assets: Path, folder: Path) -> None:
        self.host = "127.0.0.1"
        self.port, self._etcd_port, peer = _free_ports(3)
        self.token = secrets.token_hex(24)
        self._assets, self._folder, self._peer = assets, folder, peer
        self._ca = trustme.CA()
        self._opened = ExitStack()
        self._first: frozenset[bytes] = frozenset()

    # -- start and stop

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._write_files()
            self._session = opened.enter_context(admin_session(self.token, self.ca_file))
            self._start("etcd", self._etcd_options(), opened)
            api_server = self._start("kube-apiserver", self._api_server_options(), opened)
            self._until(self._is_ready, api_server)
            self._until(self._is_settled, api_server)
            self._first = frozenset(self._keys())
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _write_files(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())  # as the embedded hub: ES256
        certificate = self._ca.issue_cert(self.host, "localhost")
        self._ca.cert_pem.write_to_path(self.ca_file)
        certificate.private_key_pem.write_to_path(self._folder / "tls.key")
        certificate.cert_chain_pems[0].write_to_path(self._folder / "tls.crt")
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        (self._folder / "accounts.key").write_bytes(private)
        (self._folder / "tokens.csv").write_text(f'{self.token},{ADMIN},{ADMIN},"system:masters"\n')

    def _etcd_options(self) -> dict[str, object]:
        client, peer = f"http://{self.host}:{self._etcd_port}", f"http://{self.host}:{self._peer}"
        return {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "true",  # no data outlives the tests
        }

    def _api_server_options(self) -> dict[str, object]:
        return {
            "etcd-servers": f"http://{self.host}:{self._etcd_port}",
            "bind-address": self.host,
            "advertise-address": self.host,
            "secure-port": self.port,
            "cert-dir": self._folder,
            "tls-cert-file": self._folder / "tls.crt",
            "tls-private-key-file": self._folder / "tls.key",
            "token-auth-file": self._folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-account-issuer": AUDIENCE,
            "service-account-key-file": self._folder / "accounts.key",
            "service-account-signing-key-file": self._folder / "accounts.key",
            "service-cluster-ip-range": "10.0.0.0/24",
            "disable-admission-plugins": "ServiceAccount",  # no controller creates accounts called `default`
        }

    def _start(self, program: str, options: dict[str, object], opened: ExitStack) -> subprocess.Popen[bytes]:
        log = opened.enter_context((self._folder / f"{program}.log").open("wb"))
        command = [str(self._assets / program), *(f"--{name}={value}" for name, value in options.items())]
        # A session of its own: Ctrl-C reaches pytest alone, which then stops it.
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, start_new_session=True)
        opened.callback(_stop, process)
        return process

    def _until(self, ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                pytest.exit(f"the API server did not come up: {self._last_words()}", returncode=2)
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        with contextlib.suppress(requests.ConnectionError):  # it does not listen yet
            return self._session.get(f"{self.url}/readyz", timeout=10).ok
        return False

    def _is_settled(self) -> bool:
        """Whether the API server has created its own objects."""
        return len(self._own_objects()) >= 3

    def _own_objects(self) -> list[str]:
        items = self._session.get(f"{self.url}/api/v1/namespaces", timeout=30).json()["items"]
        return [name for item in items if (name := item["metadata"]["name"]) in _NAMESPACES]

    def _last_words(self) -> str:
        lines = (self._folder / "kube-apiserver.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.pem"

    # -- between tests

    def wipe(self) -> None:
        """Delete every object that did not exist at the start, with or without finalizers, but no CRD."""
        added = [key for key in self._keys() if key not in self._first and not key.startswith(KEPT)]
        for start in range(0, len(added), AT_ONCE):
            deletes = [
                {"request_delete_range": {"key": _coded(key)}} for key in added[start : start + AT_ONCE]
            ]
            self._etcd("txn", {"success": deletes})

    def _keys(self) -> Iterator[bytes]:
        asked = {"key": _coded(b"/registry/"), "range_end": _coded(b"/registry0"), "keys_only": True}
        return (base64.b64decode(found["key"]) for found in self._etcd("range", asked).get("kvs", ()))

    def _etcd(self, call: str, body: Object) -> Object:
        answer = self._session.post(
            f"http://{self.host}:{self._etcd_port}/v3/kv/{call}",
            json=body,
            timeout=30,
            headers={"Authorization": None},  # etcd would take our token for one of its own
        )
        answer.raise_for_status()
        return dict(answer.json())


_NAMESPACES = ("default", "kube-system", "kube-public")


def admin_session(token: str, ca_file: Path | None = None) -> requests.Session:
    """Return a session that sends this token and trusts this CA."""
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {token}"
    session.verify = True if ca_file is None else str(ca_file)
    return session


def write_plain_kubeconfig(hub: Hub, path: Path) -> None:
    """Write the admin's kubeconfig of the hub, with plain HTTP where it serves that.

    A quarter of the CPU of a test with a controller is TLS; tests that are about it write their own.
    """
    config = hub.kubeconfig()
    if hub.url.startswith("http://"):
        config["clusters"][0]["cluster"] = {"server": hub.url}
    path.write_text(json.dumps(config))


def session_to(hub: Hub, token: str | None = None) -> requests.Session:
    """Return a session with a hub, as its admin unless another token is given."""
    return admin_session(token or hub.token)


def connection_to(hub: Hub) -> http.client.HTTPConnection:
    """Return a bare connection with a hub."""
    return http.client.HTTPConnection(hub.host, hub.port, timeout=20)


def _coded(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        taken = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in taken]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
