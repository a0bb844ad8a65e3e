"""
Kubernetes quantities (`500m`, `16Gi`, `1e3`) as exact numbers, and in thousandths.

Pure. Source: k8s.io/apimachinery `api/resource`: suffixes of ten, suffixes of two, an exponent. As there, one
that is finer than a nano is rounded up, away from 0, and one with a suffix of two is at most an int64. In
thousandths, others that do not fit an int64 count as the largest, as for Kueue's `ResourceValue` (Go's own
`Value`, which Kueue used before 0.18.5 and 0.19.1, is 0 for them).
"""

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40}))"
    r"(?P<suffix>[eE][+-]?[0-9]{1,2}|[KMGTPE]i|[numkMGTPE]?)"
)
_CHARS_MAX: Final = 100
"""Longer texts are no quantities; they are not remembered."""
_INT64_MAX: Final = 2**63 - 1
LARGEST: Final = _INT64_MAX * 1000
"""In thousandths."""
_NANOS: Final = 10**9


def exact(value: object) -> Fraction | None:
    """Return a quantity, given as text or as a JSON number; None if it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(_limited(value * 1000), 1000)
    return parsed[0] if (parsed := _read(value)) else None


def milli(value: object) -> int | None:
    """Return a quantity, given as text or as a JSON number, in thousandths; None if it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _limited(value * 1000)
    return parsed[1] if (parsed := _read(value)) else None


def _limited(thousandths: int) -> int:
    return max(-LARGEST, min(thousandths, LARGEST))


def _read(value: object) -> tuple[Fraction, int] | None:
    text = str(value) if isinstance(value, str | float) else ""
    return _parsed(text) if len(text) <= _CHARS_MAX else None


@lru_cache(maxsize=1024)  # a fleet repeats the same values
def _parsed(text: str) -> tuple[Fraction, int] | None:
    """Return the number, and its thousandths."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    suffix = match["suffix"]
    if suffix in _BINARY:
        factor = Fraction(2) ** _BINARY[suffix]
    else:
        factor = Fraction(10) ** (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
    number = _away_from_zero(Fraction(match["number"]) * factor, _NANOS)
    if suffix in _BINARY:
        number = max(Fraction(-_INT64_MAX), min(number, Fraction(_INT64_MAX)))
    return number, _limited(int(_away_from_zero(number, 1000) * 1000))


def _away_from_zero(number: Fraction, parts: int) -> Fraction:
    """Return the number in such parts of 1, rounded up if it is positive, else down."""
    rounded = Fraction(math.ceil(abs(number) * parts), parts)
    return -rounded if number < 0 else rounded


def format_milli(value: int) -> str:
    """Return the shortest exact quantity of that many thousandths."""
    whole, rest = divmod(value, 1000)
    if rest:
        return f"{value}m"
    for suffix, power in reversed(_BINARY.items()):
        if suffix != "Ki" and whole and whole % 2**power == 0:
            return f"{whole >> power}{suffix}"
    return str(whole)
