"""
What do 100,000 Workloads on the hub cost the controller? Memory at rest, and time per decision.

`make bench-workloads`: a hub with the Workloads and `placement-ac run`, each in a process of its own;
then the same without any Workload. Prints one JSON object.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from bench.hub import CHECK, READY
from placement_ac.kube import Client, Object
from placement_ac.login import Login
from placement_ac.names import (
    ADMISSION_CHECK,
    KUEUE,
    LABEL_GROUP_INDEX,
    LABEL_PLACEMENT,
    MULTIKUEUE_CONFIG,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    Kind,
    Resource,
)

NS: Final = "kueue-system"
CLUSTERS: Final = ("a", "b")
NAMESPACE: Final = Kind("", "Namespace", "namespaces", False, ("v1",))
NEVER_SECONDS: Final = 300.0
REST_SECONDS: Final = 5.0
REST_SHARE: Final = 0.05
"""A process that takes less of a CPU than this for `REST_SECONDS` is at rest."""
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One run. Memory in MB (10^6 bytes), at rest and at its highest; `decisions` in milliseconds."""

    rss: float
    peak: float
    ready: float
    decisions: list[float]

    def percentile(self, part: int) -> float:
        return statistics.quantiles(self.decisions, n=100)[part - 1]


# -- processes


@contextmanager
def hub(kubeconfig: Path, workloads: int, ours: int) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.hub", str(kubeconfig), str(workloads), str(ours)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603  # ours
        if process.stdout.readline() != READY:
            raise click.ClickException("the hub did not start")
        try:
            yield
        finally:
            process.stdin.close()


@contextmanager
def controller(kubeconfig: Path) -> Iterator[int]:
    """Run the controller and give its process id."""
    options = ["--kubeconfig", str(kubeconfig), "--log-level", "warning"]
    command = [sys.executable, "-m", "placement_ac", "run", *options]
    with subprocess.Popen(command) as process:  # noqa: S603  # our own
        try:
            yield process.pid
        finally:
            process.terminate()


def memory(pid: int) -> tuple[float, float]:
    """Return the memory of a process in MB: now, and at its highest."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, peak = (int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    return now, peak


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def rest(pid: int) -> None:
    """Return when the process has had nothing to do for a while."""
    end = time.monotonic() + NEVER_SECONDS
    while True:
        before = cpu_seconds(pid)
        await asyncio.sleep(REST_SECONDS)
        if cpu_seconds(pid) - before < REST_SECONDS * REST_SHARE:
            return
        if time.monotonic() > end:
            raise click.ClickException("the controller does not come to rest")


# -- OCM and Kueue by hand


def newest(kind: Kind) -> Resource:
    return kind.at(kind.versions[0])


def body(kind: Kind, name: str, **rest: Any) -> Object:
    metadata = {"name": name} | ({"namespace": NS} if kind.namespaced else {}) | rest.pop("metadata", {})
    return {"apiVersion": newest(kind).api_version, "kind": kind.kind, "metadata": metadata} | rest


async def prepare(client: Client) -> None:
    """Put everything on the hub that a check needs to become Active."""
    for name in (NS, *(f"team-{n}" for n in range(20))):
        await client.create(newest(NAMESPACE), body(NAMESPACE, name))
    for cluster in CLUSTERS:
        secret = body(SECRET, f"multikueue-{cluster}", data={"kubeconfig": "a3ViZWNvbmZpZw=="})
        await client.create(newest(SECRET), secret)
    checks = {
        CHECK: (OUR_CONTROLLER, {"apiGroup": OCM_CLUSTER, "kind": "Placement", "name": "p"}),
        "mk": ("kueue.x-k8s.io/multikueue", {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": "p"}),
    }
    for name, (by, parameters) in checks.items():
        spec = {"controllerName": by, "parameters": parameters}
        await client.create(newest(ADMISSION_CHECK), body(ADMISSION_CHECK, name, spec=spec))
    await client.create(newest(PLACEMENT), body(PLACEMENT, "p", spec={}))
    labels = {LABEL_PLACEMENT: "p", LABEL_GROUP_INDEX: "0"}
    decision = body(PLACEMENT_DECISION, "p-decision-1", metadata={"labels": labels})
    await client.create(newest(PLACEMENT_DECISION), decision)
    await decide(client, *CLUSTERS)


async def decide(client: Client, *clusters: str) -> None:
    """Let OCM prefer `clusters`, the best first."""
    decisions = [
        {"clusterName": cluster, "reason": "", "score": 100 - 50 * rank}
        for rank, cluster in enumerate(clusters)
    ]
    await client.merge(
        newest(PLACEMENT_DECISION),
        "p-decision-1",
        {"status": {"decisions": decisions}},
        namespace=NS,
        subresource="status",
    )


async def until(client: Client, kind: Kind, name: str, right: Callable[[Object], bool]) -> None:
    """Return when an object is right, by a list and a watch."""
    listing = await client.list(newest(kind))
    if any(item["metadata"]["name"] == name and right(item) for item in listing.items):
        return
    async with aclosing(client.watch(newest(kind), listing.resource_version)) as events:
        async for change, item in events:
            if change != "BOOKMARK" and item["metadata"]["name"] == name and right(item):
                return
    raise click.ClickException(f"{kind} {name} did not become right")


def active(check: Object) -> bool:
    conditions = check.get("status", {}).get("conditions", ())
    return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)


# -- measuring


async def decisions(client: Client, changes: int) -> list[float]:
    """Return how long each of `changes` took, from the PATCH to the event of the right MultiKueueConfig."""
    took: list[float] = []
    config = newest(MULTIKUEUE_CONFIG)
    version = (await client.list(config)).resource_version
    async with aclosing(client.watch(config, version)) as events:
        for number in range(changes):
            clusters = CLUSTERS if number % 2 else CLUSTERS[::-1]
            wanted = [f"p-{cluster}" for cluster in clusters]
            began = time.perf_counter()
            deciding = asyncio.create_task(decide(client, *clusters))
            async for _, item in events:
                if item.get("spec", {}).get("clusters") == wanted:
                    break
            took.append((time.perf_counter() - began) * 1000)
            await deciding
    return took


async def measure(kubeconfig: Path, changes: int) -> Measured:
    """Run a controller on the hub."""
    async with Client(Login(kubeconfig)) as client:
        await prepare(client)
        began = time.monotonic()
        with controller(kubeconfig) as pid:
            async with asyncio.timeout(NEVER_SECONDS):
                await until(client, ADMISSION_CHECK, CHECK, active)
            ready = time.monotonic() - began
            await rest(pid)
            async with asyncio.timeout(NEVER_SECONDS):
                took = await decisions(client, changes)
            await rest(pid)
            now, peak = memory(pid)
    return Measured(now, peak, ready, took)


def run(workloads: int, ours: int, changes: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with hub(kubeconfig, workloads, ours):
            return asyncio.run(measure(kubeconfig, changes))


@click.command()
@click.option("--workloads", default=100_000, show_default=True, help="Workloads on the hub.")
@click.option("--ours", default=1_000, show_default=True, help="Those that wait for a check of ours.")
@click.option("--changes", default=100, show_default=True, help="Decisions, one at a time.")
def main(workloads: int, ours: int, changes: int) -> None:
    """Measure the controller on a hub that is full of Workloads, and on one that is empty."""
    full, empty = run(workloads, ours, changes), run(0, 0, changes)
    told = {
        "workloads": workloads,
        "ours": ours,
        "rssMb": round(full.rss, 1),
        "peakRssMb": round(full.peak, 1),
        "secondsToReady": round(full.ready, 1),
        "decisionMs": {
            name: {f"p{part}": round(of.percentile(part), 1) for part in (50, 90)}
            for name, of in (("with", full), ("without", empty))
        },
        "rssMbWithout": round(empty.rss, 1),
        "factor": round(full.percentile(50) / empty.percentile(50), 2),
    }
    click.echo(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
