"""
Kubernetes' quantities inside CEL: what `quantity` gives and takes.

Pure. Source: k8s.io/apimachinery `api/resource` (`ParseQuantity`, `int64Amount`). A quantity is a list of its
whole part and its billionths. These are a double if Go does not hold the quantity as a whole number: such a
one is no integer for `isInteger`, but equal to one that is, as `1000m` and `1` are in Go, and 0.0 and 0 here.
"""

import math
import re
from fractions import Fraction
from typing import Final, TypeAlias

from placement_ac.core.api.quantities import exact

QuantityValue: TypeAlias = list[int | float]
"""The whole part and the billionths."""

_NANO: Final = 10**9
_LARGEST: Final = 2**63 - 1
_FORM: Final = re.compile(r"[+-]?(?P<num>[0-9]*)(?:\.(?P<denom>[0-9]*))?(?P<suffix>.*)")
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14


def read_quantity(text: str) -> QuantityValue:
    """Return the quantity; raise ValueError if `text` is none."""
    number = exact(text)
    if number is None:
        raise ValueError("quantities must match the regular expression of Kubernetes")
    nanos = min(math.ceil(abs(number) * _NANO), _LARGEST * _NANO)
    return _made(nanos if number >= 0 else -nanos, _is_whole(text))


def value_of(quantity: QuantityValue) -> Fraction:
    """Return its number."""
    return Fraction(int(quantity[0]) * _NANO + int(quantity[1]), _NANO)


def is_integer(quantity: QuantityValue) -> bool:
    """Say whether Go holds it as a whole number that fits 64 bits."""
    return isinstance(quantity[1], int)


def as_integer(quantity: QuantityValue) -> int:
    """Return that number; raise ValueError."""
    if not is_integer(quantity):
        raise ValueError("cannot convert value to integer")
    return int(quantity[0])


def approximate(quantity: QuantityValue) -> float:
    """Return the nearest double."""
    return float(value_of(quantity))


def added(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    """Return the sum."""
    return _sum(left, right, 1)


def subtracted(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    """Return the difference."""
    return _sum(left, right, -1)


def _sum(left: QuantityValue, right: QuantityValue | int, sign: int) -> QuantityValue:
    other: QuantityValue = [right, 0] if isinstance(right, int) else right
    total = value_of(left) + sign * value_of(other)
    # Go drops a zero with its scale.
    parts = [each for each in (left, other) if value_of(each)] or [left]
    return _made(int(total * _NANO), all(map(is_integer, parts)))


def _made(nanos: int, is_whole: bool) -> QuantityValue:
    whole, rest = divmod(nanos, _NANO)
    if not -_LARGEST - 1 <= whole <= _LARGEST:
        raise ValueError("integer overflow")
    return [whole, rest if is_whole else float(rest)]


def _is_whole(text: str) -> bool:
    """Say whether Go's fast path takes `text`, and it has no decimals then."""
    match = _FORM.fullmatch(text)
    if match is None:
        return False
    num, denom, suffix = match["num"].lstrip("0"), match["denom"] or "", match["suffix"]
    if suffix in _BINARY:
        return not denom and _BINARY_DIGITS - len(num) - int(_BINARY[suffix] * 3 / 10) >= 0
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    fits = abs(int(num + denom or "0")) * 10 ** max(power - len(denom), 0) <= _LARGEST
    return len(num) + len(denom) <= _DIGITS and power >= len(denom) and fits
