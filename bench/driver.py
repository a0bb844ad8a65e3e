"""
Drive the sides, each on a hub with a scene: starts, changes, their cost, rest, bursts.

When each side has its own hub, they take turns, change by change, so that other load of the machine affects
both. Otherwise both use one external hub, and the first side has finished and its objects are deleted before
the second one starts. Times are seconds unless a name says otherwise.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
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
    embedded,
    of_their_own,
    running,
    until_idle,
)
from bench.report import Figures, costs, latencies, seconds_of
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
EVENTS_SECONDS: Final = 12.0
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
    process: Process = field(init=False)
    """The side, once it has been started."""

    @contextmanager
    def running(self, side: Side | None = None) -> Iterator[Process]:
        """Run the side, or another one."""
        with running(side or self.side, self.hub.kubeconfig) as self.process:
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

    async def _changed(
        self, deciding: Coroutine[Any, Any, None], wanted: Mapping[str, Sequence[str]]
    ) -> float:
        began = asyncio.get_running_loop().time()
        task = asyncio.create_task(deciding)
        reached = await self.within(self.follower.lists(wanted))
        await task
        return reached - began

    async def until_right(self) -> float:
        """Return the seconds from the start until all lists and conditions are correct."""
        checks = {f"c{check}" for check in range(self.scene.checks)}
        return await self.within(self.follower.lists(self.wanted(0), checks)) - self.process.began

    async def within(self, what: Awaitable[T]) -> T:
        """Await a result. Raises ClickException at the deadline, or when the side has ended."""
        doing = asyncio.ensure_future(what)
        end = time.monotonic() + NEVER_SECONDS
        try:
            while not (await asyncio.wait({doing}, timeout=REST_SECONDS))[0]:
                self.process.check()
                if time.monotonic() > end:
                    raise click.ClickException("the awaited state was not reached in time")
            return await doing
        finally:
            doing.cancel()

    async def rest(self, seconds: float = REST_SECONDS) -> float:
        """Wait until the side has been idle for so long; return its memory in MB."""
        await until_idle(self.process.pid, seconds, self.process.check)
        return self.process.memory()


Stages = Mapping[str, Stage]
"""Side → its stage."""


@contextmanager
def hubs(
    kubeconfigs: Sequence[Path], scene: Scene, folder: Path
) -> Iterator[Sequence[Mapping[Side, Theirs]]]:
    """Give each side a hub, and yield the groups of sides that work at the same time; end the hubs.

    `kubeconfigs`: of at most two hubs; without any, hubs are embedded, with a processor of their own.
    """
    if len(kubeconfigs) == 1:
        yield [{side: Theirs(kubeconfigs[0])} for side in SIDES]
        return
    if kubeconfigs:
        yield [{side: Theirs(path) for side, path in zip(SIDES, kubeconfigs, strict=True)}]
        return
    with ExitStack() as stack:
        ours = {side: stack.enter_context(embedded(folder / side.name, scene)) for side in SIDES}
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
            yield Stage(side.of(scene), hub, client, follower, scene)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await hub.clear(client)


# -- starts and changes


async def cold(stage: Stage) -> Figures:
    """Start on a hub without lists; return the seconds until all lists and conditions were correct."""
    with stage.running(stage.side.whole):
        seconds = await stage.until_right()
        return {"seconds": round(seconds, 3), "rssMb": await stage.rest()}


async def latency(stages: Stages, changes: int, turn: int) -> dict[str, list[float]]:
    """Bring one check after another to a turn and then to the next ones, on each stage alternately.

    Returns side → the seconds of each change.
    """
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    found: dict[str, list[float]] = {name: [] for name in stages}
    for number in range(changes):
        for name, stage in stages.items():
            passes, check = divmod(number, stage.scene.checks)
            await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
            found[name].append(await stage.change(check, turn + passes))
    return found


async def burst(stages: Stages, turns: Sequence[int]) -> dict[str, list[float]]:
    """Bring all decisions to each turn at once; return the seconds by side."""
    found: dict[str, list[float]] = {name: [] for name in stages}
    for turn in turns:
        for name, stage in stages.items():
            await asyncio.sleep(BETWEEN_SECONDS)
            found[name].append(await stage.change_all(turn))
    return found


class Meter:
    """The counters of a side from the start of a window."""

    def __init__(self, stage: Stage) -> None:
        stage.hub.requests()
        self._hub, self._process = stage.hub, stage.process
        self._cpu, self._at = self._process.cpu_seconds(), time.monotonic()

    def ended(self) -> Figures:
        """Return the costs of the window; `requests` is None when the hub counts none."""
        cpu, seconds = self._process.cpu_seconds() - self._cpu, time.monotonic() - self._at
        return {"cpu": cpu, "seconds": seconds, "requests": self._hub.requests()}


# -- one size


@dataclass(frozen=True, slots=True)
class Length:
    """The lengths of the plays: decisions one at a time, bursts, and seconds without a change."""

    changes: int = 200
    bursts: int = 3
    idle: float = 5.0


async def at(scene: Scene, length: Length, report: Callable[[str], None], *where: Path) -> Figures:
    """Measure one scene on embedded hubs, or on those of kubeconfigs; `report`: takes the name of each play.

    Returns the figures of each play, by side.
    """
    raw: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, hubs(where, scene, Path(folder)) as groups:
        for group in groups:
            async with AsyncExitStack() as stack:
                staging = {side.name: staged(side, hub, scene) for side, hub in group.items()}
                stages = {name: await stack.enter_async_context(one) for name, one in staging.items()}
                raw |= await _played(stages, length, report)
    return {
        "checks": scene.checks,
        "clusters": scene.clusters,
        "workloads": scene.workloads,
        "latency": latencies({name: one["latency"] for name, one in raw.items()}),
        "burst": seconds_of({name: one["burst"] for name, one in raw.items()}),
        "coldStart": seconds_of({name: [one["coldStart"]["seconds"]] for name, one in raw.items()}),
        **{name: one["cost"] for name, one in raw.items()},
    }


async def _played(stages: Stages, length: Length, report: Callable[[str], None]) -> dict[str, Figures]:
    """Play everything; return side → play → raw figures."""
    raw: dict[str, Figures] = {}
    for name, stage in stages.items():
        report(f"cold start: {name}")
        raw[name] = {"coldStart": await cold(stage)}
    with ExitStack() as stack:
        for stage in stages.values():
            stack.enter_context(stage.running())
        # From then on connections are open, and the MultiKueueClusters of a swap exist.
        await burst(stages, [1])
        await asyncio.sleep(EVENTS_SECONDS)
        memory = {name: await stage.rest() for name, stage in stages.items()}
        report("single changes")
        meters = {name: Meter(stage) for name, stage in stages.items()}
        seconds = await latency(stages, length.changes, 2)
        await asyncio.sleep(EVENTS_SECONDS)
        windows = {name: meter.ended() for name, meter in meters.items()}
        meters = {name: Meter(stage) for name, stage in stages.items()}
        await asyncio.sleep(length.idle)
        report("burst")
        rested = {name: meter.ended() for name, meter in meters.items()}
        first = 2 + length.changes // next(iter(stages.values())).scene.checks
        await burst(stages, [first])  # so that each check has the same turn
        at_once = await burst(stages, range(first + 1, first + 1 + length.bursts))
        for name, stage in stages.items():
            cost = costs(windows[name], rested[name], length.changes)
            cost |= {"rssMb": memory[name], "rssMbAfter": stage.process.memory()}
            raw[name] |= {"latency": seconds[name], "burst": at_once[name], "cost": cost}
    return raw
