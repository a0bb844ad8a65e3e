"""The table form of `doctor`: each problem with its fix, what follows from it below it, and a summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.text import Text

from kubectl_placement.doctor.finding import Level
from kubectl_placement.doctor.folding import FoldedFinding
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import count_text

_COLOURS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_INDENT: Final = " " * 6


def doctor_table(problems: Sequence[FoldedFinding]) -> Iterator[Text]:
    """Yield the lines."""
    wide = max((len(problem.finding.check) for problem in problems), default=0)
    for one in problems:
        check, message = f"  {one.finding.check:<{wide}}  ", one_line(one.finding.message)
        yield Text.assemble((f"{one.level:<4}", _COLOURS[one.level]), f"{check}{message}")
        if one.finding.fix:
            yield Text(prompt(one.finding.fix), style="cyan")
        yield from (Text(f"{_INDENT}{one_line(line)}", "dim") for line in _follow_up(one))
    yield Text(summary_text(levels(problems)))


def prompt(fix: str) -> str:
    """Return a fix after a `$`; its further lines begin in the first column, as a heredoc needs it."""
    return f"{_INDENT}$ {fix}"


def levels(problems: Sequence[FoldedFinding]) -> Mapping[Level, int]:
    """Return how many problems there are of each level; what follows from one does not count."""
    found = [problem.level for problem in problems]
    return {level: found.count(level) for level in Level}


def summary_text(count: Mapping[Level, int]) -> str:
    """Return `2 problems, 1 warning, 31 checks passed`."""
    parts = (
        count_text(count[Level.FAIL], "problem"),
        count_text(count[Level.WARN], "warning"),
        f"{count_text(count[Level.OK], 'check')} passed",
    )
    return ", ".join(parts)


def _follow_up(problem: FoldedFinding) -> Iterator[str]:
    """Yield a line for each finding that follows, and one for all that are only unknown."""
    for one in problem.follows:
        if one.check == problem.finding.check and not one.is_unknown:
            yield f"also: {one.message}"
        elif not one.is_unknown:
            yield f"so: {one.check}: {one.message}"
    if unknown := dict.fromkeys(one.check for one in problem.follows if one.is_unknown):
        yield f"so unknown: {', '.join(unknown)}"
