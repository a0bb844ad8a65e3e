"""Rules, and their findings with the command that fixes each. Plain data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")


class Level(StrEnum):
    """FAIL: something does not work. WARN: it may not work, or it could not be read. OK: it works.

    SKIP: there was nothing to check.
    """

    OK = "OK"
    SKIP = "SKIP"
    WARN = "WARN"
    FAIL = "FAIL"


class Cause(NamedTuple):
    """The findings of a check that another finding follows from: those about that object, or all ("")."""

    check: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `doctor`."""

    check: str
    """The rule's id, in kebab-case; `DoctorRule` sets it."""
    level: Level
    message: str
    fix: str = ""
    """The commands that fix it, ready to paste into a shell; "" if nothing is wrong."""
    about: str = field(default="", compare=False)
    """The object that has the problem, as KIND NAME; "" if there is no single one."""
    causes: tuple[Cause, ...] = field(default=(), compare=False)
    """The findings that it follows from, if they are there: the first one counts."""
    is_unknown: bool = field(default=False, compare=False)
    """Whether it only says that something is unknown."""
    cluster: str = field(default="", compare=False)
    """The cluster that it is about: findings that differ only in its name are one finding."""
    also_about: tuple[str, ...] = field(default=(), compare=False)
    """The objects of all findings that became this one, if they are several."""

    @property
    def is_problem(self) -> bool:
        return self.level in (Level.WARN, Level.FAIL)


def ok(message: str) -> Finding:
    return Finding("", Level.OK, message)


def skip(message: str) -> Finding:
    """Return that a check does not apply; the message says why."""
    return Finding("", Level.SKIP, message)


def warn(
    message: str, fix: str = "", about: str = "", causes: Iterable[Cause] = (), cluster: str = ""
) -> Finding:
    return Finding("", Level.WARN, message, fix, about, tuple(causes), cluster=cluster)


def fail(message: str, fix: str, about: str = "", causes: Iterable[Cause] = (), cluster: str = "") -> Finding:
    return Finding("", Level.FAIL, message, fix, about, tuple(causes), cluster=cluster)


def of_cluster(cluster: str) -> str:
    """Return `Finding.about` of a problem that an inspection of a worker has found."""
    return f"cluster {cluster}"


def unknown(message: str, fix: str = "", cause: str = "") -> Finding:
    """Return a warning that something is unknown; `cause`: the check that says why."""
    return replace(not_known(f"unknown: {message}", fix), causes=(Cause(cause),) if cause else ())


def not_known(message: str, fix: str) -> Finding:
    """Return the same with a message of its own."""
    return Finding("", Level.WARN, message, fix, is_unknown=True)


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
        """Yield the problems; if there are none, the other findings."""
        findings = tuple(self.evaluate(setup))
        problems = tuple(finding for finding in findings if finding.is_problem)
        for problem in problems or findings:
            yield replace(problem, check=self.check)
