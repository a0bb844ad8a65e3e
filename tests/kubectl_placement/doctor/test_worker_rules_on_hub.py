"""`doctor --workers`: each problem of a worker is reported alone, and its fix, pasted, repairs it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kubectl_placement.doctor.worker_rules import READS, RULES
from placement_lab.standins.multikueue import copy_of, hub_job, workload_of
from tests.kubectl_placement.doctor.worker_pair import (
    ALL_OK,
    CLUSTER,
    CRDS,
    KUEUE,
    QUEUE,
    SECRET,
    Object,
    Pair,
    needed,
)
from tests.support import kueue
from tests.support.admin import Admin, login_to
from tests.support.driver import CORE, NS
from tests.support.worker_copies import copy_of as copy_of_another_hub


@dataclass(frozen=True)
class Break:
    """`fixed_by`: for a fix that cannot be run here, or not alone."""

    id: str
    how: Callable[[Pair], Any]
    check: str
    level: str
    message: str
    fix: str
    fixed_by: Callable[[Pair], Any] | None = None


def queue_with(*flavors: str) -> Callable[[Pair], Any]:
    """Return what gives the worker's ClusterQueue these flavors."""

    def change(pair: Pair) -> None:
        spec = pair.worker.ask("GET", QUEUE)["spec"]
        [group] = spec["resourceGroups"]
        entries = [{"name": name, "resources": group["flavors"][0]["resources"]} for name in flavors]
        patch = {"spec": {"resourceGroups": [group | {"flavors": entries}]}}
        pair.worker.ask("PATCH", QUEUE, patch, "merge")

    return change


def without(path: str) -> Callable[[Pair], Any]:
    return lambda pair: pair.worker.ask("DELETE", path)


def selecting(selector: Object | None) -> Callable[[Pair], Any]:
    """Return what gives the worker's ClusterQueue this namespaceSelector."""
    return lambda pair: pair.worker.ask("PATCH", QUEUE, {"spec": {"namespaceSelector": selector}}, "merge")


def inactive(reason: str) -> Callable[[Pair], Any]:
    condition = {
        "type": "Active",
        "status": "False",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"conditions": [condition]}}
    return lambda pair: pair.worker.ask("PATCH", f"{QUEUE}/status", status, "merge")


def namesake(*, quota: bool) -> Callable[[Pair], Any]:
    """Return what makes a job of the hub wait for the worker, where a Job of somebody else has its name."""
    job = hub_job("train", "team", "q")
    nominated = {"nominatedClusterNames": [f"placement-tas-{CLUSTER}"]}
    reserved = {"type": "QuotaReserved", "status": str(quota), "reason": "QuotaReserved", "message": ""}
    reserved["lastTransitionTime"] = "2026-01-01T00:00:00Z"

    def change(pair: Pair) -> None:
        with Admin(login_to(pair.hub.hub)) as admin:
            [made] = admin.apply(job)
            waiting = workload_of(job | {"metadata": made["metadata"]})
            admin.apply(waiting | {"status": nominated})
        with Admin(login_to(pair.worker.hub)) as admin:
            admin.apply(job, copy_of(waiting, "multikueue") | {"status": {"conditions": [reserved]}})

    return change


CONFIG = f"{CORE}/namespaces/{NS}/configmaps/{kueue.CONFIG}"
ONLY_JOBS = "kind: Configuration\nintegrations: {frameworks: [batch/job]}\n"
JOB = "/apis/batch/v1/namespaces/team/jobs/train"
SAME_NAME = "it is another one of the same name"
PUT_SECRET = (
    "kubectl create secret generic -n kueue-system multikueue-cluster2"
    " --from-file=kubeconfig=cluster2.kubeconfig --dry-run=client -o yaml | kubectl apply -f -"
)
ADMITS = "ClusterQueue cluster-queue-tas admits"
APPLY = "kubectl --context cluster2 apply -f - <<'EOF'\n"
BREAKS = (
    Break(
        "the worker is away",
        lambda pair: pair.worker.hub.go_down(),
        "worker-access",
        "FAIL",
        f"the worker of Secret {NS}/multikueue-cluster2 cannot be reached: Connection refused: if it answers"
        " you, the address in the hub's credentials or the network between Kueue and it is wrong",
        "kubectl --context cluster2 get --raw /readyz",
        fixed_by=lambda pair: pair.worker.hub.come_back(),
    ),
    Break(
        "its token has been taken back",
        lambda pair: pair.secret("of-yesterday"),
        "worker-access",
        "FAIL",
        f"the worker does not accept the credentials of Secret {NS}/multikueue-cluster2",
        PUT_SECRET,
    ),
    Break(
        "nobody has put credentials there",
        lambda pair: pair.hub.ask("DELETE", SECRET),
        "worker-access",
        "FAIL",
        "there are no usable credentials: create Secret ",
        PUT_SECRET,
    ),
    Break(
        "a job kind is missing",
        without(f"{CRDS}/jobsets.jobset.x-k8s.io"),
        "worker-jobs",
        "FAIL",
        "install the CRDs of jobsets.v1alpha2.jobset.x-k8s.io (jobset.x-k8s.io/jobset) on the worker",
        "kubectl get crd jobsets.jobset.x-k8s.io -o yaml | kubectl --context cluster2 create -f -",
    ),
    Break(
        "its Kueue does not start a job kind",
        lambda pair: pair.worker.ask("PATCH", CONFIG, {"data": {kueue.KEY: ONLY_JOBS}}, "merge"),
        "worker-integrations",
        "WARN",
        "Kueue there does not start jobset.x-k8s.io/jobset: such a job that is sent there stays suspended",
        "kubectl --context cluster2 edit configmap -n kueue-system kueue-manager-config"
        "  # integrations: frameworks: jobset.x-k8s.io/jobset\n"
        "kubectl --context cluster2 rollout restart -n kueue-system deployment/kueue-controller-manager",
        fixed_by=Pair.set_up,
    ),
    *(
        Break(
            f"somebody's Job has the name of one that waits, {level}",
            namesake(quota=level == "FAIL"),
            "worker-same-names",
            level,
            f"rename or delete Job team/train there, or the hub's: {SAME_NAME}, and {end}",
            "kubectl --context cluster2 get jobs.batch -n team train -o yaml",
            fixed_by=without(JOB),
        )
        for level, end in (
            ("FAIL", "the hub's has quota there, so it is sent nowhere else and never runs"),
            ("WARN", "the hub's never runs if it gets quota there"),
        )
    ),
    Break(
        "another hub's job runs there",
        lambda pair: copy_of_another_hub(pair.worker, "job-theirs", "QuotaReserved", namespace="team"),
        "worker-origin",
        "FAIL",
        "set another multiKueue.origin in the configuration of Kueue on each hub: it has 1 unfinished "
        "Workload with quota, of origin multikueue, that this hub does not have, and Kueue deletes them with"
        " their jobs",
        "kubectl --context cluster2 get workloads -A -l kueue.x-k8s.io/multikueue-origin=multikueue",
        fixed_by=without(f"{KUEUE}/namespaces/team/workloads/job-theirs"),
    ),
    Break(
        "a right is missing",
        lambda pair: pair.grant("sender", *needed()[1:]),
        "worker-rights",
        "FAIL",
        "grant create, delete, get, patch, watch jobs.batch on the worker",
        APPLY + "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole",
    ),
    Break(
        "it may not be looked at",
        lambda pair: pair.grant("reader", READS[0]),
        "worker-access",
        "WARN",
        f"unknown, because the account of Secret {NS}/multikueue-cluster2 may not read it: localqueues,"
        " clusterqueues, resourceflavors, customresourcedefinitions, the release of Kueue",
        APPLY + "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole",
    ),
    Break(
        "a namespace is missing",
        without(f"{CORE}/namespaces/team"),
        "worker-queues",
        "FAIL",
        "namespaces team are missing: their jobs cannot run there",
        APPLY + "apiVersion: v1\nkind: Namespace",
    ),
    Break(
        "a LocalQueue is missing",
        without(f"{KUEUE}/namespaces/team/localqueues/q"),
        "worker-queues",
        "FAIL",
        "LocalQueues team/q are missing: their jobs cannot run there",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue",
    ),
    Break(
        "a LocalQueue is stopped",
        lambda pair: pair.worker.ask(
            "PATCH", f"{KUEUE}/namespaces/team/localqueues/q", {"spec": {"stopPolicy": "Hold"}}, "merge"
        ),
        "worker-queues",
        "FAIL",
        "LocalQueue team/q is stopped: its jobs cannot run there",
        "kubectl --context cluster2 patch localqueue q -n team --type=merge -p"
        """ '{"spec":{"stopPolicy":"None"}}'""",
    ),
    Break(
        "a ClusterQueue selects no namespace",
        selecting(None),
        "worker-cluster-queues",
        "FAIL",
        f"{ADMITS} no job: it has no namespaceSelector, so it selects no namespace",
        "kubectl --context cluster2 patch clusterqueue cluster-queue-tas --type=merge -p"
        """ '{"spec":{"namespaceSelector":{}}}'""",
    ),
    Break(
        "a ClusterQueue selects other namespaces",
        selecting({"matchLabels": {"kubernetes.io/metadata.name": "default"}}),
        "worker-cluster-queues",
        "FAIL",
        f"{ADMITS} no job of namespace team: its namespaceSelector selects others",
        "kubectl --context cluster2 edit clusterqueue cluster-queue-tas  # spec.namespaceSelector",
        fixed_by=selecting(
            {"matchLabels": None, "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
        ),
    ),
    Break(
        "a ClusterQueue is missing",
        without(QUEUE),
        "worker-cluster-queues",
        "FAIL",
        "LocalQueue default/user-queue-tas uses ClusterQueue cluster-queue-tas, which does not exist",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue",
    ),
    Break(
        "a ClusterQueue is stopped",
        inactive("Stopped"),
        "worker-cluster-queues",
        "FAIL",
        "ClusterQueue cluster-queue-tas is stopped",
        "kubectl --context cluster2 patch clusterqueue cluster-queue-tas --type=merge -p"
        """ '{"spec":{"stopPolicy":"None"}}\'""",
    ),
    Break(
        "a ClusterQueue is not active",
        inactive("CheckNotFoundOrInactive"),
        "worker-cluster-queues",
        "FAIL",
        "ClusterQueue cluster-queue-tas is not active (CheckNotFoundOrInactive)",
        "kubectl --context cluster2 describe clusterqueue cluster-queue-tas",
        fixed_by=lambda _: None,  # Kueue looks again
    ),
    Break(
        "a flavor is missing",
        queue_with("default-flavor-tas", "spot"),
        "worker-cluster-queues",
        "FAIL",
        "ClusterQueue cluster-queue-tas names ResourceFlavor spot, which does not exist",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor",
    ),
)


ROUNDS = (
    ("the worker is away",),
    ("its token has been taken back",),
    ("nobody has put credentials there",),
    ("it may not be looked at",),
    ("a namespace is missing",),
    ("a job kind is missing", "a LocalQueue is stopped", "a ClusterQueue selects no namespace"),
    ("its Kueue does not start a job kind", "a LocalQueue is missing", "a ClusterQueue is stopped"),
    ("somebody's Job has the name of one that waits, FAIL", "a flavor is missing"),
    ("somebody's Job has the name of one that waits, WARN", "a ClusterQueue selects other namespaces"),
    ("another hub's job runs there", "a ClusterQueue is not active"),
    ("a right is missing", "a ClusterQueue is missing"),
)
"""The problems of one hub at a time, each of another check."""


@pytest.mark.parametrize("ids", ROUNDS, ids=" and ".join)
def test_each_problem_is_reported_and_its_fix_repairs_it(broken_pair: Pair, ids: tuple[str, ...]) -> None:
    problems = [broken for broken in BREAKS if broken.id in ids]
    for broken in problems:
        broken.how(broken_pair)
    wrong = {one["check"]: one for one in broken_pair.doctor() if one["level"] in ("WARN", "FAIL")}
    found = {check: one["level"] for check, one in wrong.items()}
    assert found == {broken.check: broken.level for broken in problems}
    for broken in problems:
        one = wrong[broken.check]
        assert one["message"].startswith(f"{CLUSTER}: {broken.message}")
        assert one["fix"].startswith(broken.fix)
        if broken.fixed_by:
            broken.fixed_by(broken_pair)
        else:
            broken_pair.paste(one["fix"])
    broken_pair.kueue_looks()
    assert broken_pair.levels() == ALL_OK


def test_a_worker_that_does_not_say_which_jobs_it_has_is_inspected_in_all_else(broken_pair: Pair) -> None:
    namesake(quota=True)(broken_pair)
    broken_pair.worker.hub.faults.add("GET", "/jobs/train$", status=503, times=99)
    try:
        found = broken_pair.doctor()
    finally:
        broken_pair.worker.hub.faults.clear()
        without(JOB)(broken_pair)
    assert [(one["check"], one["level"]) for one in found] == [
        (check, "WARN" if check == "worker-same-names" else "OK") for check, _ in ALL_OK
    ]
    [wrong] = [one for one in found if one["level"] in ("WARN", "FAIL")]
    assert wrong["message"] == f"{CLUSTER}: unknown: the worker answered with HTTP 503"
    assert wrong["fix"] == f"placement-ac doctor --workers --cluster {CLUSTER}"


def test_the_hubs_own_job_that_kueue_has_not_recorded_yet_is_no_other(broken_pair: Pair) -> None:
    namesake(quota=True)(broken_pair)
    named = {"kueue.x-k8s.io/prebuilt-workload-name": "job-train"}
    marks = {"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}, "annotations": named}
    broken_pair.worker.ask("PATCH", JOB, {"metadata": marks}, "merge")
    levels = broken_pair.levels()
    without(JOB)(broken_pair)
    assert levels == ALL_OK


def test_every_rule_has_been_broken() -> None:
    by_reports = {"worker-kueue", "stored-versions"}  # in test_worker_rules
    assert {rule.check for rule in RULES} - by_reports == {broken.check for broken in BREAKS}
    assert sorted(broken.id for broken in BREAKS) == sorted(one for ids in ROUNDS for one in ids)
