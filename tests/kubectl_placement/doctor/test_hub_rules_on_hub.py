"""`doctor` on a hub over HTTP: each problem is reported, and its fix, pasted into a shell, repairs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement.doctor.finding import Level
from kubectl_placement.doctor.hub_rules import RULES
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_lab.hub import Hub
from tests.kubectl_placement.doctor.broken_hub import DECISION
from tests.kubectl_placement.doctor.broken_setups import (
    CONFIG,
    KUEUE,
    Break,
    Objects,
)
from tests.kubectl_placement.doctor.examined_hub import BREAKS, stored
from tests.support import commands, healthy
from tests.support.accounts import kubeconfig_of
from tests.support.builders import KUBECONFIG
from tests.support.commands import READ_GROUPS, listing, on_hub, reader, write_list
from tests.support.crds import strict_crds
from tests.support.driver import Driver, owner_reference
from tests.support.healthy import Key, Object
from tests.support.hub_client import Client as HubClient
from tests.support.real_hub import HubMaker
from tests.support.rights import ACCOUNTS, BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, bound_to, rule

KINDS = {(kind.group, kind.kind): kind for kind in ALL_KINDS}
FIXED = [broken for broken in BREAKS if broken.runs]


def path_of(obj: Object, name: bool = True) -> str:
    group, _, version = obj["apiVersion"].rpartition("/")
    metadata = obj["metadata"]
    resource = KINDS[group, obj["kind"]].at(version)
    return resource.path(metadata.get("namespace"), metadata["name"] if name else None)


class Bench:
    """A hub that is set up right, to be broken, and put right again."""

    def __init__(self, hub: Hub, admin: Driver, kubeconfig: Path) -> None:
        self.hub, self.admin, self.kubeconfig = hub, admin, kubeconfig
        hub.write_kubeconfig(kubeconfig)
        for namespace in (
            *(name for kind, _, name in fresh() if kind == "Namespace"),
            healthy.OURS,
            "team",
            "ocm",
            "kueue",
        ):
            admin.namespace(namespace)
        for obj in fresh().values():
            self.create(obj)

    def create(self, obj: Object) -> None:
        if obj["kind"] in ("CustomResourceDefinition", "Namespace"):
            return
        if obj["kind"] == "PlacementDecision":
            placement = self.admin.get(f"{self.admin.ocm}/placements/{healthy.PLACEMENT}")
            owners = [owner_reference(placement)] if placement else []
            obj = obj | {"metadata": obj["metadata"] | {"ownerReferences": owners}}
        self.admin.ask("POST", path_of(obj, name=False), obj)
        if "status" in obj:
            self.admin.ask("PATCH", f"{path_of(obj)}/status", {"status": obj["status"]}, "merge")

    def delete(self, obj: Object) -> None:
        self.admin.try_("PATCH", path_of(obj), {"metadata": {"finalizers": None}}, "merge")
        self.admin.try_("DELETE", path_of(obj))

    @contextmanager
    def broken(self, how: Break) -> Iterator[None]:
        """Make the hub so, and in the end as it was: also what the fix has changed."""
        right, wrong = fresh(), fresh()
        how.how(wrong)
        touched = [key for key in {**right, **wrong} if right.get(key) != wrong.get(key)]
        self._change(right, wrong, touched)
        try:
            yield
        finally:
            self._change({**right, **wrong}, right, list(dict.fromkeys((*touched, *ALSO_FIXED))))

    def _change(self, there: Objects, wanted: Objects, keys: list[Key]) -> None:
        if any(kind == "Placement" for kind, *_ in keys):  # its decisions go and come with it
            keys = [*(key for key in keys if key != DECISION), DECISION]
        for key in keys:
            if key in there:
                self.delete(there[key])
            if key in wanted:
                self.create(wanted[key])

    def doctor(self, *more: str) -> tuple[int, Any]:
        result = commands.run("doctor", "-o", "json", f"--kubeconfig={self.kubeconfig}", *more)
        assert result.exit_code in (0, 2), result.output
        return result.exit_code, json.loads(result.stdout)

    def line(self, check: str) -> list[tuple[str, str, str]]:
        """The findings of one check: level, message, fix."""
        _, document = self.doctor()
        return [
            (finding["level"], finding["message"], finding["fix"])
            for finding in document["findings"]
            if finding["check"] == check
        ]


ALSO_FIXED: list[Key] = [
    ("Deployment", healthy.NS, "kueue-controller-manager"),
    ("ConfigMap", healthy.NS, "kueue-manager-config"),
    ("Deployment", healthy.OURS, "placement-ac"),
]
"""Fields that fixes change in addition to the broken ones."""


def fresh() -> Objects:
    objects = stored()
    lease = objects["Lease", healthy.NS, "placement-ac"]
    lease["spec"]["renewTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return objects


@pytest.fixture(scope="module")
def bench(a_hub: HubMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("doctor")
    with a_hub(crds=strict_crds()) as hub, Driver(hub) as admin:
        yield Bench(hub, admin, folder / "kubeconfig")


def test_a_hub_that_is_set_up_right(bench: Bench) -> None:
    code, document = bench.doctor()
    assert [finding for finding in document["findings"] if finding["level"] in ("WARN", "FAIL")] == []
    skipped = [finding["level"] for finding in document["findings"]].count("SKIP")
    passed = len(document["findings"]) - skipped
    expected = {"ok": passed, "skip": skipped, "warn": 0, "fail": 0, "unknown": 0}
    assert (code, document["summary"]) == (0, expected)


RELEASE = "gpu-queues"


def of_another_release(objects: Objects) -> None:
    """Install Kueue as a Helm release of another name does: all its objects have other names."""
    manager, config = objects.pop(KUEUE), objects.pop(CONFIG)
    manager["metadata"] |= {
        "name": f"{RELEASE}-controller-manager",
        "labels": {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"},
    }
    config["metadata"]["name"] = f"{RELEASE}-manager-config"
    volumes = manager["spec"]["template"]["spec"]["volumes"]
    next(volume for volume in volumes if "configMap" in volume)["configMap"]["name"] = (
        f"{RELEASE}-manager-config"
    )
    objects.update({healthy.key_of(one): one for one in (manager, config)})


def test_kueue_of_another_helm_release_is_found_by_its_labels(bench: Bench, tmp_path: Path) -> None:
    """Its Deployment and its ConfigMap, on the hub and in a dump of it."""
    with bench.broken(Break("", of_another_release, "", Level.OK, "", "")):
        _, live = bench.doctor()
        of_dump = json.loads(
            commands.run("doctor", "-o", "json", "--from-dump", dump_of(bench, tmp_path)).stdout
        )
        version = json.loads(on_hub(bench.kubeconfig)("version", "-o", "json").stdout)
        assert version["kueue"] == "v0.20.6"
    for found in (live, of_dump):
        messages = {finding["check"]: finding["message"] for finding in found["findings"]}
        manager = f"Deployment {healthy.NS}/{RELEASE}-controller-manager has 1 ready"
        assert (messages["kueue-deployment"], messages["kueue-release"]) == (manager, "Kueue 0.20.6")
        assert [finding for finding in found["findings"] if finding["level"] in ("WARN", "FAIL")] == []


def dump_of(bench: Bench, folder: Path, *more: str) -> str:
    path = folder / "hub.yaml"
    words = ("--kubeconfig", str(bench.kubeconfig), "--output-file", str(path), *more)
    done = commands.run("dump", *words)
    assert done.exit_code == 0, done.output
    return str(path)


def test_the_findings_in_a_dump_are_those_of_its_hub(bench: Bench, tmp_path: Path) -> None:
    """But for the rights to read it."""
    _, live = bench.doctor()
    of_dump = json.loads(commands.run("doctor", "-o", "json", "--from-dump", dump_of(bench, tmp_path)).stdout)
    assert of_dump["summary"] == live["summary"]
    others = [
        [finding for finding in each["findings"] if finding["check"] != "own-rights"]
        for each in (live, of_dump)
    ]
    assert others[0] == others[1]
    messages = {one["check"]: one["message"] for one in others[0]}
    assert messages["controller"] == "Deployment placement-ac-system/placement-ac has 2 ready"
    assert messages["kueue-release"] == "Kueue 0.20.6"


def test_without_the_right_to_all_deployments_a_dump_has_those_of_both_namespaces(
    bench: Bench, tmp_path: Path
) -> None:
    owner = HubClient(bench.hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "two"}})
    groups = ("kueue.x-k8s.io", "cluster.open-cluster-management.io")
    rules = [rule("get list", group, "*") for group in groups]
    owner.create(CLUSTER_ROLES, {"metadata": {"name": "two"}, "rules": rules})
    owner.create(CLUSTER_ROLES, {"metadata": {"name": "deployments"}, "rules": [rule("list", "apps", "*")]})
    subject = {"kind": "ServiceAccount", "name": "two", "namespace": "default"}
    owner.create(CLUSTER_BINDINGS, bound_to("ClusterRole", "two", **subject) | {"metadata": {"name": "two"}})
    binding = bound_to("ClusterRole", "deployments", **subject)
    for namespace in (healthy.NS, healthy.OURS):
        owner.create(BINDINGS.replace("default", namespace), binding)
    token = owner.create(f"{ACCOUNTS}/two/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    two = kubeconfig_of(bench.hub, tmp_path / "two", token)
    lists = yaml.safe_load_all(Path(dump_of(bench, tmp_path, "--kubeconfig", str(two))).read_text("utf-8"))
    [deployments] = [one["items"] for one in lists if one["kind"] == "DeploymentList"]
    assert sorted(deployment["metadata"]["namespace"] for deployment in deployments) == [
        healthy.NS,
        healthy.OURS,
    ]


def test_missing_rights_are_reported_as_unknown(bench: Bench, tmp_path: Path) -> None:
    kubeconfig = reader(bench.hub, tmp_path, *listing(*READ_GROUPS))
    code, document = bench.doctor("--kubeconfig", str(kubeconfig))
    unsure = {
        finding["check"]: finding for finding in document["findings"] if finding["level"] in ("WARN", "FAIL")
    }
    assert (code, {one["level"] for one in unsure.values()}) == (0, {"WARN"})
    assert unsure["kueue-addon"] == {
        "check": "kueue-addon",
        "level": "WARN",
        "message": "unknown: the right to list deployments.apps is missing",
        "fix": "kubectl auth can-i list deployments.apps -A",
        "cause": "own-rights",
    }
    assert unsure["credentials"] == {
        "check": "credentials",
        "level": "WARN",
        "message": "unknown: the right to list secrets in namespace kueue-system is missing",
        "fix": "kubectl auth can-i list secrets -n kueue-system",
        "cause": "own-rights",
    }
    known = {one.check for one in RULES} - unsure.keys()
    assert known >= {"kueue-crds", "cluster-set-bindings", "check-condition", "cluster-queues", "connections"}


def test_a_warning_if_the_current_context_may_be_another_hub(bench: Bench, tmp_path: Path) -> None:
    shown = on_hub(bench.kubeconfig)("doctor")
    assert (shown.exit_code, shown.stderr, shown.stdout.splitlines()[4]) == (
        0,
        "",
        "OK    kueue-release             Kueue 0.20.6",
    )
    shown = commands.run("doctor", "--from-dump", str(write_list(tmp_path / "dump.json", [])))
    assert (shown.exit_code, shown.stderr) == (
        0,
        "switch your current context to this hub before you paste the fixes\n",
    )
    assert shown.stdout.partition("\n")[2].startswith(
        "WARN  kueue-crds            unknown: the dump has no customresourcedefinitions\n"
        "      $ kubectl get customresourcedefinitions.apiextensions.k8s.io -o yaml"
    )


def paste(bench: Bench, fix: str, folder: Path) -> None:
    path = (
        f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # a fix may be one of our commands
    )
    environment = os.environ | {"KUBECONFIG": str(bench.kubeconfig), "PATH": path}
    pasted = subprocess.run(
        ["bash", "-c", fix], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert pasted.returncode == 0, pasted.stderr


@pytest.mark.long
@pytest.mark.parametrize("broken", FIXED, ids=lambda broken: broken.id)
def test_the_fix_repairs_it(bench: Bench, broken: Break, tmp_path: Path) -> None:
    (tmp_path / "cluster3.kubeconfig").write_bytes(KUBECONFIG)
    with bench.broken(broken):
        [(level, message, fix)] = bench.line(broken.check)
        assert (level, message, fix) == (broken.level, broken.message, broken.fix)
        paste(bench, fix, tmp_path)
        assert {output for output, _, _ in bench.line(broken.check)} == {"OK"}
