"""Asking workers for their queues: what they say, and what they may do wrong."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.inputs.flavors import Flavor
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.observability import logs
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.copies import CopyReader, WorkerCopies
from placement_ac.workers.queues import QueueReader
from placement_lab.standins.worker_quota import queue_manifests
from tests.support.driver import KUEUE, NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.workers import ECHO, by_secret, put_secret, serving, with_connector

GPU = "nvidia.com/gpu"
CLUSTER_QUEUES = f"{KUEUE}/v1beta2/clusterqueues"
RESOURCE_FLAVORS = f"{KUEUE}/v1beta2/resourceflavors"
LOCAL_QUEUES = f"{KUEUE}/v1beta2/namespaces/default/localqueues"
RESERVED = [{"name": "default", "resources": [{"name": GPU, "total": "6"}]}]
FACTS = QueueFacts("cluster-queue", {GPU: (FlavorQuota("default", 8000, 6000),)}, pending=2, reserving=1)
DENIED = (
    f"the worker does not let the account of Secret {NS}/s"
    " list clusterqueues.kueue.x-k8s.io and localqueues.kueue.x-k8s.io"
)


@pytest.fixture
def worker(admin: Driver) -> Iterator[Driver]:
    """A worker with a ClusterQueue and two LocalQueues; the hub has its credentials."""
    with serving() as driver:
        for item in queue_manifests({"default": {GPU: "8"}}, ["one", "two"]):
            driver.ask("POST", LOCAL_QUEUES if item["kind"] == "LocalQueue" else CLUSTER_QUEUES, item)
        status = {"flavorsReservation": RESERVED, "pendingWorkloads": 2, "reservingWorkloads": 1}
        driver.ask("PATCH", f"{CLUSTER_QUEUES}/cluster-queue/status", {"status": status}, "merge")
        put_secret(admin, driver)
        yield driver


def ask(admin: Driver, **options: Any) -> WorkerFacts:
    answer: WorkerFacts = with_connector(admin, lambda one: QueueReader(one).read(by_secret()), **options)
    assert TOKEN not in repr(answer)
    return answer


def test_the_queues_of_a_worker(admin: Driver, worker: Driver) -> None:
    before = len(worker.hub.journal)
    assert ask(admin) == WorkerFacts({("default", "one"): FACTS, ("default", "two"): FACTS})
    asked = list(worker.hub.journal)[before:]
    assert {request.method for request in asked} == {"GET"}
    assert len(asked) == 5, "the group, its version, and three lists"


FLAVOR = {"nodeLabels": {"accelerator": "h100"}}


def put_flavor(worker: Driver) -> None:
    raw = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}}
    worker.ask("POST", RESOURCE_FLAVORS, raw | {"spec": FLAVOR})
    worker.ask("POST", RESOURCE_FLAVORS, raw | {"metadata": {"name": "another"}})


@pytest.mark.parametrize(
    ("fault", "nodes"),
    [
        pytest.param(None, Flavor({"accelerator": "h100"}), id="may be listed"),
        pytest.param({"status": 403}, None, id="403"),
        pytest.param({"status": 200, "body": {"kind": "Welcome"}}, None, id="another server"),
    ],
)
def test_flavors_are_asked_once_and_needed_by_no_answer(
    admin: Driver, worker: Driver, fault: Any, nodes: Flavor | None
) -> None:
    put_flavor(worker)
    if fault:
        worker.hub.faults.add("GET", "v1beta2/resourceflavors", **{"body": ECHO, "times": 2} | fault)

    async def twice(connector: WorkerConnector) -> list[WorkerFacts]:
        reader = QueueReader(connector)
        return [await reader.read(by_secret()) for _ in range(2)]

    before = len(worker.hub.journal)
    facts = replace(FACTS, quotas={GPU: (FlavorQuota("default", 8000, 6000, nodes=nodes),)})
    expected = WorkerFacts({("default", "one"): facts, ("default", "two"): facts})
    assert with_connector(admin, twice) == [expected, expected]
    asked = [one.path for one in list(worker.hub.journal)[before:] if one.path.endswith("resourceflavors")]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param({"status": 403}, DENIED, id="403"),
        pytest.param(
            {"status": 200, "body": {"kind": "Welcome"}},
            "what the worker answered is no list of ClusterQueues",
            id="another server",
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "ClusterQueueList", "items": []}},
            "the worker has no ClusterQueue: is Kueue set up there?",
            id="none",
        ),
        pytest.param(
            {"status": 200, "body": {"kind": "ClusterQueueList", "items": [TOKEN]}},
            "unexpected AttributeError",
            id="no ClusterQueue",
        ),
    ],
)
def test_a_failure_of_a_worker_is_reported_without_its_words(
    admin: Driver, worker: Driver, capfd: pytest.CaptureFixture[str], fault: Any, why: str
) -> None:
    logs.configure("json", "debug")
    worker.hub.faults.add("GET", "v1beta2/clusterqueues", **{"body": ECHO, "times": 2} | fault)
    timeout = 0.5 if "delay" in fault else 10
    assert ask(admin, timeout=timeout) == WorkerFacts(problem=f"MultiKueueCluster p-w: {why}")
    assert TOKEN not in "".join(capfd.readouterr())


def test_queues_that_are_too_large_do_not_keep_copies_from_being_read(admin: Driver, worker: Driver) -> None:
    body = {"kind": "ClusterQueueList", "items": [{"x": "y" * 2_100_000}]}
    worker.hub.faults.add("GET", "v1beta2/clusterqueues", status=200, body=body, times=100)

    async def both(connector: WorkerConnector) -> list[WorkerFacts | WorkerCopies]:
        facts, copies = QueueReader(connector), CopyReader(connector)
        return [await facts.read(by_secret()), await copies.read(by_secret()), await facts.read(by_secret())]

    why = f"the worker of Secret {NS}/s sends more than 2,000,000 bytes: it is asked again after 5 min"
    too_large = WorkerFacts(problem=f"MultiKueueCluster p-w: {why}")
    assert with_connector(admin, both) == [too_large, WorkerCopies(), too_large]


def test_a_worker_without_kueue(admin: Driver) -> None:
    with serving(crds=[]) as worker:
        put_secret(admin, worker)
        why = "the worker serves no ClusterQueues and LocalQueues: is Kueue installed there?"
        assert ask(admin) == WorkerFacts(problem=f"MultiKueueCluster p-w: {why}")
