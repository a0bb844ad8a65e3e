"""The table form of `doctor`: each problem with its fix, what follows from it below it, and a summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.text import Text

from kubectl_placement.doctor.finding import Level
from kubectl_placement.doctor.folding import FoldedFinding
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import count_text

_COLOURS: Final = {Level.OK: "green", Level.SKIP: "dim", Level.WARN: "yellow", Level.FAIL: "red"}
_INDENT: Final = " " * 6
_UNKNOWN: Final = "unknown"
_APART: Final = {Level.SKIP.lower(): "skipped", _UNKNOWN: "unknown"}


def doctor_table(problems: Sequence[FoldedFinding]) -> Iterator[Text]:
    """Yield the lines."""
    wide = max((len(problem.finding.check) for problem in problems), default=0)
    for problem in problems:
        check, message = f"  {problem.finding.check:<{wide}}  ", one_line(problem.finding.message)
        yield Text.assemble((f"{problem.level:<4}", _COLOURS[problem.level]), f"{check}{message}")
        if problem.finding.fix:
            yield Text(prompt(problem.finding.fix), style="cyan")
        yield from (Text(f"{_INDENT}{one_line(line)}", "dim") for line in _follow_up(problem))
    yield Text(summary_text(counts(problems)))


def prompt(fix: str) -> str:
    """Return a fix after a `$`; its further lines begin in the first column, as a heredoc needs it."""
    return f"{_INDENT}$ {fix}"


def counts(problems: Sequence[FoldedFinding]) -> Mapping[str, int]:
    """Return how many problems there are of each level; those that are only unknown are no warnings.

    Findings that follow from a problem do not count.
    """
    found = [_UNKNOWN if problem.is_unknown else problem.level.lower() for problem in problems]
    return {key: found.count(key) for key in (*map(str.lower, Level), _UNKNOWN)}


def summary_text(count: Mapping[str, int]) -> str:
    """Return `2 problems, 1 warning, 19 checks passed, 12 skipped`, and `1 unknown` if there is any."""
    parts = (
        count_text(count["fail"], "problem"),
        count_text(count["warn"], "warning"),
        f"{count_text(count['ok'], 'check')} passed",
        *(f"{count[key]} {word}" for key, word in _APART.items() if count[key]),
    )
    return ", ".join(parts)


def _follow_up(problem: FoldedFinding) -> Iterator[str]:
    """Yield a line for each finding that follows, and one for all that are only unknown."""
    for finding in problem.follows:
        if finding.check == problem.finding.check and not finding.is_unknown:
            yield f"also: {finding.message}"
        elif not finding.is_unknown:
            yield f"so: {finding.check}: {finding.message}"
    if unknown := dict.fromkeys(finding.check for finding in problem.follows if finding.is_unknown):
        yield f"so unknown: {', '.join(unknown)}"
