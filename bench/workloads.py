"""
Measure the controller on a hub with 100,000 Workloads: memory at rest, and time per decision.

`make bench-workloads`: a hub with the Workloads and `placement-ac run`, in separate processes, and the
same without Workloads. Prints one JSON object: MB are 10^6 bytes, `peakRssMb` is the maximum, `factor`
compares the medians.
"""

import asyncio
import base64
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from bench.hub import CHECK, running
from bench.scene import NAMESPACE, NS, body, newest, owned
from bench.sides import NEVER_SECONDS, cpu_seconds, memory, until_idle
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    KUBECONFIG_KEY,
    KUEUE,
    LABEL_GROUP_INDEX,
    LABEL_PLACEMENT,
    MULTIKUEUE_CONFIG,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
)
from placement_ac.kube.client import Client, Object, WatchEvent
from placement_ac.kube.login import Login

CLUSTERS: Final = ("a", "b")
REST_SECONDS: Final = 5.0


# -- processes


@contextmanager
def controller(kubeconfig: Path) -> Iterator[int]:
    """Run the controller and yield its process id."""
    # Every change of the order is written at once: the measurement is about that time.
    options = ["--kubeconfig", str(kubeconfig), "--log-level", "warning", "--reorder-interval", "0"]
    command = [sys.executable, "-m", "placement_ac", "run", *options]
    with subprocess.Popen(command) as process:  # noqa: S603  # our own
        try:
            yield process.pid
        finally:
            process.terminate()


# -- in place of OCM and Kueue


async def prepare(client: Client, kubeconfig: bytes) -> None:
    """Create everything that makes a check Active; each worker is the hub itself."""
    data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
    for name in (NS, *(f"team-{n}" for n in range(20))):
        await client.create(newest(NAMESPACE), body(NAMESPACE, name))
    for cluster in CLUSTERS:
        secret = body(SECRET, f"multikueue-{cluster}", data=data)
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
    await client.create(newest(PLACEMENT_DECISION), await owned(client, decision))
    await decide(client, *CLUSTERS)


async def decide(client: Client, *clusters: str) -> None:
    """Write OCM's decision for `clusters`, best first."""
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


async def until_active(client: Client) -> None:
    end = time.monotonic() + NEVER_SECONDS
    while "True" not in (active := condition(await client.get(newest(ADMISSION_CHECK), CHECK))):
        if time.monotonic() > end:
            raise click.ClickException(f"the check does not become Active: {' '.join(active)}")
        await asyncio.sleep(0.1)


def condition(check: Object) -> tuple[str, ...]:
    conditions = check.get("status", {}).get("conditions", ())
    return next(((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == "Active"), ())


# -- measuring


class Side:
    """A hub with a controller; `events` are those of its MultiKueueConfigs."""

    def __init__(self, client: Client, pid: int, events: AsyncIterator[WatchEvent]) -> None:
        self.client, self.pid = client, pid
        self._events = events
        self._changes = 0
        self.decisions: list[float] = []
        """Milliseconds from the PATCH of a decision to the event of the right MultiKueueConfig."""

    async def change(self) -> None:
        """Reverse the decision, and measure."""
        self._changes += 1
        clusters = CLUSTERS[::-1] if self._changes % 2 else CLUSTERS
        wanted = [f"p-{cluster}" for cluster in clusters]
        began = time.perf_counter()
        deciding = asyncio.create_task(decide(self.client, *clusters))
        async for _, item in self._events:
            if item.get("spec", {}).get("clusters") == wanted:
                break
        else:
            raise click.ClickException("the watch ended before the MultiKueueConfig was correct")
        self.decisions.append((time.perf_counter() - began) * 1000)
        await deciding

    def percentile(self, part: int) -> float:
        return statistics.quantiles(self.decisions, n=100)[part - 1]


@dataclass
class Start:
    """The cost until the check was Active; both in seconds."""

    ready: float
    cpu: float


@asynccontextmanager
async def side(workloads: int, ours: int) -> AsyncIterator[tuple[Side, Start]]:
    """Start a hub with Workloads, and a controller; yield them when both are at rest."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with running("bench.hub", kubeconfig, workloads, ours):
            async with Client(Login(kubeconfig)) as client:
                await prepare(client, kubeconfig.read_bytes())
                began = time.monotonic()
                with controller(kubeconfig) as pid:
                    await until_active(client)
                    start = Start(time.monotonic() - began, cpu_seconds(pid))
                    await until_idle(pid, REST_SECONDS)
                    version = (await client.list(newest(MULTIKUEUE_CONFIG))).resource_version
                    async with aclosing(client.watch(newest(MULTIKUEUE_CONFIG), version)) as events:
                        yield Side(client, pid, events), start


async def measure(workloads: int, ours: int, changes: int) -> Object:
    """Compare a full hub with an empty one, in turns, so that other load of the machine affects both."""
    async with side(workloads, ours) as (full, start), side(0, 0) as (empty, empty_start):
        for _ in range(changes):
            await full.change()
            await empty.change()
        await until_idle(full.pid, REST_SECONDS)
        rss, peak = memory(full.pid)
        return {
            "workloads": workloads,
            "ours": ours,
            "rssMb": rss,
            "peakRssMb": peak,
            "rssMbWithout": memory(empty.pid)[0],
            "secondsToReady": start.ready,
            "cpuSecondsToReady": start.cpu,
            "cpuSecondsToReadyWithout": empty_start.cpu,
            "decisionMs": {
                name: {f"p{part}": round(of.percentile(part), 1) for part in (50, 90)}
                for name, of in (("with", full), ("without", empty))
            },
            "factor": full.percentile(50) / empty.percentile(50),
        }


def rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


@click.command()
@click.option("--workloads", default=100_000, show_default=True, help="Workloads on the hub.")
@click.option("--ours", default=1_000, show_default=True, help="Workloads that wait for a check of ours.")
@click.option("--changes", default=100, show_default=True, help="Single changes of the decision.")
def main(workloads: int, ours: int, changes: int) -> None:
    """Measure the controller on a hub full of Workloads, and on an empty one."""
    figures = asyncio.run(measure(workloads, ours, changes))
    click.echo(json.dumps({key: rounded(value) for key, value in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
