"""
Rules, and their findings with the command that fixes each. Plain data.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S")


class Level(StrEnum):
    """FAIL: something does not work. WARN: it may not work, or it could not be read. OK: it works."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `doctor`."""

    check: str
    """The rule's id, in kebab-case; `DoctorRule` sets it."""
    level: Level
    message: str
    fix: str = ""
    """The commands that fix it, ready to paste into a shell; "" if nothing is wrong."""


def ok(message: str) -> Finding:
    return Finding("", Level.OK, message)


def warn(message: str, fix: str = "") -> Finding:
    return Finding("", Level.WARN, message, fix)


def fail(message: str, fix: str) -> Finding:
    return Finding("", Level.FAIL, message, fix)


@dataclass(frozen=True, slots=True)
class DoctorRule(Generic[S]):
    """A rule of `doctor`, which evaluates a setup `S`."""

    check: str
    looks_at: str
    """For the docs: the requirement."""
    fix: str
    """For the docs: the fix, with placeholders in capitals."""
    evaluate: Callable[[S], Iterable[Finding]]

    def findings(self, setup: S) -> Iterator[Finding]:
        """Yield the problems; if there are none, the OK findings."""
        found = tuple(self.evaluate(setup))
        problems = tuple(one for one in found if one.level is not Level.OK)
        for one in problems or found:
            yield replace(one, check=self.check)
