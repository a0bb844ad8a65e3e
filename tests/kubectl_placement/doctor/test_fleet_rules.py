"""`doctor` compares the quota of the hub with that of its listed workers."""

import json
import shlex
from typing import Any

import pytest

from kubectl_placement.doctor.fleet_rules import Fleet, examine_fleet
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import (
    INSPECTED_KINDS,
    InspectedWorker,
    WorkerInspection,
    WorkerTarget,
)
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.inputs.fitness import Unknown, WorkerFindings
from placement_ac.core.kubeconfig.source import CredentialSource
from tests.support import healthy

GPU = "nvidia.com/gpu"
QUEUE = ("default", "user-queue-demo1")
Object = dict[str, Any]


def hub(gpus: str = "3", *, effective: str = "", **spec: Any) -> HubSetup:
    """A hub with one ClusterQueue, and three clusters listed; `effective`: of Dynamic Quota Orchestration."""
    objects = healthy.objects()
    for obj in objects:
        if obj["kind"] == "ClusterQueue":
            obj["spec"] |= spec
            [group] = obj["spec"]["resourceGroups"]
            group["coveredResources"] = [GPU]
            group["flavors"][0]["resources"] = [{"name": GPU, "nominalQuota": gpus}]
            if effective:
                flavors = [{"name": "f", "resources": [{"name": GPU, "nominalQuota": effective}]}]
                by = {"apiGroup": "kueue.x-k8s.io", "kind": "DynamicQuotaOrchestrator", "name": "gpus"}
                quotas = {"orchestratorRef": by, "resourceGroups": [{"flavors": flavors}]}
                obj["status"] = {"effectiveQuotas": quotas}
        if obj["kind"] == "MultiKueueConfig":
            obj["spec"] |= {"quotaManagement": spec.get("management", "Manual")}
    return HubSetup(HubView(dump_of(objects), Settings(), healthy.NOW))


def worker(cluster: str, gpus: str, **spec: Any) -> WorkerInspection:
    """An inspected worker with a ClusterQueue of any name."""
    resources = [{"name": GPU, "nominalQuota": gpus}]
    group = {"coveredResources": [GPU], "flavors": [{"name": "its-own", "resources": resources}]}
    queue = {"metadata": {"name": "its-queue"}, "spec": {"resourceGroups": [group]} | spec}
    named = {"namespace": QUEUE[0], "name": QUEUE[1]}
    local = {"metadata": named, "spec": {"clusterQueue": "its-queue"}}
    found = {LOCAL_QUEUE: (local,), CLUSTER_QUEUE: (queue,)}
    return inspected(cluster, dict.fromkeys(INSPECTED_KINDS, ()) | found)


def inspected(cluster: str, objects: Any) -> WorkerInspection:
    target = WorkerTarget(cluster, CredentialSource("Secret", cluster))
    return WorkerInspection(target, findings=WorkerFindings("Secret", frozenset()), objects=objects)


def unknown(cluster: str) -> WorkerInspection:
    return inspected(cluster, dict.fromkeys(INSPECTED_KINDS, Unknown("it does not answer")))


def warnings(setup: HubSetup, *workers: WorkerInspection) -> list[str]:
    found = examine_fleet(Fleet(setup, tuple(InspectedWorker(setup, one) for one in workers)))
    return [one.message for one in found if one.level == "WARN"]


THREE = ("cluster1", "cluster2", "cluster3")
HAS = "ClusterQueue cluster-queue-demo1 on the hub has {} of nvidia.com/gpu, "
MORE = HAS + "more than the {} on 3 listed workers"
LESS = HAS + "less than half of the {} on {} listed workers"


@pytest.mark.parametrize(
    ("gpus", "workers", "expected"),
    [
        pytest.param("24", [worker(one, "8") for one in THREE], [], id="the sum"),
        pytest.param("12", [worker(one, "8") for one in THREE], [], id="half of it"),
        pytest.param("25", [worker(one, "8") for one in THREE], [MORE.format(25, 24)], id="more"),
        pytest.param(
            "11", [worker(one, "8") for one in THREE], [LESS.format(11, 24, 3)], id="less than half"
        ),
        pytest.param(
            "25",
            [worker("cluster1", "8"), worker("cluster2", "8"), unknown("cluster3")],
            [],
            id="one is unknown",
        ),
        pytest.param(
            "7",
            [worker("cluster1", "8"), worker("cluster2", "8"), unknown("cluster3")],
            [LESS.format(7, 16, 2)],
            id="less than half of those that are known",
        ),
        pytest.param(
            "25", [worker("cluster1", "8"), worker("cluster2", "8")], [], id="one was not inspected"
        ),
        pytest.param(
            "25",
            [worker("cluster1", "8"), worker("cluster2", "8"), worker("cluster3", "8", cohortName="c")],
            [],
            id="a worker's queue may borrow",
        ),
        pytest.param(
            "25",
            [*(worker(one, "8") for one in THREE), worker("other", "8")],
            [MORE.format(25, 24)],
            id="not listed",
        ),
    ],
)
def test_the_quota_of_the_hub_is_compared_with_the_sum(
    gpus: str, workers: list[WorkerInspection], expected: list[str]
) -> None:
    found = warnings(hub(gpus), *workers)
    assert [message.partition(":")[0] for message in found] == expected


def test_a_queue_that_may_borrow_on_the_hub_idles_nothing() -> None:
    assert warnings(hub("1", cohortName="c"), *(worker(one, "8") for one in THREE)) == []


def test_where_kueue_keeps_the_quota_nothing_is_compared() -> None:
    setup = hub("99", management="Automated")
    assert examine_fleet(Fleet(setup, tuple(InspectedWorker(setup, worker(one, "8")) for one in THREE))) == ()


@pytest.mark.parametrize(("gpus", "effective", "expected"), [("99", "24", 0), ("24", "99", 1)])
def test_the_effective_quota_of_the_hub_is_compared(gpus: str, effective: str, expected: int) -> None:
    found = warnings(hub(gpus, effective=effective), *(worker(one, "8") for one in THREE))
    assert len(found) == expected


def test_where_an_effective_quota_is_wrong_the_fix_shows_what_sets_it() -> None:
    setup = hub("24", effective="99")
    [finding] = examine_fleet(Fleet(setup, tuple(InspectedWorker(setup, worker(one, "8")) for one in THREE)))
    assert finding.fix == "kubectl get dynamicquotaorchestrator.kueue.x-k8s.io gpus -o yaml"


def test_the_fix_sets_the_sum() -> None:
    setup = hub("25")
    [found] = examine_fleet(Fleet(setup, tuple(InspectedWorker(setup, worker(one, "8")) for one in THREE)))
    words = shlex.split(found.fix)
    assert words[:-1] == ["kubectl", "patch", "clusterqueue", "cluster-queue-demo1", "--type=json", "-p"]
    path = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    assert json.loads(words[-1]) == [{"op": "replace", "path": path, "value": "24"}]
