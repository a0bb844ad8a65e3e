"""The pictures in the documents are current: the files beside them say the same."""

import json
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

GRAPH = ["graph", "placement-demo2", "--from-dump", str(IMAGES / "story3.yaml")]
TIMELINE = ["timeline", "--from", str(IMAGES / "story3.jsonl")]


def output_of(words: list[str], form: str) -> str:
    result = commands.run(*words, "-o", form)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_timeline_is_what_its_picture_shows() -> None:
    """Its alternative text: when the score falls to 10, cluster2 is listed and cluster3 drains."""
    lanes = {lane["name"]: lane for lane in json.loads(output_of(TIMELINE, "json"))["lanes"]}
    listed, drains, *_ = lanes["cluster3"]["spans"]
    assert (listed["state"], drains["state"]) == ("listed", "draining")
    scores = [(point["value"], point["at"]) for point in lanes["cluster3"]["scores"]]
    assert [value for value, _ in scores][:2] == [70, 10]
    [cluster2] = [span for span in lanes["cluster2"]["spans"] if span["begin"] == drains["begin"]]
    assert (cluster2["state"], scores[1][1]) == ("listed", drains["begin"])
    [run] = lanes["cluster3"]["runs"]
    assert run["end"] <= drains["end"]


def test_the_timeline_of_story_5_is_what_its_picture_shows() -> None:
    """Its alternative text: a full cluster drains, and the next one is listed."""
    words = ["timeline", "--from", str(IMAGES / "story5.jsonl")]
    lanes = {lane["name"]: lane for lane in json.loads(output_of(words, "json"))["lanes"]}
    first, second, third = (lanes[f"cluster{number}"]["spans"] for number in (1, 2, 3))
    assert [[span["state"] for span in spans] for spans in (first, second, third)] == [
        ["listed", "draining"],
        ["listed", "draining"],
        ["listed"],
    ]
    assert (second[0]["begin"], third[0]["begin"]) == (first[1]["begin"], second[1]["begin"])
    assert [point["value"] for point in lanes["cluster1"]["scores"]][:2] == [100, 0]
    assert [len(lanes[f"cluster{number}"]["runs"]) for number in (1, 2)] == [4, 4]


def test_the_mermaid_is_what_comes_out() -> None:
    assert (IMAGES / "graph.mmd").read_text("utf-8") == output_of(GRAPH, "mermaid")


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
