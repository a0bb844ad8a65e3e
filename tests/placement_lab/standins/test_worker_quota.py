"""The stand-in for a worker's Kueue with a ClusterQueue: quota by flavor."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from placement_ac.core.api.constants import LABEL_ORIGIN, WORKLOAD
from placement_ac.core.inputs.queue_facts import worker_facts
from placement_ac.kube.client import Object
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue import CLUSTER_QUEUE
from placement_lab.standins.worker_quota import assigned_quota, queue_manifests, used_quota
from tests.support.admin import Admin

CPU, GPU = "cpu", "nvidia.com/gpu"
H100, SPOT, T4 = "h100", "h100-spot", "t4"
GROUPS = [
    {
        "coveredResources": [GPU],
        "flavors": [
            {"name": name, "resources": [{"name": GPU, "nominalQuota": amount}]}
            for name, amount in ((H100, "4"), (T4, "8"))
        ],
    },
    {
        "coveredResources": [CPU],
        "flavors": [{"name": "any", "resources": [{"name": CPU, "nominalQuota": "2"}]}],
    },
]


def podset(name: str, count: int = 1, **requests: str) -> Object:
    resources = {"requests": {{"gpu": GPU}.get(key, key): amount for key, amount in requests.items()}}
    return {
        "name": name,
        "count": count,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "resources": resources}]}
        },
    }


def asks(*podsets: Object) -> Object:
    return {"spec": {"podSets": list(podsets)}}


def got(**flavors_and_amounts: tuple[str, str]) -> Object:
    """The part of an assignment: resource → flavor and amount."""
    named = {{"gpu": GPU}.get(key, key): both for key, both in flavors_and_amounts.items()}
    return {
        "flavors": {name: flavor for name, (flavor, _) in named.items()},
        "resourceUsage": {name: amount for name, (_, amount) in named.items()},
    }


@pytest.mark.parametrize(
    ("copy", "used", "assigned"),
    [
        pytest.param(asks(podset("main", gpu="4")), {}, {"main": got(gpu=(H100, "4"))}, id="the first"),
        pytest.param(asks(podset("main", gpu="5")), {}, {"main": got(gpu=(T4, "5"))}, id="the larger"),
        pytest.param(
            asks(podset("main", gpu="2")), {(H100, GPU): 3000}, {"main": got(gpu=(T4, "2"))}, id="used"
        ),
        pytest.param(asks(podset("main", gpu="9")), {}, None, id="too much for any flavor"),
        pytest.param(
            asks(podset("main", gpu="5")), {(T4, GPU): 4000}, None, id="too much for what is left of each"
        ),
        pytest.param(
            asks(podset("a", 3, gpu="1"), podset("b", 2, gpu="1")),
            {},
            {"a": got(gpu=(H100, "3")), "b": got(gpu=(T4, "2"))},
            id="each podSet its own",
        ),
        pytest.param(
            asks(podset("main", cpu="500m", gpu="1")),
            {},
            {"main": got(cpu=("any", "500m"), gpu=(H100, "1"))},
            id="one flavor of each group",
        ),
        pytest.param(asks(podset("main", cpu="3", gpu="1")), {}, None, id="one group is full"),
        pytest.param(asks(podset("main", memory="1Gi")), {}, None, id="not covered"),
        pytest.param(asks(podset("main")), {}, {"main": {}}, id="nothing"),
    ],
)
def test_the_first_flavor_with_room_is_assigned(
    copy: Object, used: dict[tuple[str, str], int], assigned: Any
) -> None:
    assert assigned_quota(copy, GROUPS, Counter(used)) == assigned


def test_the_quota_that_copies_have_is_counted_by_flavor() -> None:
    first = {"name": "a", "count": 1} | got(gpu=(H100, "3"), cpu=("any", "500m"))
    second = {"name": "b", "count": 1} | got(gpu=(T4, "2"))
    copy = {"status": {"admission": {"podSetAssignments": [first, second, {"name": "c", "count": 1}]}}}
    assert used_quota([copy, copy]) == {(H100, GPU): 6000, (T4, GPU): 4000, ("any", CPU): 1000}


class OnWorker(Admin):
    """MultiKueue's requests to one worker."""

    def submit(self, name: str, gpus: str) -> None:
        pod = podset("main", gpu=gpus)
        [container] = pod["template"]["spec"]["containers"]
        container["image"] = "i"
        self.apply(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {"name": name, "namespace": "default", "labels": {LABEL_ORIGIN: "multikueue"}},
                "spec": {"queueName": "one", "podSets": [pod]},
            }
        )

    def flavor_of(self, name: str) -> str:
        """The flavor of the GPUs that a copy has got; "" while it waits."""
        copy = self.get(WORKLOAD.at("v1beta2"), name, "default") or {}
        [found] = ((copy.get("status") or {}).get("admission") or {}).get("podSetAssignments") or [{}]
        return str((found.get("flavors") or {}).get(GPU, ""))

    def counts(self) -> Object:
        """The status of the ClusterQueue without its conditions."""
        status = (self.get(CLUSTER_QUEUE.at("v1beta2"), "cluster-queue") or {}).get("status") or {}
        return {field: value for field, value in status.items() if field != "conditions"}


@pytest.fixture
def worker() -> Iterator[OnWorker]:
    quota = {H100: {GPU: "4"}, SPOT: {GPU: "2"}}
    with WorkerFleet(["w"], quotas={"w": quota}, queues=["one"]) as fleet, OnWorker(fleet.login("w")) as one:
        yield one


def test_workloads_get_flavors_and_the_status_reports_them(worker: OnWorker) -> None:
    for name, gpus, flavor in (("a", "3", H100), ("b", "2", SPOT), ("c", "1", H100)):
        worker.submit(name, gpus)
        worker.until(lambda name=name: worker.flavor_of(name), flavor)
    worker.submit("d", "1")
    sums = [
        {"name": H100, "resources": [{"name": GPU, "total": "4"}]},
        {"name": SPOT, "resources": [{"name": GPU, "total": "2"}]},
    ]
    worker.until(
        worker.counts,
        {
            "flavorsReservation": sums,
            "flavorsUsage": sums,
            "pendingWorkloads": 1,
            "reservingWorkloads": 3,
            "admittedWorkloads": 3,
        },
    )
    assert worker.flavor_of("d") == ""
    worker.delete(WORKLOAD.at("v1beta2"), "b", namespace="default")
    worker.until(lambda: worker.flavor_of("d"), SPOT)


def test_the_controller_reads_the_quota_of_each_flavor() -> None:
    queue, local = queue_manifests({H100: {GPU: "4", CPU: "64"}, SPOT: {GPU: "2", CPU: "32"}}, ["one"])
    facts = worker_facts([local], [queue]).queues["default", "one"]
    assert {
        resource: [(flavor.flavor, flavor.nominal) for flavor in flavors]
        for resource, flavors in facts.quotas.items()
    } == {GPU: [(H100, 4000), (SPOT, 2000)], CPU: [(H100, 64000), (SPOT, 32000)]}
