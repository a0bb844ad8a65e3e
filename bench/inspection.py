"""
Measure the commands that read a hub, and how soon the page shows a change: 1,000 clusters, 200 checks.

`make bench-inspection`: hub and commands are separate processes. A command is timed from start to end, with
its imports, lists and output; our code is compiled before, as pip does. The steps "after listing" are timed
in this process, on a hub that has been read. Prints a table and one JSON object: seconds, `p50` and `max` of
the runs, `cpu` the median of the command's own CPU time.

`make bench-ui`: hub, page and browser are separate processes. A score changes in a PlacementDecision, or a
Workload is nominated for another cluster; the time counts from the write to its arrival in the page's data,
and to the next frame of a real browser that shows it. The first write of a kind does not count: the
embedded hub compiles its schema then. Prints a table and one JSON object, in milliseconds.
"""

import base64
import http.client
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import click
import requests
import yaml
from playwright.sync_api import sync_playwright

from bench.processes import compile_ours, embedded, fleet_options, module
from bench.report import markdown_table, show
from bench.scene import NS, decided
from kubectl_placement.cli.hub_options import EXPLAIN_KINDS, HubSource, read_once
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.plan.what_if import what_if
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import PLACEMENT_DECISION, WORKLOAD, Resource
from placement_ac.kube.client import MERGE

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


# -- the page

TARGET_MS: Final = 300.0
CHROMIUM: Final = Path("/usr/bin/chromium")
CHECK: Final = "placement-007"
WAIT_SECONDS: Final = 20.0
SEEN: Final = """
([id, text]) => {
  const at = document.getElementById(id);
  window.seen = new Promise(resolve => {
    const look = new MutationObserver(() => {
      if (!at.innerText.includes(text)) return;
      look.disconnect();
      requestAnimationFrame(() => resolve(Date.now()));
    });
    look.observe(at, { subtree: true, childList: true, characterData: true });
  });
}
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A write on the hub. `table`: where the page shows it, as `text`; `fits`: whether the data has it."""

    resource: Resource
    name: str
    namespace: str
    status: Mapping[str, Any]
    table: str
    text: str
    fits: Callable[[Mapping[str, Any]], bool]


class Hub:
    """Requests to the hub. They are synchronous: Playwright's loop runs in this thread."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, authority = config["clusters"][0]["cluster"], kubeconfig.with_name("ca.crt")
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self._url, self._session = cluster["server"], requests.Session()
        self._session.trust_env = False
        self._session.verify = str(authority)
        self._session.headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"

    def list(self, resource: Resource) -> Sequence[Any]:
        found: Sequence[Any] = self._session.get(self._url + resource.path(None), timeout=20).json()["items"]
        return found

    def write(self, change: Change) -> None:
        url = self._url + change.resource.path(change.namespace, change.name, "status")
        headers, data = {"Content-Type": MERGE}, json.dumps({"status": change.status})
        self._session.patch(url, data, headers=headers, timeout=20).raise_for_status()


class Data:
    """The page's data, without a browser."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._documents: list[tuple[float, Mapping[str, Any]]] = []
        self._wanted: Change
        self._has_begun = Event()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        address = urlsplit(self._url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        connection.request("GET", f"{address.path}events?check={CHECK}")
        answer = connection.getresponse()
        event = ""
        while line := answer.readline().decode():
            if line.startswith("event: "):
                event = line.removeprefix("event: ").strip()
            elif line.startswith("data: ") and event == "check":
                document = json.loads(line.removeprefix("data: "))
                self._documents.append((time.time(), document["status"]))
                self._has_begun.set()

    def wait_until_it_has_begun(self) -> None:
        """Wait for the first document of the check."""
        if not self._has_begun.wait(WAIT_SECONDS):
            raise click.ClickException("the page sent no document of the check")

    def expect(self, change: Change) -> None:
        """Begin to look for a change that is about to be written."""
        self._wanted = change
        self._documents.clear()

    def seen_at(self) -> float:
        """Return when it was there: seconds of the clock."""
        end = time.time() + WAIT_SECONDS
        while time.time() < end:
            for at, document in list(self._documents):
                if self._wanted.fits(document):
                    return at
            time.sleep(0.001)  # the precision of what is measured
        raise click.ClickException("the change never arrived")


@dataclass(slots=True)
class Browser:
    """The page in a real browser."""

    page: Any

    def expect(self, change: Change) -> None:
        self.page.evaluate(SEEN, [change.table, change.text])

    def seen_at(self) -> float:
        return float(self.page.evaluate("window.seen")) / 1000


def _cluster(number: int) -> str:
    """Return a cluster of the check."""
    return f"cluster-{(7 * 5 + number % 10) % 1000:04}"


def score_change(number: int) -> Change:
    """Return a change of the score of the check's first cluster."""
    score = 200 + number
    scores = {_cluster(n): score - n for n in range(10)}
    return Change(
        PLACEMENT_DECISION.at("v1beta1"),
        f"{CHECK}-decision-1",
        NS,
        decided(scores, scores),
        "clusters",
        str(score),
        lambda status: any(row["score"] == score for row in status["clusters"]),
    )


def workload_change(number: int, workload: Mapping[str, Any]) -> Change:
    """Return a change that nominates another cluster for a Workload of the check."""
    name, cluster = workload["metadata"]["name"], _cluster(number)
    return Change(
        WORKLOAD.at("v1beta2"),
        name,
        workload["metadata"]["namespace"],
        {"nominatedClusterNames": [f"{CHECK}-{cluster}"]},
        "workloads",
        cluster,
        lambda status: any(job["name"] == name and job["nominated"] == [cluster] for job in status["jobs"]),
    )


def times(
    hub: Hub, observer: Data | Browser, changes: Sequence[Change], chance: random.Random
) -> list[float]:
    """Return the milliseconds from each write until the observer has seen it."""
    found = []
    for change in changes:
        time.sleep(chance.uniform(0.2, 0.5))  # each change comes alone, at any moment of a beat
        observer.expect(change)
        began = time.time()
        hub.write(change)
        found.append((observer.seen_at() - began) * 1000)
    return found


@contextmanager
def page_of(kubeconfig: Path) -> Iterator[str]:
    """Run `placement-ac ui` as a process; yield the URL of its page."""
    words = ("placement_ac", "ui", "--kubeconfig", str(kubeconfig))
    with module(*words, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        yield line.removeprefix("The page is at ").partition(";")[0]


def all_times(hub: Hub, url: str, runs: int, *, browser: bool) -> dict[str, list[float]]:
    """Return the times of all measurements by name."""
    chance = random.Random(1)  # noqa: S311  # it secures nothing
    everything = hub.list(WORKLOAD.at("v1beta2"))
    mine = next(one for one in everything if one["status"]["admissionChecks"][0]["name"] == CHECK)
    kinds = {
        "a score": [score_change(number) for number in range(2 * runs + 1)],
        "a Workload": [workload_change(number, mine) for number in range(2 * runs + 1)],
    }
    data = Data(url)
    data.wait_until_it_has_begun()
    found = {
        f"{name}, in the data": times(hub, data, changes[: runs + 1], chance)[1:]
        for name, changes in kinds.items()
    }
    if browser:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = chromium.new_page()
            page.goto(f"{url}#{CHECK}")
            page.locator("#timeline .lane").first.wait_for()
            for name, changes in kinds.items():
                found[f"{name}, in the browser"] = times(hub, Browser(page), changes[runs + 1 :], chance)
    return found


def percentiles(found: Sequence[float]) -> dict[str, float]:
    ordered = sorted(found)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return {"p50": round(ordered[len(ordered) // 2]), "p95": round(p95), "max": round(ordered[-1])}


# -- the commands of the bench


@click.group()
def main() -> None:
    """Measure commands that read a hub."""


@main.command("commands", context_settings={"show_default": True})
@fleet_options
@click.option("--runs", default=5, help="Runs of each command.")
def commands(runs: int, **sizes: Any) -> None:
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


@main.command("page", context_settings={"show_default": True})
@fleet_options
@click.option("--runs", default=60, help="Changes of each kind.")
def page(runs: int, **sizes: int) -> None:
    """Measure how soon the page shows a change."""
    compile_ours()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        of_fleet = (sizes[name] for name in ("clusters", "checks", "workloads"))
        with embedded(path, "fleet", *of_fleet), page_of(path) as url:
            found = all_times(Hub(path), url, runs, browser=CHROMIUM.exists())
    results = {name: percentiles(one) for name, one in found.items()}
    rows = [(name, *map(str, one.values())) for name, one in results.items()]
    show(markdown_table(["from the write of", "p50 ms", "p95 ms", "max ms"], rows), err=True)
    whole = sizes | {"changes": runs, "target": TARGET_MS, "milliseconds": results}
    click.echo(json.dumps(whole, indent=2))


if __name__ == "__main__":
    main()
