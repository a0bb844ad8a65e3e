"""
Story 4: the dispatcher chooses a cluster for each job, by the job's wishes and the workers' quota.

It has an environment of its own: Kueue leaves the nominations to the controller. Jobs run until the end.
"""

from collections.abc import Mapping
from typing import Any, Final

from placement_lab.demo.steps import (
    LABEL,
    ExpectedJob,
    ExpectedResult,
    Scenario,
    StoryStep,
    apply_commands,
    apply_samples,
    create_job,
    sequence,
    set_label,
)
from placement_lab.demo.stories import T4
from placement_lab.standins.fleet import JobCounts
from placement_lab.standins.manifests import load, samples
from placement_lab.standins.worker_quota import Quota

H100: Final = "nvidia-h100"
FOLDER: Final = "dispatch/demo4"
DEMO4: Final = "placement-demo4"
QUEUE4: Final = "user-queue-demo4"
BY_PRICE: Final = ("cluster3", "cluster1", "cluster2")
DISPATCH_SETTINGS: Final[Mapping[str, Any]] = {"dispatcher": True, "step_size": 1}
"""The controller's settings: the best cluster alone is nominated."""


def worker_quota(file: str) -> Quota:
    """Return the quota in the sample for the queue of a worker."""
    [queue] = (item for item in load(samples() / file) if item["kind"] == "ClusterQueue")
    return {
        flavor["name"]: {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
    }


def worker_file(cluster: str) -> str:
    return f"{FOLDER}/worker-{cluster}.yaml"


def _job_step(title: str, file: str, cluster: str, *, name: str = "") -> StoryStep:
    """Return the step that creates a job and expects it on `cluster`; "": it fits nowhere."""
    sample, job = f"{FOLDER}/{file}.yaml", name or file
    return StoryStep(
        4,
        title,
        (f"sed 's/generateName: .*/name: {job}/' samples/{sample} | kubectl create -f -",),
        create_job(sample, job),
        DEMO4,
        BY_PRICE,
        job=_expected(job, cluster),
    )


def _expected(job: str, cluster: str) -> ExpectedJob:
    counts = JobCounts(maxCopies=1, starts=1, finished=False) if cluster else None
    runs_on = (cluster,) if cluster else ()
    return ExpectedJob(runs_on, cluster, name=job, counts=counts, fits_nowhere=not cluster)


_STEPS: Final = (
    StoryStep(
        4,
        "Two clusters with H100 GPUs, and a cheap one with T4",
        (
            f"kubectl label managedcluster cluster1 cluster2 {LABEL}={H100}",
            f"kubectl label managedcluster cluster3 {LABEL}={T4}",
            "addon reports price-score/gpuPrice: cluster1 = 80, cluster2 = 90, cluster3 = 10",
            *apply_commands(f"{FOLDER}/hub.yaml"),
        ),
        sequence(
            set_label(H100, "cluster1", "cluster2"),
            set_label(T4, "cluster3"),
            apply_samples(f"{FOLDER}/prices.yaml", f"{FOLDER}/hub.yaml"),
        ),
        DEMO4,
        BY_PRICE,
    ),
    _job_step("By selector: a job that needs an H100", "h100", "cluster1"),
    _job_step("By name: a job that writes a data set in cluster2", "ingest", "cluster2"),
    _job_step("By data set: a job of its group follows it", "finetune", "cluster2"),
    _job_step("By size: a job for 12 GPUs", "large", "cluster2"),
    _job_step("Cheap first: a small job", "small", "cluster3", name="small-1"),
    _job_step("Cheap first: a second one fills cluster3", "small", "cluster3", name="small-2"),
    _job_step("Spill-over: the third one goes elsewhere at once", "small", "cluster1", name="small-3"),
    _job_step("No cluster is in the EU: a job waits", "eu", ""),
    StoryStep(
        4,
        "cluster1 gets the label: the job runs there",
        ("kubectl label managedcluster cluster1 region=eu",),
        set_label("eu", "cluster1", label="region"),
        DEMO4,
        BY_PRICE,
        job=_expected("eu", "cluster1"),
    ),
)
STORY_4: Final = Scenario(
    _STEPS,
    expected=ExpectedResult(
        JobCounts(maxCopies=1, starts=1, finished=False),
        "each runs where it fits best, and ran nowhere else",
        tuple(dict.fromkeys(step.job.name for step in _STEPS if step.job)),
    ),
)
