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
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import yaml

from bench.hubs import embedded, fleet_options
from bench.processes import compile_ours
from bench.report import markdown_table, show
from kubectl_placement.cli.hub_options import EXPLAIN_KINDS, HubSource, read_once
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.what_if import what_if
from kubectl_placement.status.check_status import check_statuses

Run = tuple[float, float]
"""Seconds, and CPU seconds, of a command."""
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "status": ("status",),
    "status -o json": ("status", "-o", "json"),
    "status of one check": ("status", "placement-007"),
}
"""Name → the arguments of `placement-ac`."""
_SET, _LABEL, _PLACEMENT = yaml.safe_load_all("""
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {vendor: OpenShift}}}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: cluster-0035, labels: {zone: b}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: placement-007}
spec: {numberOfClusters: 5}
""")
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
    return wall, cpu


def _timed(work: Callable[[HubView], object], view: HubView) -> Run:
    began, cpu = time.perf_counter(), time.process_time()
    work(view)
    return time.perf_counter() - began, time.process_time() - cpu


def measured(kubeconfig: Path, runs: int) -> dict[str, dict[str, float]]:
    """Return the figures of all measurements, by name; each step is timed without any cached result."""
    found = {name: [run(kubeconfig, words) for _ in range(runs)] for name, words in COMMANDS.items()}
    for name, work in AFTER_LISTING.items():
        view = read_once(HubSource(kubeconfig=kubeconfig), EXPLAIN_KINDS).view
        found[name] = [_timed(work, replace(view)) for _ in range(runs)]
    return {name: figures(of, TARGETS.get(name)) for name, of in found.items()}


def figures(runs: list[Run], target: float | None) -> dict[str, float]:
    walls, cpus = zip(*runs, strict=True)
    found = {"p50": statistics.median(walls), "max": max(walls), "cpu": statistics.median(cpus)}
    rounded = {name: round(seconds, 2) for name, seconds in found.items()}
    return rounded | ({"target": target} if target else {})


@click.command(context_settings={"show_default": True})
@fleet_options
@click.option("--runs", default=5, help="Runs of each command.")
def main(runs: int, **sizes: Any) -> None:
    """Measure the commands that read a hub."""
    compile_ours()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        with embedded(kubeconfig, "fleet", *(sizes[name] for name in ("clusters", "checks", "workloads"))):
            found = measured(kubeconfig, runs)
    keys = ("p50", "max", "cpu", "target")
    cells = [(name, *(str(one.get(key, "-")) for key in keys)) for name, one in found.items()]
    show(markdown_table(["", "p50 s", "max s", "CPU s", "target s"], cells), err=True)
    click.echo(json.dumps(sizes | {"runs": runs, "seconds": found}, indent=2))


if __name__ == "__main__":
    main()
