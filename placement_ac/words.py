"""
How lists of names are told: the first ones by name, the rest counted.
"""

from collections.abc import Iterable
from typing import Final

NAMES_SHOWN: Final = 10
"""Names told one by one in a message; the rest is counted."""


def some(names: Iterable[str], between: str = ", ") -> str:
    names = list(names)
    rest = len(names) - NAMES_SHOWN
    return between.join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
