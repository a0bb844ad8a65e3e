"""Scores that the controller reports, on a hub: it reads the workers, whether they are listed or not."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from placement_lab.short_waits import short_waits
from tests.support.driver import CORE, OCM, Controllers, Driver, Object
from tests.support.jobs import Stage, open_stage, soon

GPU = "nvidia.com/gpu"
SETTINGS: dict[str, Any] = {"report_scores": True, "settle": 0.0}
SCORES = "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/{}/addonplacementscores"
QUOTAS = {"a": {"f": {GPU: "4"}}, "b": {"f": {GPU: "8", "cpu": "64"}}, "c": {"f": {"cpu": "64"}}}


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    with short_waits(SCORE_HOLD_SECONDS=0.5, SCORE_INTERVAL_SECONDS=1.0):
        yield


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """Three workers with queues; OCM has selected one of them, by the controller's score."""
    with open_stage(admin, controllers, [*QUOTAS], quotas=QUOTAS) as opened:
        for name in QUOTAS:
            admin.namespace(name)
        choose_by(admin, "gpuFree")
        opened.select("a")
        yield opened


def choose_by(admin: Driver, *scores: str, resource: str = "placement-ac") -> None:
    """Let Placement p choose by these scores."""
    coordinates = [
        {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": name}} for name in scores
    ]
    policy = {"configurations": [{"scoreCoordinate": each, "weight": 1} for each in coordinates]}
    if admin.get(f"{OCM}/placements/p") is None:
        admin.placement("p", prioritizerPolicy=policy)
    else:
        admin.ask("PATCH", f"{OCM}/placements/p", {"spec": {"prioritizerPolicy": policy}}, "merge")


def scores(stage: Stage, cluster: str) -> dict[str, int]:
    """Return the scores that were reported of a cluster; {}: none."""
    found = stage.admin.get(f"{SCORES.format(cluster)}/placement-ac") or {}
    return {each["name"]: each["value"] for each in (found.get("status") or {}).get("scores", ())}


def gpus(stage: Stage) -> dict[str, int | None]:
    return {name: scores(stage, name).get("gpuFree") for name in QUOTAS}


def questions(stage: Stage) -> int:
    """How often workers were asked for their ClusterQueues."""
    return sum(
        request.path.endswith("/clusterqueues") and request.user_agent.startswith("placement-ac")
        for hub in stage.fleet.hubs.values()
        for request in list(hub.journal)
    )


def status_writes(stage: Stage, cluster: str) -> list[Object]:
    path = f"{SCORES.format(cluster)}/placement-ac/status"
    return [dict(request.body["status"]) for request in stage.writes(path)]


def test_every_cluster_that_can_be_read_gets_scores_selected_or_not(stage: Stage) -> None:
    stage.controllers.start(**SETTINGS)
    soon(lambda: gpus(stage), {"a": 100, "b": 100, "c": -100})
    assert scores(stage, "b") == {
        "gpuFree": 100,
        "cpuFree": 100,
        "queueFree": 100,
        "waiting": 100,
        "placementSeconds": 100,
        "reliable": 100,
    }
    stage.submit("one", requests={GPU: "3"})
    stage.until_runs("one", "a")
    soon(lambda: gpus(stage), {"a": 25, "b": 100, "c": -100})
    stage.finish("one")
    soon(lambda: scores(stage, "a")["gpuFree"] >= 99)


def test_nothing_is_read_or_written_where_nobody_uses_the_scores(stage: Stage) -> None:
    choose_by(stage.admin, "gpuFree", resource="theirs")
    stage.controllers.start(**SETTINGS)
    stage.until_listed("a")
    time.sleep(1.0)  # what is tested: nothing comes
    assert (questions(stage), gpus(stage)) == (0, dict.fromkeys(QUOTAS))
    choose_by(stage.admin, "waiting")
    soon(lambda: gpus(stage), {"a": 100, "b": 100, "c": -100})
    choose_by(stage.admin, "waiting", resource="theirs")
    soon(lambda: _at_rest(stage))


def _at_rest(stage: Stage) -> bool:
    asked, written = questions(stage), [len(status_writes(stage, name)) for name in QUOTAS]
    time.sleep(2.5)  # what is tested: nothing comes in several readings
    return (asked, written) == (questions(stage), [len(status_writes(stage, name)) for name in QUOTAS])


def test_what_somebody_does_to_the_object_is_reverted(stage: Stage) -> None:
    stage.controllers.start(**SETTINGS)
    soon(lambda: gpus(stage)["b"], 100)
    path = f"{SCORES.format('b')}/placement-ac"
    labels = stage.admin.ask("GET", path)["metadata"]["labels"]
    stage.admin.ask("PATCH", path, {"metadata": {"labels": dict.fromkeys(labels)}}, "merge")
    soon(lambda: stage.admin.ask("GET", path)["metadata"].get("labels"), labels)
    stage.admin.ask("DELETE", path)
    soon(lambda: gpus(stage)["b"], 100)


def test_the_health_of_gpus_needs_the_nodes(stage: Stage) -> None:
    with Driver(stage.fleet.hubs["b"]) as worker:
        for name, allocatable in (("n1", "4"), ("n2", "2")):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            worker.ask("POST", f"{CORE}/nodes", node)
            status = {"status": {"capacity": {GPU: "4"}, "allocatable": {GPU: allocatable}}}
            worker.ask("PATCH", f"{CORE}/nodes/{name}/status", status, "merge")
    stage.fleet.hubs["a"].faults.add("GET", "/nodes$", status=403, times=1_000_000)
    stage.controllers.start(**SETTINGS, score_nodes=True)
    soon(lambda: scores(stage, "b").get("gpuHealthy"), 75)
    soon(lambda: gpus(stage), {"a": 100, "b": 100, "c": -100})
    assert "gpuHealthy" not in scores(stage, "a")


def test_a_restart_continues_where_it_was(stage: Stage) -> None:
    with short_waits(SCORE_HOLD_SECONDS=0.5):
        with stage.controllers(**SETTINGS):
            soon(lambda: gpus(stage)["b"], 100)
        with stage.controllers(**SETTINGS):
            soon(lambda: questions(stage) > 12)
    assert len(status_writes(stage, "b")) == 1
