"""
Claims in the documents about time, size, rights and secrets, and the comments that name their tests.

A comment covers the paragraphs, lists and tables above it, up to the comment before it or to the heading:

    <!-- tests: tests/docs/test_docs.py::test_times; measured: bench/flips.py, ../shared/kueue/gate.txt -->

Pure: text in, values out.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_NUMBER_WORDS: Final = (
    r"half\s+an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|sixty"
)
MEASURE: Final = re.compile(
    r"\b\d[\d,.]*\s?(?:ms|µs|s|seconds?|min|minutes?|h|hours?|days?|weeks?|[KMG]i?B)\b"
    rf"|\b(?:{_NUMBER_WORDS})\s+(?!second\s+(?:copy|line|time)\b)(?:seconds?|minutes?|hours?|days?|weeks?)\b",
    re.IGNORECASE,
)
"""A number with a unit of time or of size. "A second copy" and the like is none."""
PROMISE: Final = re.compile(
    r"\b(?:writes\s+nothing|only\s+reads?|no\s+wildcards?|least\s+permissions|only\s+the\s+rights"
    r"|appear\s+in\s+no|never\s+(?:contains\s+a\s+token|appear|shown)"
    r"|no\s+(?:metric|line)\s+contains|no\s+command\s+prints)\b",
    re.IGNORECASE,
)
"""A promise about rights, or about what nobody is shown."""

_KINDS: Final = ("tests", "measured")
_FENCE: Final = re.compile(r"\s*```")


class Block(NamedTuple):
    """Lines between empty lines, outside of fenced code: a paragraph, list, table, heading or comment."""

    line: int
    text: str

    @property
    def is_heading(self) -> bool:
        return self.text.startswith("#")

    @property
    def is_comment(self) -> bool:
        return self.text.startswith("<!--")


class Claim(NamedTuple):
    """A number with a unit, or a promise, and its sentence."""

    line: int
    what: str
    sentence: str


class Evidence(NamedTuple):
    """A name in a comment; `kind` is `tests` or `measured`."""

    line: int
    kind: str
    name: str


class MalformedComment(ValueError):
    """A comment that does not name tests or measurements."""


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page in their order."""
    fenced, begin, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(_FENCE.match(line))
        if not (fenced or is_fence) and line.strip():
            begin = begin if lines else number
            lines.append(line)
        elif lines:
            yield Block(begin, "\n".join(lines))
            lines = []
        fenced ^= is_fence


def unproven(text: str) -> list[Claim]:
    """Return the claims of a page that no comment covers."""
    found: list[Claim] = []
    waiting: list[Claim] = []
    for block in blocks(text):
        if block.is_heading:
            found += waiting
            waiting = []
        elif block.is_comment:
            waiting = []
        else:
            waiting += _claims(block)
    return found + waiting


def _claims(block: Block) -> Iterator[Claim]:
    for pattern in (MEASURE, PROMISE):
        for match in pattern.finditer(block.text):
            line = block.line + block.text.count("\n", 0, match.start())
            yield Claim(line, " ".join(match[0].split()), _sentence(block.text, match))


def _sentence(text: str, match: re.Match[str]) -> str:
    """Return the sentence, the item or the row around a match, on one line."""
    begin = max(
        (end.end() for end in re.finditer(r"[.:]\s|\n\s*[-|]\s|\n\|", text[: match.start()])), default=0
    )
    end = re.search(r"[.:](?:\s|$)|\n\s*[-|]\s|\n\||$", text[match.end() :])
    return " ".join(text[begin : match.end() + (end.start() if end else 0)].split())


def evidence(text: str) -> Iterator[Evidence]:
    """Yield what the comments of a page name. Raises MalformedComment."""
    for block in blocks(text):
        if block.is_comment:
            body = re.fullmatch(r"<!--\s+(.*?)\s+-->", " ".join(block.text.split()))
            if not body:
                raise MalformedComment(f"line {block.line}: leave an empty line before and after the comment")
            for part in body[1].split(";"):
                kind, colon, names = part.strip().partition(": ")
                if kind not in _KINDS or not colon:
                    raise MalformedComment(
                        f"line {block.line}: begin `{part.strip()}` with tests: or measured:"
                    )
                for name in names.split(","):
                    yield Evidence(block.line, kind, name.strip())
