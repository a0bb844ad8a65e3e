"""
What is measured, one play each: latency, burst, cold start, restart, outage, cost.

Each play is given a scene that is there, and the kubeconfig of its hub. Times are seconds unless a name says
otherwise. Controller and floor take turns on one hub, never at the same time.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from bench.follower import Follower
from bench.hubs import Bench
from bench.scene import Scene, decide
from bench.sides import cpu_seconds
from placement_ac.kube import Client

NEVER_SECONDS: Final = 300.0
REST_SECONDS: Final = 1.0
REST_SHARE: Final = 0.05
"""A process that takes less of a CPU than this for `REST_SECONDS` is at rest."""
PAUSE_SECONDS: Final = (0.01, 0.03)
"""Between two changes; any length between these, so that nothing falls into step."""
SEED: Final = 1

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """A hub with a scene on it."""

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
        checks = range(self.scene.checks)
        deciding = [
            asyncio.create_task(decide(self.client, self.scene, check, changed=changed)) for check in checks
        ]
        reached = await within(self.follower.lists(self.wanted(changed)))
        await asyncio.gather(*deciding)
        return reached - began


async def within(what: Any) -> float:
    try:
        async with asyncio.timeout(NEVER_SECONDS):
            reached: float = await what
            return reached
    except TimeoutError:
        raise click.ClickException("what is to be measured never came about") from None


async def rest(pid: int) -> None:
    """Return when the process has had nothing to do for a while."""
    end = time.monotonic() + NEVER_SECONDS
    while time.monotonic() < end:
        before = cpu_seconds(pid)
        await asyncio.sleep(REST_SECONDS)
        if cpu_seconds(pid) - before < REST_SECONDS * REST_SHARE:
            return
    raise click.ClickException("it does not come to rest")


def spread(seconds: Sequence[float]) -> Figures:
    """Return the percentiles of times, in milliseconds."""
    parts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{part}Ms": round(parts[part - 1] * 1000, 2) for part in (50, 90, 99)} | {"count": len(seconds)}


async def latency(stages: Mapping[str, Stage], changes: int) -> dict[str, list[float]]:
    """Change one decision after the other, on each stage by turns: what else the machine does hits all alike.

    Every list has been like that before, so that a change costs one write.
    """
    chance = random.Random(SEED)  # noqa: S311  # nothing secret
    found: dict[str, list[float]] = {name: [] for name in stages}
    for number in range(changes // 2):
        for name, stage in stages.items():
            check = number % stage.scene.checks
            if number < stage.scene.checks:
                await stage.change(check, changed=True)
                await stage.change(check, changed=False)
            for changed in (True, False):
                await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
                found[name].append(await stage.change(check, changed))
    return found


async def burst(stages: Mapping[str, Stage], times: int) -> dict[str, list[float]]:
    """Change all at once, back and forth; every list has been like that before."""
    found: dict[str, list[float]] = {name: [] for name in stages}
    for changed in (True, False) * (times + 1):
        for name, stage in stages.items():
            await asyncio.sleep(REST_SECONDS)
            found[name].append(await stage.change_all(changed))
    return {name: seconds[2:] for name, seconds in found.items()}


async def until_right(stage: Stage, whole: bool) -> float:
    """Return the time at which all lists, and the conditions if `whole`, are right."""
    return await within(stage.follower.lists(stage.wanted(changed=False), stage.checks if whole else set()))


async def outage(stage: Stage, seconds: float) -> float:
    """Take the hub away, change a decision as soon as it is back, and return how long its list took."""
    stage.hub.down()
    await asyncio.sleep(seconds)
    stage.hub.up()
    began = asyncio.get_running_loop().time()
    wanted = {stage.scene.placement(0): stage.scene.config(0, changed=True)}
    await decide(stage.client, stage.scene, 0, changed=True)
    return await within(stage.follower.lists(wanted)) - began
