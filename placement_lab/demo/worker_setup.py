"""
Story 1 from bare workers: they have Kueue, but no queue and no namespace.

It has an environment of its own. The controller makes a ManifestWork for each cluster from a template, and a
stand-in for OCM's work agents applies it. The template needs a label: clusters become ready one by one.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from kubernetes.dynamic import DynamicClient

from placement_ac.core.api.constants import MANAGED_CLUSTER
from placement_lab.demo.steps import (
    LABEL,
    ExpectedJob,
    ExpectedResult,
    Scenario,
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
from placement_lab.standins.manifests import apply, load, samples

FOLDER: Final = "worker-setup"
PLACEMENT_NAME: Final = "placement-setup"
NEW: Final = "cluster4"
SETUP_SETTINGS: Final[Mapping[str, Any]] = {"worker_setup": "manifestwork"}
"""The controller's settings."""
_FILES: Final = (f"{FOLDER}/template.yaml", f"{FOLDER}/hub.yaml")
_ONCE: Final = JobCounts(maxCopies=1, starts=1, finished=False)


def _join(client: DynamicClient, _: StepEnvironment) -> None:
    """Let another cluster join, with more GPUs than the others."""
    fleet = load(samples() / "fleet")
    [like] = [
        one for one in fleet if (one["kind"], one["metadata"]["name"]) == (MANAGED_CLUSTER.kind, "cluster3")
    ]
    joined = deepcopy(like)
    joined["metadata"] |= {"name": NEW, "labels": like["metadata"]["labels"] | {LABEL: T4}}
    joined["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    apply(client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NEW}}, joined])


def _step(title: str, commands: tuple[str, ...], action: Any, *clusters: str, **rest: Any) -> StoryStep:
    return StoryStep(1, title, commands, action, PLACEMENT_NAME, clusters, **rest)


def _job_step(title: str, file: str, *clusters: str, runs_on: str = "") -> StoryStep:
    """Return the step that creates a job; `runs_on` "": it may run on any cluster."""
    sample = f"{FOLDER}/{file}.yaml"
    expected = ExpectedJob((runs_on,) if runs_on else None, runs_on, name=file, counts=_ONCE)
    command = f"sed 's/generateName: .*/name: {file}/' samples/{sample} | kubectl create -f -"
    return _step(title, (command,), create_job(sample, file), *clusters, job=expected)


def _labelled(cluster: str, value: str) -> str:
    return f"kubectl label managedcluster {cluster} {LABEL}={value}"


_THREE: Final = ("cluster1", "cluster2", "cluster3")
_STEPS: Final = (
    _step(
        "Bare workers: cluster2 has the label that the template needs, and gets its queues",
        (_labelled("cluster2", T4), *apply_commands(*_FILES)),
        sequence(set_label(T4, "cluster2"), apply_samples(*_FILES)),
        "cluster2",
        left_out=("cluster1", "cluster3"),
    ),
    _step(
        "cluster3 gets the label: it is ready, too",
        (_labelled("cluster3", T4),),
        set_label(T4, "cluster3"),
        *_THREE[1:],
        left_out=("cluster1",),
    ),
    _step(
        "cluster1 as well, without GPUs",
        (_labelled("cluster1", "none"),),
        set_label("none", "cluster1"),
        *_THREE,
    ),
    _job_step("A job runs where there are GPUs: nothing was applied on any worker", "job", *_THREE),
    _step("cluster4 joins, with 8 GPUs", ("cluster4 joins the set spoke",), _join, *_THREE, NEW),
    _job_step("A job for 4 GPUs runs there", "job-large", *_THREE, NEW, runs_on=NEW),
)
WORKER_SETUP: Final = Scenario(
    _STEPS,
    expected=ExpectedResult(_ONCE, "each runs where OCM has put its queue", ("job", "job-large")),
)
