"""
Addresses and URLs inside CEL.

Pure. Sources: Go's `net/netip` and `net/url`; k8s.io/apiserver `pkg/cel/library` (ip, cidr, urls). An
address is its canonical text, a URL its text.
"""

import ipaddress
import re
from typing import Final, TypeAlias
from urllib.parse import SplitResult, parse_qs, quote, unquote_to_bytes, urlsplit

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_BROADCAST: Final = ipaddress.ip_address("255.255.255.255")
_PREFIX: Final = re.compile(r"[^/]+/(?:0|[1-9][0-9]{0,2})")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%25[^\]]+)?\]|[^\[\]:\s%<>\"^`{}|\\]*)(?::[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*")


def parse_ip(text: str) -> Address:
    """Return the address; raise ValueError if it is none, has a zone, or is an IPv4 address as IPv6."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError("a zone and an IPv4-mapped address are not allowed")
    return address


def is_global_unicast(text: str) -> bool:
    """As Go says it: private addresses are global, too."""
    address = parse_ip(text)
    return not (
        address.is_multicast
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address == _BROADCAST
    )


def is_link_local_multicast(text: str) -> bool:
    """As Go says it: 224.0.0.0/24 and ff02::/16."""
    address = parse_ip(text)
    if isinstance(address, ipaddress.IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0xF == 2  # noqa: PLR2004, RUF100  # its scope


def interface(text: str) -> Interface:
    """Return the address with its prefix; raise ValueError."""
    if not _PREFIX.fullmatch(text):
        raise ValueError("no CIDR")
    parse_ip(text.partition("/")[0])
    return ipaddress.ip_interface(text)


def ip_of(text: str) -> str:
    """Return the address of a CIDR."""
    return str(interface(text).ip)


def cidr_of(text: str) -> str:
    """Return the CIDR with its host bits cleared."""
    return str(interface(text).network)


def contains_ip(cidr: str, address: str) -> bool:
    """Say whether the address is in the network; raise ValueError if it is none."""
    return parse_ip(address) in interface(cidr).network


def contains_cidr(cidr: str, inner: str) -> bool:
    """Say whether all of `inner` is in `cidr`; raise ValueError if it is none."""
    outer, part = interface(cidr).network, interface(inner).network
    return outer.version == part.version and part.subnet_of(outer)  # type: ignore[arg-type]  # of one version


def parse_url(text: str) -> SplitResult:
    """Return the parts of an absolute URL, or of a path; raise ValueError as Go's `ParseRequestURI` would."""
    scheme = _SCHEME.match(text)
    if not text or _CONTROL.search(text) or not (scheme or text.startswith("/")):
        raise ValueError("invalid URI for request")
    rest = text[scheme.end() :] if scheme else text
    if scheme and not rest.startswith("/"):
        return urlsplit(text)  # Go calls the rest opaque, and does not look into it
    # Without a scheme, Go takes `//a` for a path.
    parts = urlsplit(text) if scheme else SplitResult("", "", *urlsplit(f"x:{text}")[2:])
    user, _, host = parts.netloc.rpartition("@")
    if not _HOST.fullmatch(host) or not _USER.fullmatch(user) or _BAD_ESCAPE.search(parts.path + user):
        raise ValueError("invalid URI for request")
    return parts


def host_of(url: str) -> str:
    """Return the host without its port and brackets."""
    host = parse_url(url).netloc.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def port_of(url: str) -> str:
    """Return the port as text, empty if there is none."""
    return parse_url(url).netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]


def escaped_path(url: str) -> str:
    """Return the path as it was written, or encoded if that was not valid."""
    path = parse_url(url).path
    return path if _PLAIN_PATH.fullmatch(path) else quote(unquote_to_bytes(path), safe="$&+,/:;=@~")


def query_of(url: str) -> dict[str, list[str]]:
    """Return the query's values by name."""
    return parse_qs(parse_url(url).query, keep_blank_values=True)
