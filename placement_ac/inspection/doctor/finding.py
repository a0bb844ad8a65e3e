"""
Rules, and their findings with the command that fixes each. Plain data.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
    """The rule's id, in kebab-case."""
    level: Level
    message: str
    cure: str = ""
    """The commands that fix it, ready to paste into a shell; "" if nothing is wrong. The JSON key."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule, without the rule's id."""

    level: Level
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DoctorRule(Generic[S]):
    """A rule of `doctor`, which evaluates a setup `S`."""

    check: str
    looks_at: str
    """For the docs: the requirement."""
    fix: str
    """For the docs: the fix, with placeholders in capitals."""
    evaluate: Callable[[S], Iterable[RuleResult]]

    def findings(self, setup: S) -> Iterator[Finding]:
        """Yield the problems; if there are none, the OK results."""
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
