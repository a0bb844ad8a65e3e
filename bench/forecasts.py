"""
Measure what it costs to say of 1,000 jobs that wait when they start, and for how many of them it can be said.

`make bench-forecasts`: one look of the controller's forecaster, in this process, at clusters of eight GPUs
that are full. The jobs have all come since the last look. Prints one JSON object; `cost` is in seconds of a
core, `rest` how long the forecaster waits until it looks again.
"""

import asyncio
import json
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import click

from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from placement_ac.controller.start_forecasts import StartForecaster
from placement_ac.core.expected_start.model import Interval
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.observability.metrics import Metrics
from tests.support.builders import (
    NOW,
    check,
    decision,
    managed_cluster,
    multikueue_check,
    our_objects,
    placement,
    secrets,
)
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

Object = dict[str, Any]

P: Final = "p"
MK: Final = "mk-p"
QUEUE: Final = "user-queue"
GPUS: Final = 8
"""Of each cluster."""
SIZES: Final = (1, 1, 2, 4, 8)
MEAN_SECONDS: Final = 600.0
FINISHED: Final = 100
STEP_SIZE: Final = 3


def at(before: float) -> str:
    return (NOW - timedelta(seconds=before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_job(name: str, gpus: int, created: float, **rest: Any) -> Object:
    """Return a Workload that was created so many seconds before NOW."""
    job = raw_job(name, queue=QUEUE, since=NOW - timedelta(seconds=created), pods=gpu_pods(gpus), **rest)
    job["metadata"]["creationTimestamp"] = at(created)
    return job


def placed(job: Object, before: float, ended: float | None = None) -> Object:
    """Say when a job was placed and has ended, in seconds before NOW."""
    for entry in job["status"]["admissionChecks"]:
        entry["lastTransitionTime"] = at(before)
    if ended is not None:
        done = {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": at(ended)}
        job["status"]["conditions"].append(done)
    return job


def jobs_of(clusters: int, waiting: int, dice: random.Random) -> Iterator[Object]:
    """Yield the jobs: those that have finished, those that run, and those that wait."""
    ran, waits = {P: "Ready", MK: "Ready"}, {P: "Ready", MK: "Pending"}
    for number in range(FINISHED):
        job = a_job(f"ended-{number}", dice.choice(SIZES), 9000, cluster=f"{P}-c{number % clusters}", **ran)
        yield placed(job, 8000, max(8000 - dice.expovariate(1 / MEAN_SECONDS), 1))
    for number in range(clusters * 2):
        job = a_job(f"runs-{number}", GPUS // 2, 5000, cluster=f"{P}-c{number // 2}", **ran)
        yield placed(job, dice.uniform(10, MEAN_SECONDS))
    for number in range(waiting):
        nominated = [f"{P}-c{(number + more) % clusters}" for more in range(STEP_SIZE)]
        created = 3600 * (1 - number / waiting) + 1
        yield a_job(f"waits-{number}", dice.choice(SIZES), created, nominated=nominated, **waits)


def hub_of(clusters: int, waiting: int) -> HubView:
    """Return a hub with a Placement that selects so many clusters, which are full."""
    names = [f"c{number}" for number in range(clusters)]
    fleet = our_objects(*names, of=P, owners=(P, MK))
    for obj in (one for one in fleet if one["kind"] == "MultiKueueCluster"):
        obj["status"] = {"conditions": [{"type": "Active", "status": "True"}]}
    ours = [check(P, P), multikueue_check(MK, P), placement(P, clusters), decision(*names, of=P)]
    managed = [managed_cluster(name) for name in names]
    jobs = jobs_of(clusters, waiting, random.Random(1))  # noqa: S311  # no secret depends on it
    settings = Settings(dispatcher=True, step_size=STEP_SIZE)
    view = HubView(dump_of([*ours, *secrets(*names), *managed, *fleet, *jobs]), settings, NOW)
    full = WorkerFacts(queues((GPU, "gpu", GPUS, GPUS), queue=("default", QUEUE)))
    return view.with_queue_facts({f"{P}-{name}": full for name in names})


async def measure(clusters: int, waiting: int) -> Object:
    """Return the figures of one look."""
    view = hub_of(clusters, waiting)
    metrics = Metrics()
    forecaster = StartForecaster(view.cache, lambda key: view.snapshot(key.name), metrics, lambda: NOW)
    await forecaster.look()
    known = sum(isinstance(one, Interval) for one in forecaster.expected.values())
    return {
        "clusters": clusters,
        "waiting": waiting,
        "cost": round(forecaster.cost_seconds, 2),
        "rest": round(forecaster.rest_seconds),
        "known": known,
    }


@click.command(help=__doc__)
@click.option("--clusters", multiple=True, type=int, default=(5, 20), show_default=True)
@click.option("--waiting", default=1000, show_default=True)
def main(clusters: tuple[int, ...], waiting: int) -> None:
    click.echo(json.dumps([asyncio.run(measure(number, waiting)) for number in clusters], indent=2))


if __name__ == "__main__":
    main()
