"""
Story 5: jobs fill one cluster after the other, by the scores that the controller itself reports.

It has an environment of its own: workers with queues, and no addon. Jobs run until a step ends them.
"""

from collections.abc import Mapping
from typing import Any, Final

from kubernetes.dynamic import DynamicClient

from placement_lab.demo.steps import (
    LABEL,
    ExpectedJob,
    ExpectedResult,
    Scenario,
    StepAction,
    StepEnvironment,
    StoryStep,
    apply_commands,
    apply_samples,
    create_job,
    sequence,
    set_label,
)
from placement_lab.demo.stories import T4
from placement_lab.standins.fleet import JobCounts

FOLDER: Final = "rebalancing"
DEMO5: Final = "placement-demo5"
QUEUE5: Final = "user-queue-demo5"
REPORT_SETTINGS: Final[Mapping[str, Any]] = {"report_scores": True}
"""The controller's settings."""
SHORT_SCORES: Final = {"SCORE_HOLD_SECONDS": 1.0, "SCORE_INTERVAL_SECONDS": 1.0}
"""How long scores wait here; elsewhere a minute each."""
BURST: Final = 4
"""How many jobs fill a cluster."""


def _names(burst: str) -> tuple[str, ...]:
    return tuple(f"{burst}-{number}" for number in range(1, BURST + 1))


FIRST, SECOND = _names("first"), _names("second")
_RUNS: Final = JobCounts(maxCopies=1, starts=1, finished=False)
_ENDED: Final = JobCounts(maxCopies=1, starts=1, finished=True)


def _burst(jobs: tuple[str, ...]) -> StepAction:
    return sequence(*(create_job(f"{FOLDER}/job.yaml", job) for job in jobs))


def _end(*jobs: str) -> StepAction:
    def act(_: DynamicClient, environment: StepEnvironment) -> None:
        for job in jobs:
            environment.end_job(job)

    return act


def _command(jobs: tuple[str, ...]) -> str:
    first, *_, last = jobs
    return (
        f'for job in {first} … {last}; do sed "s/generateName: .*/name: $job/" samples/{FOLDER}/job.yaml'
        " | kubectl create -f -; done"
    )


def _step(
    title: str,
    commands: tuple[str, ...],
    action: StepAction,
    *clusters: str,
    scores: tuple[int, int, int],
    **rest: Any,
) -> StoryStep:
    by_cluster = dict(zip(("cluster1", "cluster2", "cluster3"), scores, strict=True))
    return StoryStep(5, title, commands, action, DEMO5, clusters, scores=by_cluster, **rest)


_STEPS: Final = (
    _step(
        "Three clusters with four GPUs each, and no addon: all are free, so the first one is the best",
        (
            f"kubectl label managedcluster cluster1 cluster2 cluster3 {LABEL}={T4}",
            *apply_commands(f"{FOLDER}/hub.yaml"),
        ),
        sequence(set_label(T4, "cluster1", "cluster2", "cluster3"), apply_samples(f"{FOLDER}/hub.yaml")),
        "cluster1",
        scores=(100, 100, 100),
    ),
    _step(
        "A burst of four jobs fills cluster1: cluster2 takes over",
        (_command(FIRST),),
        _burst(FIRST),
        "cluster2",
        "cluster1",
        scores=(0, 100, 100),
        draining="cluster1",
        job=ExpectedJob(("cluster1",), "cluster1", name=FIRST[-1], counts=_RUNS),
    ),
    _step(
        "Four more fill cluster2: cluster3 takes over",
        (_command(SECOND),),
        _burst(SECOND),
        "cluster3",
        "cluster2",
        "cluster1",
        scores=(0, 1, 100),
        draining="cluster2",
        job=ExpectedJob(("cluster2",), "cluster2", name=SECOND[-1], counts=_RUNS),
    ),
    _step(
        "The jobs on cluster1 end: it is as free as cluster3, which stays the best",
        (f"{FIRST[0]} to {FIRST[-1]} finish",),
        _end(*FIRST),
        "cluster3",
        "cluster2",
        scores=(99, 1, 100),
        draining="cluster2",
        job=ExpectedJob((), "cluster1", finished=True, name=FIRST[-1], counts=_ENDED),
    ),
    _step(
        "All jobs have ended: cluster3 is the only one listed",
        (f"{SECOND[0]} to {SECOND[-1]} finish",),
        _end(*SECOND),
        "cluster3",
        scores=(99, 99, 100),
        job=ExpectedJob((), "cluster2", finished=True, name=SECOND[-1], counts=_ENDED),
    ),
)
STORY_5: Final = Scenario(
    _STEPS,
    expected=ExpectedResult(_ENDED, "each ran where it began, and nowhere else", (*FIRST, *SECOND)),
)
