"""No sentence in a docstring or a comment begins with "What", unless it is a question."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import ROOT

FOLDERS = (
    "placement_ac",
    "kubectl_placement",
    "placement_lab",
    "website",
    "bench",
    "charts",
    "config",
    "kind",
    "tests",
)
WRITTEN = (".py", ".yaml", ".yml", ".tpl", ".lock", ".sh")
FILES = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in WRITTEN
) + sorted(ROOT.glob("*.lock"))
BEGINS = re.compile(r"(^|[.!:] |\"\"\")What\b(?!.*\?)")
MARKS = "#{/*- "
"""Signs before the words of a comment, in Python, YAML and Helm's templates."""


def sentences(path: Path) -> Iterator[str]:
    """Yield the lines that begin a sentence with the word; a line is shown with its number."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if BEGINS.search(line.strip().lstrip(MARKS)):
            yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_no_sentence_begins_so() -> None:
    found = [sentence for path in FILES if path != Path(__file__) for sentence in sentences(path)]
    assert found == []


def test_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.test_sentences.ROOT", tmp_path)
    found = [
        '    """What it costs."""',
        "# What it costs",
        "{{/* What it costs */}}",
        "It is free. What it costs",
    ]
    other = ["# What does it cost?", "it says what it costs"]
    (tmp_path / "a.py").write_text("\n".join([*found, *other]))
    assert list(sentences(tmp_path / "a.py")) == [
        f"a.py:{number}: {line.strip()}" for number, line in enumerate(found, 1)
    ]
