"""
A page in Chinese and its page in English, as what they must have in common.

Commands, manifests, tables' code, numbers and links do not depend on the language. Pure: text in, values out.
"""

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from tests.support.documents import lines_of
from website.markdown import section

_FENCE: Final = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^(#+) (.+)$")
_LINK: Final = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_SPAN: Final = re.compile(r"`([^`]+)`")
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,.]*(?<![,.])")
_NOT_COMPARED: Final = re.compile(r"^(?:- \[[^\]]+\]\([^)]+\)|> .*)$", re.MULTILINE)
"""An entry of a page's own contents, and the line that names the page in English."""

SPLIT: Final = {"draining.md": {"The dispatcher": "dispatcher.md"}}
"""Sections of English pages that are pages of their own in Chinese."""
TRANSLATED: Final = (
    "dispatch.md",
    "dispatcher.md",
    "draining.md",
    "install.md",
    "jobs.md",
    "troubleshooting.md",
)
"""The pages of `docs/zh` that have all that the English ones have."""

Link = tuple[str, int]
"""A page's path below `docs/`, and the number of the heading there: 0 is its title."""
Pages = dict[str, str]
"""The text of each page by its path below `docs/`."""


@dataclass(frozen=True)
class Contents:
    """The parts of a page that are the same in every language."""

    levels: list[int]
    """The level of each heading."""
    code: list[str]
    """Commands and manifests, without comments."""
    diagrams: list[list[str]]
    """The arrows of each diagram, without their texts."""
    tables: list[list[Counter[str]]]
    """The code spans in each row of each table."""
    spans: list[Counter[str]]
    """The code spans in the text under each heading."""
    numbers: list[Counter[str]]
    """The numbers in the text under each heading."""
    links: list[Counter[Link]]
    """The targets of the links under each heading."""


def english_pages(pages: Pages) -> Pages:
    """Return the English pages, each section of `SPLIT` as the page that it is in Chinese."""
    result = {path: text for path, text in pages.items() if not path.startswith("zh/")}
    for path, parts in SPLIT.items():
        for heading, name in parts.items():
            body = section(result[path], heading)
            result[path] = result[path].replace(f"## {heading}{body}", "")
            result[name] = re.sub("^#(#+ )", r"\1", f"## {heading}{body}", flags=re.MULTILINE)
    return result


def contents(path: str, pages: Pages) -> Contents:
    """Return what a page of `pages` has; a link to a page in Chinese counts as one to the English page."""
    text = pages[path]
    fences = [(match[2], match[3]) for match in _FENCE.finditer(text)]
    parts = _parts(text)
    return Contents(
        levels=[level for level, _ in headings(text)],
        code=[_code(body) for language, body in fences if language != "mermaid"],
        diagrams=[_arrows(body) for language, body in fences if language == "mermaid"],
        tables=_tables(text),
        spans=[Counter(" ".join(span.split()) for span in _SPAN.findall(_prose(part))) for part in parts],
        numbers=[Counter(_NUMBER.findall(_prose(part))) for part in parts],
        links=[
            Counter(resolved(link, path, pages) for link in _LINK.findall(_prose(part))) for part in parts
        ],
    )


def headings(text: str) -> list[tuple[int, str]]:
    """Return the level and the anchor of each heading."""
    found = [_HEADING.match(line) for line in lines_of(text, code=False)]
    return [
        (len(match[1]), re.sub(r"[^\w\- ]", "", match[2].lower()).replace(" ", "-"))
        for match in found
        if match
    ]


def resolved(link: str, path: str, pages: Pages) -> Link:
    """Return a link's target. Raises ValueError if the page has no such heading."""
    target, _, anchor = link.partition("#")
    if target.startswith(("http://", "https://")):
        return link, 0
    page = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
    wholes = (whole for whole, parts in SPLIT.items() if page in parts.values())
    for one in (page, *SPLIT.get(page, {}).values(), *wholes):
        anchors = [name for _, name in headings(pages[one])]
        if not anchor or anchor in anchors:
            return one.removeprefix("zh/"), anchors.index(anchor) if anchor else 0
    raise ValueError(f"{path} has a link to {link}: there is no such heading")


def _parts(text: str) -> list[str]:
    """Return the text under each heading, without fences."""
    parts: list[list[str]] = [[]]
    for line in lines_of(text, code=False):
        if _HEADING.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def _prose(part: str) -> str:
    return _NOT_COMPARED.sub("", part)


def _code(body: str) -> str:
    lines = [re.sub(r"\s+# .*$", "", line).strip() for line in body.splitlines()]
    return "\n".join(line for line in lines if line)


def _arrows(body: str) -> list[str]:
    return [line.split(":")[0].strip() for line in body.splitlines() if "-->" in line]


def _tables(text: str) -> list[list[Counter[str]]]:
    found: list[list[Counter[str]]] = []
    rows: list[Counter[str]] = []
    for line in [*lines_of(text, code=False), ""]:
        if line.startswith("|"):
            rows.append(Counter(_SPAN.findall(line)))
        elif rows:
            found.append(rows)
            rows = []
    return found
