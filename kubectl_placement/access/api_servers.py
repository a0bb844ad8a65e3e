"""
Whether a context of a kubeconfig leads to the API server of a managed cluster: by its address and its CA.

Pure. The address alone does not tell: two networks may have the same private address.
"""

import base64
import re
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.fields import Obj, get_list, get_str
from placement_ac.core.kubeconfig.read import plain_server, split_address
from placement_ac.core.kubeconfig.source import ClusterAccess

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An API server as the hub describes it; `authority`: PEM, "": those that everybody trusts."""

    url: str
    authority: str = field(default="", repr=False)


def servers_of_cluster(managed_cluster: Obj) -> tuple[ApiServer, ...]:
    """Return the API servers in a ManagedCluster's `spec.managedClusterClientConfigs`."""
    configs = get_list(managed_cluster, "spec", "managedClusterClientConfigs")
    return _servers((get_str(config, "url"), get_str(config, "caBundle")) for config in configs)


def servers_of_profile(profile: Obj) -> tuple[ApiServer, ...]:
    """Return the API servers in a ClusterProfile's access providers, also under their former name."""
    names = ("accessProviders", "credentialProviders")
    offers = [offer for name in names for offer in get_list(profile, "status", name)]
    fields = ("server", "certificate-authority-data")
    return _servers(tuple(get_str(offer, "cluster", name) for name in fields) for offer in offers)


def _servers(pairs: object) -> tuple[ApiServer, ...]:
    found = (ApiServer(url, _decoded(data)) for url, data in pairs if url)  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(found))


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data).decode("ascii", "ignore")
    except ValueError:
        return ""


def mismatch(access: ClusterAccess, server: ApiServer) -> str:
    """Return why a context with this access does not lead to `server`; "" if it does."""
    if _address(access.server) is None or _address(access.server) != _address(server.url):
        return "address"
    if access.insecure:
        return "it does not verify the server (insecure-skip-tls-verify)"
    theirs, known = _certificates(access.authority), _certificates(server.authority)
    if not theirs and not known:
        return ""
    if not known:
        return "the hub does not name the CA of that server"
    if not theirs:
        return "it names no CA, and the hub does"
    return "" if theirs & known else "its CA is another one"


def _address(url: str) -> tuple[str, str, int, str] | None:
    parts = split_address(url)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return None
    path = plain_server(url).partition("://")[2].partition("/")[2]
    return parts.scheme, parts.hostname.rstrip("."), parts.port or _PORTS[parts.scheme], path


def _certificates(pem: str) -> frozenset[str]:
    return frozenset("".join(body.split()) for body in _PEM.findall(pem))
