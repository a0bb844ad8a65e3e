"""
The page of `placement-ac ui` in a browser: light and dark, by keyboard, and on a narrow screen.

A controller runs on the hub of the tests; two clusters have messages that are scripts.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.cli.ui_thread import UiThread
from placement_lab.hub import Hub
from tests.support.browser import COLOURS, READABLE, STICKING_OUT, contrast
from tests.support.driver import Controllers, Driver, eventually

pytestmark = pytest.mark.long
SCHEMES = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
NARROW = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 800}
HOSTILE = '<img src=x onerror="window.bad=1"><script>window.bad=1</script>'


@dataclass
class Seen:
    """The page in the browser, its errors and its requests."""

    page: Any
    url: str
    stop: Callable[[], None]
    trouble: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def focused(self) -> str:
        """Return the id or the text of what has the focus."""
        return str(
            self.page.evaluate("(document.activeElement.id || document.activeElement.innerText).trim()")
        )


Open = Callable[..., Seen]


@pytest.fixture
def look(hub: Hub, admin: Driver, controllers: Controllers, browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a hub with two checks, of which q is not Active."""
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.select("p", ("a", 30), ("b", 90))
    admin.check("q")
    controllers.start()
    eventually(lambda: (admin.reason("p"), admin.reason("q")), ("Active", "PlacementNotFound"))
    admin.placement_says("p", 2, "Hostile", HOSTILE)
    connected = {
        "type": "Active",
        "status": "False",
        "reason": "Lost",
        "message": HOSTILE,
        "observedGeneration": 1,
    }
    connected["lastTransitionTime"] = "2026-08-01T12:00:00Z"
    admin.ask(
        "PATCH",
        admin.kueue("multikueueclusters", "p-a", "status"),
        {"status": {"conditions": [connected]}},
        "merge",
    )
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    with ExitStack() as stack:
        served = stack.enter_context(ExitStack())
        url = served.enter_context(UiThread(tmp_path / "kubeconfig")).url

        def open_(hash_: str = "", size: Any = None, **options: Any) -> Seen:
            context = browser.new_context(viewport=size or WIDE, **options)
            stack.callback(context.close)
            seen = Seen(context.new_page(), url, served.close)
            seen.page.on("console", lambda message: seen.trouble.append(message.text))
            seen.page.on("pageerror", lambda error: seen.trouble.append(str(error)))
            seen.page.on("request", lambda request: seen.asked.add(request.url.partition("?")[0]))
            seen.page.goto(url + hash_)
            seen.page.locator("#timeline .lane, #timeline p").first.wait_for()
            return seen

        yield open_


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_legible_and_no_script_gets_in(look: Open, scheme: str) -> None:
    seen = look(color_scheme=scheme, reduced_motion="reduce")
    seen.page.locator("#graph-section summary").click()
    seen.page.get_by_role("button", name="a", exact=True).click()
    seen.page.locator("#explain .step").first.wait_for()
    seen.page.locator(".edge").first.wait_for()
    colours = seen.page.evaluate(COLOURS)
    assert len(colours) > 60
    assert [colour for colour in colours if contrast(colour[1], colour[2]) < READABLE] == []
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == SCHEMES[scheme]
    assert HOSTILE in seen.text("#card-placement")
    assert HOSTILE in seen.text("#clusters")
    assert HOSTILE in seen.text("#explain")
    assert seen.page.evaluate("window.bad") is None
    assert seen.trouble == []
    assert seen.asked == {seen.url, f"{seen.url}events", f"{seen.url}explain"}


def test_it_follows_the_hub(look: Open, admin: Driver) -> None:
    seen = look()
    assert [row.split("\n")[0] for row in seen.page.locator("#clusters .link").all_inner_texts()] == [
        "b",
        "a",
    ]
    admin.secrets_for("c")
    admin.decide("p", ("c", 99), ("b", 50))
    seen.page.locator("#clusters tr", has_text="c").locator(".state.good").first.wait_for()
    eventually(lambda: seen.page.locator("#clusters .link").all_inner_texts(), ["c", "b"])
    assert "2 of 20 slots used" in seen.text("#card-clusters")
    assert seen.page.locator("#timeline b").all_inner_texts()[-1:] != ["none"]
    admin.ask("DELETE", admin.kueue("admissionchecks", "p"))
    seen.page.get_by_text("There is no AdmissionCheck p that placement-ac answers.").wait_for()
    assert seen.page.locator("#checks .check").count() == 1


def test_where_nothing_scores_there_is_no_score(look: Open, admin: Driver) -> None:
    """As in `status`."""
    seen = look()
    scores = seen.page.locator("#clusters td[data-label=Score]")
    assert scores.all_inner_texts() == ["90", "30"]
    admin.decide("p", "a", "b")
    eventually(scores.all_inner_texts, ["-", "-"])


def test_changes_are_marked_unless_motion_is_reduced(look: Open, admin: Driver) -> None:
    moving, still = look(), look(reduced_motion="reduce")
    running = "document.getAnimations().length"
    eventually(lambda: moving.page.evaluate(running), 0)
    for seen in (moving, still):
        seen.page.evaluate(
            "window.marked = 0; document.addEventListener('animationstart', () => { window.marked += 1; })"
        )
    admin.decide("p", ("a", 30), ("b", 91))
    for seen in (moving, still):
        seen.page.get_by_role("cell", name="91").wait_for()
    eventually(lambda: moving.page.evaluate("window.marked") > 0)
    assert still.page.evaluate("window.marked") == 0


def test_the_keyboard_is_enough(look: Open) -> None:
    seen = look()
    stops = []
    for _ in range(7):
        seen.page.keyboard.press("Tab")
        stops.append(seen.focused().split("\n")[0])
        assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert stops[:2] == ["Skip to the check", "filter"]
    assert stops[3:7] == ["card-check", "card-placement", "b", "a"]
    seen.page.keyboard.press("Enter")
    seen.page.locator("#explain .step").first.wait_for()
    assert (seen.focused(), seen.text("#explain-title")) == ("explain", "Why a?")
    assert "this step decides" in seen.text("#explain-text")
    seen.page.keyboard.press("Tab")
    assert seen.focused() == "close"
    seen.page.keyboard.press("Escape")
    assert (seen.page.locator("#explain").is_visible(), seen.focused()) == (False, "a")


def test_arrows_move_among_the_checks(look: Open) -> None:
    seen = look()
    seen.page.locator("#checks .check").first.focus()
    seen.page.keyboard.press("ArrowDown")
    assert seen.focused().split("\n")[-2:][0].endswith("q")
    seen.page.keyboard.press("Enter")
    eventually(seen.page.title, "q - placement-ac")
    assert seen.page.evaluate("location.hash") == "#q"
    seen.page.locator("#card-placement").get_by_text("it does not exist").wait_for()
    seen.page.keyboard.press("Home")
    assert seen.focused().startswith("▼\np")  # Kueue is not connected to one of its clusters


def test_an_explanation_follows_the_hub(look: Open, admin: Driver) -> None:
    seen = look()
    seen.page.get_by_role("button", name="a", exact=True).click()
    seen.page.locator("#explain .state.good").wait_for()
    admin.decide("p", ("b", 90))
    seen.page.locator("#explain").get_by_text("OCM has not selected it").wait_for()


def test_the_graph_follows_the_hub(look: Open, admin: Driver) -> None:
    seen = look()
    seen.page.locator("#graph-section summary").click()
    boxes = seen.page.locator(".node")

    def shown() -> list[list[str]]:
        return [text.split("\n")[1:] for text in boxes.all_inner_texts()]

    eventually(lambda: shown()[-2:], [["b", "● listed"], ["a", "● listed, not connected"]])
    boxes.last.focus()
    assert HOSTILE in seen.text("#tip")
    admin.secrets_for("c")
    admin.decide("p", ("c", 95), ("b", 90), ("a", 30))
    # A box that is being drawn has no lines yet.
    eventually(lambda: [lines[:1] for lines in shown()][-3:], [["c"], ["b"], ["a"]])
    seen.page.keyboard.press("Escape")
    assert seen.focused().startswith("n")
    assert seen.trouble == []


def test_a_narrow_screen_needs_no_horizontal_scrolling(look: Open) -> None:
    seen = look(size=NARROW)
    seen.page.locator("#graph-section summary").click()
    seen.page.locator(".edge").first.wait_for()
    wide = "document.documentElement.scrollWidth"
    assert seen.page.evaluate(wide) == NARROW["width"]
    assert seen.page.evaluate(STICKING_OUT) == []
    for label in ("Rank", "Score", "Credential", "Connected"):
        assert label in seen.page.evaluate(
            "[...document.querySelectorAll('#clusters td')]"
            ".map(one => getComputedStyle(one, '::before').content).join()"
        )
    seen.page.get_by_role("button", name="a", exact=True).click()
    seen.page.locator("#explain .step").first.wait_for()
    assert seen.page.evaluate(wide) == NARROW["width"]
    assert seen.page.evaluate(STICKING_OUT) == []
    assert seen.page.evaluate("document.getElementById('explain').scrollWidth") <= NARROW["width"]


def test_a_server_that_has_ended_is_reported(look: Open) -> None:
    seen = look()
    seen.stop()
    seen.page.get_by_text("placement-ac ui does not answer; what follows is old").wait_for()
    seen.trouble.clear()


def test_the_policy_lets_no_other_script_run(look: Open) -> None:
    seen = look()
    seen.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'bad = 1'}))"
    )
    assert seen.page.evaluate("window.bad") is None
    eventually(lambda: seen.page.evaluate("1") and "Content Security Policy" in "".join(seen.trouble[:1]))
