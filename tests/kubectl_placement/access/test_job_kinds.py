"""`logs` of jobs whose Pods are found through other objects: by owners' labels, over HTTP."""

from typing import Any

import pytest

from placement_lab.hub import Hub
from tests.kubectl_placement.access.stage import CONTAINERS, JobStage, as_jane_there, copy_of, job_of
from tests.support.admin import Admin
from tests.support.crds import plain_crd
from tests.support.hub_client import Client

Object = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATHS = {
    "RayJob": "/apis/ray.io/v1/namespaces/default/rayjobs",
    "RayCluster": "/apis/ray.io/v1/namespaces/default/rayclusters",
    "PyTorchJob": "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
}
OURS = {"kueue.x-k8s.io/prebuilt-workload-name": "job-train"}
NOW = "2026-11-26T10:00:00Z"


def serve(hub: Hub, group: str, *kinds: str) -> None:
    for kind in kinds:
        Client(hub).create(CRDS, plain_crd(group, kind))


def made(hub: Hub, kind: str, name: str, owner: Object | None = None, **more: Any) -> Object:
    """Create an object of a job, as Kueue or its operator does; return a reference to it as an owner."""
    metadata = {"name": name, "labels": more.pop("labels", {}), "ownerReferences": [owner] if owner else []}
    api_version = "/".join(PATHS[kind].split("/")[2:4])
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}} | more
    found = Client(hub).create(PATHS[kind], body)
    return reference(found)


def reference(obj: Object) -> Object:
    metadata = obj["metadata"]
    ids = {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]} | ids


def pod_there(stage: JobStage, name: str, owner: Object, **labels: str) -> None:
    """Let a Pod of an operator run on worker a, with a line in its log."""
    running = {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": NOW}}}
    with Admin(stage.workers["a"]) as there:
        there.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "labels": labels,
                    "ownerReferences": [owner],
                },
                "spec": {"containers": CONTAINERS, "nodeName": "node-1"},
                "status": {"phase": "Running", "containerStatuses": [running]},
            }
        )
    stage.write(name, f"this is {name}")


def placed(stage: JobStage, kind: str) -> None:
    """Create the job on the hub with its Workload, which is placed on worker a."""
    workload = copy_of("train", "default")
    workload["metadata"] |= {"ownerReferences": [made(stage.hub, kind, "train")], "labels": {}}
    stage.admin.apply(workload)
    stage.place("train", "p-a")


@pytest.fixture
def ray_pods(stage: JobStage) -> list[str]:
    """A RayJob on worker a, and another one beside it; the names of its Pods."""
    there = stage.fleet.hubs["a"]
    for hub in (stage.hub, there):
        serve(hub, "ray.io", "RayJob", "RayCluster")
    placed(stage, "RayJob")
    owner = made(there, "RayJob", "train", labels=OURS, status={"rayClusterName": "train-x7k2p"})
    cluster = made(there, "RayCluster", "train-x7k2p", owner)
    other = made(there, "RayCluster", "other-abcde")
    for name in ("head", "worker"):
        pod_there(stage, f"train-x7k2p-{name}", cluster, **{"ray.io/cluster": "train-x7k2p"})
        pod_there(stage, f"other-abcde-{name}", other, **{"ray.io/cluster": "other-abcde"})
    submitter = job_of("train", "default", 1)
    submitter["metadata"] |= {"labels": {}, "annotations": {}, "ownerReferences": [owner]}
    submitter["spec"]["suspend"] = False
    with Admin(stage.workers["a"]) as admin:
        admin.apply(submitter)
        admin.until(lambda: stage.phases(admin, "train"), ["Running"])
    return sorted(["train-x7k2p-head", "train-x7k2p-worker", *stage.pods("train")])


@pytest.fixture
def torch_pods(stage: JobStage) -> list[str]:
    """The same for a PyTorchJob."""
    there = stage.fleet.hubs["a"]
    for hub in (stage.hub, there):
        serve(hub, "kubeflow.org", "PyTorchJob")
    placed(stage, "PyTorchJob")
    owner, other = made(there, "PyTorchJob", "train", labels=OURS), made(there, "PyTorchJob", "other")
    for name in ("master-0", "worker-0"):
        pod_there(stage, f"train-{name}", owner, **{"training.kubeflow.org/job-name": "train"})
        pod_there(stage, f"other-{name}", other, **{"training.kubeflow.org/job-name": "other"})
    return ["train-master-0", "train-worker-0"]


@pytest.mark.parametrize(
    ("pods", "word"),
    [
        pytest.param("ray_pods", "rayjob.ray.io/train", id="a RayJob: of its RayCluster and its submitter"),
        pytest.param("torch_pods", "pytorchjob/train", id="a PyTorchJob: its master and its worker"),
    ],
)
def test_the_pods_of_a_job_and_their_logs_and_no_others(
    stage: JobStage, request: pytest.FixtureRequest, pods: str, word: str
) -> None:
    names: list[str] = request.getfixturevalue(pods)
    done = stage.run("logs", word, "--all-pods")
    assert (done.exit_code, done.stderr) == (0, "")
    found = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert [mark for mark, _ in found] == [f"[pod/{name}/c]" for name in names]
    assert all(name in text for name, (_, text) in zip(names, found, strict=True))


def test_a_rayjob_that_may_not_be_read_shows_the_pods_of_its_submitter_and_says_so(
    stage: JobStage, ray_pods: list[str]
) -> None:
    as_jane_there(stage, "pods pods/log")
    done = stage.run("logs", "train", "--all-pods")
    shown = [line.split("/")[1] for line in done.stdout.splitlines()]
    assert shown == [name for name in ray_pods if not name.startswith("train-x7k2p")]
    assert "the right to get rayjobs.ray.io in namespace default there" in done.stderr
    assert done.stderr.endswith("; the Pods of its RayCluster are not found\n")
