"""
The plays, one per measurement of a scene: cold start, restart, latency, cost, rest, burst, outage.

Each play receives stages: a hub with a scene, and the side that works there. When each side has its own hub,
they take turns, change by change, so that other load of the machine affects both. Times are seconds unless a
name says otherwise.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import click

from bench.figures import Figures, cpu_per_1000, lists_per_kind, per_change, per_minute, watched_kinds, writes
from bench.follower import Follower
from bench.hubs import Bench
from bench.scene import Scene, decide, decide_all
from bench.sides import NEVER_SECONDS, Process, Side, running, until_idle
from placement_ac.kube.client import Client

REST_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = (0.01, 0.03)
"""The range of the random pause between two changes, so that nothing synchronizes."""
BETWEEN_SECONDS: Final = 1.0
"""The pause between two bursts."""
LAST_SECONDS: Final = 12.0
"""After this time the events of a change have been posted; repeated events are counted for longer."""
SEED: Final = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """A hub with a scene, for one of the sides."""

    side: Side
    hub: Bench
    client: Client
    follower: Follower
    scene: Scene

    def wanted(self, turn: int) -> dict[str, list[str]]:
        checks = range(self.scene.checks)
        return {self.scene.placement(check): self.scene.config(check, turn) for check in checks}

    @property
    def checks(self) -> set[str]:
        return {f"c{check}" for check in range(self.scene.checks)}

    async def change(self, check: int, turn: int) -> float:
        """Change one decision; return the seconds from before the PATCH until its list was correct."""
        wanted = {self.scene.placement(check): self.scene.config(check, turn)}
        began = asyncio.get_running_loop().time()
        deciding = asyncio.create_task(decide(self.client, self.scene, check, turn))
        reached = await within(self.follower.lists(wanted))
        await deciding
        return reached - began

    async def change_all(self, turn: int) -> float:
        """Change all decisions at once; return the seconds until the last list was correct."""
        began = asyncio.get_running_loop().time()
        deciding = asyncio.create_task(decide_all(self.client, self.scene, turn))
        reached = await within(self.follower.lists(self.wanted(turn)))
        await deciding
        return reached - began

    async def until_right(self, process: Process, *, turn: int = 0, whole: bool = False) -> float:
        """Return the seconds from the start until all lists, and with `whole` the conditions, are correct."""
        checks = self.checks if whole else set()
        return await within(self.follower.lists(self.wanted(turn), checks), process) - process.began


@dataclass(frozen=True, slots=True)
class Actor:
    """A stage with a running side."""

    stage: Stage
    process: Process


Actors = Mapping[str, Actor]


async def within(what: Awaitable[T], process: Process | None = None) -> T:
    """Await a result. Raises ClickException at the deadline, or when `process` has ended."""
    doing = asyncio.ensure_future(what)
    end = time.monotonic() + NEVER_SECONDS
    try:
        while not (await asyncio.wait({doing}, timeout=REST_SECONDS))[0]:
            if process:
                process.check()
            if time.monotonic() > end:
                raise click.ClickException("the awaited state was not reached in time")
        return await doing
    finally:
        doing.cancel()


async def rest(process: Process) -> None:
    """Wait until the process has been idle for a while."""
    await until_idle(process.pid, REST_SECONDS, process.check)


# -- starts


async def cold(stage: Stage) -> Figures:
    """Start on a hub without lists; return the seconds until all lists and conditions were correct."""
    stage.hub.taken()
    with running(stage.side.whole, stage.hub.kubeconfig) as process:
        seconds = await stage.until_right(process, whole=True)
        found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
        await rest(process)
        found["rssMb"] = round(process.memory(), 1)
    taken = stage.hub.taken()
    return found | {"requests": dict(sorted(taken.requests.items())) if taken else None}


async def restart(stage: Stage) -> Figures:
    """Start with all lists correct; return the seconds until it was ready, and its requests.

    Before the end every list is swapped once: from then on a change costs one write.
    """
    with running(stage.side, stage.hub.kubeconfig, asked=True) as process:
        seconds = await within(process.ready(), process)
        found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
        await rest(process)
        taken = stage.hub.taken()
        for turn in (1, 0):
            await stage.change_all(turn)
        await rest(process)
    if not taken:
        return found | {"requests": None, "writes": None, "listsPerKind": None}
    lists = lists_per_kind(taken.requests)
    return found | {
        "requests": dict(sorted(taken.requests.items())),
        "writes": writes(taken.requests),
        "listsPerKind": {kind: lists.get(kind, 0) for kind in sorted(watched_kinds(taken.requests))},
    }


async def changed_meanwhile(stage: Stage, process: Process, turn: int) -> Figures:
    """Return the seconds from the start until all lists are those of a turn, decided before the start."""
    seconds = await stage.until_right(process, turn=turn)
    return {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}


# -- at work


def swaps(checks: int, changes: int) -> Iterator[tuple[int, int]]:
    """Yield the check and the turn of each change: back and forth, check by check."""
    for number in range(changes // 2):
        yield number % checks, 1
        yield number % checks, 0


async def latency(actors: Actors, changes: Iterable[tuple[int, int]]) -> dict[str, list[float]]:
    """Bring one check after another to a turn, on each stage alternately; return the seconds by side."""
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    found: dict[str, list[float]] = {name: [] for name in actors}
    for check, turn in changes:
        for name, actor in actors.items():
            await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
            found[name].append(await actor.stage.change(check, turn))
    return found


@dataclass(frozen=True, slots=True)
class Meter:
    """The counters of a side at the start of a window."""

    actor: Actor
    cpu: float
    at: float

    @classmethod
    def begun(cls, actor: Actor) -> "Meter":
        actor.stage.hub.taken()
        return cls(actor, actor.process.cpu_seconds(), time.monotonic())

    def ended(self) -> Figures:
        """Return the costs of the window; `requests` and `watched` are None when the hub counts none."""
        taken = self.actor.stage.hub.taken()
        return {
            "cpu": self.actor.process.cpu_seconds() - self.cpu,
            "seconds": time.monotonic() - self.at,
            "requests": taken and taken.requests,
            "watched": taken and taken.watched,
        }


async def idle(actors: Actors, seconds: float) -> dict[str, Figures]:
    """Make no change for `seconds`; return the costs."""
    meters = {name: Meter.begun(actor) for name, actor in actors.items()}
    await asyncio.sleep(seconds)
    return {name: meter.ended() for name, meter in meters.items()}


def costs(window: Figures, rested: Figures, changes: int) -> Figures:
    """Return the cost of a change, from a window with so many changes; `rested`: a window without any."""
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


async def burst(actors: Actors, turns: Iterable[int]) -> dict[str, list[float]]:
    """Bring all decisions to each turn at once; return the seconds by side."""
    found: dict[str, list[float]] = {name: [] for name in actors}
    for turn in turns:
        for name, actor in actors.items():
            await asyncio.sleep(BETWEEN_SECONDS)
            found[name].append(await actor.stage.change_all(turn))
    return found


async def outage(actors: Actors, seconds: float) -> dict[str, Figures | None]:
    """Stop the hubs; return the seconds from their return until a decision that changes then has its list."""
    away = {name: actor.stage.hub.down() for name, actor in actors.items()}
    await asyncio.sleep(seconds if any(away.values()) else 0.0)
    return {name: await _back(actor, seconds) if away[name] else None for name, actor in actors.items()}


async def _back(actor: Actor, seconds: float) -> Figures:
    stage = actor.stage
    stage.hub.up()
    began = asyncio.get_running_loop().time()
    wanted = {stage.scene.placement(0): stage.scene.config(0, turn=1)}
    await decide(stage.client, stage.scene, 0, turn=1)
    reached = await within(stage.follower.lists(wanted), actor.process)
    return {"seconds": round(reached - began, 3), "awaySeconds": seconds}
