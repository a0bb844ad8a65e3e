"""
Put findings that follow from one cause under it. Pure.

A finding follows from another by its `causes`, or because the same commands fix both.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_placement.doctor.finding import Finding, Level

_ORDER: Final = tuple(Level)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class FoldedFinding:
    """A finding that follows from no other, and those that follow from it."""

    finding: Finding
    follows: tuple[Finding, ...] = ()

    @property
    def level(self) -> Level:
        """The worst level of them."""
        return max((finding.level for finding in (self.finding, *self.follows)), key=_ORDER.index)


def fold(findings: Sequence[Finding]) -> tuple[FoldedFinding, ...]:
    """Return the findings that follow from no other, in order, each with those that follow from it."""
    roots = _roots(findings)
    return tuple(
        FoldedFinding(finding, tuple(_followers(findings, roots, place)))
        for place, finding in enumerate(findings)
        if roots[place] == place
    )


def causes_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return for each finding the check of the one that it follows from in the end; "" if there is none."""
    roots = _roots(findings)
    return tuple("" if root == place else findings[root].check for place, root in enumerate(roots))


def _followers(findings: Sequence[Finding], roots: Sequence[int], root: int) -> Iterator[Finding]:
    return (finding for place, finding in enumerate(findings) if roots[place] == root != place)


def _roots(findings: Sequence[Finding]) -> list[int]:
    """Return for each finding the place of the one that it follows from in the end, maybe its own."""
    parents = [_parent(findings, place) for place in range(len(findings))]
    roots = []
    for place in range(len(findings)):
        passed = [place]
        while (parent := parents[passed[-1]]) is not None and parent not in passed:
            passed.append(parent)
        # Findings that cause each other: the first one counts.
        roots.append(passed[-1] if parents[passed[-1]] is None else min(passed))
    return roots


def _parent(findings: Sequence[Finding], place: int) -> int | None:
    finding = findings[place]
    if finding.level is Level.OK:
        return None
    for cause in finding.causes:
        for other, problem in _problems(findings):
            if other != place and problem.check == cause.check and cause.about in ("", problem.about):
                return other
    fix = finding.fix
    same = (other for other, problem in _problems(findings) if other < place and fix and problem.fix == fix)
    return next(same, None)


def _problems(findings: Iterable[Finding]) -> Iterator[tuple[int, Finding]]:
    return ((place, finding) for place, finding in enumerate(findings) if finding.level is not Level.OK)
