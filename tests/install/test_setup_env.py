"""`setup-env.sh` with fakes of the tools that it calls (`tests/support/fakes/tools.py`)."""

import copy
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_lab.standins.multikueue import NEWEST_PACE
from tests.kind import environment
from tests.support.fakes import tools
from tests.support.installation import controller_of, kubectl, pod_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "setup-env.sh"
CLUSTERS = ["hub", "cluster1", "cluster2", "cluster3"]
NEEDED = ("bash", "cat", "dirname", "head", "sed", "sort")
MAKING = ("kind create", "kind delete", "clusteradm init", "clusteradm join", "clusteradm accept")
MODES = pytest.mark.parametrize("options", [[], ["--cluster-profile"]], ids=["kubeconfigs", "profiles"])


class Machine(tools.Tools):
    """A machine with the fake tools."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "bin")
        self.bin.mkdir()
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name) or "/nowhere")

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        self.calls.clear()
        done = subprocess.run(
            ["bash", SCRIPT, *options],
            env={"PATH": str(self.bin)},
            cwd=self.bin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert self.refused == []
        return done

    def runs(self, *options: str) -> str:
        done = self.run(*options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def refuses(self, *options: str) -> str:
        """Return the error message, in one line."""
        done = self.run(*options)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        return done.stderr.removeprefix("setup-env.sh: ").rstrip("\n")

    def called(self) -> list[str]:
        """The calls of the last run."""
        return [" ".join(call) for call in self.calls]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path) as machine:
        yield machine


def printed_commands(output: str, marks: str = "+?") -> list[str]:
    """The commands that the script prints, in the form that the fakes record."""
    return [" ".join(words) for words in split_commands(output, marks)]


def split_commands(output: str, marks: str = "+?") -> list[list[str]]:
    lines = [line for line in output.splitlines() if line[:2] in [f"{mark} " for mark in marks]]
    return [shlex.split(line[2:].replace("<", "'<'").replace(">", "'>'")) for line in lines]


def test_shellcheck_has_nothing_to_say() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@MODES
def test_it_creates_everything_once(machine: Machine, options: list[str]) -> None:
    output = machine.runs(*options)
    created = copy.deepcopy(machine.state)
    assert created["clusters"] == CLUSTERS
    assert created["managed"] == dict.fromkeys(CLUSTERS[1:], True)
    assert created["hub"] == {"gates": "ClusterProfile=true" if options else ""}
    kueue = {f"{cluster}/kueue": "0.20.6" for cluster in CLUSTERS}
    assert created["releases"] == kueue | {
        f"hub/{name}": "" for name in ("cluster-permission", *tools.ADDONS)
    }
    assert tools.TOKEN not in output
    machine.runs(*options)
    assert machine.state == created
    assert [call for call in machine.called() if call.startswith(MAKING)] == []


@pytest.mark.parametrize("broken", ["clusteradm init", "helm upgrade"])
def test_a_run_that_was_cut_is_gone_on_with(machine: Machine, broken: str) -> None:
    machine.broken = {broken}
    done = machine.run()
    assert (done.returncode, done.stderr) == (1, "no such luck\n")
    assert " ".join(machine.calls[-1]).startswith(broken)
    machine.broken = set()
    machine.runs()
    assert machine.state["managed"] == dict.fromkeys(CLUSTERS[1:], True)
    assert [call for call in machine.called() if call.startswith("kind create")] == []


@MODES
def test_a_dry_run_prints_every_command_and_runs_none(machine: Machine, options: list[str]) -> None:
    dry = printed_commands(machine.runs("--dry-run", *options))
    assert machine.calls == []
    real = printed_commands(machine.runs(*options))
    unknown = {"<hub-apiserver>": tools.API_SERVER}
    unknown |= {f"<ca-of-{name}>": tools.CA for name in CLUSTERS}
    for placeholder, value in unknown.items():
        dry = [command.replace(placeholder, value) for command in dry]
    assert dry == real
    assert [call.replace(tools.TOKEN, "<hub-token>") for call in machine.called()] == real


def test_a_release_of_kueue(machine: Machine) -> None:
    commands = printed_commands(machine.runs("--kueue-version", "0.18.6", "--dry-run"))
    assert [" --version 0.18.6 " in line for line in commands if "/kueue " in line] == [True] * 4


def test_clean_deletes_the_existing_clusters(machine: Machine) -> None:
    machine.state["clusters"] = ["hub", "another", "cluster2"]
    machine.runs("--clean")
    assert machine.state["clusters"] == ["another"]
    machine.runs("--clean")
    assert machine.called() == ["kind get clusters"]
    dry = machine.runs("--clean", "--dry-run")
    assert printed_commands(dry, "+") == [f"kind delete cluster --name {name}" for name in CLUSTERS]
    assert machine.calls == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kueue"], "unknown option --kueue; --help lists them"),
        (["--kueue-version"], "give --kueue-version a version, such as v0.20.6"),
        (["--kueue-version", "latest"], "vlatest is not a version such as v0.20.6"),
        (["--kueue-version", "v0.16.5"], "choose Kueue 0.16.6 or newer: v0.16.5 is too old"),
        (
            ["--cluster-profile", "--kueue-version", "v0.18.6"],
            "choose Kueue 0.19.0 or newer: v0.18.6 is too old",
        ),
    ],
)
def test_unknown_arguments_are_refused(machine: Machine, options: list[str], message: str) -> None:
    assert machine.refuses(*options) == message
    assert machine.calls == []


@pytest.mark.parametrize("tool", sorted(tools.TOOLS))
def test_a_tool_that_is_missing_or_too_old(machine: Machine, tool: str) -> None:
    machine.versions[tool] = f"{tool} v0.0.9"
    assert re.fullmatch(rf"install {tool} [0-9.]+ or newer: found 0.0.9", machine.refuses())
    machine.versions[tool] = "who knows"
    assert re.fullmatch(rf"install {tool} [0-9.]+ or newer: found no version", machine.refuses())
    (machine.bin / tool).unlink()
    assert re.fullmatch(rf"install {tool} [0-9.]+ or newer: it is not on PATH", machine.refuses())
    assert machine.calls == []


def test_a_hub_that_gives_no_token(machine: Machine) -> None:
    machine.broken = {"clusteradm get token"}
    done = machine.run()
    assert (done.returncode, done.stderr) == (2, "setup-env.sh: clusteradm gives no token on hub\n")


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (["hub", "cluster2"], f"there is no kind cluster cluster1, cluster3: {environment.HINT}"),
        (CLUSTERS, ""),
    ],
    ids=["some", "all"],
)
def test_the_stories_ask_for_its_clusters(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, clusters: list[str], message: str
) -> None:
    monkeypatch.setenv("PATH", str(machine.bin))
    machine.state["clusters"] = clusters
    assert environment.missing() == message


# -- manifests that it applies


@pytest.mark.parametrize("story", [1, 2])
def test_the_workers_have_the_queues_of_the_samples(story: int) -> None:
    there = {
        (one["kind"], one["metadata"]["name"]): one
        for one in yaml.safe_load_all((ROOT / "kind" / "worker-queues.yaml").read_text())
    }
    path = ROOT / "samples" / f"multikueue-setup-demo{story}.yaml"
    wanted = [
        one for one in yaml.safe_load_all(path.read_text()) if (one["kind"], one["metadata"]["name"]) in there
    ]
    for one in wanted:
        one["spec"] = {
            key: value for key, value in one.get("spec", {}).items() if key != "admissionChecksStrategy"
        }
        found = there[one["kind"], one["metadata"]["name"]]
        assert found | {"spec": found.get("spec", {})} == one
    assert [one["kind"] for one in wanted] == ["ResourceFlavor", "ClusterQueue", "LocalQueue"]


def test_kueue_reconciles_as_many_workloads_at_once_as_it_does_as_shipped() -> None:
    at_once = _configuration("kueue.yaml")["controller"]["groupKindConcurrency"]
    assert at_once["Workload.kueue.x-k8s.io"] == NEWEST_PACE.workloads_at_once


def test_profiles_only_add_to_kueues_configuration() -> None:
    plain, profiles = (_configuration(name) for name in ("kueue.yaml", "kueue-cluster-profile.yaml"))
    added = {key: value for key, value in profiles.items() if key not in plain}
    assert profiles == plain | added
    assert added["featureGates"] == {"MultiKueueClusterProfile": True}
    [provider] = added["multiKueue"]["clusterProfile"]["accessProviders"]
    [plugin] = yaml.safe_load((ROOT / "kind" / "kueue-plugin.yaml").read_text())["spec"]["template"]["spec"][
        "initContainers"
    ]
    assert provider["execConfig"]["command"] == plugin["command"][-1]


def test_kueue_and_this_controller_have_the_same_access_providers() -> None:
    path = ROOT / "config" / "components" / "cluster-profile" / "access-providers.yaml"
    [ours] = yaml.safe_load(path.read_text())["providers"]
    del ours["execConfig"]["env"]  # Kueue is in the namespace of the Secrets, this controller is not
    configuration = _configuration("kueue-cluster-profile.yaml")
    assert configuration["multiKueue"]["clusterProfile"]["accessProviders"] == [ours]


def test_the_environment_with_profiles_has_an_image_of_the_plugin(machine: Machine) -> None:
    """config/overlays/cluster-profile has none: its image must be set."""
    commands = split_commands(machine.runs("--dry-run", "--cluster-profile"))
    (overlay,) = (ROOT / command[-1] for command in commands if "-k" in command)
    (plugin,) = pod_of(yaml.safe_load_all(kubectl("kustomize", str(overlay))))["initContainers"]
    assert plugin["image"] == "quay.io/open-cluster-management/cp-creds:latest"


@MODES
def test_the_built_image_is_the_installed_one(machine: Machine, options: list[str]) -> None:
    """The built image has the name in the overlay, so that the node need not pull it."""
    calls = {call[0]: call for call in split_commands(machine.runs("--dry-run", *options)) if is_ours(call)}
    overlay = ROOT / calls["kubectl"][-1]
    assert (overlay / "kustomization.yaml").is_file()
    image = controller_of(list(yaml.safe_load_all(kubectl("kustomize", str(overlay)))))["image"]
    assert [image] * 2 == [calls["docker"][-2], calls["kind"][3]]


def is_ours(call: list[str]) -> bool:
    return call[:2] in (["docker", "build"], ["kind", "load"]) or "-k" in call


def _configuration(name: str) -> dict[str, Any]:
    values = yaml.safe_load((ROOT / "kind" / name).read_text())
    return dict(yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"]))
