"""
Measure the commands that read a hub, with 1,000 clusters and 200 checks.

`make bench-inspection`: hub and commands are separate processes. A command is timed from start to end, with
its imports, lists and output; our code is compiled before, as pip does. The steps "after listing" are timed
in this process, on a hub that has been read. Prints a table and one JSON object: seconds, `p50` and `max` of
the runs, `cpu` the median of the command's own CPU time.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from bench.hub import running
from bench.sides import compile_ours
from kubectl_placement.cli.hub_options import EXPLAIN_KINDS, HubSource, read_once
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.what_if import what_if
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import OCM_CLUSTER


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command. Seconds."""

    wall: float
    cpu: float


COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "status": ("status",),
    "status -o json": ("status", "-o", "json"),
    "status of one check": ("status", "placement-007"),
}
"""Name → the arguments of `placement-ac`."""
_SET: Final = {
    "apiVersion": f"{OCM_CLUSTER}/v1beta2",
    "kind": "ManagedClusterSet",
    "metadata": {"name": "global"},
    "spec": {
        "clusterSelector": {
            "selectorType": "LabelSelector",
            "labelSelector": {"matchLabels": {"vendor": "OpenShift"}},
        }
    },
}
_LABEL: Final = {
    "apiVersion": f"{OCM_CLUSTER}/v1",
    "kind": "ManagedCluster",
    "metadata": {"name": "cluster-0035", "labels": {"zone": "b"}},
}
_PLACEMENT: Final = {
    "apiVersion": f"{OCM_CLUSTER}/v1beta1",
    "kind": "Placement",
    "metadata": {"name": "placement-007"},
    "spec": {"numberOfClusters": 5},
}
AFTER_LISTING: Final[Mapping[str, Callable[[HubView], object]]] = {
    "status after listing": check_statuses,
    "plan of a Placement, after listing": lambda view: what_if(view, [_PLACEMENT]),
    "plan of a cluster's label, which concerns all Placements": lambda view: what_if(view, [_LABEL]),
    "plan of a cluster set, which concerns all Placements": lambda view: what_if(view, [_SET]),
}
"""Name → a step on a hub that has been read."""
TARGETS: Final[Mapping[str, float]] = {
    "status": 2.0,
    **{name: 1.0 for name in AFTER_LISTING if name.startswith("plan")},
}
"""Budgets in seconds, where one is set."""


def run(kubeconfig: Path, words: tuple[str, ...]) -> Run:
    """Run one of our commands on the hub, as a process."""
    command = [sys.executable, "-m", "placement_ac", *words, "--kubeconfig", str(kubeconfig)]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # our own
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode not in (0, 2) or not done.stdout:
        raise click.ClickException(f"{' '.join(words)}: {done.stderr.decode()}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Run(wall, cpu)


def after_listing(kubeconfig: Path, work: Callable[[HubView], object], runs: int) -> list[Run]:
    """Time a step on a hub that has been read, each time without any cached result."""
    view = read_once(HubSource(kubeconfig=kubeconfig), EXPLAIN_KINDS).view
    return [_timed(work, replace(view)) for _ in range(runs)]


def _timed(work: Callable[[HubView], object], view: HubView) -> Run:
    began, cpu = time.perf_counter(), time.process_time()
    work(view)
    return Run(time.perf_counter() - began, time.process_time() - cpu)


def figures(runs: list[Run], target: float | None) -> Mapping[str, float]:
    walls = [one.wall for one in runs]
    found = {
        "p50": statistics.median(walls),
        "max": max(walls),
        "cpu": statistics.median(one.cpu for one in runs),
    }
    return {name: round(seconds, 2) for name, seconds in found.items()} | (
        {"target": target} if target else {}
    )


def measured(kubeconfig: Path, runs: int) -> dict[str, Mapping[str, float]]:
    """Return the figures of all measurements, by name."""
    found = {name: [run(kubeconfig, words) for _ in range(runs)] for name, words in COMMANDS.items()}
    found |= {name: after_listing(kubeconfig, work, runs) for name, work in AFTER_LISTING.items()}
    return {name: figures(of, TARGETS.get(name)) for name, of in found.items()}


@click.command()
@click.option("--clusters", default=1_000, show_default=True, help="ManagedClusters, each with a Secret.")
@click.option(
    "--checks", default=200, show_default=True, help="Checks, each with a Placement of 10 clusters."
)
@click.option("--workloads", default=1_000, show_default=True, help="Unfinished Workloads.")
@click.option("--runs", default=5, show_default=True, help="Runs of each command.")
def main(clusters: int, checks: int, workloads: int, runs: int) -> None:
    """Measure the commands that read a hub."""
    compile_ours()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with running("bench.fleet", kubeconfig, clusters, checks, workloads):
            found = measured(kubeconfig, runs)
    table = Table("", "p50 s", "max s", "CPU s", "target s", box=None)
    for name, one in found.items():
        table.add_row(name, *(str(one.get(key, "-")) for key in ("p50", "max", "cpu", "target")))
    Console(stderr=True).print(table)
    sizes = {"clusters": clusters, "checks": checks, "workloads": workloads, "runs": runs}
    click.echo(json.dumps(sizes | {"seconds": found}, indent=2))


if __name__ == "__main__":
    main()
