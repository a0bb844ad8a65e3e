"""
Text for people: lists of names (the first by name, the rest counted), numbers and durations.
"""

from collections.abc import Iterable
from typing import Final

NAMES_SHOWN: Final = 10
"""Names shown one by one in a message; the rest is counted."""


def joined(names: Iterable[str], between: str = ", ") -> str:
    names = list(names)
    return between.join(names[:NAMES_SHOWN]) + and_more(len(names) - NAMES_SHOWN)


def and_more(rest: int) -> str:
    return f" and {rest} more" if rest > 0 else ""


def duration_text(seconds: float) -> str:
    """Return `30 s`, `5 min`."""
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def count_text(number: int, what: str) -> str:
    """Return `1 cluster`, `2 clusters`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
