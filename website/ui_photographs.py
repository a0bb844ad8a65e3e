"""
Create the pictures of `placement-ac ui` in docs/images: play Stories 3 and 5, and photograph the page.

`make pictures`. Of Story 3, a page in light, one in dark and one on a narrow screen show the job on cluster3;
another shows the flip: cluster2 has taken over, cluster3 drains, and the explanation of cluster3 is open. Of
Story 5, the page shows how jobs have filled cluster1 and cluster2. The last hour at the end of each is a
picture of its own.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import click
from playwright.sync_api import sync_playwright

from kubectl_placement.cli.ui_thread import UiThread
from placement_lab.demo.runner import DemoStepResult, JobResult
from placement_lab.demo.steps import StoryStep
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import DEMO2
from placement_lab.demo.story5 import DEMO5, STORY_5
from website.photographs import CHROMIUM, DRAINS, IMAGES, play
from website.workload_photographs import POD

WIDE: Final[Any] = {"width": 1280, "height": 800}
NARROW: Final[Any] = {"width": 390, "height": 844}
UPPER: Final[Any] = {"width": 1280, "height": 460}
"""The upper part of the page: the GPUs below it are read once a minute."""
RUNS: Final = 2
"""The step after which the job runs on cluster3."""
FULL: Final = 3
"""The step of Story 5 after which cluster1 and cluster2 are full."""
PAUSE_SECONDS: Final = 4.0


class Shot(NamedTuple):
    """A picture of the page; `explain`: the cluster whose explanation is open; `part`: its selector."""

    name: str
    scheme: str = "light"
    size: Any = WIDE
    scale: float = 1.25
    explain: str = ""
    part: str = ""


def timeline_shots(name: str) -> tuple[Shot, ...]:
    """Return the last hour at the end of a story, in light and dark."""
    return tuple(
        Shot(f"{name}-{scheme}", scheme, scale=1.5, part="#timeline") for scheme in ("light", "dark")
    )


OF_STORY_3: Final = {
    RUNS: (Shot("ui-light"), Shot("ui-dark", "dark"), Shot("ui-narrow", size=NARROW, scale=1.5)),
    DRAINS: (Shot("ui-flip", scale=1, explain="cluster3"),),
    len(scenario(3).steps): timeline_shots("timeline"),
}
OF_STORY_5: Final = {
    FULL: (Shot("ui-5-light", size=UPPER), Shot("ui-5-dark", "dark", UPPER)),
    len(STORY_5.steps): timeline_shots("timeline-5"),
}


class Photographer:
    """Observes a story, and photographs the page of its check; `shots`: step → the pictures after it."""

    def __init__(
        self, kubeconfig: Path, folder: Path, check: str, shots: Mapping[int, Sequence[Shot]]
    ) -> None:
        self._ui = UiThread(kubeconfig)
        self._folder, self._check, self._shots = folder, check, shots
        self._thread = ThreadPoolExecutor(1)  # the browser belongs to one thread; the story has its own
        self._url = ""

    def step_started(self, number: int, step: StoryStep) -> None:
        if not self._url:
            self._ui.__enter__()
            self._url = self._ui.url
        click.echo(f"{number}. {step.title}")

    def step_finished(self, result: DemoStepResult) -> None:
        time.sleep(PAUSE_SECONDS)  # the timeline shows states that last
        if shots := self._shots.get(result.number):
            self._thread.submit(self._photograph, shots).result()

    def demo_finished(self, _: Sequence[DemoStepResult], __: Sequence[JobResult] = ()) -> None:
        self._ui.__exit__()
        self._thread.shutdown()

    def _photograph(self, shots: Sequence[Shot]) -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for shot in shots:
                self._shoot(browser, shot)
            browser.close()

    def _shoot(self, browser: Any, shot: Shot) -> None:
        page = browser.new_page(color_scheme=shot.scheme, viewport=shot.size, device_scale_factor=shot.scale)
        page.goto(f"{self._url}#{self._check}")
        page.locator("#timeline .span").first.wait_for()
        if shot.explain:
            page.get_by_role("button", name=shot.explain, exact=True).click()
            page.locator("#explain .step").first.wait_for()
        page.wait_for_timeout(2_500)  # nothing is marked as changed any more
        part = page.locator(shot.part) if shot.part else page
        part.screenshot(path=self._folder / f"{shot.name}.png", animations="disabled")
        page.close()


def main(folder: Path = IMAGES) -> None:
    """Play the stories, and write the pictures into a folder."""
    with patch("socket.gethostname", return_value=POD):
        play(scenario(3), partial(Photographer, folder=folder, check=DEMO2, shots=OF_STORY_3), jobs=True)
        play(STORY_5, partial(Photographer, folder=folder, check=DEMO5, shots=OF_STORY_5), reports=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
