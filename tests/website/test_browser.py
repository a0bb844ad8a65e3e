"""
Pictures in a browser: no script fails, no network request is made, and all text is legible.

The tests read the browser's own state: the boxes of texts, the painted colours, the focus.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.cli.graph import draw
from kubectl_placement.cli.timeline import text_of
from kubectl_placement.graph.model import build_graph
from tests.support import pictures
from tests.support.browser import READABLE, browser_path, contrast

pytestmark = pytest.mark.long
SCHEMES = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
"""Each colour scheme, and its background of the page."""
ON_PAGE = "page"


@dataclass
class Seen:
    """A picture in the browser, its errors and its requests."""

    page: Any
    trouble: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


Open = Callable[..., Seen]


@pytest.fixture
def look(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a text as a file: `look(text, "svg")`."""
    contexts = []

    def open_(text: str, form: str) -> Seen:
        file = tmp_path / f"picture.{form}"
        file.write_text(text, "utf-8")
        context = browser.new_context(viewport={"width": 1800, "height": 1000})
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


def picture(name: str, form: Any) -> str:
    if name in TREES:
        return draw(build_graph(TREES[name]), form, name)
    return text_of(TIMELINES[name], form)


MEASURE = """
() => {
  const boxes = [];
  for (const text of document.querySelectorAll('svg text')) {
    const at = text.getBoundingClientRect();
    const outline = text.closest('.node, .inside') && text.parentNode.querySelector('.box, .bar');
    const around = (outline || text.ownerSVGElement).getBoundingClientRect();
    boxes.push({
      text: text.textContent,
      at: [at.left, at.top, at.right, at.bottom],
      around: [around.left, around.top, around.right, around.bottom],
    });
  }
  return boxes;
}
"""
COLOURS = """
() => {
  const painted = element => {
    for (let at = element; at; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor;
      if (ground !== 'rgba(0, 0, 0, 0)') return ground;
    }
    return 'rgb(255, 255, 255)';
  };
  const svg = document.querySelector('svg .page');
  const ground = getComputedStyle(svg).fill;
  const found = [['page', getComputedStyle(document.querySelector('svg .name, svg .says')).fill, ground]];
  for (const text of document.querySelectorAll('svg text')) {
    const box = text.closest('.node, .inside') ? text.parentNode.querySelector('.box, .bar') : null;
    found.push([text.textContent, getComputedStyle(text).fill, getComputedStyle(box || svg).fill]);
  }
  for (const text of document.querySelectorAll('h1, header p, label, input, output, summary, th, td, #tip')) {
    found.push([text.textContent, getComputedStyle(text).color, painted(text)]);
  }
  const input = document.querySelector('input');
  if (input) found.push(['placeholder', getComputedStyle(input, '::placeholder').color, painted(input)]);
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


@pytest.mark.parametrize("form", ["svg", "html"])
@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_errors_and_is_legible(look: Open, name: str, form: str) -> None:
    seen = look(picture(name, form), form)
    assert (seen.trouble, len(seen.asked)) == ([], 1)
    assert (
        seen.page.evaluate("window.bad === undefined && document.querySelectorAll('svg script').length") == 0
    )
    texts = seen.page.evaluate(MEASURE)
    assert len(texts) > 5
    assert [text for text in texts if sticks_out(text["at"], text["around"])] == []
    pairs = [(one, other) for place, one in enumerate(texts) for other in texts[:place]]
    assert [(a["text"], b["text"]) for a, b in pairs if overlap(a["at"], b["at"])] == []
    for scheme, page in SCHEMES.items():
        seen.page.emulate_media(color_scheme=scheme)
        colours = seen.page.evaluate(COLOURS)
        assert {ground for text, _, ground in colours if text == ON_PAGE} == {page}
        assert [one for one in colours if contrast(one[1], one[2]) < READABLE] == []


def bright(seen: Seen) -> list[str]:
    """Return the names of the nodes that the filter leaves."""
    return list(seen.page.locator(".node:not(.off) .name").all_text_contents())


def test_the_filter_keeps_matches_and_their_ancestors(look: Open) -> None:
    seen = look(picture("story", "html"), "html")
    everything = bright(seen)
    seen.page.get_by_label("Filter").fill("cluster2 LISTED")
    assert "cluster3" in everything
    assert bright(seen) == [name for name in everything if name != "cluster3"]
    assert seen.page.locator("#count").inner_text() == "1 of 10"
    seen.page.locator("summary").click()
    assert seen.page.locator("tbody tr:visible").count() == 1
    seen.page.get_by_label("Filter").fill("")
    assert bright(seen) == everything
    assert seen.page.locator("#count").inner_text() == ""


def test_a_cluster_that_is_counted_is_found_by_its_name(look: Open) -> None:
    seen = look(picture("large", "html"), "html")
    seen.page.get_by_label("Filter").fill("cluster-999")
    assert "327 clusters" in bright(seen)
    assert "653 clusters" not in bright(seen)


def test_reasons_are_reached_by_keyboard(look: Open) -> None:
    seen = look(picture("story", "html"), "html")
    tip = seen.page.locator("#tip")
    assert not tip.is_visible()
    tips = []
    for _ in range(11):
        seen.page.keyboard.press("Tab")
        tips.append(tip.inner_text() if tip.is_visible() else "")
    assert tips[0] == ""  # the filter comes first
    assert "not selected any more; 1 Workload runs there" in tips[5]
    assert seen.page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    seen.page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_reasons_are_shown_on_hover(look: Open) -> None:
    seen = look(picture("hostile", "html"), "html")
    seen.page.locator(".node.unusable").hover()
    assert "<script>window.bad = 1</script>" in seen.page.locator("#tip").inner_text()
    assert seen.page.evaluate("window.bad") is None


def test_the_policy_lets_no_other_script_run(look: Open) -> None:
    seen = look(picture("story", "html"), "html")
    seen.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'bad = 1'}))"
    )
    assert seen.page.evaluate("window.bad") is None
    assert "Content Security Policy" in seen.trouble[0]


def test_a_lane_shows_all_facts_about_its_cluster(look: Open) -> None:
    seen = look(picture("rebalancing", "html"), "html")
    seen.page.get_by_label("Filter").fill("cluster3 train")
    assert seen.page.locator(".lane:not(.off) .name").all_text_contents() == ["cluster3"]
    seen.page.keyboard.press("Tab")
    assert seen.page.locator("#tip").inner_text().splitlines() == [
        "cluster3",
        "listed from before 12:00:00 to 12:02:00",
        "draining from 12:02:00 to 12:03:23",
        "listed from 12:04:20 on",
        "score: 70 at 12:00:00, 10 at 12:02:00, 90 at 12:04:20",
        "default/train, 8 GPUs: 12:01:00 to 12:03:20",
    ]


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_a_browser_only_ci_fails(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("tests.support.browser.PLACES", ())
    with pytest.raises(outcome, match="there is no Chromium on this machine"):
        browser_path()
