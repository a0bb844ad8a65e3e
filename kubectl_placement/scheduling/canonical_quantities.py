"""
Quantities as an API server writes them: 0.5 as 500m, 1024Mi as 1Gi, but 1e3, +1 and 5. as they were given.

Pure. Source: k8s.io/apimachinery `api/resource`: a quantity of few digits whose text looks canonical keeps
it. tests/placement_ac/core/api/quantities.jsonl has what Go writes.
"""

import re
from fractions import Fraction
from typing import Final

from placement_ac.core.api.quantities import exact

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DIGITS_MAX: Final = 18
_BINARY_DIGITS_MAX: Final = 14
_SMALLEST: Final = -9
"""The power of ten of a nano."""
_PARTS: Final = re.compile(r"[+-]?0*(?P<whole>[0-9]*)\.?(?P<fraction>[0-9]*)(?P<suffix>.*)")


def canonical(quantity: str | float) -> str:
    """Return a quantity as an API server writes it; a text that is none stays."""
    text = str(quantity).strip()
    number, parts = exact(text) or Fraction(0), _PARTS.fullmatch(text)
    suffix = parts["suffix"] if parts else ""
    if not text or not (suffix in _BINARY or suffix in _DECIMAL or _has_exponent(suffix)):
        return text
    if parts and _keeps_its_text(parts["whole"] or "0", parts["fraction"], suffix):
        return text
    if suffix.endswith("i") and abs(number) >= 1024 and number.denominator == 1:  # 1Ki
        power = max(n for n in range(len(_BINARY)) if number % 1024**n == 0)
        return f"{number / 1024**power}{_BINARY[power]}"
    power = -3
    while number and (number / Fraction(1000) ** (power + 1)).denominator == 1:
        power += 1
    digits = str(number / Fraction(1000) ** power) if number else "0"
    if _has_exponent(suffix):
        return f"{digits}e{3 * power}" if number and power else digits
    name = _DECIMAL[power + 3] if number and power + 3 < len(_DECIMAL) else ""  # beyond E, Go has no suffix
    return f"{digits}{name}"


def _has_exponent(suffix: str) -> bool:
    return suffix[:1] in ("e", "E") and len(suffix) > 1 and not suffix.endswith("i")


def _keeps_its_text(whole: str, fraction: str, suffix: str) -> bool:
    digits = whole + fraction
    if suffix.endswith("i"):
        power = 10 * _BINARY.index(suffix)
        few = not fraction and len(whole) <= _BINARY_DIGITS_MAX - int(power * 0.3)
        return few and int(whole) % 8 != 0
    scale = int(suffix[1:]) if _has_exponent(suffix) else 3 * _DECIMAL.index(suffix) - 9
    scale -= len(fraction)
    few = len(digits) <= _DIGITS_MAX and scale >= _SMALLEST
    return few and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
