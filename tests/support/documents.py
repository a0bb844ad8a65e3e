"""The documents of the repository, and a reader of their Markdown."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.installation import ROOT
from website.markdown import section

README, CHANGELOG = ROOT / "README.md", ROOT / "CHANGELOG.md"
REFERENCE, ARCHITECTURE = ROOT / "docs" / "reference.md", ROOT / "docs" / "develop" / "architecture.md"
INSPECT, JSON = ROOT / "docs" / "inspect.md", ROOT / "docs" / "json.md"
MONITORING = ROOT / "docs" / "monitoring.md"
CONTRIBUTING, CREDENTIALS = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "credentials.md"
STORIES, LIMITS = ROOT / "docs" / "stories.md", ROOT / "docs" / "limits.md"
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), ROOT / "samples" / "README.md")

Row = tuple[str, ...]


def lines_of(text: str, *, code: bool) -> Iterator[str]:
    """Yield the lines inside of fences, or the lines outside."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced is code:
            yield line


def tables(path: Path, heading: str) -> list[list[Row]]:
    """Return the tables under a heading: rows of cells, without their head and without backticks."""
    found: list[list[Row]] = [[]]
    for line in section(path.read_text("utf-8"), heading).splitlines():
        if line.startswith("|"):
            found[-1].append(tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")))
        elif found[-1]:
            found.append([])
    return [rows[2:] for rows in found if rows]


def table(path: Path, heading: str) -> list[Row]:
    """Return the first table under a heading."""
    return tables(path, heading)[0]


def spans(path: Path) -> list[str]:
    """Return the code in a document: the lines of fences, and the spans in backticks."""
    text = path.read_text("utf-8")
    prose = "\n".join(lines_of(text, code=False))
    return [
        *(line.strip() for line in lines_of(text, code=True)),
        *(" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)),
    ]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    heads = [line.lstrip("#") for line in lines_of(path.read_text("utf-8"), code=False) if line[:1] == "#"]
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def is_test(name: str) -> bool:
    """Whether a test is there: a file in `tests`, and if `name` has one after `::`, a function in it."""
    file, _, function = name.partition("::")
    path = ROOT / file
    is_defined = rf"^(?:async )?def {re.escape(function)}\("
    return path.is_file() and bool(
        not function or re.search(is_defined, path.read_text("utf-8"), re.MULTILINE)
    )
