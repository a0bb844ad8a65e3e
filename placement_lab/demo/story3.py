"""
Story 3: scores change while a job runs. It has three modes.

With either removal policy of the controller, at most one copy of the job runs at any time. The unsafe
mode shows the problem that the controller solves: a list that follows the scores and ignores running jobs.
"""

from typing import Final, Literal

from kubernetes.dynamic import DynamicClient

from placement_ac.core.api.constants import DRAIN, IMMEDIATE
from placement_lab.demo.steps import (
    JOB_NAME,
    ExpectedJob,
    ExpectedResult,
    StepAction,
    StepEnvironment,
    StoryStep,
    apply_commands,
    apply_samples,
    create_job,
    no_action,
    scores_comment,
    sequence,
    set_scores,
)
from placement_lab.standins.fleet import JobCounts

DEMO2: Final = "placement-demo2"
UNSAFE: Final = "unsafe"
Story3Mode = Literal["Drain", "Immediate", "unsafe"]
"""The controller's removal policy, or the unsafe loop that replaces the controller."""

JOB_FILE: Final = "job-demo2.yaml"


def _end_job(_: DynamicClient, environment: StepEnvironment) -> None:
    environment.end_job(JOB_NAME)


def _replace_controller(_: DynamicClient, environment: StepEnvironment) -> None:
    environment.replace_controller()


def _step(
    title: str,
    commands: tuple[str, ...],
    action: StepAction,
    clusters: tuple[str, ...] | None,
    *,
    draining: str = "",
    job: ExpectedJob | None = None,
) -> StoryStep:
    return StoryStep(3, title, commands, action, DEMO2, clusters, draining, job)


_BEST: Final = _step(
    "The cluster with the most free GPUs: cluster3",
    (scores_comment(cluster2=30, cluster3=70), *apply_commands("placement-demo2-2.yaml")),
    sequence(set_scores(cluster2=30, cluster3=70), apply_samples("placement-demo2-2.yaml")),
    ("cluster3",),
)
_JOB: Final = _step(
    "A job is created: it runs on cluster3",
    (f"sed 's/generateName: .*/name: {JOB_NAME}/' samples/{JOB_FILE} | kubectl create -f -",),
    create_job(JOB_FILE, JOB_NAME),
    ("cluster3",),
    job=ExpectedJob(("cluster3",), "cluster3"),
)
_SCORES_SWAPPED: Final = set_scores(cluster2=80, cluster3=10)
_SCORES_SWAPPED_COMMENT: Final = scores_comment(cluster2=80, cluster3=10)
_BACK: Final = _step(
    "GPUs are free again: back to cluster3",
    (scores_comment(cluster2=20, cluster3=90),),
    set_scores(cluster2=20, cluster3=90),
    ("cluster3",),
)

STORY_3_STEPS: Final[dict[Story3Mode, tuple[StoryStep, ...]]] = {
    DRAIN: (
        _BEST,
        _JOB,
        _step(
            "Its GPUs fill up: cluster2 takes over, cluster3 drains",
            (_SCORES_SWAPPED_COMMENT,),
            _SCORES_SWAPPED,
            ("cluster2", "cluster3"),
            draining="cluster3",
            job=ExpectedJob(("cluster3",), "cluster3"),
        ),
        _step(
            "The job on cluster3 finishes",
            (f"{JOB_NAME} finishes",),
            _end_job,
            None,
            job=ExpectedJob((), "cluster3", finished=True),
        ),
        _step(
            "cluster3 is empty: it is removed from the list",
            ("no action: the controller removes it",),
            no_action,
            ("cluster2",),
            job=ExpectedJob((), "cluster3", finished=True),
        ),
        _BACK,
    ),
    IMMEDIATE: (
        _BEST,
        _JOB,
        _step(
            "Its GPUs fill up: the job is evicted from cluster3",
            ("the controller runs with --removal-policy Immediate", _SCORES_SWAPPED_COMMENT),
            _SCORES_SWAPPED,
            ("cluster2", "cluster3"),
            draining="cluster3",
            job=ExpectedJob(()),
        ),
        _step(
            "No copy is left: cluster3 is removed from the list",
            ("no action: the controller removes it",),
            no_action,
            ("cluster2",),
            job=ExpectedJob(None),
        ),
        _step(
            "The job starts again on cluster2",
            ("no action: Kueue starts it",),
            no_action,
            ("cluster2",),
            job=ExpectedJob(("cluster2",), "cluster2"),
        ),
        _step(
            "The job finishes on cluster2",
            (f"{JOB_NAME} finishes",),
            _end_job,
            ("cluster2",),
            job=ExpectedJob((), "cluster2", finished=True),
        ),
        _BACK,
    ),
    UNSAFE: (
        _BEST,
        _JOB,
        _step(
            "An unsafe list follows the scores: the job runs twice",
            (
                "the controller is stopped; a loop lists only the selected clusters instead",
                _SCORES_SWAPPED_COMMENT,
            ),
            sequence(_replace_controller, _SCORES_SWAPPED),
            ("cluster2",),
            job=ExpectedJob(("cluster2", "cluster3"), "cluster2"),
        ),
        _step(
            "Both copies finish",
            (f"{JOB_NAME} finishes on both clusters",),
            _end_job,
            ("cluster2",),
            job=ExpectedJob((), "cluster2", finished=True),
        ),
    ),
}

EXPECTED_RESULTS: Final[dict[Story3Mode, ExpectedResult]] = {
    DRAIN: ExpectedResult(
        JobCounts(maxCopies=1, starts=1, finished=True), "it was never killed and never ran twice"
    ),
    IMMEDIATE: ExpectedResult(
        JobCounts(maxCopies=1, starts=2, finished=True), "it moved to cluster2 and never ran twice at once"
    ),
    UNSAFE: ExpectedResult(
        JobCounts(maxCopies=2, starts=2, finished=True), "it ran twice at once: an unsafe list does this"
    ),
}
