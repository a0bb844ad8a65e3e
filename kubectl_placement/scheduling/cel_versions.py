"""
Semantic versions inside CEL.

Pure. Sources: semver.org 2.0.0; github.com/blang/semver v4 (`Parse`, `Compare`); k8s.io/apiserver
`pkg/cel/library/semverlib.go` (`normalizeAndParse`). A version is a list of its three numbers and its
prerelease; build metadata does not count and is not kept.
"""

import re
from typing import Any, Final, TypeAlias

Version: TypeAlias = list[Any]
"""Major, minor, patch, and the prerelease as text."""

_LARGEST: Final = 2**64 - 1
_NUMBER: Final = r"(0|[1-9][0-9]{0,19})"
_PRE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"  # a number has no leading zeros
_FORM: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_PARTS: Final = 3


def read_version(text: str) -> Version:
    """Return the version; raise ValueError if `text` is none."""
    match = _FORM.fullmatch(text)
    numbers = [int(number) for number in match.groups()[:_PARTS]] if match else []
    if match is None or max(numbers) > _LARGEST:
        raise ValueError("no semantic version")
    return [*numbers, match[4] or ""]


def normalized(text: str, normalize: bool) -> Version:
    """Return the version; with `normalize`, of a text with a `v`, leading zeros, or missing numbers, too."""
    if not normalize:
        return read_version(text)
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS and re.search("[+-]", parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return read_version(".".join(parts + ["0"] * (_PARTS - len(parts))))


def compare_versions(left: Version, right: Version) -> int:
    """Return 1 if `left` is the later one, -1 if it is the earlier, else 0."""
    return (_order(left) > _order(right)) - (_order(left) < _order(right))


def _without_zeros(part: str) -> str:
    if len(part) < 2:  # noqa: PLR2004, RUF100  # a digit, which may be 0
        return part
    rest = part.lstrip("0")
    return rest if rest[:1] in tuple("0123456789") else f"0{rest}"


def _order(version: Version) -> tuple[Any, ...]:
    *numbers, text = version
    parts = text.split(".") if text else []
    prerelease = tuple((False, int(part), "") if part.isdigit() else (True, 0, part) for part in parts)
    return *numbers, not parts, prerelease
