"""
Measure the set-up of many workers: a cold start, and another LocalQueue, until each worker has it.

`make bench-worker-setup`: an embedded hub with bare workers, OCM's work agents as stand-ins, and
`placement-ac run --worker-setup manifestwork` in its own process. All workers are one embedded API server.
Prints one JSON object; times are in seconds, `writes` are requests of the controller for ManifestWorks.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from bench import scene
from bench.processes import controller, cpu_seconds
from placement_ac.core.api import constants as api
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.fleet import login_to
from placement_lab.standins.runner import StandIns
from placement_lab.standins.work_agent import WorkAgents

CHECKS: Final = [{"name": scene.CHECK}, {"name": "mk"}]
TEAM: Final = "team-a"
FLAVOR: Final = "gpu"
RESOURCE: Final = "nvidia.com/gpu"
WRITES: Final = frozenset({"POST", "PATCH", "PUT"})
OPTIONS: Final = ("--log-level", "warning", "--worker-setup", "manifestwork")
REST_SECONDS: Final = 30.0


def fleet(names: list[str], kubeconfig: bytes) -> Iterator[Object]:
    """Yield the objects of the hub: the clusters, a queue, and a check whose Placement selects them all."""
    for namespace in (scene.NS, TEAM, *names):
        yield scene.body(scene.NAMESPACE, namespace)
    for name in names:
        yield scene.secret_of(name, kubeconfig)
        status = {"allocatable": {RESOURCE: "8"}, "conditions": []}
        spec = {"hubAcceptsClient": True}
        yield scene.body(api.MANAGED_CLUSTER, name, spec=spec, status=status)
    yield scene.body(api.RESOURCE_FLAVOR, FLAVOR, spec={})
    quotas = [{"name": RESOURCE, "nominalQuota": str(8 * len(names))}]
    groups = [{"coveredResources": [RESOURCE], "flavors": [{"name": FLAVOR, "resources": quotas}]}]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": groups,
        "admissionChecksStrategy": {"admissionChecks": CHECKS},
    }
    yield scene.body(api.CLUSTER_QUEUE, "team", spec=spec)
    yield local_queue("team")
    yield scene.check_of(scene.CHECK, "p")
    yield scene.multikueue_check_of("mk", "p")
    yield scene.body(api.PLACEMENT, "p", spec={}, status={"numberOfSelectedClusters": len(names)})
    yield scene.decision_of("p", status=scene.decided(names))


def local_queue(name: str) -> Object:
    return scene.body(api.LOCAL_QUEUE, name, metadata={"namespace": TEAM}, spec={"clusterQueue": "team"})


def applied(work: Object, queue: str) -> bool:
    """Whether OCM has applied the newest ManifestWork with this LocalQueue."""
    named = [one["metadata"]["name"] for one in work["spec"]["workload"]["manifests"]]
    conditions = (work.get("status") or {}).get("conditions") or ()
    return queue in named and any(
        (one["type"], one["status"], one.get("observedGeneration"))
        == ("Applied", "True", work["metadata"]["generation"])
        for one in conditions
    )


@dataclass(frozen=True, slots=True)
class Part:
    """The price of one part: seconds, the controller's writes of ManifestWorks, its CPU seconds."""

    seconds: float
    writes: int
    cpu: float

    def figures(self) -> Object:
        return {"seconds": round(self.seconds, 2), "writes": self.writes, "cpuSeconds": round(self.cpu, 2)}


def writes(hub: Hub) -> int:
    """Count the controller's writes of ManifestWorks."""
    return sum(
        one.method in WRITES
        and "/manifestworks/" in one.path
        and not one.path.endswith("/status")
        and one.user_agent == api.FIELD_MANAGER
        for one in list(hub.journal)
    )


async def measure(clusters: int, rest: float = REST_SECONDS) -> Object:
    """Start everything, and return the figures; `rest`: for how many seconds the CPU at rest is measured."""
    names = [f"cluster-{number:04}" for number in range(clusters)]
    with tempfile.TemporaryDirectory() as folder, Hub() as hub, Hub() as worker:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(hub.kubeconfig()))
        logins = dict.fromkeys(names, partial(login_to, worker))
        with StandIns(lambda: login_to(hub), [partial(WorkAgents, logins=logins)]):
            async with Client(Login(kubeconfig)) as client:
                await scene.create(client, *fleet(names, json.dumps(worker.kubeconfig()).encode()))
                began = time.monotonic()
                with controller(kubeconfig, *OPTIONS) as process:
                    await until_listed(client, clusters)
                    start = Part(time.monotonic() - began, writes(hub), cpu_seconds(process.pid))
                    change = await another_queue(client, hub, clusters, process.pid)
                    await asyncio.sleep(rest)
                    at_rest = cpu_seconds(process.pid) - start.cpu - change.cpu
        return {
            "clusters": clusters,
            "coldStart": start.figures(),
            "anotherLocalQueue": change.figures(),
            "cpuShareAtRest": round(at_rest / rest, 3),
        }


async def another_queue(client: Client, hub: Hub, clusters: int, pid: int) -> Part:
    """Create a LocalQueue on the hub, and wait until OCM has applied it on each worker."""
    began, before, cpu = time.monotonic(), writes(hub), cpu_seconds(pid)
    await scene.create(client, local_queue("more"))
    await scene.until_listed(
        client, api.MANIFEST_WORK, lambda works: sum(applied(work, "more") for work in works) == clusters
    )
    return Part(time.monotonic() - began, writes(hub) - before, cpu_seconds(pid) - cpu)


async def until_listed(client: Client, clusters: int) -> None:
    """Wait until the check is Active with all clusters."""
    await scene.until_listed(client, api.ADMISSION_CHECK, lambda found: any(map(scene.is_active, found)))
    await scene.until_listed(
        client,
        api.MULTIKUEUE_CONFIG,
        lambda found: [len(config["spec"]["clusters"]) for config in found] == [clusters],
    )


@click.command(context_settings={"show_default": True})
@click.option("--clusters", default=200, help="Clusters of one Placement.")
def main(clusters: int) -> None:
    """Measure how long the set-up of many workers takes, and a change of it."""
    click.echo(json.dumps(asyncio.run(measure(clusters)), indent=2))


if __name__ == "__main__":
    main()
