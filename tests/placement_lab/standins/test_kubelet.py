"""The stand-in for a kubelet: running Jobs have Pods, whose logs the worker serves as Kubernetes does."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import EVENT, JOB
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kubelet import POD
from tests.placement_lab.standins.test_worker import OnWorker, copy_of, job_of
from tests.support.driver import eventually
from tests.support.hub_client import Client

PODS = POD.at("v1")


@pytest.fixture
def fleet() -> Iterator[WorkerFleet]:
    with WorkerFleet(["w"], kubelets=True, line_seconds=None) as fleet:
        yield fleet


@pytest.fixture
def worker(fleet: WorkerFleet) -> Iterator[OnWorker]:
    with OnWorker(fleet.login("w")) as worker:
        yield worker


def pods(worker: OnWorker) -> list[Any]:
    return sorted(worker.list(PODS), key=lambda pod: str(pod["metadata"]["name"]))


def started(worker: OnWorker, name: str = "train", count: int = 1) -> list[str]:
    """Let a job run with so many Pods; return the names of those."""
    job = job_of(name)
    job["spec"] |= {"parallelism": count, "completions": count}
    worker.apply(copy_of(name), job)
    worker.until(lambda: [pod["status"].get("phase") for pod in pods(worker)], ["Running"] * count)
    return [pod["metadata"]["name"] for pod in pods(worker)]


def log(fleet: WorkerFleet, pod: str, query: str = "") -> str:
    return Client(fleet.hubs["w"]).ask("GET", f"/api/v1/namespaces/default/pods/{pod}/log?{query}").text


def test_a_running_job_has_the_pods_of_the_job_controller(worker: OnWorker) -> None:
    started(worker, count=2)
    one, two = pods(worker)
    job = worker.get(JOB.at("v1"), "train", "default")
    assert job is not None
    [owner] = one["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "train", job["metadata"]["uid"])
    assert one["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "train"
    assert [pod["spec"]["nodeName"] for pod in (one, two)] == ["node-1", "node-2"]
    reasons = {event["reason"] for event in worker.list(EVENT.at("v1"))}
    assert reasons == {"Started"}


def test_its_pods_end_with_the_job(fleet: WorkerFleet, worker: OnWorker) -> None:
    [pod] = started(worker)
    fleet.finish("train")
    worker.until(lambda: [pod["status"]["phase"] for pod in pods(worker)], ["Succeeded"])
    assert log(fleet, pod) == f"{pod} has started on node-1\n"
    worker.delete(JOB.at("v1"), "train", "default")
    worker.until(lambda: pods(worker), [])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("tailLines=2", "two\nthree\n", id="the last lines"),
        pytest.param("tailLines=0", "", id="no line"),
        pytest.param("tailLines=1&limitBytes=3", "thr", id="no more than so many bytes"),
        pytest.param("sinceTime=2200-01-01T00:00:00Z", "", id="since a time to come"),
        pytest.param("container=c&tailLines=1", "three\n", id="of a container"),
    ],
)
def test_a_part_of_a_log(fleet: WorkerFleet, worker: OnWorker, query: str, expected: str) -> None:
    [pod] = started(worker)
    fleet.hubs["w"].write_log("default", pod, "c", "one", "two", "three")
    assert log(fleet, pod, query) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("container=d", "container d is not valid for pod {}", id="another container"),
        pytest.param(
            "previous=true",
            'previous terminated container "c" in pod "{}" not found',
            id="before the first restart",
        ),
        pytest.param("tailLines=-3", "must be greater than or equal to 0", id="fewer than no line"),
        pytest.param("sinceTime=soon", "invalid value 'soon'", id="no time"),
    ],
)
def test_a_log_that_is_refused(fleet: WorkerFleet, worker: OnWorker, query: str, message: str) -> None:
    [pod] = started(worker)
    assert message.format(pod) in json.loads(log(fleet, pod, query))["message"]


def test_the_previous_run_of_a_container(fleet: WorkerFleet, worker: OnWorker) -> None:
    [pod] = started(worker)
    hub = fleet.hubs["w"]
    hub.end_log("default", pod, "c", restarts=True)
    hub.write_log("default", pod, "c", "again")
    assert log(fleet, pod) == "again\n"
    assert log(fleet, pod, "previous=true") == f"{pod} has started on node-1\n"


def test_kubectl_follows_a_log_until_the_pod_ends(
    fleet: WorkerFleet, worker: OnWorker, tmp_path: Path
) -> None:
    [pod] = started(worker)
    fleet.hubs["w"].write_kubeconfig(tmp_path / "kubeconfig")
    words = ["kubectl", "--kubeconfig", str(tmp_path / "kubeconfig"), "logs", "-f", "job/train"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as kubectl:
        assert kubectl.stdout
        lines = iter(kubectl.stdout)
        assert next(lines) == f"{pod} has started on node-1\n"
        fleet.hubs["w"].write_log("default", pod, "c", "more")
        assert next(lines) == "more\n"
        fleet.finish("train")
        assert list(lines) == []
    assert kubectl.returncode == 0


def test_lines_are_written_while_it_runs() -> None:
    with WorkerFleet(["w"], kubelets=True, line_seconds=0.01) as fleet, OnWorker(fleet.login("w")) as worker:
        [pod] = started(worker)
        eventually(lambda: "step 3\n" in log(fleet, pod), True)
