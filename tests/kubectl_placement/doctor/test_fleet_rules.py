"""`doctor` compares the quota of the hub with that of its listed workers."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from kubectl_placement.doctor.admission_checks import check_condition
from kubectl_placement.doctor.connections import connections
from kubectl_placement.doctor.finding import Finding
from kubectl_placement.doctor.fleet_rules import Fleet, examine_fleet
from kubectl_placement.doctor.folding import FoldedFinding, fold
from kubectl_placement.doctor.grouping import grouped
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import (
    INSPECTED_KINDS,
    AccessProblem,
    ExpectedQueue,
    InspectedWorker,
    WorkerInspection,
    WorkerTarget,
)
from kubectl_placement.doctor.worker_rules import examine_workers
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    NO_QUOTA_THERE,
    RESOURCE_FLAVOR,
)
from placement_ac.core.inputs.fitness import ServedKind, Unknown, WorkerFindings
from placement_ac.core.kubeconfig.source import CredentialSource
from tests.support import healthy

GPU = "nvidia.com/gpu"
QUEUE = ("default", "user-queue-demo1")
Object = dict[str, Any]


def hub(gpus: str = "3", *, effective: str = "", message: str = "", **spec: Any) -> HubSetup:
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
        if obj["kind"] == "AdmissionCheck" and message:
            obj["status"]["conditions"][0]["message"] = message
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


def one_cause(setup: HubSetup, *workers: WorkerInspection) -> tuple[FoldedFinding, ...]:
    """The problems of the hub and of its workers, folded as `doctor --workers` does."""
    rules = (check_condition, connections)
    of_hub = grouped(one for rule in rules for one in rule.findings(setup))
    found = fold((*of_hub, *examine_workers(setup, workers)))
    return tuple(one for one in found if one.finding.is_problem)


def equipped(cluster: str) -> WorkerInspection:
    """A worker with all that `doctor` looks at: 8 GPUs in the ClusterQueue of its LocalQueue."""
    found, setup = worker(cluster, "8"), hub()
    kinds = {(kind.group, kind.version, kind.plural) for kind in setup.worker_requirements.kinds}
    served = frozenset(ServedKind(*kind) for kind in kinds | {("kueue.x-k8s.io", "v1beta2", "workloads")})
    [queue] = found.objects[CLUSTER_QUEUE]
    active = {"conditions": [{"type": "Active", "status": "True", "reason": "Ready", "message": ""}]}
    objects = {
        CLUSTER_QUEUE: ({**queue, "spec": queue["spec"] | {"namespaceSelector": {}}, "status": active},),
        NAMESPACE: ({"metadata": {"name": QUEUE[0]}},),
        RESOURCE_FLAVOR: ({"metadata": {"name": "its-own"}},),
    }
    return replace(
        found,
        target=replace(found.target, queues=(ExpectedQueue(*QUEUE, "cluster-queue-demo1"),)),
        findings=WorkerFindings("Secret", served, kueue_version="v0.20.6"),
        objects={**found.objects, **objects},
    )


def without_queue(cluster: str) -> WorkerInspection:
    """Such a worker without the LocalQueue."""
    found = equipped(cluster)
    return replace(found, objects={**found.objects, LOCAL_QUEUE: ()})


def test_missing_local_queues_are_one_problem_with_all_that_follows_from_them() -> None:
    """The hub's quota is not to be lowered for it, and what the controller says of it is no other cause."""
    remarks = "; ".join(f"{one}: {NO_QUOTA_THERE}default/user-queue-demo1 (no such)" for one in THREE[:2])
    setup = hub("24", message=f"generated; {remarks}")
    found = one_cause(setup, without_queue("cluster1"), without_queue("cluster2"), equipped("cluster3"))
    [problem] = [one for one in found if one.finding.check == "worker-queues"]
    assert problem.finding.message.startswith("cluster1, cluster2: LocalQueues default/user-queue-demo1")
    assert [one.check for one in problem.follows] == ["check-condition", "hub-quota"]
    assert (
        "more than the 8 on 1 listed workers, as cluster1, cluster2 have no queue"
        in problem.follows[1].message
    )
    assert [one.finding.check for one in found] == ["worker-queues"]
    [quota] = warnings_with_fix(
        setup, without_queue("cluster1"), worker("cluster2", "8"), worker("cluster3", "7")
    )
    assert quota.fix == "placement-ac doctor --workers --cluster cluster1"


def warnings_with_fix(setup: HubSetup, *workers: WorkerInspection) -> list[Finding]:
    found = examine_fleet(Fleet(setup, tuple(InspectedWorker(setup, one) for one in workers)))
    return [one for one in found if one.is_problem]


def test_a_worker_that_does_not_answer_is_one_problem() -> None:
    setup = hub("24")
    raw = next(
        one for one in setup.dump.of(MULTIKUEUE_CLUSTER) if one["metadata"]["name"].endswith("cluster1")
    )
    condition = {"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "EOF"}
    raw["status"] = {"conditions": [condition]}
    target = WorkerTarget("cluster1", CredentialSource("Secret", "s"))
    silent = WorkerInspection(target, AccessProblem.UNREACHABLE, "it does not answer")
    [problem] = one_cause(setup, silent)
    assert problem.finding.check == "worker-access"
    assert [one.check for one in problem.follows] == ["connections"]
