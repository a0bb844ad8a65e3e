"""
Judge the addresses in a kubeconfig as Kueue and client-go do: the URL of a server, and of a proxy.

Pure. Sources: Kueue's validateRestConfig, Go's net/url.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from placement_ac.core.kubeconfig.refusals import Refusal

_DNS_1123: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1123_MAX: Final = 253
ONE_WORD: Final = re.compile(r"[!-~]+")
"""Printable ASCII without blanks: an address, or a token in a header."""


def server_objections(server: str) -> Iterator[str]:
    """Yield what is wrong with a server's URL. Go looks for a port before it looks at brackets."""
    url = _split(server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        yield Refusal.ADDRESS
    elif not _is_host(url.hostname):
        yield Refusal.HOST
    elif url.netloc.endswith("]"):
        yield Refusal.IPV6


def is_proxy(address: str) -> bool:
    url = _split(address)
    return url is not None and url.scheme in ("http", "https", "socks5") and bool(url.netloc)


def scheme(address: str) -> str:
    return urlsplit(address).scheme


def has_user_info(address: str) -> bool:
    return "@" in urlsplit(address).netloc


def plain_server(server: str) -> str:
    """Return it without a user, who may have a password, and like Go without query and fragment."""
    url = urlsplit(server)
    host = url.netloc.rpartition("@")[2]
    return f"{url.scheme}://{host}{url.path}".rstrip("/")


def _split(address: str) -> SplitResult | None:
    try:
        url = urlsplit(address)
        _ = url.port
    except ValueError:
        return None
    return url if ONE_WORD.fullmatch(address) else None  # urlsplit overlooks blanks and line breaks


def _is_host(host: str) -> bool:
    if len(host) <= _DNS_1123_MAX and _DNS_1123.fullmatch(host):
        return True  # an IPv4 address too
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
