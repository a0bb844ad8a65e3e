"""
Whatever happens, no job runs twice and none is sent away: the whole controller against MultiKueue.

No worker removes a finished Job here before the hub has seen its end: that one Kueue runs again, and no
controller of a list can help it (docs/limits.md; `test_a_finished_job_that_its_worker_removes_runs_again`).

Run it long by hand: `JOBS_EXAMPLES=2000 pytest tests/properties/test_jobs.py --timeout 0`; so, too,
test_flips.py and test_last_second.py.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from placement_ac.core.api.constants import DRAIN, IMMEDIATE, MULTIKUEUE_CONFIG, OUR_CONTROLLER
from placement_ac.core.dispatch.profiles import PROFILES
from placement_ac.core.plan import targets
from placement_ac.core.selection.renaming import Renaming
from placement_lab.standins.multikueue import ALL_AT_ONCE, PACES
from tests.properties.job_stage import CLUSTERS, Stage, Step, Story
from tests.properties.job_steps import FORBIDDEN, KINDS, PAUSES, release, rename, submit
from tests.properties.job_stories import (
    CALM_SECONDS,
    EXAMPLES,
    all_ends_well,
    all_finish,
    by_us,
    dispatchers,
    ran_twice,
    run,
)

LONG: Final = {"max_examples": EXAMPLES} if EXAMPLES else {"max_examples": 30, "derandomize": True}
LISTED_SECONDS: Final = 60.0
"""How long it takes at most until all selected clusters are listed."""
MOVING: Final = ("select", "score", "lose", "find")
"""Happenings by which clusters come and go."""


def misplaced(at: Stage) -> list[str]:
    """Return the nominations that a job's wishes forbid."""
    return [f"{name} on {where}" for name, where in sorted(at.nominated) if where in FORBIDDEN.get(name, "")]


steps = st.builds(
    Step, st.sampled_from(KINDS), st.integers(0, 15), st.integers(0, 7), st.sampled_from(PAUSES)
)
stories = st.builds(
    Story,
    seed=st.integers(0, 9999),
    steps=st.lists(steps, min_size=4, max_size=30).map(tuple),
    removal=st.sampled_from((DRAIN, IMMEDIATE)),
    nominates_admitted=st.booleans(),
    loss_grace=st.sampled_from((0.0, 30.0)),
    unlist_after=st.sampled_from((0.0, 60.0, 600.0)),
    settle=st.sampled_from((0.0, 30.0)),
    fails=st.sampled_from((0.0, 0.0, 0.05)),
    late=st.sampled_from((0.05, 0.05, 1.0)),
    pace=st.sampled_from((None, *PACES.values())),
)


def with_renames(story: Story, renames: Sequence[int]) -> Story:
    """Return the story with a change of names after some of its steps."""
    steps = list(story.steps)
    for at in renames:
        place = at % (len(steps) + 1)
        steps.insert(place, Step("rename", at % 16, at % 4, PAUSES[at % len(PAUSES)]))
    return replace(story, steps=tuple(steps))


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories)
def test_no_job_runs_twice_none_is_sent_away_and_all_ends_well(dispatcher: str, story: Story) -> None:
    expected_message = []

    async def ends(at: Stage) -> None:
        expected_message.append(at)
        await all_ends_well(at)

    try:
        at = run(replace(story, dispatcher=dispatcher), ends)
    finally:
        for stage in expected_message:
            note(
                "\n".join(f"{when - stage.kueue.now:.3f} {who} {what}" for when, who, what in stage.kueue.log)
            )
    assert ran_twice(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []


@pytest.mark.parametrize("profile", PROFILES)
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories)
def test_with_every_profile_and_wish_jobs_are_as_safe(profile: str, story: Story) -> None:
    at = run(replace(story, dispatcher=OUR_CONTROLLER, profile=profile, wishes=True), all_ends_well)
    assert ran_twice(at) == []
    assert misplaced(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories, renames=st.lists(st.integers(0, 999), min_size=1, max_size=3))
def test_a_change_of_names_under_running_jobs_harms_none(
    dispatcher: str, story: Story, renames: list[int]
) -> None:
    async def ends(at: Stage) -> None:
        await all_ends_well(at)
        await all_finish(at)
        await asyncio.sleep(200.0)

    at = run(replace(with_renames(story, renames), dispatcher=dispatcher), ends)
    assert ran_twice(at) == []
    if story.removal == DRAIN:
        assert by_us(at) == []
    listed = set(at.hub.objects[MULTIKUEUE_CONFIG, "", "p"]["spec"]["clusters"])
    assert listed == {at.hub.facts.multikueue_cluster_name("p", cluster) for cluster in at.hub.selected}


@dispatchers
@settings(suppress_health_check=list(HealthCheck), **LONG)  # type: ignore[arg-type]
@given(story=stories, when=st.integers(0, 999), lacking=st.integers(1, 15))
def test_an_upgrade_of_kueue_moves_no_cluster_and_harms_no_job(
    dispatcher: str, story: Story, when: int, lacking: int
) -> None:
    async def ends(at: Stage) -> None:
        for which in range(len(CLUSTERS)):
            release(at, which, 0)
        await asyncio.sleep(CALM_SECONDS)
        await all_finish(at)

    steps = [step for step in story.steps if step.what not in MOVING]
    steps.insert(0, Step("submit", 0, 0, LISTED_SECONDS))
    steps.insert(1 + when % len(steps), Step("upgrade", lacking, when % 4, PAUSES[when % len(PAUSES)]))
    at = run(replace(story, dispatcher=dispatcher, steps=tuple(steps), probe=True), ends)
    assert (at.unlisted, set(at.hub.listed())) == ([], set("abc"))
    assert (ran_twice(at), by_us(at)) == ([], [])


@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, OUR_CONTROLLER], ids=["AllAtOnce", "ours"])
def test_two_names_of_one_worker_in_a_list_kill_jobs(
    dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why a list never holds both: the stand-in deletes copies through the other name, as Kueue does."""

    async def ends(at: Stage) -> None:
        for _ in range(4):
            submit(at, 0, 0)
        await asyncio.sleep(20.0)
        rename(at, 0, 0)
        await asyncio.sleep(60.0)

    def killed() -> int:
        stages = [run(Story(seed, (), dispatcher), ends) for seed in range(6)]
        return sum(len(starts) > 1 for at in stages for starts in at.kueue.starts.values())

    assert killed() == 0
    monkeypatch.setattr(targets, "begin_renaming", lambda _, clusters, *__: Renaming(tuple(clusters)))
    assert killed() > 0
