"""Two hubs of one origin share a worker: the job that runs there for the other one goes on."""

from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_DELETE_UNKNOWN
from placement_lab.standins.multikueue import copy_of, hub_job, worker_job, workload_of
from tests.support.driver import Driver
from tests.support.jobs import JOBS, MANAGED, WORKLOADS, Play, Stage, soon
from tests.support.stage import shorten


@pytest.fixture
def stage(play: Play) -> Stage:
    return play("w", "shared")


def runs_for_another_hub(stage: Stage) -> Driver:
    """Let a job of another hub run on the worker `shared`; return the admin of that worker."""
    worker = Driver(stage.fleet.hubs["shared"])
    job = hub_job("theirs", "default", "gated")
    workload = workload_of(job)
    worker.ask("POST", WORKLOADS, copy_of(workload, "multikueue"))
    worker.ask("POST", JOBS, worker_job(job, workload, "multikueue"))
    soon(lambda: is_there(worker).get("spec", {}).get("suspend") is False)
    return worker


def is_there(worker: Driver) -> Any:
    return worker.get(f"{JOBS}/theirs") or {}


def connections(stage: Stage) -> list[str]:
    items = stage.admin.ask("GET", stage.admin.kueue("multikueueclusters"))["items"]
    return sorted(item["metadata"]["name"] for item in items)


def test_it_is_left_out_until_an_admin_consents(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, FRESH_SECONDS=1.0)
    worker = runs_for_another_hub(stage)
    stage.select("w", "shared")
    stage.controllers.start()
    stage.until_listed("w")
    soon(lambda: "its worker has 1 unfinished Workload with quota, of origin multikueue" in stage.remark())
    stage.submit("ours")
    stage.until_runs("ours", "w")
    assert (connections(stage), stage.listed()) == (["p-w"], ["w"])
    assert is_there(worker)["spec"]["suspend"] is False
    consent = {"metadata": {"annotations": {ANNOTATION_DELETE_UNKNOWN: "true"}}}
    stage.admin.ask("PATCH", f"{MANAGED}/shared", consent, "merge")
    stage.until_listed("shared", "w")
    soon(lambda: is_there(worker), {})  # Kueue's garbage collection
