"""Clusters lost at the worst moment, in virtual time: on the stage of test_jobs, step by step.

The Placement selects a, a job comes to run or wait there, and then everything goes wrong.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from placement_ac.core.api.constants import IMMEDIATE, OUR_CONTROLLER, RETRY
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL, objects
from tests.properties.job_stage import CLUSTERS, GATED, Stage, Story
from tests.support.virtual.controller import VirtualController
from tests.support.virtual.hub import VirtualHub, object_of
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.loop import play
from tests.support.virtual.workloads import OURS

DISPATCHERS = (ALL_AT_ONCE, INCREMENTAL, OUR_CONTROLLER)
WORKER_LOST_SECONDS = 900.0

Tale = Callable[[Stage], Awaitable[None]]


def go(tale: Tale, **how: object) -> Stage:
    story = Story(seed=1, steps=(), **how)  # type: ignore[arg-type]  # whatever a story has
    kueue = VirtualKueue(story.seed, {object_of(c): 2 for c in CLUSTERS}, settings=story.kueue, config="p")
    hub = VirtualHub(kueue, CLUSTERS)

    async def whole() -> Stage:
        at = Stage(story, kueue, hub, VirtualController(hub, story.policy, story.odds))
        kueue.listeners.append(at.witness)
        await tale(at)
        return at

    return play(kueue, whole())


async def runs_on_a(at: Stage) -> None:
    at.hub.select(["a"])
    await asyncio.sleep(3)
    at.jobs.append("j0")
    at.kueue.submit("j0", GATED)
    await asyncio.sleep(10)
    assert at.kueue.running("j0") == {"p-a"}


@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_a_lost_cluster_stays_listed_after_kueue_has_moved_its_job(dispatcher: str) -> None:
    """Only while it is listed does Kueue clear up when it comes back (worker-lost-and-back.log)."""

    async def tale(at: Stage) -> None:
        await runs_on_a(at)
        at.kueue.lose("p-a")
        at.hub.taint("a", True)
        at.hub.select(["b"])
        await asyncio.sleep(WORKER_LOST_SECONDS + 100)
        assert (at.kueue.placed("j0"), at.hub.listed()) == ("p-b", ["b", "a"])
        at.kueue.find("p-a")
        await asyncio.sleep(1)
        at.hub.taint("a", False)
        await asyncio.sleep(600)
        assert len(at.kueue.running("j0")) == 1

    go(tale, dispatcher=dispatcher)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_a_job_sent_back_from_a_cluster_that_dies_in_that_moment_is_not_started_again(
    dispatcher: str, crash: bool
) -> None:
    async def tale(at: Stage) -> None:
        await runs_on_a(at)
        at.hub.select(["b"])
        for _ in range(5000):
            await asyncio.sleep(0.001)
            if at.kueue.state("j0", OURS) == RETRY:
                break
        at.kueue.lose("p-a")
        await asyncio.sleep(60)
        if crash:
            at.controller.crash(0.5)
        await asyncio.sleep(60)
        assert (at.hub.listed(), at.kueue.running("j0"), at.kueue.state("j0", OURS)) == (
            ["b", "a"],
            {"p-a"},
            "Pending",
        )
        at.kueue.find("p-a")
        await asyncio.sleep(200)
        assert (at.hub.listed(), at.kueue.running("j0")) == (["b"], {"p-b"})

    assert go(tale, dispatcher=dispatcher, removal=IMMEDIATE).kueue.max_copies["j0"] == 1


@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_nothing_is_sent_back_from_a_cluster_that_only_we_can_reach(dispatcher: str) -> None:
    """Kueue could not take the copy away."""

    async def tale(at: Stage) -> None:
        await runs_on_a(at)
        at.kueue.lose("p-a")
        worker = at.kueue.workers["p-a"]
        at.kueue.copies = lambda _: [objects.deep_copy(copy) for copy in worker.copies.values()]  # type: ignore[method-assign]
        await asyncio.sleep(5)
        at.hub.select(["b"])
        await asyncio.sleep(WORKER_LOST_SECONDS / 2)
        assert (at.hub.listed(), at.kueue.running("j0")) == (["b", "a"], {"p-a"})

    assert go(tale, dispatcher=dispatcher, removal=IMMEDIATE).kueue.max_copies["j0"] == 1


@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_a_copy_that_waits_on_a_lost_cluster_is_cleared_before_it_goes(dispatcher: str) -> None:
    async def tale(at: Stage) -> None:
        at.hub.select(["a", "b"])
        await asyncio.sleep(3)
        at.kueue.hold("p-a", "p-b")
        at.jobs.append("j0")
        at.kueue.submit("j0", GATED)
        await asyncio.sleep(5)
        assert at.kueue.has_copy("j0") == {"p-a", "p-b"}
        at.kueue.lose("p-a")
        at.hub.taint("a", True)
        await asyncio.sleep(1)
        at.kueue.release("p-b")
        await asyncio.sleep(5)
        at.hub.select(["b"])
        await asyncio.sleep(200)
        assert (set(at.hub.listed()), at.kueue.running("j0")) == ({"a", "b"}, {"p-b"})
        at.kueue.find("p-a")
        at.kueue.release("p-a")
        await asyncio.sleep(5)
        at.hub.taint("a", False)
        await asyncio.sleep(200)
        assert (at.hub.listed(), at.kueue.has_copy("j0")) == (["b"], {"p-b"})

    assert go(tale, dispatcher=dispatcher).kueue.max_copies["j0"] == 1


@pytest.mark.parametrize("steps", [("bcd", "cd", "d"), ("acd", "ad", "d"), ("abc", "bc", "")])
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_losses_in_steps_end_no_job_and_leave_the_list_as_it_was(
    dispatcher: str, crash: bool, steps: tuple[str, ...]
) -> None:
    """Jobs run on some of the clusters; the controller may crash while the list is held."""

    async def tale(at: Stage) -> None:
        at.hub.select(CLUSTERS)
        await asyncio.sleep(3)
        for name in ("j0", "j1", "j2"):
            at.jobs.append(name)
            at.kueue.submit(name, GATED)
            await asyncio.sleep(4)
        ran = {name: at.kueue.running(name) for name in at.jobs}
        for selected in steps:
            at.hub.select(selected)
            await asyncio.sleep(5)
        if crash:
            at.controller.crash(0.5)
        await asyncio.sleep(20)
        assert sorted(at.hub.listed()) == sorted(CLUSTERS)
        at.jobs.append("j3")
        at.kueue.submit("j3", GATED)
        await asyncio.sleep(150)
        assert sorted(at.hub.listed()) == sorted(CLUSTERS)
        assert {name: at.kueue.running(name) for name in ran} == ran
        await asyncio.sleep(600)
        busy = {name for job in at.jobs for name in at.kueue.running(job)}
        assert {object_of(name) for name in at.hub.listed()} == {*map(object_of, steps[-1]), *busy}
        assert {name: at.kueue.running(name) for name in ran} == ran

    assert set(go(tale, dispatcher=dispatcher, loss_grace=300.0).kueue.max_copies.values()) == {1}
