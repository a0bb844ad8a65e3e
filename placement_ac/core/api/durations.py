"""
Durations as Go writes them: `90s`, `1m30s`, `2h`. Pure.
"""

import re
from typing import Final

UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
"""Unit → its seconds."""
NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_PART: Final = re.compile(rf"({NUMBER})(ms|h|m|s)")
DURATION: Final = rf"(?:{_PART.pattern})+"
"""A regular expression of durations, also in JSON schemas."""
_DURATION: Final = re.compile(DURATION)
DURATION_FORM: Final = "a duration is like 90s, 5m or 1h30m"


def parse_seconds(text: str) -> float | None:
    """Return the seconds of a duration, or of a bare number; None: it is neither."""
    if _DURATION.fullmatch(text):
        return sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    try:
        return float(text.encode("ascii"))  # Python knows digits of other scripts as well
    except ValueError:
        return None
