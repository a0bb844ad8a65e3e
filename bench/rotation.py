"""
Measure the time from OCM's report of a new token to our kubeconfig with it, for many clusters at once.

`make bench-rotation`: a hub, one worker for all clusters, OCM's stand-in and the controller, in one process.
Tokens are renewed at random. Prints one JSON object: `lagMs` is the time from the hub's event for the Secret
with the token to its event for the Secret with the kubeconfig, `writes` the controller's writes by kind.
"""

import asyncio
import base64
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from bench.scene import NAMESPACE, NS, body, check_of, decided, decision_of, follow, owned, until_listed
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import KUBECONFIG_KEY, PLACEMENT, SECRET, TOKEN_KEY
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.observability import logs
from placement_lab.demo.environment import ControllerThread
from placement_lab.hub import Hub
from placement_lab.standins import manifests
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.ocm_addons import OcmAddons
from placement_lab.standins.runner import StandIns

SEED: Final = 1


class Clock:
    """The times of the hub's events for each token: reported by OCM, and in a kubeconfig of ours."""

    def __init__(self) -> None:
        self.reported: dict[str, float] = {}
        self.written: dict[str, float] = {}
        self.last: dict[str, str] = {}
        """Cluster → the last reported token."""

    def take(self, secret: Object) -> None:
        now, data = time.monotonic(), secret.get("data") or {}
        if TOKEN_KEY in data:
            token = self.last[secret["metadata"]["namespace"]] = base64.b64decode(data[TOKEN_KEY]).decode()
            self.reported.setdefault(token, now)
        if KUBECONFIG_KEY in data:
            access = read_kubeconfig(base64.b64decode(data[KUBECONFIG_KEY]))
            if isinstance(access, ClusterAccess):
                self.written.setdefault(access.token, now)

    def not_written(self) -> list[str]:
        """The clusters whose last token is in no kubeconfig; a token replaced at once need not be in one."""
        return [cluster for cluster, token in self.last.items() if token not in self.written]

    def lags(self) -> list[float]:
        """Seconds from report to kubeconfig for each token, without tokens that were replaced at once."""
        return [self.written[token] - when for token, when in self.reported.items() if token in self.written]


@contextmanager
def stage(clusters: list[str], folder: Path) -> Iterator[tuple[Hub, OcmAddons]]:
    """Run hub, worker, OCM and controller, until all credentials are provisioned."""
    kubeconfig = folder / "kubeconfig"
    stand_ins: list[OcmAddons] = []
    with Hub() as hub, WorkerFleet(["worker"]) as fleet:
        hub.write_kubeconfig(kubeconfig)

        def make(login: Login) -> OcmAddons:
            stand_ins.append(OcmAddons(login, {name: lambda: fleet.login("worker") for name in clusters}))
            return stand_ins[0]

        with StandIns(kubeconfig, [make]):
            asyncio.run(_put(kubeconfig, fleet.managed_clusters()[0], clusters))
            settings = {
                "credentials_provision": "managed-serviceaccount",
                "mass_loss_grace": 0,
                "leader_elect": False,  # so every counted write concerns credentials
            }
            with ControllerThread(Settings(kubeconfig=kubeconfig, **settings)):
                yield hub, stand_ins[0]


async def _put(kubeconfig: Path, worker: Object, clusters: list[str]) -> None:
    """Create the admin's objects and OCM's decision: one check, one Placement, all clusters."""
    managed = [worker | {"metadata": {"name": name}} for name in clusters]
    others = [body(NAMESPACE, NS), body(PLACEMENT, "p", spec={}), check_of("p", "p")]
    async with Client(Login(kubeconfig), field_manager="bench") as client:
        await manifests.apply(client, [*managed, *others])
        await manifests.apply(client, [await owned(client, decision_of("p", status=decided(clusters)))])


async def measure(kubeconfig: Path, hub: Hub, ocm: OcmAddons, clusters: list[str], refreshes: int) -> Any:
    clock, chance = Clock(), random.Random(SEED)  # noqa: S311  # the same refreshes in every run

    async with Client(Login(kubeconfig), field_manager="bench") as client:
        watching = asyncio.create_task(follow(client, SECRET, lambda _, secret: clock.take(secret)))
        await until_listed(client, SECRET, lambda _: len(clock.written) >= len(clusters))
        await _at_rest(hub)
        since = len(hub.journal)
        clock.reported.clear()  # the first tokens waited for the other objects
        for _ in range(refreshes):
            await asyncio.to_thread(ocm.refresh, chance.choice(clusters))
            await asyncio.sleep(chance.uniform(0, 0.05))
        await _at_rest(hub)
        watching.cancel()
    lags = sorted(1000 * lag for lag in clock.lags())
    wrote = [r for r in hub.journal[since:] if r.user_agent == "placement-ac" and r.method != "GET"]
    at = {"p50": statistics.median(lags), "p99": lags[int(len(lags) * 0.99)], "max": lags[-1]}
    return {
        "clusters": len(clusters),
        "refreshes": refreshes,
        "lagMs": {name: round(lag, 1) for name, lag in at.items()},
        "notWritten": len(clock.not_written()),
        "writes": dict(Counter(f"{r.method} {r.path.split('/')[-2]}" for r in wrote)),
    }


async def _at_rest(hub: Hub) -> None:
    """Wait until the hub has had no write for a second."""
    while True:
        before = len(hub.journal)
        await asyncio.sleep(1.0)
        if all(request.method == "GET" for request in hub.journal[before:]):
            return


@click.command(context_settings={"show_default": True})
@click.option("--clusters", default=50)
@click.option("--refreshes", default=500)
def main(clusters: int, refreshes: int) -> None:
    """Measure, and print the results as JSON."""
    logs.configure("text", "error")
    names = [f"cluster{number}" for number in range(clusters)]
    with tempfile.TemporaryDirectory() as folder, stage(names, Path(folder)) as (hub, ocm):
        result = asyncio.run(measure(Path(folder) / "kubeconfig", hub, ocm, names, refreshes))
    click.echo(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
