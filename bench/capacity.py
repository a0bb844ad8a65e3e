"""
Measure `placement-ac capacity` with the controller's answers about 50 clusters of 10 queues each.

`make bench-capacity`: an embedded hub and the commands are separate processes. A command is timed from start
to end, with its imports and output; our code is compiled before, as pip does. `report`: how long the
controller takes to compute the sums and both documents, in its event loop, at most once in 15 s. Prints one
JSON object, in seconds.
"""

import asyncio
import json
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from bench import scene
from bench.inspection import figures, run
from bench.processes import compile_ours, embedded
from placement_ac.core.api.constants import CAPACITY_KEY, CAPACITY_NAME, CAPACITY_QUEUES_NAME, CONFIG_MAP
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import documents
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login

GPU: Final = "nvidia.com/gpu"
FLAVORS: Final = ("h100", "a100")
TARGET: Final = 1.0
"""Seconds that a command may take."""
COMMANDS: Final = {
    "capacity": ("capacity",),
    "capacity --by queue": ("capacity", "--by", "queue"),
    "capacity -o json": ("capacity", "-o", "json"),
}


def workers(clusters: int, queues: int) -> list[WorkerState]:
    """Return the states of workers, each queue with GPUs, CPU and memory in two flavors."""
    quotas = {
        name: tuple(FlavorQuota(flavor, amount * 1000, 1000) for flavor in FLAVORS)
        for name, amount in ((GPU, 8), ("cpu", 128), ("memory", 2**40))
    }
    facts = {("team", f"q{n}"): QueueFacts(f"queue-{n}", quotas) for n in range(queues)}
    now = datetime.now(UTC)
    return [WorkerState(f"cluster-{n:03}", ("placement",), facts, now) for n in range(clusters)]


def report_seconds(states: list[WorkerState], runs: int) -> float:
    """Return the median of the time that a report and its documents take."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        documents(capacity_report(states, (GPU,)))
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def publish(kubeconfig: Path, texts: tuple[str, str]) -> None:
    """Write both ConfigMaps as the controller does."""
    async with Client(Login(kubeconfig, None)) as client:
        await scene.create(client, scene.body(scene.NAMESPACE, scene.NS))
        for name, text in zip((CAPACITY_NAME, CAPACITY_QUEUES_NAME), texts, strict=True):
            metadata = {"name": name, "namespace": scene.NS}
            await client.apply(CONFIG_MAP.at("v1"), {"metadata": metadata, "data": {CAPACITY_KEY: text}})


@click.command()
@click.option("--clusters", default=50, show_default=True)
@click.option("--queues", default=10, show_default=True)
@click.option("--runs", default=7, show_default=True)
def main(clusters: int, queues: int, runs: int) -> None:
    """Measure the command, and print the figures."""
    compile_ours()
    states = workers(clusters, queues)
    texts = documents(capacity_report(states, (GPU,)))
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with embedded(kubeconfig):
            asyncio.run(publish(kubeconfig, texts))
            measured = {
                name: figures([run(kubeconfig, words) for _ in range(runs)], TARGET)
                for name, words in COMMANDS.items()
            }
    report = {"report": round(report_seconds(states, runs), 4), "bytes": list(map(len, texts))}
    click.echo(json.dumps({"clusters": clusters, "queues": queues, **report, **measured}, indent=2))


if __name__ == "__main__":
    main()
