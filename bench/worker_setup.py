"""
Measure the set-up of many workers: a cold start, and another LocalQueue, until each worker has it.

`make bench-worker-setup`: an embedded hub with bare workers, OCM's work agents as stand-ins, and
`placement-ac run --worker-setup manifestwork` in its own process. The workers are 20 embedded API servers:
those of one Placement have one each, and each serves a cluster of every Placement, with names of their own.
Prints one JSON object; times are in seconds, `writes` are requests of the controller for ManifestWorks.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from bench import scene
from bench.processes import controller, cpu_seconds, embedded
from placement_ac.core.api import constants as api
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.fleet import login_to
from placement_lab.standins.runner import StandIns
from placement_lab.standins.work_agent import WorkAgents

PER_PLACEMENT: Final = 20
"""The clusters of each Placement: a MultiKueueConfig holds no more."""
RESOURCE: Final = "nvidia.com/gpu"
WRITES: Final = frozenset({"POST", "PATCH", "PUT"})
OPTIONS: Final = ("--log-level", "warning", "--worker-setup", "manifestwork")
REST_SECONDS: Final = 30.0
NEVER_SECONDS: Final = 3600.0
"""How often an agent reads its worker again: one process plays all agents, and real ones do not share one."""


def groups_of(clusters: int, per_placement: int = PER_PLACEMENT) -> dict[str, list[str]]:
    """Return the clusters of each Placement; a check, a flavor, a namespace and a queue have its name."""
    names = [f"cluster-{number:04}" for number in range(clusters)]
    parts = [names[start : start + per_placement] for start in range(0, clusters, per_placement)]
    return {f"p{number}": part for number, part in enumerate(parts)}


def fleet(groups: Mapping[str, Sequence[str]], kubeconfigs: Mapping[str, Path]) -> Iterator[Object]:
    """Yield the objects of the hub: clusters, and for each Placement a check and a queue."""
    for namespace in (scene.NS, *groups, *kubeconfigs):
        yield scene.body(scene.NAMESPACE, namespace)
    for name, kubeconfig in kubeconfigs.items():
        yield scene.secret_of(name, kubeconfig.read_bytes())
        status = {"allocatable": {RESOURCE: "8"}, "conditions": []}
        yield scene.body(api.MANAGED_CLUSTER, name, spec={"hubAcceptsClient": True}, status=status)
    for placement, part in groups.items():
        yield scene.body(api.RESOURCE_FLAVOR, placement, spec={})
        quotas = [{"name": RESOURCE, "nominalQuota": str(8 * len(part))}]
        covers = {"coveredResources": [RESOURCE], "flavors": [{"name": placement, "resources": quotas}]}
        checks = [{"name": placement}, {"name": f"mk-{placement}"}]
        strategy = {"admissionChecks": checks}
        spec = {"namespaceSelector": {}, "resourceGroups": [covers], "admissionChecksStrategy": strategy}
        yield scene.body(api.CLUSTER_QUEUE, placement, spec=spec)
        yield local_queue(placement, placement)
        yield scene.check_of(placement, placement)
        yield scene.multikueue_check_of(f"mk-{placement}", placement)
        status = {"numberOfSelectedClusters": len(part)}
        yield scene.body(api.PLACEMENT, placement, spec={}, status=status)
        yield scene.decision_of(placement, status=scene.decided(part))


def local_queue(name: str, placement: str) -> Object:
    return scene.body(
        api.LOCAL_QUEUE, name, metadata={"namespace": placement}, spec={"clusterQueue": placement}
    )


def has_more(work: Object) -> bool:
    """Whether a ManifestWork has the LocalQueue that was added."""
    manifests = work["spec"]["workload"]["manifests"]
    return any(manifest["metadata"]["name"].startswith("more-") for manifest in manifests)


def applied(work: Object) -> bool:
    """Whether OCM has applied the newest ManifestWork."""
    return scene.has_condition(work, "Applied", observedGeneration=work["metadata"]["generation"])


@dataclass(frozen=True, slots=True)
class Part:
    """The price of one part: seconds, the controller's writes of ManifestWorks, its CPU seconds."""

    seconds: float
    writes: int
    cpu: float
    written: float | None = None
    """Seconds until the hub had all ManifestWorks; OCM's agents follow."""

    def figures(self) -> Object:
        figures = {"seconds": self.seconds, "writes": self.writes, "cpuSeconds": self.cpu}
        if self.written is not None:
            figures["secondsUntilWritten"] = self.written
        return {name: round(figure, 2) for name, figure in figures.items()}


def writes(hub: Hub) -> int:
    """Count the controller's writes of ManifestWorks."""
    return sum(
        one.method in WRITES
        and "/manifestworks/" in one.path
        and not one.path.endswith("/status")
        and one.user_agent == api.FIELD_MANAGER
        for one in list(hub.journal)
    )


async def measure(clusters: int, per_placement: int = PER_PLACEMENT, rest: float = REST_SECONDS) -> Object:
    """Start everything, and return the figures; `rest`: for how many seconds the CPU at rest is measured."""
    groups = groups_of(clusters, per_placement)
    with tempfile.TemporaryDirectory() as folder, Hub() as hub, ExitStack() as stack:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(hub.kubeconfig()))
        servers = [
            stack.enter_context(embedded(Path(folder) / f"worker{number}")) for number in range(per_placement)
        ]
        workers = {
            name: server.kubeconfig
            for part in groups.values()
            for name, server in zip(part, servers, strict=False)
        }
        logins = {name: partial(Login, worker) for name, worker in workers.items()}
        with StandIns(lambda: login_to(hub), [partial(WorkAgents, logins=logins, poll=NEVER_SECONDS)]):
            async with Client(Login(kubeconfig)) as client:
                await scene.create(client, *fleet(groups, workers))
                began = time.monotonic()
                with controller(kubeconfig, *OPTIONS) as process:
                    await until_listed(client, clusters)
                    start = Part(time.monotonic() - began, writes(hub), cpu_seconds(process.pid))
                    change = await another_queue(client, hub, groups, process.pid)
                    await asyncio.sleep(rest)
                    at_rest = cpu_seconds(process.pid) - start.cpu - change.cpu
        return {
            "clusters": clusters,
            "coldStart": start.figures(),
            "anotherLocalQueue": change.figures(),
            "cpuShareAtRest": round(at_rest / rest, 3),
        }


async def another_queue(client: Client, hub: Hub, groups: Mapping[str, Sequence[str]], pid: int) -> Part:
    """Create a LocalQueue for each Placement, and wait until OCM has applied it on each worker."""
    began, before, cpu = time.monotonic(), writes(hub), cpu_seconds(pid)
    clusters = sum(map(len, groups.values()))
    await scene.create(client, *(local_queue(f"more-{name}", name) for name in groups))
    await scene.until_listed(client, api.MANIFEST_WORK, lambda works: sum(map(has_more, works)) == clusters)
    written = time.monotonic() - began
    await scene.until_listed(client, api.MANIFEST_WORK, lambda works: all(map(applied, works)))
    figures = Part(time.monotonic() - began, writes(hub) - before, cpu_seconds(pid) - cpu)
    return replace(figures, written=written)


async def until_listed(client: Client, clusters: int) -> None:
    """Wait until the checks are Active with all clusters."""
    await scene.until_listed(
        client,
        api.MULTIKUEUE_CONFIG,
        lambda configs: sum(len(config["spec"]["clusters"]) for config in configs) == clusters,
    )
    await scene.until_listed(
        client,
        api.ADMISSION_CHECK,
        lambda checks: all(map(scene.is_active, filter(_is_ours, checks))),
    )


def _is_ours(check: Object) -> bool:
    return bool(check["spec"]["controllerName"] == api.OUR_CONTROLLER)


@click.command(context_settings={"show_default": True})
@click.option("--clusters", default=200, help="ManagedClusters, 20 in each Placement.")
def main(clusters: int) -> None:
    """Measure how long the set-up of many workers takes, and a change of it."""
    click.echo(json.dumps(asyncio.run(measure(clusters)), indent=2))


if __name__ == "__main__":
    main()
