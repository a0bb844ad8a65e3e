"""
The graph and the timeline of `ui` in a browser, as files: no script fails, no network request is made,
and all text is legible.

The tests read the browser's own state: the boxes of texts, the painted colours, the focus.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import build_graph
from tests.support import pictures
from tests.support.browser import COLOURS, READABLE, contrast
from website.page_files import timeline_file

pytestmark = pytest.mark.long
SCHEMES = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
"""Each colour scheme, and its background of the page."""


@dataclass
class Seen:
    """A page in the browser, its errors and its requests."""

    page: Any
    trouble: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


Open = Callable[..., Seen]


@pytest.fixture
def look(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a page as a file."""
    contexts = []

    def open_(text: str, width: int = 1800) -> Seen:
        file = tmp_path / "page.html"
        file.write_text(text, "utf-8")
        context = browser.new_context(viewport={"width": width, "height": 1000})
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.trouble.append(message.text))
        seen.page.on("pageerror", lambda error: seen.trouble.append(str(error)))
        seen.page.on("dialog", lambda dialog: seen.trouble.append(dialog.message))
        seen.page.on("request", lambda request: seen.asked.append(request.url))
        seen.page.goto(file.as_uri())
        return seen

    yield open_
    for context in contexts:
        context.close()


# -- without errors

TREES = {
    "story": [pictures.story()],
    "states": [pictures.every_state(), pictures.nothing()],
    "hostile": [pictures.hostile()],
    "large": [pictures.large()],
}


TIMELINES = {"rebalancing": pictures.rebalancing(), "busy": pictures.busy()}
NAMES = (*TREES, *TIMELINES)


def page_of(name: str) -> str:
    return pictures.graph_page(TREES[name]) if name in TREES else timeline_file(TIMELINES[name])


MEASURE = """
() => {
  const found = [];
  const walk = document.createTreeWalker(document.getElementById('content'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    const box = element.closest('.node, .span, .run, .card, #graph') || document.body;
    const around = box.getBoundingClientRect();
    for (const at of range.getClientRects()) {
      found.push({
        text: walk.currentNode.data,
        at: [at.left, at.top, at.right, at.bottom],
        around: [around.left, around.top, around.right, around.bottom],
      });
    }
  }
  return found;
}
"""

Box = tuple[float, float, float, float]


def sticks_out(inner: Box, outer: Box) -> bool:
    left, top, right, bottom = outer
    return inner[0] < left - 0.5 or inner[1] < top - 0.5 or inner[2] > right + 0.5 or inner[3] > bottom + 0.5


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes of text overlap by more than the space above and below the letters."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide > 1 and high > 4


# -- content


@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_errors_and_is_legible(look: Open, name: str) -> None:
    seen = look(page_of(name))
    assert (seen.trouble, len(seen.asked)) == ([], 1)
    assert seen.page.evaluate("[window.bad === undefined, document.scripts.length]") == [True, 2]
    texts = seen.page.evaluate(MEASURE)
    assert len(texts) > 5
    assert [text for text in texts if sticks_out(text["at"], text["around"])] == []
    pairs = [(one, other) for place, one in enumerate(texts) for other in texts[:place]]
    assert [(a["text"], b["text"]) for a, b in pairs if overlap(a["at"], b["at"])] == []
    for scheme, ground in SCHEMES.items():
        seen.page.emulate_media(color_scheme=scheme)
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        colours = seen.page.evaluate(COLOURS)
        assert len(colours) > 5
        assert [colour for colour in colours if contrast(colour[1], colour[2]) < READABLE] == []


@pytest.mark.parametrize("name", TREES)
def test_the_graph_has_the_boxes_of_mermaid(look: Open, name: str) -> None:
    seen = look(page_of(name))
    found = seen.page.locator(".node").evaluate_all("all => all.map(one => one.id).sort()")
    boxes = set(re.findall(r"^    (n\d+)\W", mermaid(build_graph(TREES[name])), re.MULTILINE))
    assert found == sorted(boxes)
    lines = seen.page.locator(".edge").evaluate_all("all => all.map(one => one.getTotalLength() > 20)")
    assert lines == [True] * len(build_graph(TREES[name]).edges)


def test_the_path_of_a_workload_is_bold(look: Open) -> None:
    seen = look(page_of("story"))
    edges = build_graph(TREES["story"]).edges
    widths = seen.page.locator(".edge").evaluate_all(
        "all => all.map(one => getComputedStyle(one).strokeWidth)"
    )
    assert widths.count("4px") == sum(edge.on_workload_path for edge in edges) == 6


def test_the_page_says_what_status_says(look: Open) -> None:
    seen = look(page_of("states"))
    long = pictures.every_state().name
    assert seen.page.locator("#checks .check .name").all_inner_texts() == [f"✕\n{long}", "?\nlonely"]
    assert "NoClusterUsable" in seen.page.locator("#card-check").inner_text()
    assert seen.page.locator("#clusters tbody tr").count() == 6
    seen.page.get_by_role("button", name="lonely").click()
    assert "nix" in seen.page.locator("#card-placement").inner_text()
    assert seen.page.locator("#link").inner_text() == "as of 2026-08-01 12:00:00 UTC"
    assert seen.trouble == []


def bright(seen: Seen) -> list[str]:
    """Return the names of the nodes that the filter leaves."""
    return sorted(seen.page.locator(".node:not(.off) b").all_text_contents())


def test_the_filter_keeps_matches_and_their_ancestors(look: Open) -> None:
    seen = look(page_of("story"))
    everything = bright(seen)
    seen.page.get_by_label("Filter the graph").fill("cluster2 LISTED")
    assert "cluster3" in everything
    assert bright(seen) == [name for name in everything if name != "cluster3"]
    assert seen.page.locator("#graph-count").inner_text() == "1 of 10"
    seen.page.get_by_label("Filter the graph").fill("")
    assert bright(seen) == everything
    assert seen.page.locator("#graph-count").inner_text() == ""


def test_a_cluster_that_is_counted_is_found_by_its_name(look: Open) -> None:
    seen = look(page_of("large"))
    seen.page.get_by_label("Filter the graph").fill("cluster-999")
    assert "327 clusters" in bright(seen)
    assert "653 clusters" not in bright(seen)


def test_reasons_are_reached_by_keyboard(look: Open) -> None:
    seen = look(page_of("story"))
    tip = seen.page.locator("#tip")
    assert not tip.is_visible()
    seen.page.get_by_label("Filter the graph").focus()
    assert not tip.is_visible()
    tips = []
    for _ in range(10):
        seen.page.keyboard.press("Tab")
        tips.append(tip.inner_text())
    assert "not selected any more; 1 Workload runs there" in tips[-1]
    assert seen.page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    seen.page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_lane_shows_all_facts_about_its_cluster(look: Open) -> None:
    seen = look(page_of("rebalancing"))
    seen.page.get_by_label("Filter the timeline").fill("cluster3 train")
    assert seen.page.locator(".lane:visible > b").all_text_contents() == ["cluster3"]
    assert seen.page.locator("#timeline-count").inner_text() == "1 of 2"
    seen.page.keyboard.press("Tab")
    assert seen.page.locator("#tip").inner_text().splitlines() == [
        "cluster3",
        "listed from before 12:00:00 to 12:02:00",
        "draining from 12:02:00 to 12:03:23",
        "listed from 12:04:20 on",
        "score: 70 at 12:00:00, 10 at 12:02:00, 90 at 12:04:20",
        "default/train, 8 GPUs ran from 12:01:00 to 12:03:20",
    ]


def test_lanes_that_are_not_drawn_are_named(look: Open) -> None:
    seen = look(page_of("busy"))
    assert seen.page.locator(".lane[data-find]").count() == 40
    notes = seen.page.locator("#timeline > p").all_inner_texts()
    assert notes[0] == pictures.shown(pictures.BAD)
    assert notes[1] == f"for lack of space, not drawn: {', '.join(f'cluster-{n}' for n in range(39, 45))}"
    assert "scores are known only at the dots" in seen.page.locator("#timeline-source").inner_text()
