"""
What a rule comes to: findings, each with the command that cures it; and the rule itself.

Plain data, but for the one thing that all rules share: what could not be read is a warning.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S")


class Level(StrEnum):
    """FAIL: something does not work. WARN: it may not, or it could not be read. OK: it does."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `doctor`."""

    check: str
    """The rule's id, in kebab-case."""
    level: Level
    message: str
    cure: str = ""
    """Commands for a shell, to be pasted as they are; "" where nothing is wrong."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What a rule says, before its id is put to it."""

    level: Level
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DoctorRule(Generic[S]):
    """A rule of `doctor`: what it looks at, and how it judges a set-up `S`."""

    check: str
    looks_at: str
    """For the docs: what has to be so."""
    fix: str
    """For the docs: the fix, with what differs in capitals."""
    evaluate: Callable[[S], Iterable[RuleResult]]

    def findings(self, setup: S) -> Iterator[Finding]:
        """Yield what it found: what is well only if nothing else is."""
        results = tuple(self.evaluate(setup))
        wrong = tuple(one for one in results if one.level is not Level.OK)
        for one in wrong or results:
            yield Finding(self.check, one.level, one.message, one.fix)


def ok(message: str) -> RuleResult:
    return RuleResult(Level.OK, message)


def warn(message: str, fix: str = "") -> RuleResult:
    return RuleResult(Level.WARN, message, fix)


def fail(message: str, fix: str) -> RuleResult:
    return RuleResult(Level.FAIL, message, fix)
