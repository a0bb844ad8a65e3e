"""
One size: its plays, their sides and order, and the figures computed from them.

Each side has its own hub, embedded or external, and both work at the same time; or both use one external hub,
and the first side has finished and its objects are deleted before the second one starts.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import plays
from bench.figures import Figures, bursts, compared, latencies, pooled
from bench.follower import following
from bench.hubs import AGENT, Bench, Theirs, embedded
from bench.plays import Actor, Meter, Stage
from bench.processors import of_their_own, shared_out, usable
from bench.scene import Scene, decide_all
from bench.sides import CONTROLLER, FLOOR, Side, running
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login

Report = Callable[[str], None]
SIDES: Final = (FLOOR, CONTROLLER)


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


@dataclass(frozen=True, slots=True)
class Where:
    """The hubs for the measurement: those of at most two kubeconfigs, or embedded ones.

    `apart`: embedded hubs get a processor of their own.
    """

    kubeconfigs: Sequence[Path] = ()
    apart: bool = True

    @property
    def hubs_have_own_processor(self) -> bool | None:
        """Whether the hubs have their own processor; None: external hubs, so it is unknown."""
        if self.kubeconfigs:
            return None
        return self.apart and shared_out(usable()) is not None


@contextmanager
def hubs(where: Where, folder: Path) -> Iterator[Sequence[Mapping[Side, Bench]]]:
    """Give each side a hub, and yield the groups of sides that work at the same time; end the hubs."""
    if len(where.kubeconfigs) == 1:
        yield [{side: Theirs(where.kubeconfigs[0])} for side in SIDES]
        return
    if where.kubeconfigs:
        yield [{side: Theirs(path) for side, path in zip(SIDES, where.kubeconfigs, strict=True)}]
        return
    with ExitStack() as stack:
        ours = {side: stack.enter_context(embedded(folder / side.name)) for side in SIDES}
        for hub in ours.values():
            hub.until_ready()
        if where.apart:
            stack.enter_context(of_their_own(hub.pid for hub in ours.values()))
        yield [ours]


@asynccontextmanager
async def staged(side: Side, hub: Bench, scene: Scene) -> AsyncIterator[Stage]:
    """Create a scene on a hub and follow its objects; delete it at the end."""
    async with Client(Login(hub.kubeconfig), field_manager=AGENT) as client:
        await hub.check(client)  # what others have there is not deleted
        try:
            await hub.fill(client, scene)
            async with following(client) as follower:
                yield Stage(side, hub, client, follower, scene)
        finally:
            await hub.clear(client)


async def at(scene: Scene, where: Where, length: Length, report: Report) -> Figures:
    """Measure one size: every play with a length, in `length.rounds` rounds."""
    found = [await _round(scene, where, length, report) for _ in range(length.rounds)]
    more = [await _start(scene, where, report) for _ in range(length.starts - 1)]
    raw = {
        side.name: pooled([one[side.name] for one in found], [one[side.name] for one in more])
        for side in SIDES
    }
    return {"checks": scene.checks, "clusters": scene.clusters} | figures(raw)


async def _round(scene: Scene, where: Where, length: Length, report: Report) -> dict[str, Figures]:
    raw: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, hubs(where, Path(folder)) as turns:
        for turn in turns:
            async with AsyncExitStack() as stack:
                report("fills the hub")
                stages = [
                    await stack.enter_async_context(staged(side, hub, scene)) for side, hub in turn.items()
                ]
                raw |= await played(
                    {stage.side.name: stage for stage in stages}, scene.checks, length, report
                )
    return raw


async def _start(scene: Scene, where: Where, report: Report) -> dict[str, Figures]:
    """Return the cost of a cold start of each side, on newly filled hubs."""
    raw: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, hubs(where, Path(folder)) as turns:
        for side, hub in [pair for turn in turns for pair in turn.items()]:
            report(f"one more cold start: {side.name}")
            async with staged(side, hub, scene) as stage:
                raw[side.name] = await plays.cold(stage)
    return raw


async def played(
    stages: Mapping[str, Stage], checks: int, length: Length, report: Report
) -> dict[str, Figures]:
    """Play everything; return side → play → raw figures."""
    raw: dict[str, Figures] = {name: {} for name in stages}
    for name, stage in stages.items():
        report(f"cold start: {name}")
        raw[name]["coldStart"] = await plays.cold(stage)
        report(f"restart: {name}")
        raw[name]["restart"] = await plays.restart(stage)
    with ExitStack() as stack:
        actors: dict[str, Actor] = {}
        for name, stage in stages.items():
            await decide_all(stage.client, stage.scene, turn=1)
            process = stack.enter_context(running(stage.side, stage.hub.kubeconfig))
            actors[name] = Actor(stage, process)
            raw[name]["restart"]["afterChanges"] = await plays.changed_meanwhile(stage, process, turn=1)
            await stage.change_all(turn=0)
            await plays.rest(process)
            raw[name]["rssMb"] = round(process.memory(), 1)
        for name, found in (await at_work(actors, checks, length, report)).items():
            raw[name] |= found
    return raw


async def at_work(
    actors: Mapping[str, Actor], checks: int, length: Length, report: Report
) -> dict[str, Figures]:
    """Measure the running sides: one change, its cost, a burst, an outage."""
    found = await one_by_one(actors, list(plays.swaps(checks, length.changes)), length.idle, report)
    report("burst")
    at_once = await plays.burst(actors, (1, 0) * length.bursts)
    after = {name: round(actor.process.memory(), 1) for name, actor in actors.items()}
    away: Mapping[str, Figures | None] = dict.fromkeys(actors)
    if length.outage:
        report("outage")
        away = await plays.outage(actors, length.outage)
    return {
        name: found[name] | {"burst": at_once[name], "rssMbAfter": after[name], "outage": away[name]}
        for name in actors
    }


async def one_by_one(
    actors: Mapping[str, Actor], changes: Sequence[tuple[int, int]], idle: float, report: Report
) -> dict[str, Figures]:
    """Measure changes, each a check and its turn: latency, and the cost; `idle`: seconds without changes."""
    report("latency")
    meters = {name: Meter.begun(actor) for name, actor in actors.items()}
    seconds = await plays.latency(actors, changes)
    report("cost, and rest")
    await asyncio.sleep(plays.LAST_SECONDS)
    windows = {name: meter.ended() for name, meter in meters.items()}
    rested = await plays.idle(actors, idle)
    return {
        name: {"latency": seconds[name], "cost": plays.costs(windows[name], rested[name], len(changes))}
        for name in actors
    }


def figures(raw: Mapping[str, Figures]) -> Figures:
    """Compare the two sides; cost and memory of the controller, with those of the floor beside them."""

    def of(play: str) -> dict[str, Any]:
        return {name: found[play] for name, found in raw.items()}

    restarts = of("restart")
    meanwhile = {name: found.pop("afterChanges") for name, found in restarts.items()}
    outages = of("outage")
    memory = {name: found["rssMb"] for name, found in raw.items()}
    mine = raw[CONTROLLER.name]
    return {
        "latency": latencies(of("latency")),
        "burst": bursts(of("burst")),
        "coldStart": compared(of("coldStart")),
        "restart": compared(restarts) | {"afterChanges": compared(meanwhile)},
        "outage": compared(outages) if all(outages.values()) else {**outages, "overFloor": None},
        **mine["cost"],
        "rssMb": mine["rssMb"],
        "rssMbAfter": mine["rssMbAfter"],
        "costOfFloor": raw[FLOOR.name]["cost"] | {"rssMb": memory[FLOOR.name]},
    }


async def memory_at(scene: Scene, report: Report) -> Figures:
    """Return the controller's memory at rest: after creating everything, and after finding everything."""
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder) / "kubeconfig") as hub:
        hub.until_ready()
        report("fills the hub")
        async with staged(CONTROLLER, hub, scene) as stage:
            found: Figures = {"checks": scene.checks, "clusters": scene.clusters}
            report("cold start")
            found["rssMbCold"] = (await plays.cold(stage))["rssMb"]
            report("rest")
            with running(CONTROLLER, hub.kubeconfig, asked=True) as process:
                await plays.within(process.ready(), process)
                await plays.rest(process)
                found["rssMb"] = round(process.memory(), 1)
    return found
