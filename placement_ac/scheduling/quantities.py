"""
Kubernetes quantities: `500m`, `16Gi`, `1e3`.

Pure. Exact: a quantity is a Fraction. Source: k8s.io/apimachinery
`api/resource` (suffixes of ten, suffixes of two, an exponent).
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[eE][+-]?\d{1,4}|[KMGTPE]i|[numkMGTPE]?)")

_KEPT: Final = 1_000
"""Size of the cache of quantities: a fleet repeats the same values, and parsing takes 10 µs."""


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_quantity(value: object) -> Fraction:
    """Return the value of a quantity given as text or as a JSON number; raise QuantityError."""
    found = _parsed(str(value)) if isinstance(value, str | int | float) else None
    if found is None:
        raise QuantityError(f"{value!r} is no quantity")
    return found


@lru_cache(_KEPT)
def _parsed(text: str) -> Fraction | None:
    found = _FORM.fullmatch(text)
    return Fraction(found["number"]) * _factor(found["suffix"]) if found else None


def _factor(suffix: str) -> Fraction:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return Fraction(2) ** _BINARY[suffix]
    return Fraction(10) ** int(suffix[1:])
