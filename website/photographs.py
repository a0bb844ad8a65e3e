"""
Create the pictures in docs/images: play Stories 3 and 5 on embedded hubs and draw them with placement-ac.

`make pictures`. It photographs the pages of `graph -o html` (Story 3) and `timeline -o html`, in light and
dark. Their data are beside them: a dump of the hub while cluster3 drained (without credentials), and the
recordings of the stories. It needs Chromium, and takes a minute: pauses between the steps give the timeline
visible lengths.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import yaml
from playwright.sync_api import sync_playwright

from kubectl_placement.hub.kinds import QUEUE_KINDS
from kubectl_placement.readers.hub_reader import read_kinds
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.runner import DemoStepResult, JobResult, Renderer, finish, run_scenario
from placement_lab.demo.steps import Scenario, StoryStep
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import DEMO2
from placement_lab.demo.story5 import DEMO5, STORY_5
from placement_lab.demo.viewer import Viewer
from placement_lab.standins.manifests import FIELD_MANAGER

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
DUMP, RECORD = IMAGES / "story3.yaml", IMAGES / "story3.jsonl"
RECORD_5: Final = IMAGES / "story5.jsonl"
KINDS: Final = tuple(kind for kind in (*WATCHED_KINDS, *QUEUE_KINDS) if kind not in (SECRET, CLUSTER_PROFILE))

CHROMIUM: Final = "/usr/bin/chromium"
SIZE: Final[Any] = {"width": 1280, "height": 800}
PAUSE_SECONDS: Final = 3.0
DRAINS: Final = 3
"""The step after which cluster2 has taken over, and cluster3 drains."""


class Painter:
    """Observes a story: records it from the step `begins` on, and dumps the hub after the step `dumps`."""

    def __init__(
        self, kubeconfig: Path, check: str, record: Path, *, begins: int, dumps: int | None = None
    ) -> None:
        self._kubeconfig, self._check, self._record = kubeconfig, check, record
        self._begins, self._dumps = begins, dumps
        self._recorder: subprocess.Popen[bytes] | None = None

    def step_started(self, number: int, step: StoryStep) -> None:
        if number == self._begins:
            record = ("--record", str(self._record), "--kubeconfig", str(self._kubeconfig))
            words = _words("timeline", self._check, *record)
            self._recorder = subprocess.Popen(words)  # noqa: S603  # our own words
            while not (self._record.exists() and self._record.stat().st_size):
                time.sleep(0.05)
            time.sleep(PAUSE_SECONDS / 2)
        click.echo(f"{number}. {step.title}")

    def step_finished(self, result: DemoStepResult) -> None:
        if result.number == self._dumps:
            with ThreadPoolExecutor(1) as aside:  # the story runs its own event loop
                aside.submit(asyncio.run, dump(self._kubeconfig)).result()
        time.sleep(PAUSE_SECONDS)

    def demo_finished(self, _: Sequence[DemoStepResult], __: Sequence[JobResult] = ()) -> None:
        if self._recorder is None:
            return
        self._recorder.send_signal(signal.SIGINT)
        if self._recorder.wait():
            sys.exit("the recording failed")


async def dump(kubeconfig: Path) -> None:
    """Write the objects of the hub, as `kubectl get … -o yaml` does."""
    async with Client(Login(kubeconfig)) as client:
        found = await read_kinds(client, KINDS, {})
    items = [without_managed_fields(obj) for kind in KINDS for obj in found.of(kind)]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=True)
    DUMP.write_text(text, "utf-8")


def without_managed_fields(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return obj | {"metadata": metadata}


def draw(folder: Path) -> None:
    """Write the Mermaid diagram, and the pages into a folder."""
    graph = ("graph", DEMO2, "--from-dump", str(DUMP))
    run(*graph, "-o", "mermaid", "--output-file", str(IMAGES / "graph.mmd"))
    run(*graph, "-o", "html", "--output-file", str(folder / "graph.html"))
    for name, record in (("timeline", RECORD), ("timeline-5", RECORD_5)):
        run("timeline", "-o", "html", "--output-file", str(folder / f"{name}.html"), "--from", str(record))


def _words(*words: str) -> list[str]:
    return [sys.executable, "-m", "placement_ac", *words]


def run(*words: str) -> None:
    subprocess.run(_words(*words), check=True)  # noqa: S603  # our own words


def play(chosen: Scenario, observer: Callable[[Path], Renderer], **options: Any) -> None:
    """Play a story on a hub with these options; `observer`: makes what observes it of the kubeconfig."""
    with DemoEnvironment(**options) as stage:
        right = asyncio.run(_show(stage, chosen, observer(stage.kubeconfig)))
    if not right:
        sys.exit("the story did not come out right")


async def _show(stage: DemoEnvironment, chosen: Scenario, observer: Renderer) -> bool:
    async with Client(Login(stage.kubeconfig), field_manager=FIELD_MANAGER) as client:
        counter = stage.fleet.counter if stage.fleet else None
        async with Viewer(client, counter, None) as seen:
            return finish(observer, [await run_scenario(chosen, client, stage, seen, observer)])


def photograph(browser: Any, page_file: Path, selector: str) -> None:
    """Photograph a part of a page, in light and dark."""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport=SIZE, device_scale_factor=1.5)
        page.goto(page_file.as_uri())
        page.locator(selector).screenshot(path=IMAGES / f"{page_file.stem}-{scheme}.png")
        page.close()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for record in (RECORD, RECORD_5):
        record.unlink(missing_ok=True)
    play(scenario(3), partial(Painter, check=DEMO2, record=RECORD, begins=1, dumps=DRAINS), jobs=True)
    play(STORY_5, partial(Painter, check=DEMO5, record=RECORD_5, begins=2), reports=True)
    photograph_all()


def photograph_all() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        draw(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, selector in (("graph", "#graph"), ("timeline", "#timeline"), ("timeline-5", "#timeline")):
            photograph(browser, Path(folder) / f"{name}.html", selector)


if __name__ == "__main__":
    main()
