"""
Compare the controller with the floor at one size, and measure its memory there.

A comparison plays single changes that swap one cluster of ten, or changes that draw the ten clusters anew, in
a `Variant` of naming MultiKueueClusters: most clusters of such a change are others; if Placements share the
MultiKueueClusters, only the list must be written, otherwise the MultiKueueClusters that never existed as
well. The floor writes only the list.
"""

import statistics
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench import driver
from bench.driver import Stage, Stages, Where
from bench.hubs import embedded_scene
from bench.measure import FLOOR, MINE, Figures, bursts, compared, latencies, pooled
from bench.processes import CONTROLLER, Side
from bench.scene import Scene, decide_all

Report = Callable[[str], None]
FIRST, ANEW = 0, 1
"""The turns before and after the single changes; those of bursts and restarts follow."""


@dataclass(frozen=True, slots=True)
class Length:
    """The lengths of the plays: decisions one at a time, bursts back and forth; and seconds (0: not).

    `starts`: the number of cold starts, not counting one in each further round: each is short, and one alone
    says little.
    """

    changes: int = 200
    bursts: int = 2
    outage: float = 0.0
    idle: float = 5.0
    rounds: int = 1
    starts: int = 1


def _of(raw: Mapping[str, Figures], play: str) -> dict[str, Any]:
    return {name: found[play] for name, found in raw.items()}


def _costs(raw: Mapping[str, Figures]) -> Figures:
    """Return cost and memory of the controller, with those of the floor beside them."""
    mine, floor = raw[MINE], raw[FLOOR]
    memory = {key: mine[key] for key in ("rssMb", "rssMbAfter")}
    return {**mine["cost"], **memory, "costOfFloor": floor["cost"] | {"rssMb": floor["rssMb"]}}


# -- changes of one cluster


async def at(scene: Scene, where: Where, length: Length, report: Report) -> Figures:
    """Measure one size: every play with a length, in `length.rounds` rounds."""

    async def whole(stages: Stages) -> dict[str, Figures]:
        return await _played(stages, length, report)

    async def start(stages: Stages) -> dict[str, Figures]:
        report("one more cold start")
        return {name: await driver.cold(stage) for name, stage in stages.items()}

    found = [await driver.on_hubs(scene, where, whole) for _ in range(length.rounds)]
    more = [await driver.on_hubs(scene, where, start) for _ in range(length.starts - 1)]
    raw = {name: pooled([one[name] for one in found], [one[name] for one in more]) for name in found[0]}
    restarts, outages = _of(raw, "restart"), _of(raw, "outage")
    meanwhile = {name: one.pop("afterChanges") for name, one in restarts.items()}
    return {
        "checks": scene.checks,
        "clusters": scene.clusters,
        "latency": latencies(_of(raw, "latency")),
        "burst": bursts(_of(raw, "burst")),
        "coldStart": compared(_of(raw, "coldStart")),
        "restart": compared(restarts) | {"afterChanges": compared(meanwhile)},
        "outage": compared(outages) if all(outages.values()) else {**outages, "overFloor": None},
        **_costs(raw),
    }


async def _played(stages: Stages, length: Length, report: Report) -> dict[str, Figures]:
    """Play everything; return side → play → raw figures."""
    raw: dict[str, Figures] = {name: {} for name in stages}
    for name, stage in stages.items():
        report(f"cold start: {name}")
        raw[name]["coldStart"] = await driver.cold(stage)
        report(f"restart: {name}")
        raw[name]["restart"] = await driver.restart(stage)
    with ExitStack() as stack:
        for name, stage in stages.items():
            await decide_all(stage.client, stage.scene, turn=1)
            process = stack.enter_context(stage.running())
            raw[name]["restart"]["afterChanges"] = await driver.changed_meanwhile(stage, process, turn=1)
            await stage.change_all(turn=0)
            raw[name]["rssMb"] = await driver.rest(process)
        report("single changes")
        checks = next(iter(stages.values())).scene.checks
        changes = driver.swaps(checks, length.changes)
        plays = await driver.one_by_one(stages, changes, length.idle)
        report("burst")
        at_once = await driver.burst(stages, (1, 0) * length.bursts)
        after = _memory(stages)
        away: Mapping[str, Figures | None] = dict.fromkeys(stages)
        if length.outage:
            report("outage")
            away = await driver.outage(stages, length.outage)
    for name in stages:
        raw[name] |= plays[name] | {"burst": at_once[name], "rssMbAfter": after[name], "outage": away[name]}
    return raw


def _memory(stages: Stages) -> dict[str, float]:
    return {name: stage.process.memory() for name, stage in stages.items() if stage.process}


async def memory_at(scene: Scene, report: Report) -> Figures:
    """Return the controller's memory at rest: after creating everything, and after finding everything."""
    with tempfile.TemporaryDirectory() as folder, embedded_scene(Path(folder) / "kubeconfig", scene) as hub:
        async with driver.staged(CONTROLLER, hub, scene) as stage:
            found: Figures = {"checks": scene.checks, "clusters": scene.clusters}
            report("cold start")
            found["rssMbCold"] = (await driver.cold(stage))["rssMb"]
            report("rest")
            with stage.running(probed=True) as process:
                await driver.within(process.ready(), process)
                found["rssMb"] = await driver.rest(process)
    return found


# -- changes that draw the clusters anew


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

    async def play(stages: Stages) -> dict[str, Figures]:
        return await _played_anew(stages, length, report)

    raw = await driver.on_hubs(scene, where, play, variant.side)
    anew, back = latencies(_of(raw, "latency")), latencies(_of(raw, "back"))
    return {
        "variant": variant.name,
        "checks": scene.checks,
        "clusters": scene.clusters,
        "latency": anew,
        "back": back,
        "newOverBack": round(anew[MINE]["p50Ms"] / back[MINE]["p50Ms"], 3),
        "burst": bursts(_of(raw, "burst")),
        "afterChanges": compared(_of(raw, "afterChanges")),
        **_costs(raw),
    }


async def _played_anew(stages: Stages, length: Length, report: Report) -> dict[str, Figures]:
    """Play one change to new clusters, one back to those before, bursts, and starts after changes."""
    with ExitStack() as stack:
        for name, stage in stages.items():
            report(f"cold start: {name}")
            process = stack.enter_context(stage.running())
            await stage.until_right(process, whole=stage.side.is_controller)
            await driver.rest(process)
        checks = min(length.changes, *(stage.scene.checks for stage in stages.values()))
        report("single changes")
        raw = await driver.one_by_one(stages, [(check, ANEW) for check in range(checks)], length.idle)
        report("back")
        back = await driver.latency(stages, [(check, FIRST) for check in range(checks)])
        report("burst")
        at_once = await driver.burst(stages, range(ANEW + 1, ANEW + 1 + length.bursts))
        after = _memory(stages)
    for name, stage in stages.items():
        report(f"starts after changes: {name}")
        raw[name] |= {"back": back[name], "burst": at_once[name], "rssMbAfter": after[name]}
        raw[name] |= await _starts(stage, length)
    return raw


async def _starts(stage: Stage, length: Length) -> Figures:
    """Change all decisions while the side is stopped and start it, several times."""
    found: list[Figures] = []
    memory: list[float] = []
    first = ANEW + 1 + length.bursts
    for turn in range(first, first + length.starts):
        await decide_all(stage.client, stage.scene, turn)
        with stage.running() as process:
            found.append(await driver.changed_meanwhile(stage, process, turn))
            memory.append(await driver.rest(process))
    seconds = statistics.median(one["seconds"] for one in found)
    return {"afterChanges": {"seconds": seconds, "starts": found}, "rssMb": max(memory)}
