"""
Measure the memory of a controller at rest, on hubs of several sizes.

`make bench-memory`; `make bench-memory QUICK=1`: the controller starts on a hub without lists and creates
everything; then another one starts and finds it all. Prints a table, in MB (10^6 bytes): the RSS at rest of
both, and the most that the second one had. The first line is of the floor, on the smallest hub.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

import click

from bench.driver import staged
from bench.processes import CONTROLLER, FLOOR, Side, embedded, memory
from bench.report import machine, markdown_table, show
from bench.scene import Scene

SCENES: Final = (
    Scene(0, 0),
    Scene(0, 1000),
    Scene(200, 40),
    Scene(200, 40, shared_names=True),
    Scene(1000, 5000),
    Scene(1, 40, workloads=100_000),
)
QUICK: Final = (Scene(0, 0), Scene(10, 40), Scene(1, 40, workloads=1000))
REST_SECONDS: Final = 5.0
"""Idle for so long, it has also written what it does in the background."""


async def measure(side: Side, scene: Scene) -> tuple[float, float, float]:
    """Return the RSS at rest of a side that has created all, of one that has found all, and its most."""
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "kubeconfig", scene) as hub:
        async with staged(side, hub, scene) as stage:
            with stage.running(stage.side.whole):
                await stage.until_right()
                created = await stage.rest(REST_SECONDS)
            with stage.running():
                found = await stage.rest(REST_SECONDS)
                return created, found, round(memory(stage.process.pid)[1], 1)


@click.command()
@click.option("--quick", is_flag=True, help="Small hubs, in a minute.")
def main(quick: bool) -> None:
    """Measure the memory at rest."""
    scenes = QUICK if quick else SCENES
    sides = ((FLOOR, scenes[0]), *((CONTROLLER, scene) for scene in scenes))
    rows = []
    for side, scene in sides:
        title = f"{side.name}: {scene}"
        click.echo(title, err=True)
        rows.append((title, *map(str, asyncio.run(measure(side, scene)))))
    head = ("", "created all", "found all", "at most")
    show([machine(), "", *markdown_table(head, rows)])


if __name__ == "__main__":
    main()
