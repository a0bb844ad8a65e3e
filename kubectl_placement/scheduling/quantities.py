"""
Kubernetes quantities: `500m`, `16Gi`, `1e3`.

Pure. Exact: a quantity is a Fraction. Source: k8s.io/apimachinery
`api/resource` (suffixes of ten, suffixes of two, an exponent).
"""

import re
from fractions import Fraction
from functools import lru_cache

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[eE][+-]?\d{1,4}|[KMGTPE]i|[numkMGTPE]?)")


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_quantity(value: object) -> Fraction:
    """Return the value of a quantity given as text or as a JSON number; raise QuantityError."""
    if not isinstance(value, str | int | float):
        raise QuantityError(f"{value!r} is no quantity")
    return _parse(str(value))


@lru_cache(1_000)  # a fleet repeats the same values
def _parse(text: str) -> Fraction:
    found = _FORM.fullmatch(text)
    if found is None:
        raise QuantityError(f"{text!r} is no quantity")
    suffix = found["suffix"]
    base = 2 if suffix in _BINARY else 10
    power = _BINARY.get(suffix) or _DECIMAL.get(suffix)
    return Fraction(found["number"]) * Fraction(base) ** (int(suffix[1:]) if power is None else power)
