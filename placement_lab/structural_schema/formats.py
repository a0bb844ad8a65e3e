"""
The formats of texts in schemas. Pure.

Source: the answers of a kube-apiserver 1.36.2 in tests/placement_lab/hub/object_exchanges.jsonl. A format
that is not here takes any text; so do `isbn` and `creditcard`, which no kind uses, unlike on a real server.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
COLOUR = r"\s*([01]?\d?\d|2[0-4]\d|25[0-5])\s*"
CLOCK = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?(z|[+-]\d\d:\d\d)")
ZEROS = re.compile(r"\b0+(?=\d)")


def has_format(text: str, name: str) -> bool:
    """Return whether a text has the format of that name."""
    known = FORMATS.get(name)
    if known is None:
        return True
    return bool(known.fullmatch(text)) if isinstance(known, re.Pattern) else known(text)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    day, _, clock = text.lower().partition("t")
    return _is_date(day) and bool(CLOCK.fullmatch(clock))


def _is_parsed(parse: Callable[[str], object]) -> Callable[[str], bool]:
    """Return whether an address can be parsed, with zeros before its numbers."""

    def test(text: str) -> bool:
        try:
            parse(ZEROS.sub("", text) if "." in text else text)
        except ValueError:
            return False
        return True

    return test


def _network(text: str) -> object:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


FORMATS: dict[str, re.Pattern[str] | Callable[[str], bool]] = {
    "bsonobjectid": _pattern("[0-9a-f]{24}"),
    "byte": _pattern("(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?"),
    "cidr": _is_parsed(_network),
    "date": _is_date,
    "date-time": _is_time,
    "duration": _pattern(r".*\d\s*(ns|[uµm]?s|sec|m|min|h|hr|d|w|nano|micro|milli|minute|hour|day|week)\w*"),
    "email": _pattern(r"[^@\s]+@[^@\s]+"),
    "hexcolor": _pattern("#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "hostname": _pattern(rf"{LABEL}(\.{LABEL})*"),
    "ipv4": _is_parsed(ipaddress.IPv4Address),
    "ipv6": _is_parsed(ipaddress.IPv6Address),
    "k8s-long-name": re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*"),
    "k8s-short-name": re.compile(LABEL),
    "mac": _pattern("([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"),
    "rgbcolor": _pattern(rf"rgb\({COLOUR},{COLOUR},{COLOUR}\)"),
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _pattern(r"(/|[a-z][a-z0-9+.-]*:)\S*"),
    "uuid": _pattern(UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _pattern(UUID % ("3", "[0-9a-f]")),
    "uuid4": _pattern(UUID % ("4", "[89ab]")),
    "uuid5": _pattern(UUID % ("5", "[89ab]")),
}
