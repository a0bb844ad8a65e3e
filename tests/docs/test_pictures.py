"""The pictures in the documents are current: placement-ac draws the same from the files beside them."""

import re
from pathlib import Path

import mermaidx
import pytest
from click.testing import CliRunner

from kubectl_placement.cli.graph import draw
from kubectl_placement.graph.model import build_graph
from placement_ac.cli.main import main
from tests.support import pictures

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGES = DOCS / "images"
LARGEST = 200_000
"""The size limit of a picture in bytes: every reader loads it."""

GRAPH = ["graph", "placement-demo2", "--from-dump", str(IMAGES / "story3.yaml")]
TIMELINE = ["timeline", "--from", str(IMAGES / "story3.jsonl")]


def output_of(words: list[str], form: str) -> str:
    result = CliRunner().invoke(main, [*words, "-o", form])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("words", "name"), [(GRAPH, "graph"), (TIMELINE, "timeline")], ids=["graph", "timeline"]
)
def test_the_picture_is_drawn_so(words: list[str], name: str) -> None:
    assert (IMAGES / f"{name}.svg").read_text("utf-8") == output_of(words, "svg")


def test_the_mermaid_is_what_comes_out() -> None:
    assert (IMAGES / "graph.mmd").read_text("utf-8") == output_of(GRAPH, "mermaid")


@pytest.mark.long
def test_mermaid_takes_it() -> None:
    """Names and messages that are scripts are drawn as words."""
    picture = mermaidx.render(draw(build_graph([pictures.story(), pictures.hostile()]), "mermaid", "x")).svg()
    assert "<script" not in picture
    assert "train" in picture


def test_every_picture_is_there_and_light() -> None:
    page = (DOCS / "inspect.md").read_text("utf-8")
    named = set(re.findall(r'(?:src|srcset)="(images/[^"]+)"', page))
    pictures_ = {f"{name}-{scheme}" for name in ("graph", "timeline", "ui") for scheme in ("light", "dark")}
    assert named == {f"images/{name}.png" for name in (*pictures_, "ui-narrow")}
    named.add("images/ui-flip.png")
    assert [name for name in sorted(named) if not 10_000 < (DOCS / name).stat().st_size < LARGEST] == []
    of_jobs = (DOCS / "dispatch.md").read_text("utf-8")
    assert all(f'"images/explain-workload-{scheme}.png"' in of_jobs for scheme in ("light", "dark"))
    assert [path.name for path in IMAGES.iterdir() if path.stat().st_size > LARGEST] == []
