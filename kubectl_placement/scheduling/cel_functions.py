"""
The functions that Kubernetes and OCM add to CEL.

Pure. Sources: k8s.io/apiserver `pkg/cel/library`; open-cluster-management.io/sdk-go `pkg/cel/library` for
`parseJSON`. Wrong arguments raise ValueError or TypeError, which CEL turns into an error of the expression.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kubectl_placement.scheduling import cel_formats
from kubectl_placement.scheduling.cel_addresses import (
    cidr_of,
    contains_cidr,
    contains_ip,
    escaped_path,
    host_of,
    interface,
    ip_of,
    is_global_unicast,
    is_link_local_multicast,
    parse_ip,
    parse_url,
    port_of,
    query_of,
)
from kubectl_placement.scheduling.cel_environment import Function, opaque
from kubectl_placement.scheduling.cel_quantities import (
    added,
    approximate,
    as_integer,
    is_integer,
    read_quantity,
    subtracted,
    value_of,
)
from kubectl_placement.scheduling.cel_regex import find, find_all
from kubectl_placement.scheduling.cel_versions import compare_versions, normalized, read_version

_ITEMS: Final = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration")
_ADDABLE: Final = ("int", "uint", "double", "duration")
_CLASSES: Final = ((bool,), (int, float), (str,), (bytearray,), (datetime,), (timedelta,))


def _accepts(parse: Callable[..., object]) -> Callable[..., bool]:
    """Return the function that says whether `parse` takes its arguments."""

    def accepted(*arguments: Any) -> bool:
        try:
            parse(*arguments)
        except ValueError:
            return False
        return True

    return accepted


def _of(name: str, make: Callable[..., object]) -> Callable[..., dict[str, object]]:
    return lambda *arguments: opaque(name, make(*arguments))


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _comparable(items: list[Any]) -> list[Any]:
    """Return `items` if all are of one kind; raise TypeError."""
    if not any(all(type(item) in kinds for item in items) for kinds in _CLASSES):
        raise TypeError("no such overload")
    return items


def _extreme(choose: Callable[[Any], Any]) -> Callable[[list[Any]], Any]:
    def chosen(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{choose.__name__} called on empty list")
        return choose(_comparable(items))

    return chosen


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in zip(items, _comparable(items)[1:], strict=False))


def _sum(items: list[Any]) -> Any:
    if not all(type(item) in (int, float, timedelta) for item in items):
        raise TypeError("no such overload")  # Python adds lists as well, in quadratic time
    return sum(items[1:], items[0]) if items else 0


def _position(items: Sequence[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if _equal(each, item)), -1)


def _last_position(items: Sequence[Any], item: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if _equal(items[index], item)), -1)


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _parse_json(text: str) -> Any:
    """Read JSON as Go does: every number is a double, and `NaN` is none."""

    def refuse(word: str) -> None:
        raise ValueError(f"failed to parse json: {word}")

    return json.loads(text, parse_int=float, parse_constant=refuse)


QUANTITIES: Final = (
    Function("quantity(string) Quantity", _of("Quantity", read_quantity)),
    Function("isQuantity(string) bool", _accepts(read_quantity)),
    Function("sign(Quantity) int", lambda each: _sign(value_of(each), 0)),
    Function("Quantity.isGreaterThan(Quantity) bool", lambda a, b: value_of(a) > value_of(b)),
    Function("Quantity.isLessThan(Quantity) bool", lambda a, b: value_of(a) < value_of(b)),
    Function("Quantity.compareTo(Quantity) int", lambda a, b: _sign(value_of(a), value_of(b))),
    Function("Quantity.asApproximateFloat() double", approximate),
    Function("Quantity.asInteger() int", as_integer),
    Function("Quantity.isInteger() bool", is_integer),
    Function("Quantity.add(Quantity) Quantity", _of("Quantity", added)),
    Function("Quantity.add(int) Quantity", _of("Quantity", added)),
    Function("Quantity.sub(Quantity) Quantity", _of("Quantity", subtracted)),
    Function("Quantity.sub(int) Quantity", _of("Quantity", subtracted)),
)
VERSIONS: Final = (
    Function("semver(string) Semver", _of("Semver", read_version)),
    Function("isSemver(string) bool", _accepts(read_version)),
    Function("Semver.isGreaterThan(Semver) bool", lambda a, b: compare_versions(a, b) > 0),
    Function("Semver.isLessThan(Semver) bool", lambda a, b: compare_versions(a, b) < 0),
    Function("Semver.compareTo(Semver) int", compare_versions),
    Function("Semver.major() int", lambda version: version[0]),
    Function("Semver.minor() int", lambda version: version[1]),
    Function("Semver.patch() int", lambda version: version[2]),
)
NORMALIZED_VERSIONS: Final = (
    Function("semver(string,bool) Semver", _of("Semver", normalized)),
    Function("isSemver(string,bool) bool", _accepts(normalized)),
)
"""Version 1 of Kubernetes' library. OCM has version 0, so that it refuses these."""
ADDRESSES: Final = (
    Function("ip(string) IP", _of("IP", lambda text: str(parse_ip(text)))),
    Function("isIP(string) bool", _accepts(parse_ip)),
    Function("ip.isCanonical(string) bool", lambda text: str(parse_ip(text)) == text),
    Function("string(IP) string", lambda text: text),
    Function("IP.family() int", lambda text: parse_ip(text).version),
    Function("IP.isUnspecified() bool", lambda text: parse_ip(text).is_unspecified),
    Function("IP.isLoopback() bool", lambda text: parse_ip(text).is_loopback),
    Function("IP.isLinkLocalMulticast() bool", is_link_local_multicast),
    Function("IP.isLinkLocalUnicast() bool", lambda text: parse_ip(text).is_link_local),
    Function("IP.isGlobalUnicast() bool", is_global_unicast),
    Function("cidr(string) CIDR", _of("CIDR", lambda text: str(interface(text)))),
    Function("isCIDR(string) bool", _accepts(interface)),
    Function("string(CIDR) string", lambda text: text),
    Function("CIDR.containsIP(string) bool", contains_ip),
    Function("CIDR.containsIP(IP) bool", contains_ip),
    Function("CIDR.containsCIDR(string) bool", contains_cidr),
    Function("CIDR.containsCIDR(CIDR) bool", contains_cidr),
    Function("CIDR.ip() IP", _of("IP", ip_of)),
    Function("CIDR.prefixLength() int", lambda text: interface(text).network.prefixlen),
    Function("CIDR.masked() CIDR", _of("CIDR", cidr_of)),
)
URLS: Final = (
    Function("url(string) URL", _of("URL", lambda text: parse_url(text).geturl())),
    Function("isURL(string) bool", _accepts(parse_url)),
    Function("URL.getScheme() string", lambda text: parse_url(text).scheme),
    Function("URL.getHost() string", lambda text: parse_url(text).netloc.rpartition("@")[2]),
    Function("URL.getHostname() string", host_of),
    Function("URL.getPort() string", port_of),
    Function("URL.getEscapedPath() string", escaped_path),
    Function("URL.getQuery() map(string,list(string))", query_of),
)
FORMATS: Final = (
    Function("format.named(string) map(string,Format)", cel_formats.named),
    Function("Format.validate(string) map(string,list(string))", cel_formats.errors_of),
    *(
        Function(f"format.{name}() Format", _of("Format", lambda name=name: name))
        for name in cel_formats.FORMATS
    ),
)
REGEX: Final = (
    Function("string.find(string) string", find),
    Function("string.findAll(string) list(string)", find_all),
    Function("string.findAll(string,int) list(string)", find_all),
)
LISTS: Final = (
    *(Function(f"list({each}).isSorted() bool", _is_sorted) for each in _ITEMS),
    *(Function(f"list({each}).sum() {each}", _sum) for each in _ADDABLE),
    *(Function(f"list({each}).min() {each}", _extreme(min)) for each in _ITEMS),
    *(Function(f"list({each}).max() {each}", _extreme(max)) for each in _ITEMS),
    *(Function(f"list({each}).indexOf({each}) int", _position) for each in (*_ITEMS, "list(dyn)", "map")),
    *(
        Function(f"list({each}).lastIndexOf({each}) int", _last_position)
        for each in (*_ITEMS, "list(dyn)", "map")
    ),
)
KUBERNETES: Final = (*QUANTITIES, *VERSIONS, *ADDRESSES, *URLS, *FORMATS, *REGEX, *LISTS)
JSON: Final = (Function("string.parseJSON() dyn", _parse_json),)
