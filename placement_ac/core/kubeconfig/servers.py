"""
The servers that may get the token of an access provider: the admin's allow-list.

Pure. An address that is not clearly one host is not allowed.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.read import is_host, split_address

AllowedServers = Mapping[str, tuple[str, ...]]
"""Access provider, the preferred one first → the suffixes of its servers' hosts; none: any server."""
Endpoints = Mapping[str, str]
"""Field of an offer's `cluster` → the address in it. A token passes through each of them."""

_FIELDS: Final = ("server", "proxy-url")
"""A proxy counts as well: whoever sets it sets the CA, too, and could pretend to be the server."""


def endpoints(cluster: Mapping[str, Any]) -> Endpoints:
    """Return the addresses in the `cluster` of an offer; an address of another type is no address."""
    fields = [field for field in _FIELDS if field == "server" or cluster.get(field)]
    return {field: str(cluster.get(field) or "") for field in fields}


def is_suffix(entry: str) -> bool:
    """Whether an entry is a host name, a domain with a leading dot, or an IP address."""
    return _ip(entry) is not None or is_dns_name(entry.lower().removeprefix("."))


def server_problem(provider: str, addresses: Endpoints, suffixes: Sequence[str]) -> str:
    """Return the fix if a plugin may not be run for these addresses, and why; "" if it may be."""
    for field, address in addresses.items():
        if suffixes and not _is_allowed(address, suffixes):
            return (
                f"correct the {field} of access provider {provider}, or add its host to "
                "allowedServerSuffixes in the file --access-providers: it is not allowed there"
            )
    return ""


def _is_allowed(address: str, suffixes: Sequence[str]) -> bool:
    url = split_address(address)
    if url is None or not url.scheme or "@" in url.netloc or not is_host(url.hostname or ""):
        return False  # with a user name, programs do not agree on the host
    return any(_matches(url.hostname or "", suffix.lower()) for suffix in suffixes)


def _matches(host: str, suffix: str) -> bool:
    if _ip(host) or _ip(suffix):
        return _ip(host) == _ip(suffix)
    return host.endswith(suffix) if suffix.startswith(".") else f".{host}".endswith(f".{suffix}")


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
