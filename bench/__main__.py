"""
Measure the controller's speed beside the minimum (the floor). `make bench`; `make bench QUICK=1`.

Controller and floor each use their own hub with the same scene, in separate processes, and take turns; the
hubs have a processor of their own if the machine has two (not with `--together`). Writes `bench/latest.json`
after each size and a table to standard output; progress goes to standard error. With `--kubeconfig` both are
measured on that hub, one after the other; with two kubeconfigs, each on its own hub, in turns. Such a hub
must serve the CRDs and be otherwise unused.

A comparison plays single changes that swap one cluster of ten, or changes that draw the ten clusters anew, in
a `Variant` of naming MultiKueueClusters: most clusters of such a change are others; if Placements share the
MultiKueueClusters, only the list must be written, otherwise the MultiKueueClusters that never existed as
well. The floor writes only the list.
"""

import asyncio
import json
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from bench import driver
from bench.driver import SIDES, Stage, Stages, Where
from bench.processes import CONTROLLER, VARIANTS, Variant, embedded_scene
from bench.report import (
    FLOOR,
    MINE,
    REFERENCE,
    Figures,
    bursts,
    compared,
    growth,
    latencies,
    machine,
    markdown,
    pooled,
    reference,
    show,
)
from bench.scene import PER_CHECK, Scene, decide_all

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


# -- what is measured

LATEST: Final = Path(__file__).with_name("latest.json")
CLUSTERS: Final = 40
QUICK: Final = Length(changes=100, bursts=1, outage=4.0, idle=4.0)
WHOLE: Final = Length(changes=200, bursts=3, outage=20.0, idle=20.0, rounds=3, starts=3)
"""At 200 checks; the other sizes measure growth. Processes differ in speed for their whole life, so each side
is started several times."""
DRAWN: Final = Length(bursts=6, starts=3)
"""The first bursts are slower: connections are opened, and more events are posted."""
LENGTHS: Final = {Scene(REFERENCE, CLUSTERS): WHOLE, Scene(1000, CLUSTERS): Length(bursts=1)}
SIZES: Final = (
    *(Scene(checks, CLUSTERS) for checks in (1, 10, 50, 200, 1000)),
    Scene(200, 100),
    Scene(200, 5000),
)
MEMORY: Final = (Scene(0, 0), Scene(0, 1000), Scene(1000, 5000))


@dataclass
class Results:
    """The results so far; every addition is written to the file."""

    path: Path
    machine: dict[str, Any]
    sizes: list[Figures] = field(default_factory=list)
    memory: list[Figures] = field(default_factory=list)
    draws: list[Figures] = field(default_factory=list)

    @property
    def whole(self) -> Figures:
        kinds = {"memory": self.memory, "draws": self.draws, "machine": self.machine, "sizes": self.sizes}
        return {**reference(self.sizes), "growth": growth(self.sizes), **kinds}

    def add(self, to: list[Figures], work: Coroutine[Any, Any, Figures]) -> None:
        to.append(asyncio.run(work))
        self.path.write_text(json.dumps(self.whole, indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes to measure, and the variants of changes that draw clusters anew."""

    sizes: Sequence[tuple[Scene, Length]]
    memory: Sequence[Scene] = ()
    draws: Sequence[tuple[Variant, Scene, Length]] = ()

    @classmethod
    def chosen(
        cls,
        quick: bool,
        sizes: Sequence[Scene],
        changes: int | None,
        rounds: int | None = None,
        draws: Sequence[Variant] = (),
    ) -> "Plan":
        def of(length: Length) -> Length:
            return replace(length, changes=changes or length.changes, rounds=rounds or length.rounds)

        variants = draws or ([] if quick or sizes else VARIANTS.values())
        scenes = sizes or [Scene(REFERENCE, CLUSTERS)]
        anew = [
            (one, one.scene(scene.checks, scene.clusters), of(DRAWN)) for scene in scenes for one in variants
        ]
        if draws:
            return cls([], draws=anew)
        if quick or sizes:
            length = of(QUICK if quick else WHOLE)
            return cls([(scene, length) for scene in sizes or (Scene(50, CLUSTERS),)])
        return cls([(scene, of(LENGTHS.get(scene, Length()))) for scene in SIZES], MEMORY, anew)


def measured(plan: Plan, where: Where, results: Results) -> None:
    """Measure the planned sizes one by one, and write the results after each."""
    began = time.monotonic()

    def reporter(scene: Scene | str) -> Report:
        return lambda what: click.echo(f"{time.monotonic() - began:5.0f} s  {scene}: {what}", err=True)

    for scene, length in plan.sizes:
        results.add(results.sizes, at(scene, where, length, reporter(scene)))
    for variant, scene, length in plan.draws:
        report = reporter(f"{scene}, {variant.title}")
        results.add(results.draws, drawn(variant, scene, where, length, report))
    for scene in plan.memory if not where.kubeconfigs else ():
        results.add(results.memory, memory_at(scene, reporter(scene)))


FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.option("--quick", is_flag=True, help="Measure only 50 checks, in less than a minute.")
@click.option("--checks", multiple=True, type=click.IntRange(1), help="Measure only this number of checks.")
@click.option(
    "--clusters",
    type=click.IntRange(PER_CHECK + 1),
    default=CLUSTERS,
    help="Clusters on the hub, with --checks.",
)
@click.option(
    "--draw",
    "draws",
    multiple=True,
    type=click.Choice(list(VARIANTS)),
    help="Measure only changes that draw the clusters of 200 checks anew, with default or shared names of "
    "MultiKueueClusters.",
)
@click.option("--changes", type=click.IntRange(4), help="Number of single changes, at each size.")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    help="Rounds of each size (default: 3 at 200 checks, else 1); changes and bursts are pooled, starts are "
    "represented by their median.",
)
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    type=FILE,
    help="Measure on this hub; given twice: the floor on the first, the controller on the second, in turns.",
)
@click.option("--apart/--together", default=True, help="Whether embedded hubs get a processor of their own.")
@click.option("--output", type=FILE, default=LATEST, help="The JSON file to write.")
def main(
    quick: bool,
    checks: tuple[int, ...],
    clusters: int,
    draws: tuple[str, ...],
    changes: int | None,
    rounds: int | None,
    kubeconfigs: tuple[Path, ...],
    apart: bool,
    output: Path,
) -> None:
    """Measure the controller beside the floor."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM, too, ends all processes
    if len(kubeconfigs) > len(SIDES):
        raise click.BadParameter("at most two hubs, one for each side", param_hint="--kubeconfig")
    if draws and 1 in checks:
        raise click.BadParameter("--draw takes two checks or more", param_hint="--checks")
    variants = [VARIANTS[name] for name in draws]
    plan = Plan.chosen(quick, [Scene(size, clusters) for size in checks], changes, rounds, variants)
    where = Where(kubeconfigs, apart)
    results = Results(output, machine() | {"hubsHaveOwnProcessor": where.hubs_have_own_processor})
    measured(plan, where, results)
    show(markdown(results.whole, every_size=True))
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
