"""Credentials judged on a hub: they expire, clusters are asked whether they are fit, Prometheus may look."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.credentials import Stage, open_stage, put, token_of
from tests.support.driver import CORE, Controllers, Driver
from tests.support.jobs import soon
from tests.support.stage import shorten

Play = Callable[..., Stage]
EVENTS = f"{CORE}/namespaces/default/events"


@pytest.fixture
def play(admin: Driver, controllers: Controllers) -> Iterator[Play]:
    with ExitStack() as opened:

        def start(*names: str) -> Stage:
            stage = opened.enter_context(open_stage(admin, controllers, names))
            admin.check("p")
            admin.placement("p")
            return stage

        yield start


def test_an_expiry_is_reported_before_the_cluster_leaves(play: Play, admin: Driver) -> None:
    stage = play("a", "b")
    with Driver(stage.fleet.hubs["a"]) as a, Driver(stage.fleet.hubs["b"]) as b:
        put(stage, "b", token_of(b, 3600))
        put(stage, "a", token_of(a, 30))
        stage.select("a", "b")
        stage.controllers.start()
        soon(lambda: admin.listed("p"), ["p-a", "p-b"])
        put(stage, "a", token_of(a, 4))
        soon(lambda: admin.listed("p"), ["p-b"])
        expired = "left out: a (in Secret kueue-system/multikueue-a, renew the token: it expired at 20"
        soon(lambda: expired in admin.active("p")["message"])
        warned = [
            event for event in admin.ask("GET", EVENTS)["items"] if event["reason"] == "CredentialsExpireSoon"
        ]
        assert {event["type"] for event in warned} == {"Warning"}
        assert any(
            "of cluster a in Secret multikueue-a: they expire at 20" in event["message"] for event in warned
        )
        assert not any("cluster b" in event["message"] for event in warned)
        put(stage, "a", token_of(a, 3600))
        soon(lambda: admin.listed("p"), ["p-a", "p-b"])


# -- asked whether they are fit


def test_a_cluster_is_asked_before_it_is_listed(play: Play, admin: Driver) -> None:
    stage = play("a")
    stage.select("a")
    stage.start(credentials_probe=True, frameworks="batch/job,kubeflow.org/pytorchjob")
    soon(lambda: "install the CRDs of pytorchjobs" in admin.active("p").get("message", ""))
    assert (admin.reason("p"), admin.listed("p")) == ("NoClusterUsable", None)


def test_a_dead_cluster_keeps_no_other_waiting_and_comes_when_it_is_back(
    play: Play, admin: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, BAD_SECONDS=0.5)
    stage = play("a", "b")
    for cluster in ("a", "b"):
        with Driver(stage.fleet.hubs[cluster]) as worker:
            put(stage, cluster, worker.hub.token)
    stage.fleet.kill("b")
    stage.select("a", "b")
    stage.start(credentials_probe=True)
    soon(lambda: admin.listed("p"), ["p-a"])
    soon(
        lambda: (
            "b (the worker of Secret kueue-system/multikueue-b cannot be reached"
            in admin.active("p")["message"]
        )
    )
    stage.fleet.revive("b")
    soon(lambda: admin.listed("p"), ["p-a", "p-b"])


def test_a_cluster_that_is_listed_stays_and_is_reported(
    play: Play, admin: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, GOOD_SECONDS=0.5, BAD_SECONDS=0.5)
    stage = play("a")
    stage.select("a")
    stage.start(credentials_probe=True)
    stage.until_connected("a")
    stage.fleet.kill("a")
    soon(
        lambda: (
            "; a: the worker of Secret kueue-system/placement-ac-a cannot be reached"
            in admin.active("p")["message"]
        )
    )
    assert (admin.reason("p"), admin.listed("p")) == ("Active", ["p-a"])
    stage.fleet.revive("a")
    soon(lambda: admin.active("p")["message"], "MultiKueueConfig and MultiKueueCluster generated")


def test_queues_that_the_worker_lacks_are_reported(play: Play, admin: Driver) -> None:
    stage = play("a")
    with Driver(stage.fleet.hubs["a"]) as worker:
        put(stage, "a", worker.hub.token)
    version = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    queue = {"namespaceSelector": {}, "admissionChecksStrategy": {"admissionChecks": [{"name": "p"}]}}
    admin.ask(
        "POST",
        admin.kueue("clusterqueues"),
        version | {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": queue},
    )
    admin.namespace("team")
    local = version | {"kind": "LocalQueue", "metadata": {"name": "gpu"}, "spec": {"clusterQueue": "q"}}
    admin.ask("POST", "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues", local)
    stage.select("a")
    stage.start(credentials_probe=True)
    soon(lambda: "; a: create namespaces team on the worker" in admin.active("p").get("message", ""))
    assert (admin.reason("p"), admin.listed("p")) == ("Active", ["p-a"])
