"""
Measure how fast many Workloads of equal size start on three real workers, and how many copies are made.

`make bench-jobs HUB=… WORKER_KUBECONFIGS=… DISPATCHER=…`: as Kueue's own bench of MultiKueue
(`test/performance/multikueue`), all jobs are created at once, and there is room for all of them on each
worker. The hub needs OCM's placement controller and Kueue, whose configuration must name the dispatcher that
`--dispatcher` says; placement-ac is started here, and must not run there. Like `make test-real`, it makes and
removes objects named `placement-ac-real`. Prints one JSON object: `seconds` until the last job started,
`startSeconds` from the creation of a job until it is not suspended on a worker.
"""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import click

from bench.jobs_scene import DISPATCHERS, OURS
from bench.processes import controller
from bench.scene import follow
from placement_ac.core.api.constants import CLUSTER_QUEUE, JOB, WORKLOAD
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from tests.real.clusters import CLUSTER_QUEUES, Cluster, Fleet, job, quota

Object = dict[str, Any]

SET_UP_SECONDS: Final = 600.0
"""For a step before and after the run: many jobs have to go."""
SETTLED_SECONDS: Final = 5.0
"""From the connected workers to the first job: Kueue looks at the queue and the checks again."""
CREATORS: Final = 6
"""How many jobs are created at the same time."""


@dataclass(slots=True)
class Seen:
    """The jobs of this run on the workers. Times are of `time.time()`."""

    created: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    on: dict[str, set[str]] = field(default_factory=dict)
    """Job → the workers where it runs."""
    twice: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)
    """The uids of their Workloads there."""
    wanted: int = 0
    """The number of jobs."""
    all_started: asyncio.Event = field(default_factory=asyncio.Event)

    def take_job(self, worker: str, change: str, item: Object) -> None:
        name = item["metadata"]["name"]
        if name not in self.created:
            return
        places = self.on.setdefault(name, set())
        if change == "DELETED":
            places.discard(worker)
        elif item["spec"].get("suspend") is False:
            self.started.setdefault(name, time.time())
            places.add(worker)
            if len(places) > 1:
                self.twice.add(name)
            if len(self.started) == self.wanted:
                self.all_started.set()

    def take_copy(self, _: str, item: Object) -> None:
        self.copies.add(item["metadata"]["uid"])

    def figures(self) -> Object:
        waited = [self.started[name] - self.created[name] for name in self.started]
        seconds = max(self.started.values(), default=0.0) - min(self.created.values())
        parts = quantiles(waited, n=100, method="inclusive") if len(waited) > 1 else [0.0] * 99
        return {
            "jobs": len(self.created),
            "started": len(self.started),
            "seconds": round(seconds, 1),
            "perSecond": round(len(waited) / seconds, 2) if waited else 0.0,
            "startSeconds": {f"p{part}": round(parts[part - 1], 1) for part in (50, 90, 95)},
            "copiesPerJob": round(len(self.copies) / len(self.created), 2),
            "twice": len(self.twice),
            "load": round(os.getloadavg()[0], 1),
        }


async def play(fleet: Fleet, number: int, patience: float) -> Object:
    """Create the jobs, and return the figures when all have started, or after `patience` seconds."""
    seen, run = Seen(wanted=number), int(time.time()) % 100_000
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Client(Login(fleet.hub.kubeconfig)))
        watches = []
        for worker, cluster in fleet.workers.items():
            client = await stack.enter_async_context(Client(Login(cluster.kubeconfig)))
            watches.append(asyncio.create_task(follow(client, JOB, partial(seen.take_job, worker))))
            watches.append(asyncio.create_task(follow(client, WORKLOAD, seen.take_copy)))
        await asyncio.sleep(SETTLED_SECONDS)
        seen.copies.clear()  # what was there before
        names = iter([f"real-{run}-{at}" for at in range(number)])
        await asyncio.gather(*[_create(hub, names, seen) for _ in range(CREATORS)])
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(seen.all_started.wait(), patience)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
    return seen.figures()


async def _create(hub: Client, names: Iterator[str], seen: Seen) -> None:
    for name in names:
        seen.created[name] = time.time()
        await hub.create(JOB.at("v1"), job(name))


@contextmanager
def prepared(fleet: Fleet, number: int, flags: tuple[str, ...]) -> Iterator[None]:
    """Select all clusters, with room for all jobs on each, and run the controller."""
    fleet.clear()
    fleet.prepare()
    try:
        for cluster in (fleet.hub, *fleet.workers.values()):
            for queue in CLUSTER_QUEUES:
                cluster.patch(CLUSTER_QUEUE, queue, {"spec": {"resourceGroups": [quota(number)]}})
        with controller(fleet.hub.kubeconfig, "--log-level", "warning", *flags):
            fleet.select({}, {})
            fleet.wait_for_list(*fleet.names)
            yield
    finally:
        fleet.clear()


@click.command(context_settings={"show_default": True})
@click.option("--hub-kubeconfig", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--worker-kubeconfigs", required=True, metavar="NAME=FILE,…", help="Three clusters of the hub.")
@click.option("--dispatcher", required=True, type=click.Choice([*DISPATCHERS]), help="As Kueue has it.")
@click.option("--jobs", "number", default=1000)
@click.option("--patience", default=900.0, help="Seconds after which the run ends.")
@click.argument("flags", nargs=-1)
def main(
    *,
    hub_kubeconfig: Path,
    worker_kubeconfigs: str,
    dispatcher: str,
    number: int,
    patience: float,
    flags: tuple[str, ...],
) -> None:
    """Measure how fast many jobs start at once; FLAGS go to placement-ac."""
    fleet = Fleet.of(Cluster(hub_kubeconfig), worker_kubeconfigs, SET_UP_SECONDS, dispatcher == OURS)
    ours = ("--dispatcher", "true") if dispatcher == OURS else ()
    with prepared(fleet, number, (*ours, *flags)):
        figures = asyncio.run(play(fleet, number, patience))
        click.echo(json.dumps({"dispatcher": dispatcher, "flags": list(flags), **figures}, indent=2))


if __name__ == "__main__":
    main()
