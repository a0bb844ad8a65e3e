"""
Semantic versions, as the CEL function `semver` of Kubernetes reads and compares them.

Pure. Source: semver.org 2.0.0; k8s.io/apiserver `pkg/cel/library/semverlib.go`
for what `normalize` accepts: a leading `v`, leading zeros, missing numbers.
"""

import re
from dataclasses import dataclass
from functools import total_ordering

_NUMBER = r"(0|[1-9]\d*)"
_TAIL = r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_STRICT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}{_TAIL}")
_LOOSE = re.compile(rf"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?{_TAIL}")


@total_ordering
@dataclass(frozen=True, slots=True)
class SemanticVersion:
    """A version; build metadata does not count and is not kept."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    def __lt__(self, other: "SemanticVersion") -> bool:
        return self.order() < other.order()

    def order(self) -> tuple[object, ...]:
        """Return the sort key: a prerelease precedes its release."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts


def parse_version(text: str, *, normalize: bool = False) -> SemanticVersion:
    """Return the version; raise ValueError if `text` is none."""
    found = (_LOOSE if normalize else _STRICT).fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no semantic version")
    major, minor, patch = (int(found[index] or 0) for index in (1, 2, 3))
    return SemanticVersion(
        major, minor, patch, tuple((found["pre"] or "").split(".")) if found["pre"] else ()
    )
