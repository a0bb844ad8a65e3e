"""
Create the pictures of `placement-ac ui` in docs/images: play Story 3, and photograph the page.

`make pictures`. A page in light, one in dark and one on a narrow screen show the job on cluster3; another
shows the flip: cluster2 has taken over, cluster3 drains, and the explanation of cluster3 is open.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click
from playwright.sync_api import sync_playwright

from kubectl_placement.cli.ui_thread import UiThread
from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.runner import DemoStepResult, JobResult
from placement_lab.demo.steps import StoryStep
from placement_lab.demo.story3 import DEMO2
from website.photographs import CHROMIUM, DRAINS, IMAGES, show

WIDE: Final[Any] = {"width": 1280, "height": 800}
NARROW: Final[Any] = {"width": 390, "height": 844}
RUNS: Final = 2
"""The step after which the job runs on cluster3."""
PAUSE_SECONDS: Final = 4.0


class Photographer:
    """Observes the story, and photographs the page."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._ui = UiThread(kubeconfig)
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)  # the browser belongs to one thread; the story has its own
        self._url = ""

    def step_started(self, number: int, step: StoryStep) -> None:
        if not self._url:
            self._ui.__enter__()
            self._url = self._ui.url
        click.echo(f"{number}. {step.title}")

    def step_finished(self, result: DemoStepResult) -> None:
        time.sleep(PAUSE_SECONDS)  # the timeline shows states that last
        if result.number in (RUNS, DRAINS):
            self._thread.submit(self._photograph, result.number).result()

    def demo_finished(self, _: Sequence[DemoStepResult], __: Sequence[JobResult] = ()) -> None:
        self._ui.__exit__()
        self._thread.shutdown()

    def _photograph(self, step: int) -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            if step == RUNS:
                self._shoot(browser, "light", "ui-light", WIDE)
                self._shoot(browser, "dark", "ui-dark", WIDE)
                self._shoot(browser, "light", "ui-narrow", NARROW, scale=1.5)
            else:
                self._shoot(browser, "light", "ui-flip", WIDE, scale=1, explain="cluster3")
            browser.close()

    def _shoot(
        self, browser: Any, scheme: str, name: str, size: Any, *, scale: float = 1.25, explain: str = ""
    ) -> None:
        page = browser.new_page(color_scheme=scheme, viewport=size, device_scale_factor=scale)
        page.goto(f"{self._url}#{DEMO2}")
        page.locator("#timeline .span").first.wait_for()
        if explain:
            page.get_by_role("button", name=explain, exact=True).click()
            page.locator("#explain .step").first.wait_for()
        page.wait_for_timeout(2_500)  # nothing is marked as changed any more
        page.screenshot(path=self._folder / f"{name}.png", animations="disabled")
        page.close()


def main(folder: Path = IMAGES) -> None:
    """Play the story, and write the pictures into a folder."""
    with DemoEnvironment(jobs=True) as stage:
        right = asyncio.run(show(stage, Photographer(stage.kubeconfig, folder)))
    if not right:
        sys.exit("the story did not come out right")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
