"""
Run the steps of a scenario one after the other and report each result.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kubernetes.dynamic import DynamicClient

from kubectl_placement.jobs.choice import PlacementChoice
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT_SCORE,
    SCORES_NAME,
)
from placement_ac.kube.client import Object
from placement_lab.demo.credentials import ProvisionedCredentials
from placement_lab.demo.reasons import Explainer
from placement_lab.demo.steps import (
    ExpectedResult,
    Scenario,
    StepEnvironment,
    StoryStep,
    create_fleet,
    step_succeeded,
)
from placement_lab.demo.viewer import JobStatus, Viewer

STEP_SECONDS: Final = 10.0
"""How long a step may take to reach the expected state."""


@dataclass(frozen=True, slots=True)
class DemoStepResult:
    """The result of one step.

    `reaction_ms`: from OCM's decision to the MultiKueueConfig. `job` is set if the step expects a job,
    `credentials` if it expects provisioned credentials, `choice` if our dispatcher nominates.
    """

    number: int
    step: StoryStep
    succeeded: bool
    elapsed_ms: float
    reaction_ms: float | None
    decision: Sequence[str]
    objects: Sequence[Object]
    condition: dict[str, Any]
    job: JobStatus | None = None
    credentials: ProvisionedCredentials | None = None
    choice: PlacementChoice | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """The final counts of jobs, as the workers saw them, and those expected of each."""

    jobs: tuple[JobStatus, ...]
    expected: ExpectedResult

    @property
    def succeeded(self) -> bool:
        return all(job.counts == self.expected.counts for job in self.jobs)


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The results of the steps of a scenario, and of its jobs if it has any."""

    steps: tuple[DemoStepResult, ...]
    jobs: JobResult | None


class Renderer(Protocol):
    """Displays the progress of the demo."""

    def step_started(self, number: int, step: StoryStep) -> None: ...

    def step_finished(self, result: DemoStepResult) -> None: ...

    def demo_finished(self, results: Sequence[DemoStepResult], job_results: Sequence[JobResult]) -> None: ...


async def run_scenario(
    scenario: Scenario,
    admin: DynamicClient,
    environment: StepEnvironment,
    viewer: Viewer,
    renderer: Renderer,
    *,
    pause: float = 0.0,
    first: int = 1,
    explainer: Explainer | None = None,
) -> ScenarioResult:
    """Run the scenario, and report each step.

    `pause`: seconds to wait after each step. `first`: the number of the first step. `explainer`: explains
    the choices of our dispatcher, if it nominates.
    """
    await asyncio.to_thread(create_fleet, admin, environment)
    if scenario.preparation:
        await _run_step(0, scenario.preparation, admin, environment, viewer)
    results = []
    for number, step in enumerate(scenario.steps, start=first):
        renderer.step_started(number, step)
        results.append(await _run_step(number, step, admin, environment, viewer, explainer))
        renderer.step_finished(results[-1])
        await asyncio.sleep(pause)
    expected = scenario.expected
    jobs = JobResult(tuple(map(viewer.job, expected.jobs)), expected) if expected else None
    return ScenarioResult(tuple(results), jobs)


def finish(renderer: Renderer, played: Sequence[ScenarioResult]) -> bool:
    """Report the end; return whether every step succeeded and the counts of all jobs are as expected."""
    steps = [step for result in played for step in result.steps]
    jobs = [result.jobs for result in played if result.jobs]
    renderer.demo_finished(steps, jobs)
    return all(step.succeeded for step in steps) and all(job.succeeded for job in jobs)


async def _run_step(
    number: int,
    step: StoryStep,
    admin: DynamicClient,
    environment: StepEnvironment,
    viewer: Viewer,
    explainer: Explainer | None = None,
) -> DemoStepResult:
    began = time.monotonic()
    if viewer.credentials:
        viewer.credentials.begin_step()
    await asyncio.to_thread(step.action, admin, environment)
    config_at = None
    if await viewer.until(lambda: step.list_is_expected(viewer), STEP_SECONDS):
        config_at = time.monotonic()
    succeeded = await viewer.until(lambda: step_succeeded(step, viewer), STEP_SECONDS if config_at else 0)
    decided_at = viewer.decided_at(step.placement) or began
    elapsed_ms = (time.monotonic() - began) * 1000
    job = viewer.job(step.job.name) if step.job else None
    choice = None
    if explainer and job:
        choice = await explainer.choice(viewer.client, job.workload, step.placement)
    credentials = (
        viewer.credentials.current() if viewer.credentials and step.credentials_for is not None else None
    )
    objects = (
        *_config_and_clusters(step, viewer),
        *(job.objects if job else ()),
        *(credentials.objects if credentials else ()),
        *(_scores(viewer) if step.scores else ()),
    )
    return DemoStepResult(
        number=number,
        step=step,
        succeeded=succeeded,
        elapsed_ms=elapsed_ms,
        reaction_ms=max(0.0, config_at - decided_at) * 1000 if config_at and decided_at > began else None,
        decision=viewer.decided(step.placement),
        objects=[_without_managed_fields(obj) for obj in objects],
        condition=dict(viewer.condition(ADMISSION_CHECK, step.placement)),
        job=job,
        credentials=credentials,
        choice=choice,
    )


def _config_and_clusters(step: StoryStep, viewer: Viewer) -> Iterable[Object]:
    config = viewer.get(MULTIKUEUE_CONFIG, step.placement)
    if config:
        yield config
        for name in config["spec"]["clusters"]:
            cluster = viewer.get(MULTIKUEUE_CLUSTER, name)
            if cluster:
                yield cluster


def _scores(viewer: Viewer) -> Iterable[Object]:
    return (obj for obj in viewer.all(PLACEMENT_SCORE) if obj["metadata"]["name"] == SCORES_NAME)


def _without_managed_fields(obj: Object) -> Object:
    """Return the object without managed fields, as kubectl shows it."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return obj | {"metadata": metadata}
