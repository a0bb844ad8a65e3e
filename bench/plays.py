"""
What is measured of one scene, one play each: cold start, restart, latency, cost, rest, burst, outage.

Each play is given stages: a hub with a scene on it, and who works there. Where both sides have a hub of their
own they take turns, change by change, so that what else the machine does hits both. Times are seconds unless
a name says otherwise.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import click

from bench.figures import Figures, cpu_per_1000, lists_per_kind, per_change, per_minute, watched_kinds, writes
from bench.follower import Follower
from bench.hubs import Bench
from bench.scene import Scene, decide, decide_all
from bench.sides import CONTROLLER, WHOLE_FLOOR, Process, Side, running
from placement_ac.kube.client import Client

NEVER_SECONDS: Final = 300.0
REST_SECONDS: Final = 0.5
REST_SHARE: Final = 0.05
"""A process that takes less of a CPU than this for `REST_SECONDS` is at rest."""
PAUSE_SECONDS: Final = (0.01, 0.03)
"""Between two changes; any length between these, so that nothing falls into step."""
BETWEEN_SECONDS: Final = 1.0
"""Between two bursts."""
LAST_SECONDS: Final = 12.0
"""After this time the events of a change have been posted; those that go on and on are counted for longer."""
SEED: Final = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """A hub with a scene on it, for one of the sides."""

    side: Side
    hub: Bench
    client: Client
    follower: Follower
    scene: Scene

    def wanted(self, changed: bool) -> dict[str, list[str]]:
        checks = range(self.scene.checks)
        return {self.scene.placement(check): self.scene.config(check, changed) for check in checks}

    @property
    def checks(self) -> set[str]:
        return {f"c{check}" for check in range(self.scene.checks)}

    async def change(self, check: int, changed: bool) -> float:
        """Change one decision and return how long it took until its list was right, from before the PATCH."""
        wanted = {self.scene.placement(check): self.scene.config(check, changed)}
        began = asyncio.get_running_loop().time()
        deciding = asyncio.create_task(decide(self.client, self.scene, check, changed=changed))
        reached = await within(self.follower.lists(wanted))
        await deciding
        return reached - began

    async def change_all(self, changed: bool) -> float:
        """Change all decisions at once, and return how long it took until the last list was right."""
        began = asyncio.get_running_loop().time()
        deciding = asyncio.create_task(decide_all(self.client, self.scene, changed=changed))
        reached = await within(self.follower.lists(self.wanted(changed)))
        await deciding
        return reached - began

    async def until_right(self, process: Process, *, changed: bool = False, whole: bool = False) -> float:
        """Return when all lists, and the conditions if `whole`, are right: so long after the start."""
        checks = self.checks if whole else set()
        return await within(self.follower.lists(self.wanted(changed), checks), process) - process.began


@dataclass(frozen=True, slots=True)
class Actor:
    """A stage on which somebody is at work."""

    stage: Stage
    process: Process


Actors = Mapping[str, Actor]


async def within(what: Awaitable[T], process: Process | None = None) -> T:
    """Return what comes of it. Raises ClickException when it never comes about, or `process` has ended."""
    doing = asyncio.ensure_future(what)
    end = time.monotonic() + NEVER_SECONDS
    try:
        while not (await asyncio.wait({doing}, timeout=REST_SECONDS))[0]:
            if process:
                process.check()
            if time.monotonic() > end:
                raise click.ClickException("what is to be measured never came about")
        return await doing
    finally:
        doing.cancel()


async def rest(process: Process) -> None:
    """Return when the process has had nothing to do for a while."""
    end = time.monotonic() + NEVER_SECONDS
    while time.monotonic() < end:
        process.check()
        before = process.cpu_seconds()
        await asyncio.sleep(REST_SECONDS)
        if process.cpu_seconds() - before < REST_SECONDS * REST_SHARE:
            return
    raise click.ClickException("it does not come to rest")


# -- starts


async def cold(stage: Stage) -> Figures:
    """Start with nothing there; return how long it took until all lists and conditions were right."""
    stage.hub.taken()
    side = stage.side if stage.side is CONTROLLER else WHOLE_FLOOR
    with running(side, stage.hub.kubeconfig) as process:
        seconds = await stage.until_right(process, whole=True)
        found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
        await rest(process)
        found["rssMb"] = round(process.memory(), 1)
    taken = stage.hub.taken()
    return found | {"requests": dict(sorted(taken.requests.items())) if taken else None}


async def restart(stage: Stage) -> Figures:
    """Start with everything right; return how long it took until it was ready, and what it asked.

    Before it ends, every list has been the other way round once: from now on a change costs one write.
    """
    with running(stage.side, stage.hub.kubeconfig, asked=True) as process:
        seconds = await within(process.ready(), process)
        found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
        await rest(process)
        taken = stage.hub.taken()
        for changed in (True, False):
            await stage.change_all(changed)
        await rest(process)
    if not taken:
        return found | {"requests": None, "writes": None, "listsPerKind": None}
    lists = lists_per_kind(taken.requests)
    return found | {
        "requests": dict(sorted(taken.requests.items())),
        "writes": writes(taken.requests),
        "listsPerKind": {kind: lists.get(kind, 0) for kind in sorted(watched_kinds(taken.requests))},
    }


async def changed_meanwhile(stage: Stage, process: Process) -> Figures:
    """All decisions were changed while nobody worked: return how long it took until all lists are right."""
    seconds = await stage.until_right(process, changed=True)
    found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
    await stage.change_all(changed=False)
    await rest(process)
    return found


# -- at work


async def latency(actors: Actors, changes: int) -> dict[str, list[float]]:
    """Change one decision after the other, on each stage by turns."""
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    found: dict[str, list[float]] = {name: [] for name in actors}
    for number in range(changes // 2):
        for name, actor in actors.items():
            check = number % actor.stage.scene.checks
            for changed in (True, False):
                await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
                found[name].append(await actor.stage.change(check, changed))
    return found


@dataclass(frozen=True, slots=True)
class Meter:
    """What a side had taken when a window began."""

    actor: Actor
    cpu: float
    at: float

    @classmethod
    def begun(cls, actor: Actor) -> "Meter":
        actor.stage.hub.taken()
        return cls(actor, actor.process.cpu_seconds(), time.monotonic())

    def ended(self) -> Figures:
        """Return what was taken meanwhile; `requests` and `watched` are None where nobody tells."""
        taken = self.actor.stage.hub.taken()
        return {
            "cpu": self.actor.process.cpu_seconds() - self.cpu,
            "seconds": time.monotonic() - self.at,
            "requests": taken and taken.requests,
            "watched": taken and taken.watched,
        }


async def idle(actors: Actors, seconds: float) -> dict[str, Figures]:
    """Let nothing happen for so long; return what that takes."""
    meters = {name: Meter.begun(actor) for name, actor in actors.items()}
    await asyncio.sleep(seconds)
    return {name: meter.ended() for name, meter in meters.items()}


def costs(window: Figures, rested: Figures, changes: int) -> Figures:
    """Return what a change costs, of a window with so many changes; `rested`: of one without any."""
    share = rested["cpu"] / rested["seconds"]
    found: Figures = {
        "idleCpuPercent": round(share * 100, 2),
        "cpuSecondsPer1000Changes": cpu_per_1000(window["cpu"], share, window["seconds"], changes),
    }
    if window["requests"] is None:
        return found | dict.fromkeys((*per_change({}, 1), *FROM_THE_HUB))
    windows = [(one["requests"], one["seconds"]) for one in (window, rested)]
    watched, quiet = (sum(one["watched"].values()) for one in (window, rested))
    return (
        found
        | per_change(window["requests"], changes)
        | {
            "requestsByTheClockPerMinute": per_minute(windows),
            "watchedBytesPerChange": round(watched / changes),
            "watchedBytesPerMinuteAtRest": round(quiet / rested["seconds"] * 60),
        }
    )


FROM_THE_HUB: Final = (
    "requestsByTheClockPerMinute",
    "watchedBytesPerChange",
    "watchedBytesPerMinuteAtRest",
)


async def burst(actors: Actors, times: int) -> dict[str, list[float]]:
    """Change all at once, back and forth."""
    found: dict[str, list[float]] = {name: [] for name in actors}
    for changed in (True, False) * times:
        for name, actor in actors.items():
            await asyncio.sleep(BETWEEN_SECONDS)
            found[name].append(await actor.stage.change_all(changed))
    return found


async def outage(actors: Actors, seconds: float) -> dict[str, Figures | None]:
    """Take the hubs away; return how soon after their return a decision that changes then has its list."""
    away = {name: actor.stage.hub.down() for name, actor in actors.items()}
    await asyncio.sleep(seconds if any(away.values()) else 0.0)
    return {name: await _back(actor, seconds) if away[name] else None for name, actor in actors.items()}


async def _back(actor: Actor, seconds: float) -> Figures:
    stage = actor.stage
    stage.hub.up()
    began = asyncio.get_running_loop().time()
    wanted = {stage.scene.placement(0): stage.scene.config(0, changed=True)}
    await decide(stage.client, stage.scene, 0, changed=True)
    reached = await within(stage.follower.lists(wanted), actor.process)
    return {"seconds": round(reached - began, 3), "awaySeconds": seconds}
