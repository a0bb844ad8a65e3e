"""Requests that Kueue adds to those of a new job, in `plan`: by LimitRanges and RuntimeClasses."""

from typing import Any

import pytest

from kubectl_placement.jobs.adjusted import adjusted
from kubectl_placement.jobs.new_job import new_job
from placement_ac.core.api.constants import CLUSTER_QUEUE, LIMIT_RANGE, LOCAL_QUEUE, RUNTIME_CLASS
from placement_ac.core.api.pod_requests import podset_requests
from tests.support.builders import Raw, an
from tests.support.whatif import story_2, view_of


def limits(name: str, namespace: str = "default", type: str = "Container", **defaults: Any) -> Raw:  # noqa: A002
    return an(LIMIT_RANGE, name, namespace, spec={"limits": [{"type": type} | defaults]})


def runtime(name: str, **overhead: str) -> Raw:
    return an(RUNTIME_CLASS, name) | {"handler": name, "overhead": {"podFixed": overhead}}


def podset(*containers: Raw, count: int = 1, **pod: Any) -> Raw:
    found = [{"name": f"c{at}", "resources": one} for at, one in enumerate(containers)]
    return {"name": "main", "count": count, "template": {"spec": {"containers": found} | pod}}


CPU = {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("given", "there", "cpu"),
    [
        pytest.param(podset(CPU), (), 1000, id="nothing to add"),
        pytest.param(podset({}), (limits("a", defaultRequest={"cpu": "3"}),), 3000, id="a default request"),
        pytest.param(podset({}), (limits("a", default={"cpu": "4"}),), 4000, id="a default limit"),
        pytest.param(
            podset({}), (limits("a", default={"cpu": "4"}, defaultRequest={"cpu": "3"}),), 3000, id="both"
        ),
        pytest.param(podset(CPU), (limits("a", defaultRequest={"cpu": "3"}),), 1000, id="its own request"),
        pytest.param(
            podset({"limits": {"cpu": "2"}}),
            (limits("a", defaultRequest={"cpu": "3"}),),
            3000,
            id="its own limit is not its request",
        ),
        pytest.param(podset(CPU, {}), (limits("a", default={"cpu": "4"}),), 5000, id="of two containers one"),
        pytest.param(podset({}), (limits("a", "other", default={"cpu": "4"}),), 0, id="another namespace"),
        pytest.param(podset({}), (limits("a", type="Pod", default={"cpu": "4"}),), 0, id="of Pods"),
        pytest.param(
            podset({}),
            (limits("a", default={"cpu": "4"}), limits("b", default={"cpu": "5"})),
            4000,
            id="the first of two",
        ),
        pytest.param(
            podset({}, initContainers=[{"name": "i"}]), (limits("a", default={"cpu": "4"}),), 4000, id="init"
        ),
        pytest.param(
            podset(CPU, count=3, runtimeClassName="kata"), (runtime("kata", cpu="2"),), 9000, id="an overhead"
        ),
        pytest.param(
            podset(CPU, runtimeClassName="kata", overhead={"cpu": "500m"}),
            (runtime("kata", cpu="2"),),
            1500,
            id="an overhead of its own",
        ),
        pytest.param(podset(CPU, runtimeClassName="gvisor"), (runtime("kata", cpu="2"),), 1000, id="no such"),
    ],
)
def test_requests(given: Raw, there: tuple[Raw, ...], cpu: int) -> None:
    found = adjusted(view_of(*there).dump, "default", given)
    assert dict(podset_requests(found)).get("cpu", 0) == cpu


def a_job(**pod: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"memory": "1Gi"}}}
    spec = {"restartPolicy": "Never", "containers": [container]} | pod
    labels = {"kueue.x-k8s.io/queue-name": "user-queue"}
    metadata = {"name": "train", "namespace": "default", "labels": labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"spec": spec}},
    }


def hub(*more: Raw) -> list[Raw]:
    resources = [{"name": name, "nominalQuota": quota} for name, quota in (("cpu", "4"), ("memory", "64Gi"))]
    checks = [{"name": "placement-demo2"}, {"name": "multikueue-demo2"}]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": resources}]}
        ],
        "admissionChecksStrategy": {"admissionChecks": checks},
    }
    own = an(LOCAL_QUEUE, "user-queue", "default", spec={"clusterQueue": "cq"})
    return [an(CLUSTER_QUEUE, "cq", spec=spec), own, *more]


ABOUT = "LimitRange", "RuntimeClass", "ClusterQueue cq"
UNREAD_LIMITS = "LimitRanges were not read (the dump holds no limitranges): Kueue adds their defaults of cpu"
UNREAD_CLASS = "RuntimeClass kata was not read (the dump holds no runtimeclasses.node.k8s.io): Kueue adds its"
TOO_LITTLE = "ClusterQueue cq on the hub had too little quota: 8 cpu asked, 4 at most"


@pytest.mark.parametrize(
    ("job", "there", "note"),
    [
        pytest.param(a_job(), (), UNREAD_LIMITS, id="no LimitRange in the dump"),
        pytest.param(a_job(), (limits("a", default={"cpu": "1"}),), "", id="a small default"),
        pytest.param(a_job(), (limits("a", default={"cpu": "8"}),), TOO_LITTLE, id="a large default"),
        pytest.param(
            a_job(runtimeClassName="kata"), (limits("a"),), UNREAD_CLASS, id="no RuntimeClass in the dump"
        ),
        pytest.param(
            a_job(runtimeClassName="kata"),
            (limits("a"), runtime("kata", cpu="8")),
            TOO_LITTLE,
            id="a large overhead",
        ),
    ],
)
def test_plan_counts_what_kueue_adds_or_says_that_it_was_not_read(
    job: Raw, there: tuple[Raw, ...], note: str
) -> None:
    notes = [one for one in new_job(story_2(*hub(*there)), job).notes if one.startswith(ABOUT)]
    assert [one.startswith(note) for one in notes] == ([True] if note else [])
