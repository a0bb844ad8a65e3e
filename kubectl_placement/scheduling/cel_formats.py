"""
The named formats of Kubernetes inside CEL.

Pure. Sources: k8s.io/apiserver `pkg/cel/library/format.go`; k8s.io/apimachinery `pkg/util/validation`;
kube-openapi `pkg/validation/strfmt`.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Final

from kubectl_placement.scheduling.cel_addresses import parse_url
from kubectl_placement.scheduling.cel_environment import opaque

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)"
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DATETIME: Final = re.compile(
    r"(?i)[0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
)
_DNS_LABEL, _DNS_SUBDOMAIN = 63, 253


def _pattern(pattern: str, longest: int, is_prefix: bool = False) -> Callable[[str], bool]:
    compiled = re.compile(pattern)

    def fits(text: str) -> bool:
        # Of a prefix, a generated name goes on: a last dash counts as a letter.
        whole = f"{text[:-1]}a" if is_prefix and text.endswith("-") else text
        return len(text.encode()) <= longest and compiled.fullmatch(whole) is not None

    return fits


def _qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    fits = bool(re.fullmatch(_NAME, name)) and len(name) <= _DNS_LABEL
    return fits and (not slash or FORMATS["dns1123Subdomain"](prefix))


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _day(text: str) -> None:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError("invalid date")
    date.fromisoformat(text)


def _moment(text: str) -> None:
    if not _DATETIME.fullmatch(text):
        raise ValueError("invalid datetime")
    datetime.fromisoformat(re.sub(r"\.[0-9]+", "", text.upper()))


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "dns1123Label": _pattern(_LABEL, _DNS_LABEL),
    "dns1123Subdomain": _pattern(rf"{_LABEL}(?:\.{_LABEL})*", _DNS_SUBDOMAIN),
    "dns1035Label": _pattern("[a-z](?:[-a-z0-9]*[a-z0-9])?", _DNS_LABEL),
    "qualifiedName": _qualified,
    "dns1123LabelPrefix": _pattern(_LABEL, _DNS_LABEL, is_prefix=True),
    "dns1123SubdomainPrefix": _pattern(rf"{_LABEL}(?:\.{_LABEL})*", _DNS_SUBDOMAIN, is_prefix=True),
    "dns1035LabelPrefix": _pattern("[a-z](?:[-a-z0-9]*[a-z0-9])?", _DNS_LABEL, is_prefix=True),
    "labelValue": _pattern(f"{_NAME}?", _DNS_LABEL),
    "uri": _reads(parse_url),
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "byte": _reads(lambda text: base64.b64decode(text, validate=True)),
    "date": _reads(_day),
    "datetime": _reads(_moment),
}


def named(name: str) -> dict[str, object]:
    """Return the format of that name as a map's `format`, an empty map if there is none."""
    return {"format": opaque("Format", name)} if name in FORMATS else {}


def errors_of(name: str, text: str) -> dict[str, list[str]]:
    """Return what the format `name` objects to as a map's `errors`, an empty map if it is nothing."""
    return {} if FORMATS[name](text) else {"errors": [f"does not match the {name} format"]}
