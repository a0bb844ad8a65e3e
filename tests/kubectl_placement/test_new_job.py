"""The notes of `plan` on a job that Kueue would not send, although a cluster fits it."""

from dataclasses import replace
from typing import Any

import pytest

from kubectl_placement.jobs.new_job import new_job
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from tests.support.builders import Raw, an, condition
from tests.support.jobs_to_dispatch import GPU
from tests.support.whatif import story_2

UNTIL = "until that ends, the job is sent nowhere"
SENT_NOWHERE = "the job never gets quota there, so it is sent nowhere"


def a_job(*, gpus: int = 1, **spec: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: str(gpus)}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    labels = {"kueue.x-k8s.io/queue-name": "user-queue-demo2"}
    metadata = {"name": "train", "namespace": "default", "labels": labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template} | spec,
    }


@pytest.mark.parametrize(
    ("managed_by", "noted"),
    [
        pytest.param({}, False, id="nobody: Kueue's webhook sets it"),
        pytest.param({"managedBy": "kubernetes.io/job-controller"}, False, id="Kubernetes: the same"),
        pytest.param({"managedBy": "kueue.x-k8s.io/multikueue"}, False, id="MultiKueue"),
        pytest.param({"managedBy": "example.com/operator"}, True, id="another controller"),
    ],
)
def test_a_job_that_is_managed_by(managed_by: Raw, noted: bool) -> None:
    notes = new_job(story_2(), a_job(**managed_by)).notes
    wanted = "set spec.managedBy to kueue.x-k8s.io/multikueue, or remove it: else Kueue rejects the Job"
    assert (wanted in notes) is noted


def test_a_job_of_a_namespace_that_kueue_leaves_alone_goes_nowhere() -> None:
    view = replace(story_2(), unmanaged={"default": "label namespace default a=b: Kueue does not manage it"})
    found = new_job(view, a_job())
    assert (found.problem, found.placements) == (view.unmanaged["default"], ())


def queue(quota: str, **spec: Any) -> Raw:
    resources = [{"name": GPU, "nominalQuota": quota}]
    flavors = [{"name": "default", "resources": resources}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return an(CLUSTER_QUEUE, "cq", spec={"namespaceSelector": {}, "resourceGroups": groups} | spec)


@pytest.mark.parametrize(
    ("cluster_queue", "local", "note"),
    [
        pytest.param(queue("8"), {}, None, id="has it"),
        pytest.param(
            queue("4"),
            {},
            f"ClusterQueue cq on the hub had too little quota: 8 {GPU} asked, 4 at most: {SENT_NOWHERE}",
            id="has less",
        ),
        pytest.param(queue("4", cohortName="all"), {}, None, id="may borrow it"),
        pytest.param(
            queue("8", namespaceSelector=None),
            {},
            "set spec.namespaceSelector of ClusterQueue cq on the hub: without it, it admits no job",
            id="selects no namespace",
        ),
        pytest.param(
            queue("8"),
            {"stopPolicy": "Hold"},
            f"ClusterQueue cq on the hub, or its LocalQueue, is on hold: {UNTIL}",
            id="is on hold",
        ),
        pytest.param(
            queue("8") | {"status": {"conditions": [condition("False", "FlavorNotFound", "no flavor a")]}},
            {},
            f"ClusterQueue cq on the hub admits nothing: FlavorNotFound: no flavor a: {UNTIL}",
            id="is not active",
        ),
    ],
)
def test_the_hubs_queue(cluster_queue: Raw, local: Raw, note: str | None) -> None:
    own = an(LOCAL_QUEUE, "user-queue", "default", spec={"clusterQueue": "cq"} | local)
    checks = [{"name": "placement-demo2"}, {"name": "multikueue-demo2"}]
    cluster_queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": checks}
    job = a_job(gpus=8)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "user-queue"}
    found = new_job(story_2(cluster_queue, own), job)
    assert found.placements, found.problem
    assert [one for one in found.notes if "hub" in one] == ([note] if note else [])


@pytest.mark.parametrize("claims", [[], [{"name": "gpu", "resourceClaimTemplateName": "eight"}]])
def test_claims_are_named_as_compared_with_no_quota(claims: list[Raw]) -> None:
    job = a_job()
    job["spec"]["template"]["spec"]["resourceClaims"] = claims
    noted = [
        one for one in new_job(story_2(), job).notes if one.startswith("its ResourceClaims are compared")
    ]
    assert len(noted) == len(claims)
