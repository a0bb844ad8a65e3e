"""
Conversion of GitHub's Markdown to MkDocs' Markdown, and a reader of its tables.

Pure: text in, text out.
"""

import re
from collections.abc import Iterator
from typing import Final

Row = tuple[str, ...]

_ITEM: Final = re.compile(r"^(\s*)([-*]|\d+\.)(\s+)\S")
_LINK: Final = re.compile(r"(?<=\]\()(?!https?://|#)([^)\s#]+)(?=[)#])")
_CONTENTS: Final = re.compile(r"(?:^- \[[^\]]+\]\(#[^)]+\).*\n)+\n(?=(?:(?!^#).*\n)*^## )", re.MULTILINE)
_SPAN: Final = re.compile(r"(`[^`]+`)")


def for_mkdocs(text: str) -> str:
    """Indent the content of an item by four, and begin a list after an empty line, as MkDocs requires."""
    return "\n".join(_lines(text.splitlines())) + "\n"


def _lines(lines: list[str]) -> Iterator[str]:
    offsets: list[int] = []  # the column of the text of each enclosing item, outermost first
    fence, before = "", ""  # the marker of the enclosing fence; the previous line outside of items
    for line in lines:
        indent = len(line) - len(line.lstrip())
        item = None if fence else _ITEM.match(line)
        if line.strip() and not fence:
            while offsets and indent < offsets[-1]:
                offsets.pop()
        shifted = " " * (4 * len(offsets)) + line[offsets[-1] if offsets else 0 :] if line.strip() else ""
        if item:
            if before.strip() and not _ITEM.match(before) and not offsets:
                yield ""
            offsets.append(len(item[0]) - 1)
        before = line if item or not offsets else before
        yield _cells(shifted) if shifted.startswith("|") and not fence else shifted
        fence = _fence(line, fence)


def _fence(line: str, inside: str) -> str:
    mark = re.match(r"\s*(`{3,})", line)
    if not mark:
        return inside
    return "" if inside else mark[1]


def _cells(row: str) -> str:
    """Unescape each `|` in code: MkDocs needs no backslash there."""
    return _SPAN.sub(lambda span: span[0].replace("\\|", "|"), row)


def without_contents(text: str) -> str:
    """Remove the list of a page's own headings: the site shows one beside the page."""
    return _CONTENTS.sub("", text, count=1)


def relinked(text: str, rename: dict[str, str]) -> str:
    """Return the text with the links in `rename` (as written) replaced by other targets."""
    return _LINK.sub(lambda link: rename.get(link[0], link[0]), text)


def section(text: str, heading: str) -> str:
    """Return the text under a heading, with the headings below it. Raises KeyError."""
    begin = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    if not begin:
        raise KeyError(heading)
    rest = text[begin.end() :]
    end = re.search(rf"^#{{1,{len(begin[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def tables(text: str, heading: str) -> list[dict[str, Row]]:
    """Return the tables under a heading: each row by its first code span, with all its cells."""
    found: list[dict[str, Row]] = []
    rows: list[Row] = []
    for line in [*section(text, heading).splitlines(), ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))))
        elif rows:
            found.append({_first_span(row): row for row in rows[2:]})
            rows = []
    return found


def _first_span(row: Row) -> str:
    span = next((span for cell in row for span in re.findall(r"`([^`]+)`", cell) if span != "True"), row[0])
    return str(span)
