"""
Measure the controller on a hub with 100,000 Workloads: memory at rest, and time per decision.

`make bench-workloads`: a hub with the Workloads and `placement-ac run`, in separate processes, and the
same without Workloads. Prints one JSON object: MB are 10^6 bytes, `peakRssMb` is the maximum, `factor`
compares the medians.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from bench import scene
from bench.processes import controller, cpu_seconds, embedded, memory, until_idle
from bench.scene import CHECK, TEAMS
from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, PLACEMENT
from placement_ac.kube.client import Client, Object, WatchEvent
from placement_ac.kube.login import Login

SCORES: Final = {"a": 100, "b": 50}
"""The clusters and their scores."""
REVERSED: Final = {"b": 100, "a": 50}
REST_SECONDS: Final = 5.0


async def prepare(client: Client, kubeconfig: bytes) -> None:
    """Create everything that makes a check Active; each worker is the hub itself."""
    names = (scene.NS, *(f"team-{number}" for number in range(TEAMS)))
    namespaces = [scene.body(scene.NAMESPACE, name) for name in names]
    secrets = [scene.secret_of(cluster, kubeconfig) for cluster in SCORES]
    checks = [scene.check_of(CHECK, "p"), scene.multikueue_check_of("mk", "p")]
    of_ocm = (scene.body(PLACEMENT, "p", spec={}), scene.decision_of("p"))
    await scene.create(client, *namespaces, *secrets, *checks, *of_ocm)
    await scene.select(client, "p", SCORES)


@dataclass
class Side:
    """A hub with a controller; `events` are those of its MultiKueueConfigs."""

    client: Client
    pid: int
    events: AsyncIterator[WatchEvent]
    ready: float
    """Seconds until the check was Active."""
    cpu: float
    """CPU seconds until then."""
    decisions: list[float] = field(default_factory=list)
    """Milliseconds from the PATCH of a decision to the event of the right MultiKueueConfig."""

    async def change(self) -> None:
        """Reverse the decision, and measure."""
        scores = SCORES if len(self.decisions) % 2 else REVERSED
        began = time.perf_counter()
        deciding = asyncio.create_task(scene.select(self.client, "p", scores))
        async for _, item in self.events:
            if item.get("spec", {}).get("clusters") == [f"p-{cluster}" for cluster in scores]:
                break
        else:
            raise click.ClickException("the watch ended before the MultiKueueConfig was correct")
        self.decisions.append((time.perf_counter() - began) * 1000)
        await deciding

    def percentile(self, part: int) -> float:
        return statistics.quantiles(self.decisions, n=100)[part - 1]


@asynccontextmanager
async def side(workloads: int, ours: int) -> AsyncIterator[Side]:
    """Start a hub with Workloads, and a controller; yield them when both are at rest."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with embedded(kubeconfig, "workloads", workloads, ours):
            async with Client(Login(kubeconfig)) as client:
                await prepare(client, kubeconfig.read_bytes())
                began = time.monotonic()
                # Every change of the order is written at once: the measurement is about that time.
                with controller(kubeconfig, "--log-level", "warning", "--reorder-interval", "0") as process:
                    await scene.until_listed(
                        client, ADMISSION_CHECK, lambda found: any(map(scene.is_active, found))
                    )
                    ready, cpu = time.monotonic() - began, cpu_seconds(process.pid)
                    await until_idle(process.pid, REST_SECONDS)
                    version = (await client.list(scene.newest(MULTIKUEUE_CONFIG))).resource_version
                    async with aclosing(client.watch(scene.newest(MULTIKUEUE_CONFIG), version)) as events:
                        yield Side(client, process.pid, events, ready, cpu)


async def measure(workloads: int, ours: int, changes: int) -> Object:
    """Compare a full hub with an empty one, in turns, so that other load of the machine affects both."""
    async with side(workloads, ours) as full, side(0, 0) as empty:
        for _ in range(changes):
            await full.change()
            await empty.change()
        await until_idle(full.pid, REST_SECONDS)
        rss, peak = memory(full.pid)
        figures = {
            "workloads": workloads,
            "ours": ours,
            "rssMb": rss,
            "peakRssMb": peak,
            "rssMbWithout": memory(empty.pid)[0],
            "secondsToReady": full.ready,
            "cpuSecondsToReady": full.cpu,
            "cpuSecondsToReadyWithout": empty.cpu,
            "decisionMs": {
                name: {f"p{part}": round(of.percentile(part), 1) for part in (50, 90)}
                for name, of in (("with", full), ("without", empty))
            },
            "factor": full.percentile(50) / empty.percentile(50),
        }
        return {key: round(one, 2) if isinstance(one, float) else one for key, one in figures.items()}


@click.command(context_settings={"show_default": True})
@click.option("--workloads", default=100_000, help="Workloads on the hub.")
@click.option("--ours", default=1_000, help="Workloads that wait for a check of ours.")
@click.option("--changes", default=100, help="Single changes of the decision.")
def main(workloads: int, ours: int, changes: int) -> None:
    """Measure the controller on a hub full of Workloads, and on an empty one."""
    click.echo(json.dumps(asyncio.run(measure(workloads, ours, changes)), indent=2))


if __name__ == "__main__":
    main()
