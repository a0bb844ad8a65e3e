"""
Label selectors in kubectl's syntax: `a=b,c!=d,e in (f, g),h notin (i),j,!k,l>5`.

Pure. Source: k8s.io/apimachinery `labels.Parse`; a key that is missing satisfies `!=` and `notin`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from placement_ac.core.api.text import shortened

CLAIM: Final = "claim:"
"""The prefix of a key that names a ClusterClaim instead of a label."""

_KEY: Final = r"(?:claim:)?[a-z0-9A-Z](?:[-a-z0-9A-Z._/]*[a-z0-9A-Z])?"
_VALUE: Final = r"(?:[a-z0-9A-Z](?:[-a-z0-9A-Z._]*[a-z0-9A-Z])?)?"
_EQUALITY: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_MEMBERSHIP: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE: Final = re.compile(rf"(!?)\s*({_KEY})")
_ORDER: Final = re.compile(rf"({_KEY})\s*([<>])\s*(-?\d+)")
_PART: Final = re.compile(r"((?:[^,(]|\([^)]*\)?)*),")
"""A requirement up to the comma outside of parentheses that ends it; the alternatives exclude each other."""


class SelectorError(ValueError):
    """The text is no label selector; its message quotes the part that is not."""


class Requirement(NamedTuple):
    """One requirement. `operator` is one of Kubernetes' for node affinity: In, NotIn, Exists, Gt, …"""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether it is met by that value of the label; None: the label is missing."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _is_beyond(self.operator, value, self.values)
        return False

    def __str__(self) -> str:
        values = ", ".join(self.values)
        match self.operator:
            case "In":
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
        return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{values}"


def _is_beyond(operator: str, value: str | None, bounds: tuple[str, ...]) -> bool:
    try:
        number, bound = int(value or ""), int(bounds[0] if bounds else "")
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """Return the requirements, which must all be met; none for an empty text. Raises SelectorError."""
    found = _parsed(text)
    if isinstance(found, str):
        raise SelectorError(found)
    return found


@lru_cache(maxsize=64)  # of annotations of up to 8 KB
def _parsed(text: str) -> tuple[Requirement, ...] | str:
    """Return the requirements, or what is wrong: a wrong text is judged for each cluster, too."""
    try:
        return (
            tuple([_requirement(part.strip()) for part in _PART.findall(f"{text},")]) if text.strip() else ()
        )
    except SelectorError as error:
        return str(error)


def _requirement(text: str) -> Requirement:
    if match := _EQUALITY.fullmatch(text):
        key, sign, value = match.groups()
        return Requirement(key, "NotIn" if sign == "!=" else "In", (value,))
    if match := _MEMBERSHIP.fullmatch(text):
        key, sign, listed = match.groups()
        values = tuple(part.strip() for part in listed.split(","))
        return Requirement(key, "NotIn" if sign == "notin" else "In", values)
    if match := _EXISTENCE.fullmatch(text):
        absent, key = match.groups()
        return Requirement(key, "DoesNotExist" if absent else "Exists")
    if match := _ORDER.fullmatch(text):
        return Requirement(match[1], "Gt" if match[2] == ">" else "Lt", (match[3],))
    raise SelectorError(f"{shortened(text)!r} is not a label selector")
