"""Pods of a job without a label of its own are found by their owners, up to the job."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kubectl_placement.access.methods import Candidate
from kubectl_placement.access.open import OpenCluster
from kubectl_placement.access.pods import NotOurs, read_job
from kubectl_placement.access.target import ClusterTarget
from kubectl_placement.jobs.lookup import JobId
from kubectl_placement.jobs.place import JobPlace
from placement_ac.kube.client import Client
from placement_lab.hub import Hub
from tests.support.admin import login_to
from tests.support.hub_client import Client as HubClient

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
SPEC = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
OURS = {"kueue.x-k8s.io/prebuilt-workload-name": "wl"}


def pods_of(hub: Hub, job: JobId) -> list[str]:
    async def read() -> list[str]:
        async with AsyncExitStack() as stack:
            login = login_to(hub)
            client = await stack.enter_async_context(Client(login))
            target = ClusterTarget("a", "a", (), ())
            cluster = OpenCluster(target, client, "", Candidate("", login))
            there = await read_job(cluster, JobPlace(job, "wl", "a", finished=False))
            return [pod["metadata"]["name"] for pod in there.pods]

    return asyncio.run(read())


def made(
    admin: HubClient,
    path: str,
    name: str,
    owner: Any = None,
    annotations: dict[str, str] | None = None,
    **labels: str,
) -> Any:
    """Create a Deployment, a Job or a Pod that another object owns."""
    reference = [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        | {"uid": owner["metadata"]["uid"], "controller": True}
        for owner in ([owner] if owner else [])
    ]
    restarts = {"restartPolicy": "Always"} if path == DEPLOYMENTS else {}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": SPEC | restarts}
    spec: Any = SPEC if path == PODS else {"template": template}
    if path == DEPLOYMENTS:
        spec = spec | {"selector": {"matchLabels": {"x": "y"}}}
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    metadata |= {"ownerReferences": reference}
    return admin.create(path, {"metadata": metadata, "spec": spec})


def test_the_pods_of_the_jobs_of_a_job(hub: Hub) -> None:
    admin = HubClient(hub)
    root = made(admin, DEPLOYMENTS, "root", **OURS)
    for name in ("one", "two"):
        made(admin, PODS, f"pod-{name}", made(admin, JOBS, name, root))
    made(admin, PODS, "direct", root)
    made(admin, PODS, "other", made(admin, JOBS, "alone"))
    made(admin, PODS, "nobodys")
    job = JobId("default", "apps/v1", "Deployment", "root")
    assert pods_of(hub, job) == ["direct", "pod-one", "pod-two"]


@pytest.mark.parametrize("by_annotation", [True, False], ids=["from 0.18 on", "until 0.17"])
def test_a_single_pod_and_a_group(hub: Hub, by_annotation: bool) -> None:
    admin, managed = HubClient(hub), {"kueue.x-k8s.io/managed": "true"}
    group = OURS | {"kueue.x-k8s.io/pod-group-name": "wl"}
    for name, marks in (("alone", OURS), ("g-0", group), ("g-1", group)):
        made(admin, PODS, name, annotations=marks, **managed) if by_annotation else made(
            admin, PODS, name, **managed, **marks
        )
    made(admin, PODS, "h-0", annotations={"kueue.x-k8s.io/pod-group-name": "other"}, **managed)
    assert pods_of(hub, JobId("default", "v1", "Pod", "alone")) == ["alone"]
    assert pods_of(hub, JobId("default", "v1", "Pod", "g-1")) == ["g-0", "g-1"]
    assert pods_of(hub, JobId("default", "apps/v1", "StatefulSet", "g")) == ["g-0", "g-1"]


@pytest.mark.parametrize(("path", "kind"), [(DEPLOYMENTS, "apps/v1 Deployment"), (PODS, "v1 Pod")])
def test_a_job_that_is_not_the_hubs(hub: Hub, path: str, kind: str) -> None:
    version, name = kind.split()
    made(HubClient(hub), path, "root")
    with pytest.raises(NotOurs, match=f"on cluster a: rename or delete {name} default/root there"):
        pods_of(hub, JobId("default", version, name, "root"))
