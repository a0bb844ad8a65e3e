"""The commands on a hub that sets up workers, with OCM's work agents."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from placement_ac.config.layout import as_file
from tests.support import commands
from tests.support.bare_workers import GPU, BareStage, bare_stage
from tests.support.driver import Controllers, Driver
from tests.support.jobs import soon


@pytest.fixture
def bare(admin: Driver, controllers: Controllers) -> Iterator[BareStage]:
    with bare_stage(admin, controllers, "c1", "c2") as opened:
        yield opened


def settings_file(controllers: Controllers, **settings: str) -> str:
    """Write the controller's settings, which no Lease names here; return the path."""
    path = controllers.kubeconfig.with_name("settings.yaml")
    path.write_text(json.dumps(as_file({"worker_setup": "manifestwork"} | settings)))
    return str(path)


def manifest_file(controllers: Controllers, *objects: Any) -> str:
    """Write manifests; return the path."""
    path = controllers.kubeconfig.with_name("manifests.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def run(controllers: Controllers, *words: str, **settings: str) -> Any:
    """Run a command with `-o json`; return its document."""
    where = (
        "--kubeconfig",
        str(controllers.kubeconfig),
        "--settings",
        settings_file(controllers, **settings),
    )
    return json.loads(commands.run(*words, *where, "-ojson").stdout)


def test_status_compares_the_quota_of_the_hub_without_asking_workers(
    bare: BareStage, controllers: Controllers
) -> None:
    bare.stage.until_listed("c1", "c2")

    def shown(*words: str) -> list[Any]:
        return list(run(controllers, "status", *words)["quota"])

    cpu, gpu = shown("p")
    assert (gpu["queues"], gpu["resource"]) == (["team"], GPU)
    assert gpu["message"] == (
        f"ClusterQueue team on the hub has 1000 of {GPU}, more than the 16 on 2 listed workers:"
        " jobs get quota and wait"
    )
    where = ("--kubeconfig", str(controllers.kubeconfig), "--settings", settings_file(controllers))
    line = " ".join(commands.run("status", *where).stdout.split())
    assert f"{gpu['message']}; to set it: {gpu['fix']}" in line
    for warning in (cpu, gpu):
        *words, patch = shlex.split(warning["fix"])
        assert words == ["kubectl", "patch", "clusterqueue", "team", "--type=json", "-p"]
        bare.admin.ask("PATCH", bare.admin.kueue("clusterqueues", "team"), json.loads(patch), "json")
    assert shown() == []


def local_queue(name: str, namespace: str, cluster_queue: str) -> Any:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": cluster_queue},
    }


def without_quota(objects: Any) -> list[tuple[str, str, str, str]]:
    return [(one["verb"], one["kind"], one["namespace"], one["name"]) for one in objects]


def test_plan_has_the_queues_that_another_local_queue_brings(
    bare: BareStage, controllers: Controllers
) -> None:
    bare.stage.until_listed("c1", "c2")
    file = manifest_file(controllers, local_queue("more", "team-b", "team"))
    found = run(controllers, "plan", "-f", file)
    assert [(one["cluster"], one["verb"]) for one in found["setups"]] == [("c1", "change"), ("c2", "change")]
    for change in found["setups"]:
        assert without_quota(change["objects"]) == [
            ("add", "Namespace", "", "team-b"),
            ("add", "LocalQueue", "team-b", "more"),
        ]
    where = ("--kubeconfig", str(controllers.kubeconfig), "--settings", settings_file(controllers))
    assert TEXT in commands.run("plan", "-f", file, *where).stdout
    bare.local_queue("more", "team-b", "team")
    soon(lambda: bare.there("c1", "localqueues", "more", "team-b"))
    assert run(controllers, "plan", "-f", file)["setups"] == []


TEXT = """\
change ManifestWork c1/placement-ac-queues
  + Namespace team-b
  + LocalQueue team-b/more
change ManifestWork c2/placement-ac-queues
  + Namespace team-b
  + LocalQueue team-b/more
"""
