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
            there = await read_job(cluster, job, "wl")
            return [pod["metadata"]["name"] for pod in there.pods]

    return asyncio.run(read())


def made(admin: HubClient, path: str, name: str, owner: Any = None, **labels: str) -> Any:
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
    metadata = {"name": name, "labels": labels, "ownerReferences": reference}
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


def test_a_single_pod_and_a_group(hub: Hub) -> None:
    admin = HubClient(hub)
    made(admin, PODS, "alone")
    for name in ("g-0", "g-1"):
        made(admin, PODS, name, **{"kueue.x-k8s.io/pod-group-name": "wl"})
    assert pods_of(hub, JobId("default", "v1", "Pod", "alone")) == ["alone"]
    assert pods_of(hub, JobId("default", "v1", "Pod", "g-1")) == ["g-0", "g-1"]


def test_a_job_that_is_not_the_hubs(hub: Hub) -> None:
    made(HubClient(hub), DEPLOYMENTS, "root")
    with pytest.raises(NotOurs, match="on cluster a: rename or delete Deployment default/root there"):
        pods_of(hub, JobId("default", "apps/v1", "Deployment", "root"))
