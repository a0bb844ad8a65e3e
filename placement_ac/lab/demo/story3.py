"""
Story 3: scores change while a job runs. Three ways to play it.

With either policy of the controller there is one copy of the job at any time. The third way is to
show what the controller is for: a list that follows the scores and looks at nothing else.
"""

from typing import Final, Literal

from placement_ac.core.api.constants import DRAIN, IMMEDIATE
from placement_ac.kube.client import Client
from placement_ac.lab.demo.steps import (
    JOB_NAME,
    Act,
    Backstage,
    Ending,
    JobIs,
    Step,
    applied,
    apply_told,
    in_turn,
    nothing,
    score,
    score_told,
)
from placement_ac.lab.standins.fleet import JobCounts
from placement_ac.lab.standins.manifests import apply, load, samples

DEMO2: Final = "placement-demo2"
CARELESS: Final = "careless"
Way = Literal["Drain", "Immediate", "careless"]
"""The controller's removal policy, or a careless list in its place."""

JOB_FILE: Final = "job-demo2.yaml"


async def _create_job(client: Client, _: Backstage) -> None:
    """Create the sample's job under a name that can be told."""
    (job,) = load(samples() / JOB_FILE)
    metadata = {key: value for key, value in job["metadata"].items() if key != "generateName"}
    await apply(client, [job | {"metadata": metadata | {"name": JOB_NAME}}])


async def _end_job(_: Client, backstage: Backstage) -> None:
    await backstage.end_job(JOB_NAME)


async def _be_careless(_: Client, backstage: Backstage) -> None:
    await backstage.be_careless()


def _step(
    title: str,
    done: tuple[str, ...],
    act: Act,
    clusters: tuple[str, ...] | None,
    *,
    draining: str = "",
    job: JobIs | None = None,
) -> Step:
    return Step(3, title, done, act, DEMO2, clusters, draining, job)


_BEST: Final = _step(
    "Only the cluster with most free GPUs: cluster3",
    (score_told(cluster2=30, cluster3=70), *apply_told("placement-demo2-2.yaml")),
    in_turn(score(cluster2=30, cluster3=70), applied("placement-demo2-2.yaml")),
    ("cluster3",),
)
_JOB: Final = _step(
    "A job is created: it runs on cluster3",
    (f"sed 's/generateName: .*/name: {JOB_NAME}/' samples/{JOB_FILE} | kubectl create -f -",),
    _create_job,
    ("cluster3",),
    job=JobIs(("cluster3",), "cluster3"),
)
_FULL: Final = score(cluster2=80, cluster3=10)
_FULL_TOLD: Final = score_told(cluster2=80, cluster3=10)
_BACK: Final = _step(
    "They are free again: back to cluster3",
    (score_told(cluster2=20, cluster3=90),),
    score(cluster2=20, cluster3=90),
    ("cluster3",),
)

SCENES: Final[dict[Way, tuple[Step, ...]]] = {
    DRAIN: (
        _BEST,
        _JOB,
        _step(
            "Its GPUs fill up: cluster2 takes over, cluster3 drains",
            (_FULL_TOLD,),
            _FULL,
            ("cluster2", "cluster3"),
            draining="cluster3",
            job=JobIs(("cluster3",), "cluster3"),
        ),
        _step(
            "The job on cluster3 finishes in peace",
            (f"{JOB_NAME} comes to its end",),
            _end_job,
            None,
            job=JobIs((), "cluster3", finished=True),
        ),
        _step(
            "Nothing runs there any more: cluster3 is unlisted",
            ("nothing is done: it goes by itself",),
            nothing,
            ("cluster2",),
            job=JobIs((), "cluster3", finished=True),
        ),
        _BACK,
    ),
    IMMEDIATE: (
        _BEST,
        _JOB,
        _step(
            "Its GPUs fill up: the job is sent back from cluster3",
            ("the controller runs with --removal-policy Immediate", _FULL_TOLD),
            _FULL,
            ("cluster2", "cluster3"),
            draining="cluster3",
            job=JobIs(()),
        ),
        _step(
            "No copy is left there: cluster3 is unlisted",
            ("nothing is done: it goes by itself",),
            nothing,
            ("cluster2",),
            job=JobIs(None),
        ),
        _step(
            "The job starts again, on cluster2",
            ("nothing is done: it starts by itself",),
            nothing,
            ("cluster2",),
            job=JobIs(("cluster2",), "cluster2"),
        ),
        _step(
            "The job finishes on cluster2",
            (f"{JOB_NAME} comes to its end",),
            _end_job,
            ("cluster2",),
            job=JobIs((), "cluster2", finished=True),
        ),
        _BACK,
    ),
    CARELESS: (
        _BEST,
        _JOB,
        _step(
            "A careless list follows the scores: the job runs twice",
            ("the controller is stopped; a loop now lists what is selected, at once", _FULL_TOLD),
            in_turn(_be_careless, _FULL),
            ("cluster2",),
            job=JobIs(("cluster2", "cluster3"), "cluster2"),
        ),
        _step(
            "Both copies run to their end",
            (f"{JOB_NAME} comes to its end, on either cluster",),
            _end_job,
            ("cluster2",),
            job=JobIs((), "cluster2", finished=True),
        ),
    ),
}

ENDINGS: Final[dict[Way, Ending]] = {
    DRAIN: Ending(JobCounts(maxCopies=1, starts=1, finished=True), "it was never killed, and never doubled"),
    IMMEDIATE: Ending(
        JobCounts(maxCopies=1, starts=2, finished=True), "it moved, and never ran twice at once"
    ),
    CARELESS: Ending(
        JobCounts(maxCopies=2, starts=2, finished=True), "it was doubled: this is what a careless list does"
    ),
}
