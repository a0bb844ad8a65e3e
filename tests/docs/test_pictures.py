"""The pictures in the documents are current: the files beside them say the same."""

import re
from pathlib import Path

import mermaidx
import pytest

from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import build_graph
from tests.support import commands, pictures

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGES = DOCS / "images"
LARGEST = 200_000
"""The size limit of a picture in bytes: every reader loads it."""


def test_the_mermaid_is_what_comes_out() -> None:
    words = ("status", "placement-demo2", "--from-dump", str(IMAGES / "story3.yaml"), "-o", "mermaid")
    assert (IMAGES / "graph.mmd").read_text("utf-8") == commands.run(*words).stdout


@pytest.mark.long
def test_mermaid_takes_it() -> None:
    """Names and messages that are scripts are drawn as words."""
    picture = mermaidx.render(mermaid(build_graph([pictures.story(), pictures.hostile()]))).svg()
    assert "<script" not in picture
    assert "train" in picture


def test_every_picture_is_there_and_light() -> None:
    page = (DOCS / "inspect.md").read_text("utf-8")
    named = set(re.findall(r'(?:src|srcset)="(images/[^"]+)"', page))
    pictures_ = {f"{name}-{scheme}" for name in ("graph", "timeline", "ui") for scheme in ("light", "dark")}
    assert named == {f"images/{name}.png" for name in (*pictures_, "ui-narrow")}
    named.add("images/ui-flip.png")
    assert [name for name in sorted(named) if not 10_000 < (DOCS / name).stat().st_size < LARGEST] == []
    for page, name in (
        ("dispatch", "explain-workload"),
        ("rebalancing", "timeline-5"),
        ("rebalancing", "ui-5"),
    ):
        of_page = (DOCS / f"{page}.md").read_text("utf-8")
        assert all(f'"images/{name}-{scheme}.png"' in of_page for scheme in ("light", "dark"))
    assert [path.name for path in IMAGES.iterdir() if path.stat().st_size > LARGEST] == []
