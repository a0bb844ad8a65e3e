"""Plays stories of jobs, and says what went wrong in them. `JOBS_EXAMPLES` is the number of stories."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL
from tests.properties.job_stage import CLUSTERS, SLOTS, Stage, Step, Story
from tests.properties.job_steps import HAPPENINGS, KINDS, PAUSES, find, release
from tests.support.virtual.clock import Delays
from tests.support.virtual.controller import VirtualController
from tests.support.virtual.hub import VirtualHub, object_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play

EXAMPLES: Final = int(os.environ.get("JOBS_EXAMPLES", "0"))
CALM_SECONDS: Final = 1200.0
END_SECONDS: Final = 3000.0


def run(story: Story, then: Callable[[Stage], Any] | None = None) -> Stage:
    """Tell a story; `then` says what is waited for and asserted at its end."""
    random.seed(story.seed)
    slots = {object_of(cluster): number for cluster, number in zip(CLUSTERS, SLOTS, strict=True)}
    delays = Delays(left_behind=story.left_behind)
    kueue = VirtualKueue(story.seed, slots, settings=story.kueue, delays=delays, config="p")
    kueue.throttled = story.pace is not None
    hub = VirtualHub(kueue, CLUSTERS)
    for cluster in CLUSTERS:
        kueue.add_alias(object_of(cluster), cluster)

    async def tell() -> Stage:
        controller = VirtualController(hub, story.policy, story.odds)
        at = Stage(story, kueue, hub, controller)
        hub.listeners.append(at.witness)
        hub.select(["a", "b", "c"])
        await asyncio.sleep(3.0)
        for step in story.steps:
            HAPPENINGS[step.what](at, step.one, step.two)
            await asyncio.sleep(step.pause)
        if then:
            await then(at)
        return at

    return play(kueue, tell())


async def all_ends_well(at: Stage) -> None:
    """Everything answers and has room: what left is gone, every job runs where it should, and ends."""
    calm_down(at)
    await asyncio.sleep(CALM_SECONDS)
    selected = set(at.hub.selected)
    assert set(at.hub.listed()) - selected <= at.runs_on(), "a cluster without a job is still listed"
    assert selected <= set(at.hub.listed()), "a selected cluster is not listed"
    await all_finish(at)
    await asyncio.sleep(200.0 + at.story.unlist_after)
    assert (set(at.hub.listed()), at.hub.joined()) == (selected, selected)
    at.jobs.append("last")
    at.kueue.submit("last", at.story.checks)
    await asyncio.sleep(20.0)
    where = at.kueue.running("last")
    assert where, "the gate is closed"
    assert where <= {object_of(cluster) for cluster in selected}


def calm_down(at: Stage) -> None:
    at.hub.strike_in = 0
    for which in range(len(CLUSTERS)):
        find(at, which, 0)
        release(at, which, 0)
    if at.story.wishes:  # then each job fits somewhere
        at.hub.select(CLUSTERS, edited=True)
    elif not at.hub.selected:
        at.hub.select(["b", "d"], edited=True)


async def all_finish(at: Stage) -> None:
    """Let jobs end until there is none; each must run at some time."""
    for _ in range(round(END_SECONDS / 30)):
        for name in at.jobs:
            at.kueue.finish(name)
        await asyncio.sleep(30.0)
        if all(map(at.finished, at.jobs)):
            return
    raise AssertionError(f"never placed: {[name for name in at.jobs if not at.finished(name)]}")


def ran_twice(at: Stage) -> list[str]:
    return [name for name in at.jobs if at.kueue.max_copies[name] > 1 and name not in at.excused]


def by_us(at: Stage) -> list[str]:
    """Return the evictions of placed jobs that neither the test nor a worker brought about."""
    others = ("Preempted to accommodate", "Workload evicted on worker cluster")
    return [why for why in at.evicted if not any(one in why for one in others)]


dispatchers = pytest.mark.parametrize(
    "dispatcher", [ALL_AT_ONCE, INCREMENTAL, OUR_CONTROLLER], ids=["AllAtOnce", "Incremental", "ours"]
)


def random_stories(count: int, **how: Any) -> Iterator[Story]:
    """Stories for figures: always the same ones."""
    return (random_story(seed, **how) for seed in range(count))


def random_story(seed: int, **how: Any) -> Story:
    chance = random.Random(seed)
    happens = (
        Step(chance.choice(KINDS), chance.randrange(16), chance.randrange(8), chance.choice(PAUSES))
        for _ in range(25)
    )
    return Story(seed, tuple(happens), **how)
