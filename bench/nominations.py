"""
Measure how soon our dispatcher nominates: 50 clusters over three checks, 200 Workloads that fit nowhere.

`make bench-nominations`: a hub and `placement-ac run --dispatcher true`, in separate processes. A Workload
gets quota as Kueue writes it; its nomination is the second write of the controller, after its Ready. Then
1,000 Workloads get quota at once. Prints one JSON object; times are in ms, but for the 1,000.
"""

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import click

from bench import scene
from bench.processes import controller, embedded
from bench.scene import NEVER_SECONDS
from placement_ac.core.api import constants as api
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login

CHECKS: Final = 3
CLUSTERS: Final = 50
UNPLACED: Final = 200
TEAM: Final = "team"
WHEN: Final = "2026-08-01T12:00:00Z"


# -- in place of OCM and Kueue


async def prepare(client: Client, kubeconfig: bytes) -> None:
    """Create three checks, each with Kueue's check and a Placement that selects a third of the clusters."""
    await scene.create(client, *(scene.body(scene.NAMESPACE, name) for name in (scene.NS, TEAM)))
    for number in range(CLUSTERS):
        name, labels = f"c{number:02}", {"gpu": "h100" if number % 2 else "t4"}
        cluster = scene.body(api.MANAGED_CLUSTER, name, metadata={"labels": labels}, spec={})
        await scene.create(client, scene.secret_of(name, kubeconfig), cluster)
    for check in range(CHECKS):
        name = f"p{check}"
        both = (scene.check_of(name, name), scene.multikueue_check_of(f"mk{check}", name))
        await scene.create(client, *both, scene.body(api.PLACEMENT, name, spec={}), scene.decision_of(name))
        await scene.select(
            client, name, {f"c{n:02}": 100 - n for n in range(CLUSTERS) if n % CHECKS == check}
        )


def condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Bench", "message": "", "lastTransitionTime": WHEN}


async def connect(client: Client) -> None:
    """Wait for all MultiKueueClusters, and report them connected."""
    kind, status = api.MULTIKUEUE_CLUSTER, {"status": {"conditions": [condition("Active")]}}
    for one in await scene.until_listed(client, kind, lambda found: len(found) == CLUSTERS):
        await client.merge(scene.newest(kind), one["metadata"]["name"], status, subresource="status")


async def submit(client: Client, name: str, selector: str = "") -> None:
    """Create a Workload."""
    pod = {"containers": [{"name": "main", "image": "registry.example/job"}], "restartPolicy": "Never"}
    annotations = {api.ANNOTATION_CLUSTER_SELECTOR: selector} if selector else {}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    spec = {"queueName": "queue", "podSets": [{"name": "main", "count": 1, "template": template}]}
    await client.create(
        scene.newest(api.WORKLOAD), scene.body(api.WORKLOAD, name, metadata={"namespace": TEAM}, spec=spec)
    )


async def give_quota(client: Client, name: str, check: int) -> None:
    """Reserve quota as Kueue does: an apply of the manager that later clears the nominations."""
    entries = [
        {"name": one, "state": "Pending", "message": "", "lastTransitionTime": WHEN}
        for one in (f"p{check}", f"mk{check}")
    ]
    admission = {"clusterQueue": "queue", "podSetAssignments": [{"name": "main", "count": 1}]}
    status = {"admission": admission, "conditions": [condition("QuotaReserved")], "admissionChecks": entries}
    found = {"metadata": {"name": name, "namespace": TEAM}, "status": status}
    await client.apply(
        scene.newest(api.WORKLOAD), found, subresource="status", force=True, manager=api.KUEUE_ADMISSION
    )


# -- measuring


class Watch:
    """Follows the Workloads: when each was nominated first, and how often that changed."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.changes: dict[str, int] = {}
        self.unfit: set[str] = set()
        self._names: dict[str, tuple[str, ...]] = {}
        self._changed = asyncio.Event()

    def take(self, _: str, item: Object) -> None:
        name, status = item["metadata"]["name"], item.get("status") or {}
        names = tuple(status.get("nominatedClusterNames") or ())
        if names and names != self._names.get(name):
            self.at.setdefault(name, time.perf_counter())
            self.changes[name] = self.changes.get(name, 0) + 1
        self._names[name] = names
        if any("NoClusterFits" in entry["message"] for entry in status.get("admissionChecks", ())):
            self.unfit.add(name)
        self._changed.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(NEVER_SECONDS):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()


async def one_after_the_other(client: Client, watch: Watch, number: int) -> list[float]:
    """Return the ms from a Workload's quota to its nomination."""
    found = []
    for count in range(number):
        name = f"single-{count}"
        await submit(client, name, "gpu=h100" if count % 2 else "")
        began = time.perf_counter()
        giving = asyncio.create_task(give_quota(client, name, count % CHECKS))
        await watch.until(lambda name=name: name in watch.at)  # type: ignore[misc]
        await giving
        found.append((watch.at[name] - began) * 1000)
        await client.delete(scene.newest(api.WORKLOAD), name, TEAM)
        await asyncio.sleep(0.05)
    return found


async def all_at_once(
    client: Client, names: list[str], reached: Callable[[], bool], watch: Watch, selector: str = ""
) -> float:
    """Give all quota at once; return the seconds until it is reached."""
    await scene.all_of(submit(client, name, selector) for name in names)
    began = time.perf_counter()
    await scene.all_of(give_quota(client, name, count % CHECKS) for count, name in enumerate(names))
    await watch.until(reached)
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def connected(profile: str) -> AsyncIterator[tuple[Client, Watch]]:
    """Run hub and controller, until all MultiKueueClusters are connected."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        options = ("--dispatcher", "true", "--log-level", "error", "--dispatch-profile", profile)
        with embedded(kubeconfig):
            async with Client(Login(kubeconfig)) as client:
                await prepare(client, kubeconfig.read_bytes())
                watch = Watch()
                following = asyncio.create_task(scene.follow(client, api.WORKLOAD, watch.take))
                with controller(kubeconfig, *options):
                    await connect(client)
                    yield client, watch
                following.cancel()


async def measure(profile: str, singles: int, burst: int, unplaced: int) -> Object:
    async with connected(profile) as (client, watch):
        lost = [f"unplaced-{count}" for count in range(unplaced)]
        await all_at_once(client, lost, lambda: watch.unfit >= set(lost), watch, "gpu=none")
        times = await one_after_the_other(client, watch, singles)
        many = [f"burst-{count}" for count in range(burst)]
        seconds = await all_at_once(client, many, lambda: watch.at.keys() >= set(many), watch)
        cuts = statistics.quantiles(times, n=100)
        return {
            "profile": profile,
            "unplaced": unplaced,
            "p50Ms": round(cuts[49], 1),
            "p99Ms": round(cuts[98], 1),
            "mostNominationsOfOne": max(watch.changes.values()),
            "burst": burst,
            "burstSeconds": round(seconds, 2),
        }


@click.command(context_settings={"show_default": True})
@click.option("--profile", default="spread", help="The profile of the dispatcher.")
@click.option("--singles", default=200, help="Workloads that come one after the other.")
@click.option("--burst", default=1000, help="Workloads that come at once.")
@click.option("--unplaced", default=UNPLACED, help="Workloads that fit nowhere.")
def main(profile: str, singles: int, burst: int, unplaced: int) -> None:
    """Measure how soon our dispatcher nominates."""
    click.echo(json.dumps(asyncio.run(measure(profile, singles, burst, unplaced)), indent=2))


if __name__ == "__main__":
    main()
