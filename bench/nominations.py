"""
Measure how soon our dispatcher nominates: 50 clusters over three checks, 200 Workloads that fit nowhere.

`make bench-nominations`: a hub and `placement-ac run --dispatcher true`, in separate processes. A Workload
gets quota as Kueue writes it; its nomination is the second write of the controller, after its Ready. Then
1,000 Workloads get quota at once. Prints one JSON object; times are in ms, but for the 1,000.
"""

import asyncio
import base64
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from bench.hub import running
from bench.scene import NAMESPACE, NS, all_of, body, newest, owned
from bench.sides import NEVER_SECONDS
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_CLUSTER_SELECTOR,
    KUBECONFIG_KEY,
    KUEUE,
    KUEUE_ADMISSION,
    LABEL_GROUP_INDEX,
    LABEL_PLACEMENT,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    WORKLOAD,
)
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login

CHECKS: Final = 3
CLUSTERS: Final = 50
UNPLACED: Final = 200
TEAM: Final = "team"
WHEN: Final = "2026-08-01T12:00:00Z"


@contextmanager
def controller(kubeconfig: Path, profile: str) -> Iterator[None]:
    options = ["--kubeconfig", str(kubeconfig), "--log-level", "error", "--dispatch-profile", profile]
    command = [sys.executable, "-m", "placement_ac", "run", "--dispatcher", "true", *options]
    with subprocess.Popen(command) as process:  # noqa: S603  # our own
        try:
            yield
        finally:
            process.terminate()


# -- in place of OCM and Kueue


async def prepare(client: Client, kubeconfig: bytes) -> None:
    for name in (NS, TEAM):
        await client.create(newest(NAMESPACE), body(NAMESPACE, name))
    data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
    for number in range(CLUSTERS):
        await client.create(newest(SECRET), body(SECRET, f"multikueue-c{number:02}", data=data))
        labels = {"gpu": "h100" if number % 2 else "t4"}
        cluster = body(MANAGED_CLUSTER, f"c{number:02}", metadata={"labels": labels}, spec={})
        await client.create(newest(MANAGED_CLUSTER), cluster)
    for check in range(CHECKS):
        await prepare_check(client, check)


async def prepare_check(client: Client, check: int) -> None:
    name = f"p{check}"
    for one, by, group, kind in (
        (name, OUR_CONTROLLER, OCM_CLUSTER, "Placement"),
        (f"mk{check}", "kueue.x-k8s.io/multikueue", KUEUE, "MultiKueueConfig"),
    ):
        spec = {"controllerName": by, "parameters": {"apiGroup": group, "kind": kind, "name": name}}
        await client.create(newest(ADMISSION_CHECK), body(ADMISSION_CHECK, one, spec=spec))
    await client.create(newest(PLACEMENT), body(PLACEMENT, name, spec={}))
    labels = {LABEL_PLACEMENT: name, LABEL_GROUP_INDEX: "0"}
    decision = body(PLACEMENT_DECISION, f"{name}-decision-1", metadata={"labels": labels})
    await client.create(newest(PLACEMENT_DECISION), await owned(client, decision))
    decisions = [
        {"clusterName": f"c{number:02}", "reason": "", "score": 100 - number}
        for number in range(CLUSTERS)
        if number % CHECKS == check
    ]
    status = {"status": {"decisions": decisions}}
    await client.merge(
        newest(PLACEMENT_DECISION), f"{name}-decision-1", status, namespace=NS, subresource="status"
    )


def condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Bench", "message": "", "lastTransitionTime": WHEN}


async def connect(client: Client) -> None:
    """Wait for all MultiKueueClusters, and report them connected."""
    await until(lambda: _number_of(client), CLUSTERS)
    found = (await client.list(newest(MULTIKUEUE_CLUSTER))).items
    status = {"status": {"conditions": [condition("Active")]}}
    for one in found:
        await client.merge(newest(MULTIKUEUE_CLUSTER), one["metadata"]["name"], status, subresource="status")


async def _number_of(client: Client) -> int:
    return len((await client.list(newest(MULTIKUEUE_CLUSTER))).items)


async def until(ask: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    end = time.monotonic() + NEVER_SECONDS
    while (found := await ask()) != wanted:
        if time.monotonic() > end:
            raise click.ClickException(f"{found} after {NEVER_SECONDS:g} s, not {wanted}")
        await asyncio.sleep(0.05)


async def create(client: Client, name: str, selector: str = "") -> None:
    pod = {"containers": [{"name": "main", "image": "registry.example/job"}], "restartPolicy": "Never"}
    annotations = {ANNOTATION_CLUSTER_SELECTOR: selector} if selector else {}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    spec = {"queueName": "queue", "podSets": [{"name": "main", "count": 1, "template": template}]}
    await client.create(newest(WORKLOAD), body(WORKLOAD, name, metadata={"namespace": TEAM}, spec=spec))


async def give_quota(client: Client, name: str, check: int) -> None:
    """Reserve quota as Kueue does: an apply of the manager that later clears the nominations."""
    entries = [
        {"name": one, "state": "Pending", "message": "", "lastTransitionTime": WHEN}
        for one in (f"p{check}", f"mk{check}")
    ]
    admission = {"clusterQueue": "queue", "podSetAssignments": [{"name": "main", "count": 1}]}
    status = {"admission": admission, "conditions": [condition("QuotaReserved")], "admissionChecks": entries}
    found = {"metadata": {"name": name, "namespace": TEAM}, "status": status}
    await client.apply(newest(WORKLOAD), found, subresource="status", force=True, manager=KUEUE_ADMISSION)


# -- measuring


class Watch:
    """Follows the Workloads: when each was nominated first, and how often that changed."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.changes: dict[str, int] = {}
        self.unfit: set[str] = set()
        self._names: dict[str, tuple[str, ...]] = {}
        self._changed = asyncio.Event()

    async def follow(self, client: Client) -> None:
        version = (await client.list(newest(WORKLOAD))).resource_version
        async with contextlib.aclosing(client.watch(newest(WORKLOAD), version)) as events:
            async for _, item in events:
                self._take(item)

    def _take(self, item: Object) -> None:
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
        await create(client, name, "gpu=h100" if count % 2 else "")
        began = time.perf_counter()
        giving = asyncio.create_task(give_quota(client, name, count % CHECKS))
        await watch.until(lambda name=name: name in watch.at)  # type: ignore[misc]
        await giving
        found.append((watch.at[name] - began) * 1000)
        await client.delete(newest(WORKLOAD), name, TEAM)
        await asyncio.sleep(0.05)
    return found


async def all_at_once(client: Client, watch: Watch, number: int) -> float:
    """Return the seconds from the first Workload's quota to the last one's nomination."""
    names = [f"burst-{count}" for count in range(number)]
    await all_of(create(client, name) for name in names)
    began = time.perf_counter()
    await all_of(give_quota(client, name, count % CHECKS) for count, name in enumerate(names))
    await watch.until(lambda: all(name in watch.at for name in names))
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def scene(profile: str) -> AsyncIterator[tuple[Client, Watch]]:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with running("bench.hub", kubeconfig, 0, 0):
            async with Client(Login(kubeconfig)) as client:
                await prepare(client, kubeconfig.read_bytes())
                watch = Watch()
                following = asyncio.create_task(watch.follow(client))
                with controller(kubeconfig, profile):
                    await connect(client)
                    yield client, watch
                following.cancel()


async def measure(profile: str, singles: int, burst: int, unplaced: int) -> Object:
    async with scene(profile) as (client, watch):
        lost = [f"unplaced-{count}" for count in range(unplaced)]
        await all_of(create(client, name, "gpu=none") for name in lost)
        await all_of(give_quota(client, name, count % CHECKS) for count, name in enumerate(lost))
        await watch.until(lambda: watch.unfit >= set(lost))
        times = await one_after_the_other(client, watch, singles)
        seconds = await all_at_once(client, watch, burst)
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


@click.command()
@click.option("--profile", default="spread", show_default=True, help="The profile of the dispatcher.")
@click.option("--singles", default=200, show_default=True, help="Workloads that come one after the other.")
@click.option("--burst", default=1000, show_default=True, help="Workloads that come at once.")
@click.option("--unplaced", default=UNPLACED, show_default=True, help="Workloads that fit nowhere.")
def main(profile: str, singles: int, burst: int, unplaced: int) -> None:
    """Measure how soon our dispatcher nominates."""
    click.echo(json.dumps(asyncio.run(measure(profile, singles, burst, unplaced)), indent=2))


if __name__ == "__main__":
    main()
