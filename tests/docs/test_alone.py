"""A clone is all that the tests need: only `tests/published` looks at what lies beside it."""

import re
from pathlib import Path

import pytest

from tests.support.installation import ROOT

OUTSIDE = re.compile(
    r"\.\./shared|SHARED_DIR|/ ?[\"']shared[\"']|\btests[./]published\b.*\bimport\b|ROOT\.parent\b"
)
"""The folder, its variable, and the module of `tests/published` that knows them."""
LOOKED_AT = ("*.py", "*.sh", "Makefile", "Dockerfile", "pyproject.toml")
FOLDERS = ("tests", "bench", "website", "placement_ac", "kubectl_placement", "placement_lab", "kind")


def sources() -> list[Path]:
    found = [path for name in FOLDERS for form in LOOKED_AT for path in (ROOT / name).rglob(form)]
    return [
        *(path for form in LOOKED_AT for path in ROOT.glob(form)),
        *(path for path in found if ROOT / "tests" / "published" not in path.parents),
    ]


def lines_that_look_outside(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if OUTSIDE.search(line)]


def test_nothing_else_looks_outside_of_the_repository() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sources()
        if path != Path(__file__) and (lines := lines_that_look_outside(path.read_text("utf-8")))
    }
    assert found == {}, "move the test to tests/published, or give it what it needs in the repository"


@pytest.mark.parametrize(
    "line",
    [
        "CRDS ?= ../shared/crds",
        'os.environ.get("SHARED_DIR")',
        'Path(__file__).resolve().parents[3] / "shared"',
        "from tests.published.shared import SHARED",
        'ROOT.parent / "elsewhere"',
    ],
)
def test_a_line_that_looks_outside_is_found(line: str) -> None:
    assert lines_that_look_outside(f"x = 1\n{line}\n") == [line]
