"""Decisions that flap, in virtual time: jobs start all the same, and a stable list does not change."""

import asyncio
import random

import pytest

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL, PACES
from tests.properties.job_stage import MOST_JOBS, Stage, Story
from tests.properties.job_steps import crash, finish
from tests.properties.job_stories import EXAMPLES, all_finish, by_us, ran_twice, run


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL], ids=["AllAtOnce", "Incremental"])
def test_while_decisions_flap_jobs_start_all_the_same(dispatcher: str) -> None:
    """A flip every 2 s for two minutes, and Kueue needs 4 s to place a job."""

    async def ends(at: Stage) -> None:
        chance = random.Random(at.story.seed)
        asked: dict[str, float] = {}
        for flip in range(60):
            at.hub.select([chance.choice("abc")])
            if not flip % 5:
                at.jobs.append(f"j{flip}")
                asked[at.jobs[-1]] = at.kueue.now
                at.kueue.submit(at.jobs[-1], at.story.checks)
            await asyncio.sleep(2.0)
            for name in at.jobs[:-1]:
                if chance.random() < 0.3:
                    at.kueue.finish(name)
        last = at.kueue.now
        await asyncio.sleep(60.0)
        begun = {name: at.kueue.starts[name][0][0] for name in asked if at.kueue.starts[name]}
        assert begun.keys() == asked.keys(), "all have started within a minute of the last flip"
        assert max(begun[name] - asked[name] for name in asked) <= 30.0
        assert at.list_changes <= 8, "only clusters that are new to the list, and the last removals"
        await asyncio.sleep(60.0)
        assert set(at.hub.listed()) - set(at.hub.selected) <= at.runs_on(), f"since {last}"

    for seed in range(EXAMPLES or 10):
        at = run(Story(seed, (), dispatcher, settle=30.0, batch=4.0), ends)
        assert (seed, ran_twice(at), by_us(at)) == (seed, [], [])


@pytest.mark.timeout(180)  # five stories of eight seconds each, on an idle core
@pytest.mark.parametrize("crashes", [False, True], ids=["", "with crashes"])
def test_a_hundred_flips_among_listed_clusters_change_no_list(crashes: bool) -> None:
    async def ends(at: Stage) -> None:
        chance = random.Random(at.story.seed)
        changes = at.list_changes
        for flip in range(100):
            at.hub.select([chance.choice("abc")])
            if sum(not at.finished(name) for name in at.jobs) < MOST_JOBS:
                at.jobs.append(f"j{flip}")
                at.kueue.submit(at.jobs[-1], at.story.checks)
            if crashes and not flip % 7:
                crash(at, chance.randrange(4), 1)
            await asyncio.sleep(chance.uniform(0.5, 8.0))
            finish(at, chance.randrange(4), 0)
        assert at.list_changes == changes
        at.hub.select(["a", "b", "c"])
        await all_finish(at)

    for seed in range(EXAMPLES or 5):
        pace = PACES[("0.19", "0.20")[seed % 2]]
        stable = Story(seed, (), OUR_CONTROLLER, unlist_after=3600.0, loss_grace=300.0, pace=pace)
        at = run(stable, ends)
        assert (seed, ran_twice(at), by_us(at)) == (seed, [], [])
        assert {len(starts) for starts in at.kueue.starts.values()} == {1}
