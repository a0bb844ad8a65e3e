"""Names of checks, clusters and Placements, completed as a shell asks for them, from the embedded hub."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.cli.completion import complete
from placement_ac.cli.names import LIMIT_SECONDS
from placement_lab.hub import Hub
from tests.support.driver import NS, Driver
from tests.support.stage import shorten

BIN = str(Path(sys.executable).parent)
OCM = "cluster.open-cluster-management.io"
MANAGED = f"/apis/{OCM}/v1/managedclusters"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
PODS = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
WORKLOAD_SPEC = {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": PODS}]}
PLACEMENTS = f"/apis/{OCM}/v1beta1/namespaces/{{}}/placements"


def head(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


@pytest.fixture
def home(hub: Hub, admin: Driver, tmp_path: Path) -> Path:
    """The kubeconfig of a hub with three checks, one of them Kueue's, two clusters and three Placements."""
    for name in ("placement-eu", "placement-us"):
        admin.check(name)
    admin.ask(
        "POST",
        admin.kueue("admissionchecks"),
        head("kueue.x-k8s.io/v1beta2", "AdmissionCheck", "placement-kueue")
        | {"spec": {"controllerName": "kueue.x-k8s.io/multikueue"}},
    )
    for name in ("cluster1", "cluster2"):
        admin.ask("POST", MANAGED, head(f"{OCM}/v1", "ManagedCluster", name) | {"spec": {}})
    admin.namespace("team")
    for namespace, name in ((NS, "placement-eu"), (NS, "placement-us"), ("team", "placement-gpu")):
        body = head(f"{OCM}/v1beta1", "Placement", name) | {"spec": {}}
        admin.ask("POST", PLACEMENTS.format(namespace), body)
    for namespace, name in (("team", "job-a"), ("default", "job-b")):
        body = head("kueue.x-k8s.io/v1beta2", "Workload", name) | {"spec": WORKLOAD_SPEC}
        admin.ask("POST", WORKLOADS.format(namespace), body)
    hub.journal.clear()
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return tmp_path / "kubeconfig"


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shorten(monkeypatch, LIMIT_SECONDS=60.0)  # of this process: on a busy machine, an answer takes longer
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))


def completed(*words: str) -> list[str]:
    """The names that kubectl is given; the last word is being typed."""
    *lines, directive = complete(list(words)).splitlines()
    assert directive == ":4"
    return [line.partition("\t")[0] for line in lines]


COMPLETED = {
    "status ": ["placement-eu", "placement-us"],
    "status placement-u": ["placement-us"],
    "status placement-eu ": ["placement-us"],
    "status AdmissionCheck.kueue.x-k8s.io/": [
        "AdmissionCheck.kueue.x-k8s.io/placement-eu",
        "AdmissionCheck.kueue.x-k8s.io/placement-us",
    ],
    "status placement/": [],
    "adopt cluster1 ": ["cluster2"],
    "explain cl": ["cluster", "cluster1", "cluster2"],
    "explain placement-": ["placement-eu", "placement-us", "placement-gpu"],
    "explain cluster ": ["cluster1", "cluster2"],
    "explain placement ": ["placement-eu", "placement-gpu", "placement-us"],
    "explain -n team placement ": ["placement-gpu"],
    f"explain -n team,{NS} placement placement-g": ["placement-gpu"],
    "explain w": ["workload"],
    "explain workload ": ["job-a", "job-b"],
    "explain -n team workload ": ["job-a"],
    "explain workload/job-b": ["workload/job-b"],
    "explain mcl/ ": [],
    "explain managedclusters/cluster2": ["managedclusters/cluster2"],
    "explain cluster cluster1 ": [],
    "explain cluster cluster1 --check ": ["placement-eu", "placement-us"],
    "status --from-dump dump.yaml ": [],
}
"""Words, of which the last one is being typed, and the names."""


def test_names_are_completed(home: Path) -> None:
    assert {words: completed(*words.split(" ")) for words in COMPLETED} == COMPLETED


def test_a_kind_is_one_short_list(hub: Hub, home: Path) -> None:
    for words, requests in (("status ", 1), ("explain placement ", 1), ("explain ", 3), ("status --", 0)):
        hub.journal.clear()
        complete(words.split(" "))
        asked = [(one.method, one.query.get("limit")) for one in hub.journal]
        assert asked == [("GET", "500")] * requests, words


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(other, marks=pytest.mark.long) for other in ("zsh", "fish"))]
)
def test_a_shell_is_given_the_names(home: Path, shell: str) -> None:
    words = f"placement-ac explain --kubeconfig {home} cluster "
    asked = {
        "_PLACEMENT_AC_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words if shell == "fish" else f"{words}clus",
        "COMP_CWORD": "clus" if shell == "fish" else "5",
    }
    done = run("placement-ac", **asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"cluster\d", done.stdout) == ["cluster1", "cluster2"]


def run(program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"} | environment
    return subprocess.run(
        [f"{BIN}/{program}", *words], env=env, capture_output=True, text=True, timeout=30, check=False
    )


def asked_of(kubeconfig: Path) -> tuple[list[str], str, float]:
    """The names of checks that kubectl's plugin completes, its other output, and the seconds it takes."""
    began = time.monotonic()
    done = run("kubectl_complete-placement", "status", "--kubeconfig", str(kubeconfig), "")
    took = time.monotonic() - began
    assert done.returncode == 0
    *names, directive = done.stdout.splitlines()
    assert directive == ":4"
    return names, done.stderr, took


def nothing_is_there(hub: Hub, path: Path) -> None:
    path.unlink()


def it_is_no_kubeconfig(hub: Hub, path: Path) -> None:
    path.write_text("users: [s3cret")


def the_list_is_refused(hub: Hub, path: Path) -> None:
    hub.faults.add("GET", "admissionchecks", status=403)


def the_plugin_fails(hub: Hub, path: Path) -> None:
    use_plugin(path, "echo s3cret >&2; exit 1")


@pytest.mark.parametrize(
    "breaks",
    [
        nothing_is_there,
        it_is_no_kubeconfig,
        the_list_is_refused,
        the_plugin_fails,
    ],
)
def test_an_error_gives_no_names_and_no_text(  # type: ignore[no-untyped-def]
    hub: Hub, home: Path, breaks, capfd: pytest.CaptureFixture[str]
) -> None:
    breaks(hub, home)
    names = completed("status", "--kubeconfig", str(home), "")
    assert (names, *capfd.readouterr()) == ([], "", "")


def use_plugin(path: Path, script: str) -> None:
    config = json.loads(path.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script]}
    config["users"][0]["user"] = {"exec": plugin | {"interactiveMode": "Never"}}
    path.write_text(json.dumps(config))


SLOW_SECONDS = 30


def the_hub_is_slow(hub: Hub, path: Path) -> None:
    hub.faults.add("GET", "admissionchecks", delay=SLOW_SECONDS)


def the_plugin_hangs(hub: Hub, path: Path) -> None:
    use_plugin(path, f"echo waiting >&2; exec sleep {SLOW_SECONDS}")


@pytest.mark.long
@pytest.mark.parametrize("breaks", [the_hub_is_slow, the_plugin_hangs])
def test_a_slow_hub_keeps_the_shell_for_about_two_seconds(hub: Hub, home: Path, breaks) -> None:  # type: ignore[no-untyped-def]
    breaks(hub, home)
    names, errors, took = asked_of(home)
    assert (names, errors) == ([], "")
    assert LIMIT_SECONDS <= took < SLOW_SECONDS  # the start of the process takes long on a busy machine
