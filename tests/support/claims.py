"""
Claims in the documents about time, size, rights and secrets, and the tests that claims.yaml names for them.

A claim of claims.yaml is a part of a page that stands there once. It covers the paragraph, list or table in
which it stands. Pure: text in, values out.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

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

KINDS: Final = ("tests", "measured", "untested")
"""Of evidence: names of tests; of benches and recordings; the reason why no test can assert it."""
_FENCE: Final = re.compile(r"\s*```")


class Block(NamedTuple):
    """Lines between empty lines, outside of fenced code: a paragraph, list, table or heading."""

    line: int
    text: str

    @property
    def is_heading(self) -> bool:
        return self.text.startswith("#")


class Claim(NamedTuple):
    """A number with a unit, or a promise, and its sentence."""

    line: int
    what: str
    sentence: str


class Evidence(NamedTuple):
    """An entry of claims.yaml: parts of a page, and the evidence for them by its kind."""

    page: str
    claims: tuple[str, ...]
    names: dict[str, tuple[str, ...]]


def entries(document: dict[str, list[dict[str, Any]]]) -> list[Evidence]:
    """Return the entries of claims.yaml, as YAML has read it. Raises ValueError."""
    found = []
    for page, listed in document.items():
        for one in listed:
            names = {kind: tuple(one[kind]) for kind in KINDS if kind in one}
            if not names or not one.get("claims") or one.keys() - {"claims", *KINDS}:
                raise ValueError(f"{page}: an entry needs claims, and one of {', '.join(KINDS)}: {one}")
            found.append(Evidence(page, tuple(one["claims"]), names))
    return found


def on_one_line(text: str) -> str:
    """Return a text with single blanks, as the claims are written."""
    return " ".join(text.split())


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


def unproven(text: str, proven: Collection[str]) -> list[Claim]:
    """Return the claims of a page in blocks in which none of `proven` stands."""
    return [
        claim
        for block in blocks(text)
        if not block.is_heading and not any(part in on_one_line(block.text) for part in proven)
        for claim in _claims(block)
    ]


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
