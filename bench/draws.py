"""
Changes that draw ten clusters of each check anew, at random, in the two namings of MultiKueueClusters.

Most of the clusters of such a change are others: if Placements share the MultiKueueClusters, only the list
must be written, otherwise the MultiKueueClusters that never existed as well. The floor writes only the list.
"""

import statistics
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench import plays
from bench.figures import FLOOR, MINE, Figures, bursts, compared, latencies
from bench.measure import Length, Report, Where, hubs, one_by_one, staged
from bench.plays import Actor, Stage
from bench.scene import Scene, decide_all
from bench.sides import Side, running

FIRST, ANEW = 0, 1
"""The turns before and after the single changes; those of bursts and restarts follow."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How the controller names and creates MultiKueueClusters. `options`: those of `placement-ac run`."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    shared_names: bool = False

    def side(self, side: Side) -> Side:
        of_floor = ("--shared-names",) if self.shared_names else ()
        return replace(side, options=self.options if side.is_controller else of_floor)

    def scene(self, checks: int, clusters: int) -> Scene:
        return Scene(checks, clusters, draws=True, shared_names=self.shared_names)


SHARED: Final = Variant("shared", "shared names", ("--cluster-names={cluster}",), shared_names=True)
PREPARED: Final = Variant("prepared", "default names, prepared", ("--prepare-clusters=sets",))
VARIANTS: Final[Mapping[str, Variant]] = {
    one.name: one for one in (Variant("default", "default names"), PREPARED, SHARED)
}


async def drawn(variant: Variant, scene: Scene, where: Where, length: Length, report: Report) -> Figures:
    """Measure a scene that draws: single changes, bursts, and starts after all decisions have changed."""
    raw: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, hubs(where, Path(folder)) as turns:
        for turn in turns:
            async with AsyncExitStack() as stack:
                report("fills the hub")
                stages = [
                    await stack.enter_async_context(staged(variant.side(side), hub, scene))
                    for side, hub in turn.items()
                ]
                raw |= await _played({stage.side.name: stage for stage in stages}, length, report)
    size = {"variant": variant.name, "checks": scene.checks, "clusters": scene.clusters}
    return size | figures(raw)


async def _played(stages: Mapping[str, Stage], length: Length, report: Report) -> dict[str, Figures]:
    with ExitStack() as stack:
        actors: dict[str, Actor] = {}
        for name, stage in stages.items():
            report(f"cold start: {name}")
            process = stack.enter_context(running(stage.side, stage.hub.kubeconfig))
            await stage.until_right(process, whole=stage.side.is_controller)
            await plays.rest(process)
            actors[name] = Actor(stage, process)
        raw = await _at_work(actors, length, report)
    for name, stage in stages.items():
        report(f"starts after changes: {name}")
        raw[name] |= await _starts(stage, length)
    return raw


async def _at_work(actors: Mapping[str, Actor], length: Length, report: Report) -> dict[str, Figures]:
    """Measure the running sides: one change to new clusters, one back to those before, bursts."""
    checks = min(length.changes, *(actor.stage.scene.checks for actor in actors.values()))
    raw = await one_by_one(actors, [(check, ANEW) for check in range(checks)], length.idle, report)
    report("back")
    back = await plays.latency(actors, [(check, FIRST) for check in range(checks)])
    report("burst")
    at_once = await plays.burst(actors, range(ANEW + 1, ANEW + 1 + length.bursts))
    for name, actor in actors.items():
        after = round(actor.process.memory(), 1)
        raw[name] |= {"back": back[name], "burst": at_once[name], "rssMbAfter": after}
    return raw


async def _starts(stage: Stage, length: Length) -> Figures:
    """Change all decisions while the side is stopped and start it, several times."""
    found: list[Figures] = []
    memory: list[float] = []
    first = ANEW + 1 + length.bursts
    for turn in range(first, first + length.starts):
        await decide_all(stage.client, stage.scene, turn)
        with running(stage.side, stage.hub.kubeconfig) as process:
            found.append(await plays.changed_meanwhile(stage, process, turn))
            await plays.rest(process)
            memory.append(round(process.memory(), 1))
    seconds = statistics.median(one["seconds"] for one in found)
    return {"afterChanges": {"seconds": seconds, "starts": found}, "rssMb": max(memory)}


def figures(raw: Mapping[str, Figures]) -> Figures:
    """Compare the two sides: `raw` is side → play → what was measured."""

    def of(play: str) -> dict[str, Any]:
        return {name: found[play] for name, found in raw.items()}

    mine, anew, back = raw[MINE], latencies(of("latency")), latencies(of("back"))
    return {
        "latency": anew,
        "back": back,
        "newOverBack": round(anew[MINE]["p50Ms"] / back[MINE]["p50Ms"], 3),
        "burst": bursts(of("burst")),
        "afterChanges": compared(of("afterChanges")),
        **mine["cost"],
        "rssMb": mine["rssMb"],
        "rssMbAfter": mine["rssMbAfter"],
        "costOfFloor": raw[FLOOR]["cost"] | {"rssMb": raw[FLOOR]["rssMb"]},
    }
