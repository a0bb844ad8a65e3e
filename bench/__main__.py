"""
How fast is the controller, beside the least that can be done? `make bench`; `make bench QUICK=1`.

Controller and floor each have a hub of their own with the same scene, in processes of their own, and take
turns. Writes `bench/latest.json`, and a table to standard output. With `--kubeconfig` both are measured on
that hub, one after the other; it must serve the CRDs, be of no use to anybody else, and nothing else may act
on it.
"""

import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from bench.follower import following
from bench.hubs import Bench, Theirs, embedded
from bench.plays import Figures, Stage, burst, latency, outage, rest, spread, until_right
from bench.scene import Scene, answer, prepare
from bench.sides import CONTROLLER, FLOOR, WHOLE_FLOOR, Side, cpu_seconds, memory, running
from placement_ac.kube import Client
from placement_ac.login import Login

LATEST: Final = Path(__file__).with_name("latest.json")
LAST_SECONDS: Final = 12.0
"""After this time the last counts of events have been posted."""
SIDES: Final = (FLOOR, CONTROLLER)


@dataclass(frozen=True, slots=True)
class Length:
    """How much of each is measured: decisions one at a time, bursts back and forth; and seconds."""

    changes: int = 400
    bursts: int = 5
    outage: float = 20.0
    idle: float = 20.0


QUICK: Final = Length(changes=100, bursts=1, outage=6.0, idle=5.0)


@asynccontextmanager
async def stage_on(hub: Bench, scene: Scene) -> AsyncIterator[Stage]:
    """Put a scene on a hub, and follow what becomes of it."""
    async with Client(Login(hub.kubeconfig), field_manager="bench") as client:
        await prepare(client, scene, hub.kubeconfig.read_bytes())
        await answer(client, scene)
        async with following(client) as follower:
            yield Stage(hub, client, follower, scene)


@asynccontextmanager
async def hubs(kubeconfig: Path | None, folder: Path) -> AsyncIterator[dict[str, Bench]]:
    """Give each side a hub: of its own, or the one that there is."""
    async with AsyncExitStack() as stack:
        if kubeconfig:
            yield dict.fromkeys((side.name for side in SIDES), Theirs(kubeconfig))
        else:
            yield {side.name: stack.enter_context(embedded(folder / side.name)) for side in SIDES}


async def cold(stage: Stage, side: Side) -> Figures:
    """Start one with nothing there, then again with all there; leave it as it is."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with running(side, stage.hub.kubeconfig) as pid:
        reached = await until_right(stage, whole=True)
        found: Figures = {"seconds": round(reached - began, 3), "cpuSeconds": cpu_seconds(pid)}
        await rest(pid)
    return found


def over(found: Mapping[str, float]) -> float:
    return round(found[CONTROLLER.name] / found[FLOOR.name], 3)


async def at(scene: Scene, kubeconfig: Path | None, length: Length) -> Figures:
    """Measure one size: latency, burst, cold start, restart, cost, memory."""
    with tempfile.TemporaryDirectory() as folder:
        async with hubs(kubeconfig, Path(folder)) as found, AsyncExitStack() as stack:
            stages = {
                name: await stack.enter_async_context(stage_on(hub, scene)) for name, hub in found.items()
            }
            starts = {side.name: await cold(stages[side.name], side) for side in (WHOLE_FLOOR, CONTROLLER)}
            pids = {
                side.name: stack.enter_context(running(side, found[side.name].kubeconfig)) for side in SIDES
            }
            for pid in pids.values():
                await rest(pid)
            mine, pid = stages[CONTROLLER.name], pids[CONTROLLER.name]
            figures: Figures = {"checks": scene.checks, "clusters": scene.clusters}
            figures["coldStart"] = starts | {"overFloor": over({k: v["seconds"] for k, v in starts.items()})}
            if mine.hub.orders:
                figures["restart"] = {"requests": mine.hub.requests(CONTROLLER.agent)}
            figures["rssMb"] = round(memory(pid), 1)
            figures["latency"] = _compared(await latency(stages, length.changes))
            before = cpu_seconds(pid)
            if mine.hub.orders:
                mine.hub.requests("")
                await latency({CONTROLLER.name: mine}, 100)
                await rest(pid)
                requests = mine.hub.requests(CONTROLLER.agent)
                figures["requestsPerChange"] = round(sum(requests.values()) / _changes(100, scene), 3)
                figures["requestsByKindPerChange"] = {
                    name: round(count / _changes(100, scene), 3) for name, count in requests.items()
                }
                spent = cpu_seconds(pid) - before
                figures["cpuSecondsPer1000Changes"] = round(spent * 1000 / _changes(100, scene), 2)
            figures["burst"] = _bursts(await burst(stages, length.bursts))
            await asyncio.sleep(LAST_SECONDS)
            idle = cpu_seconds(pid)
            await asyncio.sleep(length.idle)
            figures["idleCpuPercent"] = round((cpu_seconds(pid) - idle) / length.idle * 100, 2)
            figures["rssMbAfter"] = round(memory(pid), 1)
            if mine.hub.orders:
                figures["outage"] = {"seconds": round(await outage(mine, length.outage), 3)}
            return figures


def _changes(changes: int, scene: Scene) -> int:
    """Return how many decisions `latency` changes in all, those aside that are not measured included."""
    return changes // 2 * 2 + min(changes // 2, scene.checks) * 2


def _compared(seconds: Mapping[str, Sequence[float]]) -> Figures:
    figures: Figures = {name: spread(found) for name, found in seconds.items()}
    for part in ("p50", "p90", "p99"):
        figures[f"{part}OverFloor"] = over({name: figures[name][f"{part}Ms"] for name in seconds})
    return figures


def _bursts(seconds: Mapping[str, Sequence[float]]) -> Figures:
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    figures: Figures = {
        name: {"seconds": [round(one, 3) for one in found]} for name, found in seconds.items()
    }
    return figures | {"overFloor": over(medians)}


def table(sizes: Sequence[Figures]) -> Table:
    shown = Table("CHECKS", "CLUSTERS", "WHAT", "CONTROLLER", "FLOOR", "RATIO")
    for one in sizes:
        where = str(one["checks"]), str(one["clusters"])
        mine, floor = (one["latency"][side.name] for side in (CONTROLLER, FLOOR))
        for part in ("p50", "p90", "p99"):
            ratio = one["latency"][f"{part}OverFloor"]
            cells = (f"{mine[f'{part}Ms']} ms", f"{floor[f'{part}Ms']} ms", str(ratio))
            shown.add_row(*where, f"latency {part}", *cells)
        for name in ("burst", "coldStart"):
            mine, floor = (_seconds(one[name][side.name]) for side in (CONTROLLER, FLOOR))
            shown.add_row(*where, name, f"{mine:.2f} s", f"{floor:.2f} s", str(one[name]["overFloor"]))
        for name in ("rssMb", "rssMbAfter", "idleCpuPercent", "cpuSecondsPer1000Changes", "outage"):
            value: Any = one.get(name, "")
            shown.add_row(*where, name, str(value["seconds"] if isinstance(value, dict) else value))
    return shown


def _seconds(found: Figures) -> float:
    value = found["seconds"]
    return float(statistics.median(value) if isinstance(value, list) else value)


@click.command()
@click.option("--quick", is_flag=True, help="50 checks alone, in under a minute.")
@click.option("--checks", multiple=True, type=int, help="Sizes to measure.  [default: 1, 50, 200, 1000]")
@click.option("--clusters", type=int, default=40, show_default=True, help="Clusters on the hub.")
@click.option("--changes", type=int, default=400, show_default=True, help="Decisions, one at a time.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Measure on that hub.")
def main(quick: bool, checks: tuple[int, ...], clusters: int, changes: int, kubeconfig: Path | None) -> None:
    """Measure the controller beside the floor."""
    sizes = checks or ((50,) if quick else (1, 50, 200, 1000))
    found: list[Figures] = []
    for size in sizes:
        found.append(asyncio.run(at(Scene(size, clusters), kubeconfig, QUICK if quick else Length(changes))))
        reference = next((one for one in found if one["checks"] == 200), found[-1])
        LATEST.write_text(json.dumps({**reference, "sizes": found}, indent=2) + "\n")
    Console(width=120).print(table(found))
    click.echo(f"written to {LATEST}")


if __name__ == "__main__":
    main()
