"""
The proxy to a server: that of a kubeconfig, or the environment's; and connections through a SOCKS proxy.

Which proxy the environment names is decided as by Go (golang.org/x/net/http/httpproxy), and so by kubectl
and Kueue:

- HTTPS_PROXY is for https, HTTP_PROXY for http (never with REQUEST_METHOD set); ALL_PROXY is ignored. The
  name in capitals comes first, an empty value counts as none. Without a scheme, a proxy is an http one.
- localhost and loopback addresses have no proxy.
- NO_PROXY is a list, separated by commas, of servers without a proxy: `*` for all; an IP address or a network
  for a server named by its address, which is not looked up; `example.com` for a host and those below it,
  `.example.com` and `*.example.com` for those below it. An entry but a network may have a port.
"""

import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.read import is_proxy

Address = IPv4Address | IPv6Address

_PORTS: Final = {"http": "80", "https": "443"}
_SOCKS: Final = "socks5"
_SOCKS_PORT: Final = 1080
_HOST_AND_PORT: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*)):([^\[\]:]*)")
_NETWORK: Final = re.compile(r"[0-9a-f:.]+/[0-9]+")


def proxy_of_environment(server: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy to `server`, a URL; "": none. Raises LoginFailed for an unknown kind."""
    url = urlsplit(server)
    name = f"{url.scheme.upper()}_PROXY"
    proxy = _proxy_url(_value(environment, name))
    if not proxy or (url.scheme == "http" and environment.get("REQUEST_METHOD")):
        return ""
    if not _uses_proxy(url, _value(environment, "NO_PROXY")):
        return ""
    if not is_proxy(proxy.replace("socks5h:", "socks5:", 1)):
        raise LoginFailed(f"set {name} to an http, https or socks5 URL: it is no such URL")
    return proxy


def connector(proxy: str, **options: Any) -> aiohttp.TCPConnector:
    """Return a connector for a session whose requests go through `proxy` ("": none), with its `options`."""
    return _SocksConnector(urlsplit(proxy), **options) if is_socks(proxy) else aiohttp.TCPConnector(**options)


def is_socks(proxy: str) -> bool:
    """Whether it is a SOCKS proxy, which needs a connector of its own."""
    return proxy.lower().startswith(_SOCKS)


def is_loopback(server: str) -> bool:
    """Whether a URL leads to this machine, by its name alone."""
    host = _server(urlsplit(server))[0]
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _proxy_url(text: str) -> str:
    """Return the URL of a proxy that may lack its scheme; "" for one with a blank, which Go ignores."""
    if not text or any(map(str.isspace, text)):
        return ""
    try:
        url = urlsplit(text)
    except ValueError:
        return text
    return text if url.scheme and url.netloc else f"http://{text}"


def _uses_proxy(url: SplitResult, no_proxy: str) -> bool:
    if is_loopback(url.geturl()):
        return False
    host, port = _server(url)
    address = _address(host)
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    matches = (_matches(entry, host.strip().lower(), port, address) for entry in entries if entry)
    return "*" not in entries and not any(matches)


def _matches(entry: str, host: str, port: str, address: Address | None) -> bool:
    if _NETWORK.fullmatch(entry):
        return address is not None and _is_in(address, entry)
    name, only_port = _host_and_port(entry) or (entry, "")
    if not name or (only_port and only_port != port):
        return False
    if own := _address(name):
        return own == address
    if address:
        return False
    name = name[1:] if name.startswith("*.") else name
    domain = _ascii(name.removeprefix("."))
    return host.endswith(f".{domain}") or (not name.startswith(".") and host == domain)


def _server(url: SplitResult) -> tuple[str, str]:
    """Return the host and the port of a URL."""
    named = url.netloc.rpartition("@")[2]
    host, port = _host_and_port(named) or (named.strip("[]"), "")
    return host, port or _PORTS.get(url.scheme, "")


def _host_and_port(text: str) -> tuple[str, str] | None:
    """Return both as Go's net.SplitHostPort; None: there is no port."""
    match = _HOST_AND_PORT.fullmatch(text)
    return (match[1] or match[2] or "", match[3]) if match else None


def _address(text: str) -> Address | None:
    """Return an IP address; one of IPv4 in IPv6 is the former, and a zone does not count."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in(address: Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _ascii(name: str) -> str:
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name


class _UnresolvedName(AbstractResolver):
    """Resolves no name: the proxy does, as with Go."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host=host, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is open."""


class _SocksConnector(aiohttp.TCPConnector):
    """Connects through a SOCKS 5 proxy; TLS with the server is aiohttp's own, as without a proxy."""

    def __init__(self, proxy: SplitResult, **options: Any) -> None:
        super().__init__(resolver=_UnresolvedName(), **options)
        self._proxy_url = proxy

    # aiohttp calls it once it has an address; the libraries for SOCKS replace it, too.
    async def _wrap_create_connection(self, *args: Any, addr_infos: Any, **options: Any) -> Any:
        host, port = addr_infos[0][4][:2]
        opened = await self._through_proxy(host, port, options["req"], options["timeout"].sock_connect)
        try:
            return await self._wrap_existing_connection(*args, sock=opened, **options)
        except BaseException:
            opened.close()
            raise

    async def _through_proxy(
        self, host: str, port: int, request: aiohttp.ClientRequest, seconds: float | None
    ) -> socket.socket:
        # Imported by those who use it: no start takes longer.
        from python_socks import ProxyError, ProxyType  # noqa: PLC0415
        from python_socks.async_.asyncio import Proxy  # noqa: PLC0415

        url = self._proxy_url
        proxy = Proxy(
            ProxyType.SOCKS5,
            url.hostname or "",
            url.port or _SOCKS_PORT,
            username=unquote(url.username) if url.username else None,
            password=unquote(url.password) if url.password else None,
            rdns=True,
        )
        try:
            return await proxy.connect(host, port, timeout=seconds)
        except (ProxyError, OSError) as error:
            problem = OSError(getattr(error, "errno", None), f"the SOCKS proxy refused: {error}")
            raise aiohttp.ClientProxyConnectionError(request.connection_key, problem) from None
