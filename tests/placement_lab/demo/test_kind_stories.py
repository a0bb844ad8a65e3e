"""The player of `tests/kind` on embedded hubs instead of kind clusters."""

import asyncio
from dataclasses import replace

import pytest

from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.steps import ExpectedJob, Scenario, create_fleet
from placement_lab.standins.manifests import connect
from tests.kind.stories import for_real, play

pytestmark = pytest.mark.long


async def _played(story: Scenario, seconds: float) -> list[str]:
    with DemoEnvironment(jobs=True) as stage:
        create_fleet(connect(stage.kubeconfig), stage)
        return await play(story, stage.kubeconfig, stage.workers, stage, seconds)


def test_a_story_succeeds() -> None:
    assert asyncio.run(_played(for_real(3), 20)) == []


def test_failures_are_reported() -> None:
    original = for_real(3)
    steps = [
        replace(step, clusters=("cluster1",)) if step.job is None else step for step in original.steps[:1]
    ]
    missed = replace(original, steps=(*steps, replace(original.steps[1], job=ExpectedJob((), finished=True))))
    best, job, ending = asyncio.run(_played(missed, 2))
    assert best.startswith(
        "The cluster with the most free GPUs: cluster3: {'listed': ['placement-demo2-cluster3']"
    )
    assert job.startswith("A job is created: it runs on cluster3: ")
    assert ending.startswith("the job ended as {'maxCopies': 1, 'starts': 1, 'finished': False}")
