"""
Hand over to kubectl (`exec`, `port-forward`) with the access that was found, or print its line (`access`).

The first two are protocols of their own (SPDY or WebSocket with channels, a raw terminal, listening sockets),
which kubectl speaks with every server and proxy; a user of this command has it. It gets the caller's own
context where there is one, else a kubeconfig in a folder of its own (0700; the file 0600), which is removed
then.
"""

import asyncio
import base64
import json
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from kubectl_placement.access.open import OpenCluster
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.kubeconfig.source import ClusterAccess

KUBECTL: Final = "kubectl"
_HEADERS: Final = {"Impersonate-User": "as", "Impersonate-Uid": "as-uid"}
_EXTRA: Final = "Impersonate-Extra-"


class NoKubectl(PlacementAcError):
    """There is no kubectl on the PATH."""


async def run_kubectl(cluster: OpenCluster, namespace: str, words: Sequence[str]) -> int:
    """Run kubectl with these words on the cluster, and this process' input and output; return its exit code.

    Raises NoKubectl.
    """
    kubectl = shutil.which(KUBECTL)
    if kubectl is None:
        raise NoKubectl(f"install {KUBECTL}: `{words[0]}` hands over to it")
    with tempfile.TemporaryDirectory(prefix="placement-ac-") as folder:
        flags = cluster.candidate.kubectl or ("--kubeconfig", str(_written(Path(folder), cluster)))
        process = await asyncio.create_subprocess_exec(kubectl, *flags, "--namespace", namespace, *words)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # the terminal sends it to kubectl, too
        try:
            code = await process.wait()
        except asyncio.CancelledError:  # SIGTERM, SIGHUP
            process.terminate()
            await process.wait()
            raise
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return code if code >= 0 else 128 - code


def kubectl_words(cluster: OpenCluster, namespace: str) -> tuple[list[str], Path | None]:
    """Return kubectl's name and flags for the cluster, and the kubeconfig that was written for them.

    None is written where the caller has one. A written one stays, as `run_kubectl` writes it.
    """
    candidate, flags, written = cluster.candidate, cluster.candidate.kubectl, None
    if candidate.temporary or not flags:
        written = _written(Path(tempfile.mkdtemp(prefix="placement-ac-")), cluster)
        flags = ("--kubeconfig", str(written), *flags[2:])
    return [KUBECTL, *flags, "--namespace", namespace], written


def _written(folder: Path, cluster: OpenCluster) -> Path:
    candidate, path = cluster.candidate, folder / "kubeconfig"
    path.touch(0o600)
    if candidate.temporary:
        path.write_bytes(Path(candidate.kubectl[1]).read_bytes())
    else:
        path.write_text(json.dumps(kubeconfig_of(candidate.login.access)), "utf-8")
    return path


def kubeconfig_of(access: ClusterAccess) -> dict[str, Any]:
    """Return a kubeconfig with this access, which holds its secrets."""
    cluster = {
        "server": access.server,
        "certificate-authority-data": _encoded(access.authority),
        "tls-server-name": access.server_name,
        "proxy-url": access.proxy,
    }
    user: dict[str, Any] = {
        "token": access.token,
        "client-certificate-data": _encoded(access.certificate),
        "client-key-data": _encoded(access.key),
    }
    user |= {_HEADERS[name]: value for name, value in access.impersonation if name in _HEADERS}
    user["as-groups"] = [value for name, value in access.impersonation if name == "Impersonate-Group"]
    extra: dict[str, list[str]] = {}
    for header, value in access.impersonation:
        if header.startswith(_EXTRA):
            extra.setdefault(unquote(header.removeprefix(_EXTRA)), []).append(value)
    user["as-user-extra"] = extra
    name = "placement-ac"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {key: value for key, value in cluster.items() if value}}],
        "users": [{"name": name, "user": {key: value for key, value in user.items() if value}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
