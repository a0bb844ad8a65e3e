"""
Run the steps of a scenario one after the other and report each result.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from placement_ac.kube.client import Client, Object
from placement_ac.lab.demo.credentials import ProvisionedCredentials
from placement_ac.lab.demo.steps import (
    JOB_NAME,
    ExpectedResult,
    Scenario,
    StepEnvironment,
    StoryStep,
    create_fleet,
    step_succeeded,
)
from placement_ac.lab.demo.viewer import JobStatus, Viewer

STEP_SECONDS: Final = 10.0
"""How long a step may take to reach the expected state."""


@dataclass(frozen=True, slots=True)
class DemoStepResult:
    """The result of one step.

    `reaction_ms`: from OCM's decision to the MultiKueueConfig. `job` is set if the step expects a job,
    `credentials` if it expects provisioned credentials.
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


@dataclass(frozen=True, slots=True)
class JobResult:
    """The job's final counts, as the workers saw them, and the expected ones."""

    job: JobStatus
    expected: ExpectedResult

    @property
    def succeeded(self) -> bool:
        return self.job.counts == self.expected.counts


class Renderer(Protocol):
    """Displays the progress of the demo."""

    def step_started(self, number: int, step: StoryStep) -> None: ...

    def step_finished(self, result: DemoStepResult) -> None: ...

    def demo_finished(self, results: Sequence[DemoStepResult], job_result: JobResult | None) -> None: ...


async def run_scenario(
    scenario: Scenario,
    client: Client,
    environment: StepEnvironment,
    viewer: Viewer,
    renderer: Renderer,
    pause: float = 0.0,
) -> bool:
    """Run the scenario; return whether every step succeeded and the job's counts are as expected.

    `pause`: seconds to wait after each step.
    """
    await create_fleet(client, environment)
    if scenario.preparation:
        await _run_step(0, scenario.preparation, client, environment, viewer)
    results = []
    for number, step in enumerate(scenario.steps, start=1):
        renderer.step_started(number, step)
        results.append(await _run_step(number, step, client, environment, viewer))
        renderer.step_finished(results[-1])
        await asyncio.sleep(pause)
    job_result = JobResult(viewer.job(JOB_NAME), scenario.expected) if scenario.expected else None
    renderer.demo_finished(results, job_result)
    return all(result.succeeded for result in results) and (job_result is None or job_result.succeeded)


async def _run_step(
    number: int, step: StoryStep, client: Client, environment: StepEnvironment, viewer: Viewer
) -> DemoStepResult:
    began = time.monotonic()
    if viewer.credentials:
        viewer.credentials.begin_step()
    await step.action(client, environment)
    config_at = None
    if await viewer.until(lambda: step.list_is_expected(viewer), STEP_SECONDS):
        config_at = time.monotonic()
    succeeded = await viewer.until(lambda: step_succeeded(step, viewer), STEP_SECONDS if config_at else 0)
    decided_at = viewer.decided_at(step.placement) or began
    job = viewer.job(JOB_NAME) if step.job else None
    credentials = (
        viewer.credentials.current() if viewer.credentials and step.credentials_for is not None else None
    )
    objects = (
        *_config_and_clusters(step, viewer),
        *(job.objects if job else ()),
        *(credentials.objects if credentials else ()),
    )
    return DemoStepResult(
        number=number,
        step=step,
        succeeded=succeeded,
        elapsed_ms=(time.monotonic() - began) * 1000,
        reaction_ms=max(0.0, config_at - decided_at) * 1000 if config_at and decided_at > began else None,
        decision=viewer.decided(step.placement),
        objects=[_without_managed_fields(obj) for obj in objects],
        condition=dict(viewer.condition(ADMISSION_CHECK, step.placement)),
        job=job,
        credentials=credentials,
    )


def _config_and_clusters(step: StoryStep, viewer: Viewer) -> Iterable[Object]:
    config = viewer.get(MULTIKUEUE_CONFIG, step.placement)
    if config:
        yield config
        for name in config["spec"]["clusters"]:
            cluster = viewer.get(MULTIKUEUE_CLUSTER, name)
            if cluster:
                yield cluster


def _without_managed_fields(obj: Object) -> Object:
    """Return the object without managed fields, as kubectl shows it."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return obj | {"metadata": metadata}
