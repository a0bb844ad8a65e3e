"""The three stories of the demo, step by step, on an existing hub and workers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from kubernetes.dynamic import DynamicClient

from placement_ac.core.api.constants import JOB, Kind
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.demo.steps import JOB_NAME, Scenario, StepAction, StepEnvironment, step_succeeded
from placement_lab.demo.stories import scenario
from placement_lab.demo.viewer import Viewer
from placement_lab.standins.fleet import JobCounter
from placement_lab.standins.informer import HubInformer
from placement_lab.standins.manifests import apply, connect, load, samples

THE_END = "/tmp/end"  # in the Pod of the job
WAITS_FOR_ITS_END = ["sh", "-c", f"until [ -e {THE_END} ]; do sleep 1; done"]


def for_real(story: int) -> Scenario:
    """Return a story whose job ends when a file appears in its Pod."""
    original = scenario(story)
    first = next((step for step in original.steps if step.job), None)
    steps = tuple(replace(step, action=_create_job) if step is first else step for step in original.steps)
    return replace(original, steps=steps)


def _create_job(client: DynamicClient, _: StepEnvironment) -> None:
    (job,) = load(samples() / "job-demo2.yaml")
    job["metadata"] = {"name": JOB_NAME} | {k: v for k, v in job["metadata"].items() if k != "generateName"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["command"] = WAITS_FOR_ITS_END
    apply(client, [job])


async def play(
    story: Scenario, hub: Path, workers: Mapping[str, Login], environment: StepEnvironment, seconds: float
) -> list[str]:
    """Play the story; return one line for each step that did not succeed within `seconds`.

    `hub`: its kubeconfig.
    """
    admin, wrong = connect(hub), list[str]()
    async with Client(Login(hub)) as client, _counted(workers) as ledger:
        async with Viewer(client, ledger) as seen:
            for step in (*filter(None, [story.preparation]), *story.steps):
                act: StepAction = step.action
                await asyncio.to_thread(act, admin, environment)
                if not await seen.until(lambda step=step: step_succeeded(step, seen), seconds):
                    wrong.append(f"{step.title}: {_how_it_is(step.placement, seen)}")
        if story.expected and (account := ledger.counts_of(JOB_NAME)) != story.expected.counts:
            wrong.append(f"the job ended as {account}, not {story.expected.counts}")
    return wrong


def _how_it_is(placement: str, seen: Viewer) -> Object:
    job = seen.job(JOB_NAME)
    return {"listed": seen.listed(placement), "decided": seen.decided(placement), "job": job.runs_on}


@asynccontextmanager
async def _counted(workers: Mapping[str, Login]) -> AsyncIterator[JobCounter]:
    """Count what runs on the workers."""
    ledger = JobCounter()
    async with AsyncExitStack() as opened, asyncio.TaskGroup() as tasks:
        watches = []
        for name, login in workers.items():
            client = await opened.enter_async_context(Client(login))
            watch = _Watch(name, login, client, ledger)
            watches.append(tasks.create_task(watch.informer.run()))
            await watch.informer.synced()
        yield ledger
        for watch in watches:
            watch.cancel()


class _Watch:
    """Records the Jobs of one worker in the ledger."""

    def __init__(self, worker: str, login: Login, client: Client, ledger: JobCounter) -> None:
        self.informer = HubInformer(client, (JOB,), self._enter)
        self._worker, self._ledger = worker, ledger

    def _enter(self, kind: Kind, namespace: str, name: str) -> None:
        self._ledger.record(self._worker, name, self.informer.objects[kind].get((namespace, name)))
