"""
Text for people: lists of names (the first by name, the rest counted), numbers and durations.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Final

NAMES_SHOWN: Final = 10
"""Names shown one by one in a message; the rest is counted."""


CHARS_QUOTED: Final = 100
"""Characters of a text of others that a message quotes."""
NAMES_MEANT: Final = 3
"""As many names that are equally close are offered; of more, none is a better guess than the others."""


def joined(names: Iterable[str], between: str = ", ", shown: int = NAMES_SHOWN) -> str:
    names = list(names)
    return between.join(names[:shown]) + and_more(len(names) - shown)


def and_more(rest: int) -> str:
    return f" and {rest} more" if rest > 0 else ""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean a or b?`, with the names that are closest to one that does not exist."""
    near = closest(name, names)
    return f"; did you mean {enumeration(near, 'or')}?" if near else ""


def enumeration(names: Sequence[str], before_last: str) -> str:
    """Return `a`, `a or b`, `a, b or c`, with `or` or another word before the last one."""
    *others, last = names
    return f"{', '.join(others)} {before_last} {last}" if others else last


def closest(name: str, names: Iterable[str]) -> list[str]:
    """Return the name that is closest to one that does not exist, or all if 2 or 3 are as close."""
    near = get_close_matches(name, sorted({*names} - {name}), n=NAMES_MEANT + 1)
    best = _likeness(name, near[0]) if near else 0.0
    as_close = sorted(candidate for candidate in near if _likeness(name, candidate) == best)
    return as_close if len(as_close) <= NAMES_MEANT else []


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, other, name).ratio()


def duration_text(seconds: float) -> str:
    """Return `30 s`, `5 min`."""
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def shortened(text: str) -> str:
    """Return a text of others as it can be quoted: at most CHARS_QUOTED characters."""
    return text if len(text) <= CHARS_QUOTED else f"{text[: CHARS_QUOTED - 1]}…"


def count_text(number: int, what: str) -> str:
    """Return `1 cluster`, `2 clusters`, `1,200 clusters`."""
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"
