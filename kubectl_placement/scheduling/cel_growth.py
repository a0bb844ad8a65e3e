"""
Which CEL expressions may make large values or programs of little text.

Pure. The runtime counts iterations, but not what an iteration makes: `[x].map(x, x + x)` doubles a text, and
ten of them in a row make it a thousand times as long. Kubernetes counts that (`PerCallLimit`); here, an
expression that may multiply too often is not evaluated at all.
"""

import re
from collections import Counter
from math import prod
from typing import Final

from kubectl_placement.scheduling.cel_environment import OPAQUE, NotEvaluatedError

MULTIPLIED: Final = 10_000
"""How often an expression may repeat a value. Twelve `exists` that use their variable twice: 4,096 times."""

_MACRO: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|map|filter|optMap|optFlatMap)\s*\(\s*([A-Za-z_]\w*)\s*,"
)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_GROWING: Final = re.compile(r"\.\s*(?:replace|join|format)\s*\(")
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")
_REPETITION: Final = re.compile(r"\{[0-9]")
"""Of a part of a pattern: RE2 takes 0.3 s to compile `\\pL{100}`, and the runtime compiles it at each use."""
_FACTOR: Final = 5
"""Of a `replace`, a `join`, a `format`."""


def require_bounded(text: str) -> None:
    """Raise NotEvaluatedError if `text` may repeat a value more than MULTIPLIED times, or a Unicode class."""
    if _UNICODE_CLASS.search(text) and _REPETITION.search(text):
        raise NotEvaluatedError("its pattern may repeat a Unicode class")
    plain = re.sub(OPAQUE, "''", text, flags=re.DOTALL)
    macros = Counter(_MACRO.findall(plain))
    names = Counter(_NAME.findall(plain))
    # Each macro names its variable once where it declares it.
    uses = [max(1.0, names[name] / times - 1) ** times for name, times in macros.items()]
    if prod(uses) * _FACTOR ** len(_GROWING.findall(plain)) > MULTIPLIED:
        raise NotEvaluatedError(f"its macros may repeat a value more than {MULTIPLIED:,} times")
