"""
Put findings that follow from one cause under it. Pure.

A finding follows from another by its `causes`, or because the same commands fix both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_placement.doctor.finding import Cause, Finding, Level

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

    @property
    def is_unknown(self) -> bool:
        """Whether all of them only say that something is unknown."""
        return all(finding.is_unknown for finding in (self.finding, *self.follows))


def fold(findings: Sequence[Finding]) -> tuple[FoldedFinding, ...]:
    """Return the findings that follow from no other, in order, each with those that follow from it."""
    followers: dict[int, list[Finding]] = {}
    for place, root in enumerate(_roots(findings)):
        follows = followers.setdefault(root, [])
        if place != root:
            follows.append(findings[place])
    return tuple(FoldedFinding(findings[root], tuple(followers[root])) for root in sorted(followers))


def causes_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return for each finding the check of the one that it follows from in the end; "" if there is none."""
    roots = _roots(findings)
    return tuple("" if root == place else findings[root].check for place, root in enumerate(roots))


def _roots(findings: Sequence[Finding]) -> list[int]:
    """Return for each finding the place of the one that it follows from in the end, maybe its own."""
    problems = _Problems(findings)
    parents = [problems.parent(place) for place in range(len(findings))]
    roots = []
    for place in range(len(findings)):
        passed = [place]
        while (parent := parents[passed[-1]]) is not None and parent not in passed:
            passed.append(parent)
        # Findings that cause each other: the first one counts.
        roots.append(passed[-1] if parents[passed[-1]] is None else min(passed))
    return roots


class _Problems:
    """The places of problems by their check and object, and by their fix: a large hub has thousands."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings
        self._of: dict[Cause, list[int]] = {}
        self._fixed_by: dict[str, int] = {}
        for place, finding in enumerate(findings):
            if not finding.is_problem:
                continue
            for about in {"", finding.about, *finding.also_about}:
                self._of.setdefault(Cause(finding.check, about), []).append(place)
            if finding.fix:
                self._fixed_by.setdefault(finding.fix, place)

    def parent(self, place: int) -> int | None:
        """Return the first problem that this one follows from; None: it follows from no other."""
        finding = self._findings[place]
        if not finding.is_problem:
            return None
        for cause in finding.causes:
            for other in self._of.get(cause, ()):
                if other != place:
                    return other
        first = self._fixed_by.get(finding.fix, place)
        return first if first < place else None
