"""The commands on a hub that sets up workers, with OCM's work agents."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

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
    lines = {"worker-setup": "manifestwork"} | settings
    path.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
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


def test_status_knows_nothing_of_quota_that_somebody_else_has_set(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        bare.by_hand("c1", "team", "team-a", "their-queue")
        controllers.start(worker_setup="manifestwork")
        bare.stage.until_listed("c1", "c2")
        soon(bare.stage.remark, "c1: LocalQueue team-a/team on the worker stays as somebody else has set it")
        assert run(controllers, "status")["quota"] == []
