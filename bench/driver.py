"""
Drive the sides, each on a hub with a scene: starts, changes, their cost, rest, bursts, an outage.

When each side has its own hub, they take turns, change by change, so that other load of the machine affects
both. Otherwise both use one external hub, and the first side has finished and its objects are deleted before
the second one starts. Times are seconds unless a name says otherwise.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from bench.processes import (
    AGENT,
    CONTROLLER,
    FLOOR,
    Process,
    Side,
    Theirs,
    embedded_scene,
    of_their_own,
    running,
    shared_out,
    until_idle,
    usable,
)
from bench.report import Figures, cpu_per_1000, lists_per_kind, per_change, per_minute, watched_kinds, writes
from bench.scene import NEVER_SECONDS, Scene, decide, decide_all, follow, is_active
from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, Kind
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login

SIDES: Final = (FLOOR, CONTROLLER)
REST_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = (0.01, 0.03)
"""The range of the random pause between two changes, so that nothing synchronizes."""
BETWEEN_SECONDS: Final = 1.0
"""The pause between two bursts."""
LAST_SECONDS: Final = 12.0
"""After this time the events of a change have been posted; repeated events are counted for longer."""
SEED: Final = 1

T = TypeVar("T")


# -- the objects that the sides write


class Follower:
    """Follows the MultiKueueConfigs and AdmissionChecks of a hub, and waits for states of them.

    Times are of the event loop.
    """

    def __init__(self) -> None:
        self._lists: dict[str, Sequence[str]] = {}
        self._active: set[str] = set()
        self._wanted: dict[str, Sequence[str]] = {}
        self._checks: set[str] = set()
        self._reached = asyncio.Event()

    async def lists(self, wanted: Mapping[str, Sequence[str]], checks: set[str] | None = None) -> float:
        """Return the time at which the MultiKueueConfigs have these lists and these checks are Active."""
        self._wanted = {name: listed for name, listed in wanted.items() if self._lists.get(name) != listed}
        self._checks = (checks or set()) - self._active
        self._reached = asyncio.Event()
        if self._wanted or self._checks:
            await self._reached.wait()
        return asyncio.get_running_loop().time()

    def take(self, kind: Kind, change: str, item: Object) -> None:
        name = item["metadata"]["name"]
        if kind is MULTIKUEUE_CONFIG:
            self._lists[name] = [] if change == "DELETED" else item["spec"]["clusters"]
            if self._wanted.get(name) == self._lists[name]:
                del self._wanted[name]
        elif change != "DELETED" and is_active(item):
            self._active.add(name)
            self._checks.discard(name)
        else:
            self._active.discard(name)
        if not self._wanted and not self._checks:
            self._reached.set()


# -- stages


@dataclass(slots=True)
class Stage:
    """A hub with a scene, for one of the sides."""

    side: Side
    hub: Theirs
    client: Client
    follower: Follower
    scene: Scene
    process: Process | None = None
    """The side, once it has been started."""

    @contextmanager
    def running(self, side: Side | None = None, *, probed: bool = False) -> Iterator[Process]:
        """Run the side, or another one; with `probed` the controller serves its readiness."""
        with running(side or self.side, self.hub.kubeconfig, probed=probed) as self.process:
            yield self.process

    def wanted(self, turn: int) -> dict[str, list[str]]:
        return {f"p{check}": self.scene.config(check, turn) for check in range(self.scene.checks)}

    async def change(self, check: int, turn: int) -> float:
        """Change one decision; return the seconds from before the PATCH until its list was correct."""
        wanted = {f"p{check}": self.scene.config(check, turn)}
        return await self._changed(decide(self.client, self.scene, check, turn), wanted)

    async def change_all(self, turn: int) -> float:
        """Change all decisions at once; return the seconds until the last list was correct."""
        return await self._changed(decide_all(self.client, self.scene, turn), self.wanted(turn))

    async def _changed(self, deciding: Any, wanted: Mapping[str, Sequence[str]]) -> float:
        began = asyncio.get_running_loop().time()
        task = asyncio.create_task(deciding)
        reached = await within(self.follower.lists(wanted))
        await task
        return reached - began

    async def until_right(self, process: Process, *, turn: int = 0, whole: bool = False) -> float:
        """Return the seconds from the start until all lists, and with `whole` the conditions, are correct."""
        checks = {f"c{check}" for check in range(self.scene.checks if whole else 0)}
        return await within(self.follower.lists(self.wanted(turn), checks), process) - process.began


Stages = Mapping[str, Stage]
"""Side → its stage."""


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


async def rest(process: Process) -> float:
    """Wait until the process has been idle for a while; return its memory in MB."""
    await until_idle(process.pid, REST_SECONDS, process.check)
    return process.memory()


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
        return None if self.kubeconfigs else self.apart and shared_out(usable()) is not None


@contextmanager
def hubs(where: Where, scene: Scene, folder: Path) -> Iterator[Sequence[Mapping[Side, Theirs]]]:
    """Give each side a hub, and yield the groups of sides that work at the same time; end the hubs."""
    if len(where.kubeconfigs) == 1:
        yield [{side: Theirs(where.kubeconfigs[0])} for side in SIDES]
        return
    if where.kubeconfigs:
        yield [{side: Theirs(path) for side, path in zip(SIDES, where.kubeconfigs, strict=True)}]
        return
    with ExitStack() as stack:
        ours = {side: stack.enter_context(embedded_scene(folder / side.name, scene)) for side in SIDES}
        if where.apart:
            stack.enter_context(of_their_own(hub.pid for hub in ours.values()))
        yield [ours]


@asynccontextmanager
async def staged(side: Side, hub: Theirs, scene: Scene) -> AsyncIterator[Stage]:
    """Create a scene on a hub and follow its objects; delete it at the end."""
    async with Client(Login(hub.kubeconfig), field_manager=AGENT) as client:
        follower = Follower()
        tasks: list[asyncio.Task[None]] = []
        try:
            await hub.fill(client, scene)
            kinds = (MULTIKUEUE_CONFIG, ADMISSION_CHECK)
            tasks += [
                asyncio.create_task(follow(client, kind, partial(follower.take, kind))) for kind in kinds
            ]
            yield Stage(side, hub, client, follower, scene)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await hub.clear(client)


async def on_hubs(
    scene: Scene,
    where: Where,
    play: Callable[[Stages], Awaitable[Mapping[str, Figures]]],
    of: Callable[[Side], Side] = lambda side: side,
) -> dict[str, Figures]:
    """Play on a stage for each side; return side → raw figures. `of`: a side with its options."""
    raw: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, hubs(where, scene, Path(folder)) as groups:
        for group in groups:
            async with AsyncExitStack() as stack:
                staging = {side.name: staged(of(side), hub, scene) for side, hub in group.items()}
                stages = {name: await stack.enter_async_context(one) for name, one in staging.items()}
                raw |= await play(stages)
    return raw


# -- starts


async def cold(stage: Stage) -> Figures:
    """Start on a hub without lists; return the seconds until all lists and conditions were correct."""
    stage.hub.taken()
    with stage.running(stage.side.whole) as process:
        seconds = await stage.until_right(process, whole=True)
        found: Figures = {"seconds": round(seconds, 3), "cpuSeconds": process.cpu_seconds()}
        found["rssMb"] = await rest(process)
    taken = stage.hub.taken()
    return found | {"requests": dict(sorted(taken.requests.items())) if taken else None}


async def restart(stage: Stage) -> Figures:
    """Start with all lists correct; return the seconds until it was ready, and its requests.

    Before the end every list is swapped once: from then on a change costs one write.
    """
    with stage.running(probed=True) as process:
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


def swaps(checks: int, changes: int) -> list[tuple[int, int]]:
    """Return the check and the turn of each change: back and forth, check by check."""
    return [(number % checks, turn) for number in range(changes // 2) for turn in (1, 0)]


async def latency(stages: Stages, changes: Iterable[tuple[int, int]]) -> dict[str, list[float]]:
    """Bring one check after another to a turn, on each stage alternately; return the seconds by side."""
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    found: dict[str, list[float]] = {name: [] for name in stages}
    for check, turn in changes:
        for name, stage in stages.items():
            await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
            found[name].append(await stage.change(check, turn))
    return found


class Meter:
    """The counters of a side from the start of a window."""

    def __init__(self, stage: Stage) -> None:
        assert stage.process  # noqa: S101  # it runs
        stage.hub.taken()
        self._hub, self._process = stage.hub, stage.process
        self._cpu, self._at = self._process.cpu_seconds(), time.monotonic()

    def ended(self) -> Figures:
        """Return the costs of the window; `requests` and `watched` are None when the hub counts none."""
        taken = self._hub.taken()
        return {
            "cpu": self._process.cpu_seconds() - self._cpu,
            "seconds": time.monotonic() - self._at,
            "requests": taken and taken.requests,
            "watched": taken and taken.watched,
        }


async def one_by_one(stages: Stages, changes: Sequence[tuple[int, int]], idle: float) -> dict[str, Figures]:
    """Measure changes, each a check and its turn: latency, and the cost; `idle`: seconds without changes."""
    meters = {name: Meter(stage) for name, stage in stages.items()}
    seconds = await latency(stages, changes)
    await asyncio.sleep(LAST_SECONDS)
    windows = {name: meter.ended() for name, meter in meters.items()}
    meters = {name: Meter(stage) for name, stage in stages.items()}
    await asyncio.sleep(idle)
    return {
        name: {"latency": seconds[name], "cost": costs(windows[name], meter.ended(), len(changes))}
        for name, meter in meters.items()
    }


FROM_THE_HUB: Final = ("requestsByTheClockPerMinute", "watchedBytesPerChange", "watchedBytesPerMinuteAtRest")


def costs(window: Figures, rested: Figures, changes: int) -> Figures:
    """Return the cost of a change, from a window with so many changes; `rested`: a window without any."""
    share = rested["cpu"] / rested["seconds"]
    found: Figures = {
        "idleCpuPercent": round(share * 100, 2),
        "cpuSecondsPer1000Changes": cpu_per_1000(window["cpu"], share, window["seconds"], changes),
    }
    if window["requests"] is None:
        return found | dict.fromkeys((*per_change({}, 1), *FROM_THE_HUB))
    by_the_clock = per_minute((one["requests"], one["seconds"]) for one in (window, rested))
    watched, quiet = (sum(one["watched"].values()) for one in (window, rested))
    counted = (by_the_clock, round(watched / changes), round(quiet / rested["seconds"] * 60))
    return found | per_change(window["requests"], changes) | dict(zip(FROM_THE_HUB, counted, strict=True))


async def burst(stages: Stages, turns: Iterable[int]) -> dict[str, list[float]]:
    """Bring all decisions to each turn at once; return the seconds by side."""
    found: dict[str, list[float]] = {name: [] for name in stages}
    for turn in turns:
        for name, stage in stages.items():
            await asyncio.sleep(BETWEEN_SECONDS)
            found[name].append(await stage.change_all(turn))
    return found


async def outage(stages: Stages, seconds: float) -> dict[str, Figures | None]:
    """Stop the hubs; return the seconds from their return until a decision that changes then has its list."""
    away = {name: stage.hub.down() for name, stage in stages.items()}
    await asyncio.sleep(seconds if any(away.values()) else 0.0)
    return {name: await _back(stage, seconds) if away[name] else None for name, stage in stages.items()}


async def _back(stage: Stage, seconds: float) -> Figures:
    stage.hub.up()
    began = asyncio.get_running_loop().time()
    await decide(stage.client, stage.scene, 0, turn=1)
    reached = await within(stage.follower.lists({"p0": stage.scene.config(0, turn=1)}), stage.process)
    return {"seconds": round(reached - began, 3), "awaySeconds": seconds}
