"""
Measure the forecasts in a running controller, and `explain workload --workers` of the last job that waits.

`make bench-forecasts`: a hub with the jobs of `bench.forecasts`, a worker that serves the queue of all
clusters, and `placement-ac run`, once as it is and once without forecasts, each with a hub of its own, at the
same time. A job more comes every 20 s, so that each look has to simulate the whole queue. Prints one JSON
object: `cpu` is in seconds of the process, from its first minute on, `share` in percent of a core.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from bench import scene
from bench.forecasts import GPUS, MK, QUEUE, STEP_SIZE, P, a_job, names_of, objects_of
from bench.inspection import run
from bench.processes import _put, compile_ours, cpu_seconds
from placement_ac.core.api import constants as api
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support import kueue_objects as kueue
from tests.support.builders import NOW
from tests.support.jobs_to_dispatch import GPU

Object = dict[str, Any]
WITHOUT: Final = """
import asyncio
from placement_ac.__main__ import main
from placement_ac.controller.start_forecasts import StartForecaster
StartForecaster.look = lambda self: asyncio.sleep(0)
main()
"""
"""`placement-ac run` that does everything but the forecasts."""
OPTIONS: Final = (
    *("--dispatcher", "true", "--step-size", str(STEP_SIZE), "--round-timeout", "24h"),
    *("--log-level", "error"),
)
BEFORE_SECONDS: Final = 50.0
"""From the start of the controller to its first look; until then it catches up with the hub."""
NEW_JOB_SECONDS: Final = 20.0


def as_of_now(objects: list[Object]) -> list[Object]:
    """Return objects of NOW with today's times, and containers that an API server accepts."""
    shift = datetime.now(UTC) - NOW
    text = re.sub(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        lambda found: f"{datetime.fromisoformat(found[0]) + shift:%Y-%m-%dT%H:%M:%SZ}",
        json.dumps(objects),
    )
    text = text.replace(
        '"containers": [{', '"containers": [{"name": "main", "image": "registry.example/job", '
    )
    found: list[Object] = json.loads(text)
    return found


def worker_objects() -> list[Object]:
    """Return the queue of a worker, all of whose GPUs are used."""
    resource = {"name": GPU, "nominalQuota": str(GPUS)}
    group = {"coveredResources": [GPU], "flavors": [{"name": "gpu", "resources": [resource]}]}
    used = [{"name": "gpu", "resources": [{"name": GPU, "total": str(GPUS), "borrowed": "0"}]}]
    active = {"conditions": [scene.condition("Active", "Ready", "")]}
    queue = kueue.cluster_queue("cluster-queue", resourceGroups=[group])
    queue["status"] = {"flavorsReservation": used, "flavorsUsage": used, "pendingWorkloads": 0} | active
    local = kueue.local_queue(QUEUE, "cluster-queue") | {"status": active}
    return [stored(one) for one in (kueue.kueue_object("ResourceFlavor", "gpu"), queue, local)]


def stored(obj: Object) -> Object:
    """Return an object as an API server keeps it."""
    uid = f"{obj['kind']}/{obj['metadata']['name']}"
    return obj | {"metadata": obj["metadata"] | {"uid": uid, "resourceVersion": "1", "generation": 1}}


@contextmanager
def fleet(folder: Path, clusters: int, waiting: int) -> Iterator[Path]:
    """Run a hub with the jobs and a worker for all clusters; yield the hub's kubeconfig."""
    kubeconfig, of_worker = folder / "hub", folder / "worker"
    worker, hub = Hub(), Hub(history=100_000)
    _put(worker, worker_objects(), complete=False)
    with worker:
        worker.write_kubeconfig(of_worker)
        names = names_of(clusters)
        secrets = [scene.secret_of(name, of_worker.read_bytes()) for name in names]
        more = [*(kueue.namespace(name) for name in (scene.NS, "default")), *secrets]
        _put(hub, [*as_of_now(objects_of(names, waiting)), *map(stored, more)], complete=False)
        with hub:
            hub.write_kubeconfig(kubeconfig)
            yield kubeconfig


async def add_job(client: Client, number: int) -> None:
    """Create one more job that waits, as Kueue does."""
    (job,) = as_of_now([a_job(f"new-{number}", 1, 0, **{P: "Ready", MK: "Pending"})])
    status, kind = job.pop("status"), scene.newest(api.WORKLOAD)
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    job["metadata"] = {"name": name, "namespace": namespace}
    await client.create(kind, job)
    await client.merge(kind, name, {"status": status}, namespace=namespace, subresource="status")


async def controller_cost(clusters: int, waiting: int, seconds: float, *program: str) -> Object:
    """Return the CPU time of a controller that runs for so long."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kubeconfig = stack.enter_context(fleet(folder, clusters, waiting))
        words = (sys.executable, *program, "run", "--kubeconfig", str(kubeconfig), *OPTIONS)
        process = await asyncio.create_subprocess_exec(*words)
        try:
            return await _cost(process.pid, kubeconfig, seconds)
        finally:
            process.terminate()
            await process.wait()


async def _cost(pid: int, kubeconfig: Path, seconds: float) -> Object:
    await asyncio.sleep(BEFORE_SECONDS)
    before, began, number = cpu_seconds(pid), time.monotonic(), 0
    async with Client(Login(kubeconfig)) as client:
        while time.monotonic() < began + seconds:
            await add_job(client, number)
            number += 1
            await asyncio.sleep(NEW_JOB_SECONDS)
    cpu, elapsed = cpu_seconds(pid) - before, time.monotonic() - began
    return {"cpu": round(cpu, 2), "seconds": round(elapsed), "share": round(100 * cpu / elapsed, 2)}


async def controllers(clusters: int, waiting: int, seconds: float) -> Object:
    """Return the figures of a controller with forecasts and of one without."""
    both = await asyncio.gather(
        controller_cost(clusters, waiting, seconds, "-m", "placement_ac"),
        controller_cost(clusters, waiting, seconds, "-c", WITHOUT),
    )
    share = round(both[0]["share"] - both[1]["share"], 2)
    return {"with": both[0], "without": both[1], "forecasts": share}


def command_seconds(clusters: int, waiting: int, runs: int) -> list[float]:
    """Return the seconds of `explain workload --workers` of the last job, from start to end."""
    with tempfile.TemporaryDirectory() as folder, fleet(Path(folder), clusters, waiting) as kubeconfig:
        settings = kubeconfig.with_name("settings")
        settings.write_text(f"dispatcher: true\nstep-size: {STEP_SIZE}\n")
        words = ("explain", "workload", f"waits-{waiting - 1}", "--workers", "--config", str(settings))
        return [round(run(kubeconfig, words)[0], 2) for _ in range(runs)]


@click.command(help=__doc__, context_settings={"show_default": True})
@click.option("--clusters", default=5)
@click.option("--waiting", default=1000)
@click.option("--seconds", default=400.0, help="How long the controllers run.")
@click.option("--asked", default=2000, help="How many jobs wait when the command is run.")
@click.option("--asked-clusters", default=20, help="How many clusters there are then.")
def main(clusters: int, waiting: int, seconds: float, asked: int, asked_clusters: int) -> None:
    compile_ours()
    times = command_seconds(asked_clusters, asked, runs=3)
    command = {"clusters": asked_clusters, "waiting": asked, "seconds": times}
    found = {"clusters": clusters, "waiting": waiting} | asyncio.run(controllers(clusters, waiting, seconds))
    click.echo(json.dumps(found | {"command": command}, indent=2))


if __name__ == "__main__":
    main()
