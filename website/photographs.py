"""
Create the pictures of the graph in docs/images: play Story 3 on an embedded hub, and draw it.

`make pictures`. The graph's data are beside it: a dump of the hub while cluster3 drained (without
credentials). It needs Chromium.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click
import yaml
from playwright.sync_api import sync_playwright

from kubectl_placement.cli.hub_options import STATUS_KINDS, HubSource, read_once
from kubectl_placement.graph.mermaid import mermaid
from kubectl_placement.graph.model import build_graph
from kubectl_placement.hub.kinds import QUEUE_KINDS
from kubectl_placement.readers.hub_reader import read_kinds
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.runner import DemoStepResult, JobResult, Renderer, finish, run_scenario
from placement_lab.demo.steps import Scenario, StoryStep
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import DEMO2
from placement_lab.demo.viewer import Viewer
from placement_lab.standins.manifests import connect
from website.page_files import PageSource, graph_file

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
DUMP: Final = IMAGES / "story3.yaml"
KINDS: Final = tuple(kind for kind in (*WATCHED_KINDS, *QUEUE_KINDS) if kind not in (SECRET, CLUSTER_PROFILE))

CHROMIUM: Final = "/usr/bin/chromium"
SIZE: Final[Any] = {"width": 1280, "height": 800}
DRAINS: Final = 3
"""The step after which cluster2 has taken over, and cluster3 drains."""


class Dumper:
    """Observes a story, and dumps the hub while cluster3 drains."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def step_started(self, number: int, step: StoryStep) -> None:
        click.echo(f"{number}. {step.title}")

    def step_finished(self, result: DemoStepResult) -> None:
        if result.number == DRAINS:
            with ThreadPoolExecutor(1) as aside:  # the story runs its own event loop
                aside.submit(asyncio.run, dump(self._kubeconfig)).result()

    def demo_finished(self, _: Sequence[DemoStepResult], __: Sequence[JobResult] = ()) -> None:
        """Nothing is left to do."""


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


def draw() -> str:
    """Write the Mermaid diagram, and return the page with the graph."""
    reading = read_once(HubSource(dump_files=(str(DUMP),)), STATUS_KINDS)
    statuses = check_statuses(reading.view, (DEMO2,))
    (IMAGES / "graph.mmd").write_text(mermaid(build_graph(statuses)), "utf-8")
    return graph_file(statuses, reading.view.facts.clusters_max, PageSource("a dump", reading.view.now))


def play(chosen: Scenario, observer: Callable[[Path], Renderer], **options: Any) -> None:
    """Play a story on a hub with these options; `observer`: makes what observes it of the kubeconfig."""
    with DemoEnvironment(**options) as stage:
        right = asyncio.run(_show(stage, chosen, observer(stage.kubeconfig)))
    if not right:
        sys.exit("the story did not come out right")


async def _show(stage: DemoEnvironment, chosen: Scenario, observer: Renderer) -> bool:
    async with Client(Login(stage.kubeconfig)) as client:
        counter = stage.fleet.counter if stage.fleet else None
        async with Viewer(client, counter, None) as seen:
            return finish(
                observer, [await run_scenario(chosen, connect(stage.kubeconfig), stage, seen, observer)]
            )


def photograph(browser: Any, page_file: Path) -> None:
    """Photograph the graph of a page, in light and dark."""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport=SIZE, device_scale_factor=1.5)
        page.goto(page_file.as_uri())
        page.locator("#graph").screenshot(path=IMAGES / f"graph-{scheme}.png")
        page.close()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    play(scenario(3), Dumper, jobs=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "graph.html"
        page_file.write_text(draw(), "utf-8")
        photograph(playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]), page_file)


if __name__ == "__main__":
    main()
