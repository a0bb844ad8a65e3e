"""Kubeconfigs of other users than the admin, and of the installation's ServiceAccount as its Pod has it."""

import base64
import json
from pathlib import Path

from placement_lab.hub import Hub
from tests.support.driver import CORE, Driver
from tests.support.installation import NAME, NAMESPACE


def kubeconfig_of(hub: Hub, path: Path, token: str) -> Path:
    """Write the hub's kubeconfig with that token in place of its user's credentials; return its path."""
    content = hub.kubeconfig()
    content["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(content))
    return path


def account_kubeconfig(admin: Driver, folder: Path, name: str = NAME, namespace: str = NAMESPACE) -> Path:
    """Write a kubeconfig with a token of the account, and the CA in a file of its own; return its path."""
    path = f"{CORE}/namespaces/{namespace}/serviceaccounts/{name}/token"
    token = admin.ask("POST", path, {"spec": {}})["status"]["token"]
    config = admin.hub.kubeconfig()
    cluster = config["clusters"][0]["cluster"]
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
    cluster["certificate-authority"] = str(folder / "ca.crt")
    config["users"][0]["user"]["token"] = token
    written = folder / "account"
    written.write_text(json.dumps(config))
    return written
