"""
The stand-in for Kueue handles Workloads, on the hub and on workers, as recorded in shared/kueue.

Each test names the recording that it follows. Kueue's times pass 20 times as fast here.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import pytest

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.errors import Conflict, Refused
from placement_ac.core.api.managed_fields import nomination_body
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue import IN_USE
from placement_lab.standins.kueue_jobs import JOB
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import INCREMENTAL, PACES, KueueSettings, hub_job
from placement_lab.standins.multikueue.objects import (
    ORIGIN_LABEL,
    condition,
    is_condition_true,
    is_suspended,
)
from placement_lab.standins.runner import StandIns
from tests.support.admin import Admin, login_to
from tests.support.crds import plain_crd
from tests.support.kueue_objects import admission_check, kueue_object, multikueue_config, namespace, queues
from tests.support.real_hub import HubMaker

V = "v1beta2"
WORKLOADS, JOBS = WORKLOAD.at(V), JOB.at("v1")
TRAINJOB = Kind("trainer.kubeflow.org", "TrainJob", "trainjobs", True, ("v1alpha1",))
SPEED = 20.0
EXTERNAL = "open-cluster-management.io/placement"
KUEUE_ADMISSION = "kueue-admission"


def config(*clusters: str) -> Object:
    return multikueue_config("mkconfig", *clusters)


def our_check(status: str = "True") -> Object:
    said = {"type": "Active", "status": status, "reason": "Active", "message": "ok"}
    conditions = [said | {"lastTransitionTime": "2026-11-21T10:30:55Z"}]
    return admission_check("placement", "mkconfig", OUR_CONTROLLER, status={"conditions": conditions})


class WorkloadEnvironment(Admin):
    """A hub with Kueue, its workers, two queues ("cluster-queue" and, with our check, "cq-two")."""

    def __init__(self, login: Login, fleet: WorkerFleet, kueue: Callable[[], Kueue]) -> None:
        super().__init__(login)
        self.fleet = fleet
        self.kueue = kueue
        self._workers = {name: Admin(fleet.login(name)) for name in fleet.names}

    def __enter__(self) -> Self:
        for worker in self._workers.values():
            worker.__enter__()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for worker in self._workers.values():
            worker.__exit__()

    def on(self, worker: str) -> Admin:
        return self._workers[worker]

    def set_up(self, *, ready: bool = True) -> None:
        self.apply(namespace("kueue-system"))
        self.apply(*self.fleet.secrets(), *self.fleet.multikueue_clusters(), config(*self.fleet.names))
        self.apply(admission_check("multikueue", "mkconfig"), our_check())
        queue, gated = queues("cluster-queue", "multikueue"), queues("cq-two", "multikueue", "placement")
        self.apply(*queue, *gated)
        if ready:
            self.until(lambda: self.says("multikueue"), "True Active | The admission check is active")

    # -- writing

    def submit(self, name: str, queue: str = "cluster-queue") -> None:
        self.apply(hub_job(name, "default", queue))

    def answer(self, name: str, state: str, message: str = "", **more: Any) -> None:
        """Give our check's entry a state, as placement-ac does."""
        entry = {"name": "placement", "state": state, "message": message}
        entry |= {"lastTransitionTime": "2026-11-21T10:31:00Z"} | more
        body = {"metadata": self.identity(name), "status": {"admissionChecks": [entry]}}
        self.apply_status(WORKLOADS, body, manager="placement-ac", force=True)

    def identity(self, name: str) -> Object:
        metadata = self.workload(name)["metadata"]
        return {"name": metadata["name"], "namespace": metadata["namespace"]}

    def nominate(self, name: str, *clusters: str) -> None:
        """Nominate as a dispatcher should: with the version that was read, and again after a conflict."""
        for last in (False,) * 9 + (True,):
            body = nomination_body(self.workload(name), clusters)
            try:
                self.apply_status(WORKLOADS, body, manager=KUEUE_ADMISSION, force=True)
            except Conflict:
                if last:
                    raise
            else:
                return

    # -- reading

    def workload(self, name: str) -> Object:
        """The Workload of a Job; {} when there is none."""
        found = (w for w in self.list(WORKLOADS) if w["metadata"]["name"].startswith(f"job-{name}-"))
        return next(found, {})

    def job(self, name: str) -> Object | None:
        return self.get(JOBS, name, "default")

    def condition_line(self, name: str, kind: str) -> str | None:
        """A condition of the Workload, in the recordings' form."""
        found = condition(self.workload(name), kind)
        return f'{found["status"][0]}:{found["reason"]} "{found["message"]}"' if found else None

    def checks(self, name: str) -> dict[str, str]:
        entries = (self.workload(name).get("status") or {}).get("admissionChecks") or ()
        return {entry["name"]: f'{entry["state"]} "{entry["message"]}"' for entry in entries}

    def placed(self, name: str) -> tuple[str | None, list[str]]:
        """clusterName and nominatedClusterNames."""
        status = self.workload(name).get("status") or {}
        return status.get("clusterName"), status.get("nominatedClusterNames") or []

    def copies(self, name: str) -> list[str]:
        """The workers that hold a copy of the Job's Workload."""
        return [worker for worker in self.fleet.names if self.copy(name, worker)]

    def copy(self, name: str, worker: str) -> Object | None:
        found = self._workers[worker].list(WORKLOADS)
        return next((w for w in found if w["metadata"]["name"].startswith(f"job-{name}-")), None)

    def says(self, name: str) -> str | None:
        """Condition Active of a MultiKueueCluster or AdmissionCheck."""
        item = self.get(MULTIKUEUE_CLUSTER.at(V), name) or self.get(ADMISSION_CHECK.at(V), name)
        found = condition(item or {}, "Active")
        return f"{found['status']} {found['reason']} | {found['message']}" if found else None

    # -- waiting

    def wait(self, holds: Callable[[], object]) -> None:
        self.until(lambda: bool(holds()), True)

    def until_waiting(self, name: str, *workers: str) -> None:
        """Wait until each of these workers has a copy without quota."""
        for worker in workers:
            self.wait(lambda worker=worker: condition(self.copy(name, worker) or {}, "QuotaReserved"))

    def until_runs(self, name: str, *workers: str) -> None:
        self.until(lambda: self.fleet.counter.running(name), list(workers))

    def until_placed(self, name: str, worker: str) -> None:
        self.until(lambda: self.placed(name), (worker, []))
        self.until_runs(name, worker)

    def until_another_is_placed(self) -> None:
        """Wait until a later Job is placed: by then Kueue has finished its work on the others."""
        self.submit("another")
        self.wait(lambda: self.placed("another")[0])


Staged = Callable[..., WorkloadEnvironment]


@pytest.fixture
def staged(a_hub: HubMaker) -> Iterator[Staged]:
    """Starts a hub, workers and Kueue with the given options."""
    with ExitStack() as opened:

        def start(
            workers: int = 3, held: Any = (), pods: bool = True, ready: bool = True, **options: Any
        ) -> WorkloadEnvironment:
            names = [f"worker{index + 1}" for index in range(workers)]
            hub = opened.enter_context(a_hub())
            fleet = opened.enter_context(WorkerFleet(names, held=held, pods=pods))
            kueues: list[Kueue] = []

            def make(login: Login) -> Kueue:
                kueues.append(Kueue(login, speed=SPEED, **options))
                return kueues[0]

            opened.enter_context(StandIns(lambda: login_to(hub), [make]))
            stage = opened.enter_context(WorkloadEnvironment(login_to(hub), fleet, lambda: kueues[0]))
            stage.set_up(ready=ready)
            return stage

        yield start


# dispatch.log


def test_dispatch_a_job_runs_on_one_worker(staged: Staged) -> None:
    stage = staged()
    stage.submit("demo2")
    stage.wait(lambda: stage.placed("demo2")[0])
    [worker] = [stage.placed("demo2")[0] or ""]
    stage.until_placed("demo2", worker)
    stage.until(lambda: stage.condition_line("demo2", "Admitted"), 'T:Admitted "The workload is admitted"')
    assert stage.checks("demo2") == {"multikueue": f'Ready "The workload was admitted on "{worker}""'}
    assert (
        stage.condition_line("demo2", "QuotaReserved")
        == 'T:QuotaReserved "Quota reserved in ClusterQueue cluster-queue"'
    )
    stage.until(lambda: stage.copies("demo2"), [worker])
    stage.until(lambda: is_suspended(stage.job("demo2") or {}), False)
    assert (stage.copy("demo2", worker) or {})["metadata"]["labels"] == {ORIGIN_LABEL: "multikueue"}
    assert stage.workload("demo2")["metadata"]["finalizers"] == [IN_USE]
    assert stage.fleet.counter.counts_of("demo2") == {"maxCopies": 1, "starts": 1, "finished": False}


def test_dispatch_a_new_job_is_suspended_and_managed_by_multikueue(staged: Staged) -> None:
    stage = staged(held=["worker1", "worker2", "worker3"])
    item = hub_job("plain", "default", "cluster-queue")
    del item["spec"]["suspend"], item["spec"]["managedBy"]
    stage.apply(item)
    stage.until_waiting("plain", "worker1", "worker2", "worker3")
    spec = (stage.job("plain") or {})["spec"]
    assert (spec["suspend"], spec["managedBy"]) == (True, "kueue.x-k8s.io/multikueue")


def test_a_job_that_is_finished_on_its_worker_is_finished_on_the_hub(staged: Staged) -> None:
    stage = staged()
    stage.submit("d0")
    stage.wait(lambda: stage.fleet.finish("d0"))
    stage.wait(lambda: is_condition_true(stage.workload("d0"), "Finished"))
    assert is_condition_true(stage.job("d0") or {}, "Complete")
    stage.until(lambda: stage.copies("d0"), [])
    assert stage.fleet.counter.counts_of("d0") == {"maxCopies": 1, "starts": 1, "finished": True}


def test_config_deleted_deleting_a_job_deletes_its_copies(staged: Staged) -> None:
    stage = staged()
    stage.submit("d1")
    stage.wait(lambda: stage.fleet.counter.running("d1"))
    stage.delete(JOBS, "d1", "default")
    stage.until_runs("d1")
    stage.until(lambda: (stage.workload("d1"), stage.copies("d1")), ({}, []))


def test_a_workload_without_a_job_is_dispatched_and_deleted_at_once(staged: Staged) -> None:
    stage = staged(2)
    pods = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    item = kueue_object(
        "Workload",
        "job-bare-00000",
        {"queueName": "cluster-queue", "podSets": [{"name": "main", "count": 1, "template": pods}]},
    )
    item["metadata"]["namespace"] = "default"
    stage.apply(item)
    stage.wait(lambda: stage.placed("bare")[0])
    stage.delete(WORKLOADS, "job-bare-00000", "default")
    stage.until(lambda: (stage.workload("bare"), stage.copies("bare")), ({}, []))


def test_slots_of_the_hub(staged: Staged) -> None:
    stage = staged(slots=1)
    stage.submit("a")
    stage.wait(lambda: stage.placed("a")[0])
    stage.submit("b")
    stage.wait(lambda: stage.checks("b"))
    assert not is_condition_true(stage.workload("b"), "QuotaReserved")
    stage.fleet.finish("a")
    stage.wait(lambda: stage.fleet.counter.running("b"))


# second-check-unanswered-then-ready.log


def test_second_check_an_inactive_queue_reserves_nothing(staged: Staged) -> None:
    stage = staged()
    stage.apply(our_check("False"))
    stage.submit("two1", "cq-two")
    stage.until(
        lambda: stage.condition_line("two1", "QuotaReserved"), 'F:Suspended "ClusterQueue cq-two is inactive"'
    )
    assert stage.condition_line("two1", "Admitted") == 'F:NoReservation "The workload has no reservation"'
    assert stage.checks("two1") == {"multikueue": 'Pending ""', "placement": 'Pending ""'}
    stage.apply(our_check())
    stage.wait(lambda: is_condition_true(stage.workload("two1"), "QuotaReserved"))


def test_second_check_nothing_reaches_a_worker_before_it_is_ready(staged: Staged) -> None:
    stage = staged()
    stage.submit("two1", "cq-two")
    stage.wait(lambda: is_condition_true(stage.workload("two1"), "QuotaReserved"))
    stage.until_another_is_placed()
    assert (stage.placed("two1"), stage.copies("two1")) == ((None, []), [])
    stage.answer("two1", "Ready", "placement decided")
    stage.wait(lambda: stage.placed("two1")[0])
    assert stage.checks("two1")["placement"] == 'Ready "placement decided"'


def test_second_check_pending_is_ignored_on_an_admitted_workload(staged: Staged) -> None:
    stage = staged()
    stage.submit("two1", "cq-two")
    stage.wait(lambda: stage.workload("two1").get("status", {}).get("admissionChecks"))
    stage.answer("two1", "Ready")
    stage.wait(lambda: is_condition_true(stage.workload("two1"), "Admitted"))
    stage.answer("two1", "Pending", "re-deciding")
    stage.until_another_is_placed()
    assert stage.checks("two1")["placement"] == 'Pending "re-deciding"'
    assert is_condition_true(stage.workload("two1"), "Admitted")


def test_second_check_retry_evicts_and_resets_every_check(staged: Staged) -> None:
    stage = staged(pods=False)  # else quota ends only with a new copy, if the hub knows of active Pods
    stage.submit("two1", "cq-two")
    stage.wait(lambda: stage.workload("two1").get("status", {}).get("admissionChecks"))
    stage.answer("two1", "Ready")
    stage.wait(lambda: stage.fleet.counter.running("two1"))
    stage.answer("two1", "Retry", "placement changed")
    previously = "Reset to Pending after eviction. Previously"
    stage.until(
        lambda: stage.checks("two1"),
        {"multikueue": f'Pending "{previously}: Ready"', "placement": f'Pending "{previously}: Retry"'},
    )
    stage.until_runs("two1")
    because = 'AdmissionCheck in Retry state: "placement" (placement changed)'
    expected = f'F:QuotaReserved "Previously: Evicted due to {because}"'
    stage.until(lambda: stage.condition_line("two1", "Evicted"), expected)
    stage.answer("two1", "Ready", "new decision")
    stage.wait(lambda: stage.fleet.counter.running("two1"))
    assert stage.fleet.counter.counts_of("two1") == {"maxCopies": 1, "starts": 2, "finished": False}


def test_second_check_rejected_deactivates(staged: Staged) -> None:
    stage = staged(pods=False)  # as in the recording; Kueue keeps the quota while the Job counts active Pods
    stage.submit("two1", "cq-two")
    stage.wait(lambda: stage.workload("two1").get("status", {}).get("admissionChecks"))
    stage.answer("two1", "Ready")
    stage.wait(lambda: stage.fleet.counter.running("two1"))
    stage.answer("two1", "Rejected", "no cluster matches")
    stage.until(
        lambda: stage.condition_line("two1", "QuotaReserved"), 'F:Deactivated "The workload is deactivated"'
    )
    assert stage.workload("two1")["spec"]["active"] is False
    stage.until_runs("two1")


# cluster-unlisted-while-running.log, cluster-unlisted-variants.log


def test_cluster_unlisted_while_running_runs_the_job_twice(staged: Staged) -> None:
    stage = staged(2, held=["worker1"])
    stage.submit("b1")
    stage.until_placed("b1", "worker2")
    stage.fleet.release("worker1")
    stage.apply(config("worker1"))
    stage.until_runs("b1", "worker1", "worker2")
    stage.until(lambda: stage.placed("b1"), ("worker1", []))
    assert stage.fleet.counter.counts_of("b1") == {"maxCopies": 2, "starts": 2, "finished": False}
    stage.delete(JOBS, "b1", "default")
    stage.until(lambda: stage.copies("b1"), [])


def test_cluster_unlisted_variants_listed_again_deletes_the_newer_copy(staged: Staged) -> None:
    stage = staged(2, held=["worker1"])
    stage.submit("b3")
    stage.until_placed("b3", "worker2")
    stage.fleet.release("worker1")
    stage.apply(config("worker1"))
    stage.until(lambda: stage.placed("b3"), ("worker1", []))
    stage.until_runs("b3", "worker1", "worker2")
    stage.apply(config("worker1", "worker2"))
    stage.until_runs("b3", "worker2")
    assert stage.placed("b3") == ("worker1", [])


# worker-lost-and-back.log


def test_worker_lost_and_back(staged: Staged) -> None:
    stage = staged(2, held=["worker1"], settings=KueueSettings(worker_lost_seconds=10))
    stage.submit("b4")
    stage.until_placed("b4", "worker2")
    stage.fleet.release("worker1")
    stage.fleet.kill("worker2")
    url = stage.fleet.hubs["worker2"].secure_url
    refused = (
        f'False ClientConnectionFailed | failed to get server groups: Get "{url}/api": dial tcp'
        f" {url.removeprefix('https://')}: connect: connection refused; connection attempts: "
    )
    stage.wait(lambda: (stage.says("worker2") or "").startswith(f"{refused}2, next connection attempt: 2"))
    stage.until(lambda: stage.says("multikueue"), "True SomeActiveClusters | Inactive clusters: [worker2]")
    stage.until(lambda: stage.placed("b4"), ("worker1", []))
    stage.until_runs("b4", "worker1", "worker2")
    stage.fleet.revive("worker2")
    stage.until(lambda: stage.says("worker2"), "True Active | Connected")
    stage.until_runs("b4", "worker2")
    assert stage.fleet.counter.counts_of("b4") == {"maxCopies": 2, "starts": 2, "finished": False}


# broken-configuration.txt


def test_broken_configuration_unknown_token(staged: Staged) -> None:
    stage = staged(2)
    text = stage.fleet.kubeconfig("worker1").decode().replace(stage.fleet.hubs["worker1"].token, "wrong")
    patch = {"stringData": {"kubeconfig": text}}
    stage.merge(SECRET.at("v1"), "multikueue-worker1", patch, namespace="kueue-system")
    expected = (
        "False ClientConnectionFailed | failed to get server groups:"
        " the server has asked for the client to provide credentials; connection attempts: "
    )
    stage.wait(lambda: (stage.says("worker1") or "").startswith(expected))
    stage.apply(*stage.fleet.secrets())
    stage.until(lambda: stage.says("worker1"), "True Active | Connected")


def test_broken_configuration_token_without_permissions(staged: Staged) -> None:
    stage = staged(2)
    why = "workloads.kueue.x-k8s.io is forbidden"
    forbidden = {"kind": "Status", "status": "Failure", "message": why, "reason": "Forbidden", "code": 403}
    stage.fleet.hubs["worker1"].faults.add("GET", "/workloads$", status=403, body=forbidden, times=1000)
    stage.fleet.hubs["worker1"].drop_watches("error-500", "workloads")
    stage.wait(
        lambda: (stage.says("worker1") or "").startswith(
            f"False ClientConnectionFailed | {why}; connection attempts: "
        )
    )


def test_broken_configuration_invalid_ca(staged: Staged) -> None:
    stage = staged(2)
    found = json.loads(stage.fleet.kubeconfig("worker1"))
    found["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(b"none").decode()
    patch = {"stringData": {"kubeconfig": json.dumps(found)}}
    stage.merge(SECRET.at("v1"), "multikueue-worker1", patch, namespace="kueue-system")
    stage.wait(lambda: (stage.says("worker1") or "").startswith("False ClientConnectionFailed | "))


def test_a_worker_that_lacks_a_job_kind_is_not_connected(staged: Staged) -> None:
    """By its code: one missing CRD disconnects the worker for all jobs (issue 15157)."""
    stage = staged(2, job_kinds=[TRAINJOB], ready=False)
    missing = 'no matches for kind "TrainJob" in version "trainer.kubeflow.org/v1alpha1"'
    refused = f"False ClientConnectionFailed | {missing}"
    stage.wait(lambda: (stage.says("worker2") or "").startswith(refused))
    stage.on("worker1").apply(plain_crd(TRAINJOB.group, TRAINJOB.kind, "v1alpha1"))
    stage.until(lambda: stage.says("worker1"), "True Active | Connected")
    stage.submit("b1")
    stage.until_placed("b1", "worker1")


# jobs that a worker removes


@pytest.mark.parametrize(
    ("ttl", "settings", "starts"),
    [
        pytest.param(0, {}, 2, id="it runs twice"),
        pytest.param(0, {"clears_ttl": True}, 1, id="with the gate, it does not"),
        pytest.param(900, {}, 1, id="a time in which the hub sees the end"),
    ],
)
def test_a_finished_job_that_its_worker_removes_runs_again(
    staged: Staged, ttl: int, settings: Any, starts: int
) -> None:
    """By its code (issue 14734): the hub looks after its batch period, and finds neither Job nor copy."""
    stage = staged(1, settings=KueueSettings(events_batch_seconds=SPEED, **settings))
    job = hub_job("b1", "default", "cluster-queue")
    stage.apply(job | {"spec": job["spec"] | {"ttlSecondsAfterFinished": ttl}})
    stage.until(lambda: (stage.job("b1") or {}).get("status", {}).get("active"), 1)  # it looks at nothing now
    assert stage.fleet.finish("b1") == ["worker1"]
    if starts == 1:
        stage.wait(lambda: is_condition_true(stage.workload("b1"), "Finished"))
    else:
        stage.wait(lambda: "no longer exists" in (stage.condition_line("b1", "Evicted") or ""))
    stage.until(lambda: stage.fleet.counter.counts_of("b1")["starts"], starts)
    assert is_condition_true(stage.workload("b1"), "Finished") is (starts == 1)


# copies that do not run their Job


@pytest.mark.parametrize("reason", ["OutOfSync", "OwnerNotFound"])
def test_a_copy_that_ends_out_of_sync_is_dispatched_again(staged: Staged, reason: str) -> None:
    """By its code: Kueue compares the two when the Job is new, before it has Pods."""
    stage = staged(1, pods=False)
    stage.submit("b1")
    stage.until_placed("b1", "worker1")
    assert stage.fleet.end_copy("b1", reason) == ["worker1"]
    stage.until(lambda: stage.fleet.counter.counts_of("b1")["starts"], 2)
    stage.until_placed("b1", "worker1")
    evicted = stage.condition_line("b1", "Evicted") or ""
    assert 'Remote workload on worker cluster "worker1" is out of sync with its user job' in evicted
    assert not condition(stage.workload("b1"), "Finished")


def test_a_copy_that_ends_while_its_pods_run_blocks_the_job(staged: Staged) -> None:
    """By its code (issue 14521): the hub's Job seems to have Pods, so quota and copy stay."""
    stage = staged(1)
    stage.submit("b1")
    stage.until(lambda: (stage.job("b1") or {}).get("status", {}).get("active"), 1)
    stage.fleet.end_copy("b1", "OutOfSync")
    stage.wait(lambda: is_condition_true(stage.workload("b1"), "Evicted"))
    stage.until_another_is_placed()
    assert (stage.placed("b1"), stage.fleet.counter.running("b1")) == ((None, []), [])
    assert is_condition_true(stage.workload("b1"), "QuotaReserved")
    stage.on("worker1").delete(WORKLOADS, stage.identity("b1")["name"], "default")
    stage.until_placed("b1", "worker1")


def test_a_copy_beside_a_foreign_job_takes_quota_and_never_runs(staged: Staged) -> None:
    stage = staged(2, held=["worker2"])
    stage.on("worker1").apply(hub_job("b1", "default", "user-queue"))
    stage.submit("b1")
    stage.wait(lambda: is_condition_true(stage.copy("b1", "worker1") or {}, "Admitted"))
    stage.until(lambda: stage.copies("b1"), ["worker1"])
    stage.fleet.release("worker2")
    stage.until_another_is_placed()
    assert stage.placed("b1") == (None, ["worker1", "worker2"])
    assert stage.fleet.counter.running("b1") == []
    stage.on("worker1").delete(JOBS, "b1", "default")
    stage.until_placed("b1", "worker1")


def test_a_deleted_cluster_is_ignored(staged: Staged) -> None:
    stage = staged(2, held=["worker1"])
    stage.submit("b2")
    stage.until_placed("b2", "worker2")
    stage.apply(config("worker1"))
    stage.delete(MULTIKUEUE_CLUSTER.at(V), "worker2")
    stage.fleet.release("worker1")
    stage.until(lambda: stage.placed("b2"), ("worker1", []))
    stage.delete(JOBS, "b2", "default")
    stage.until(lambda: stage.workload("b2"), {})
    assert stage.copies("b2") == ["worker2"]
    assert stage.fleet.counter.running("b2") == ["worker2"]


# nominated-cluster-unlisted-incremental.log


def test_incremental_nominates_by_rounds_in_the_order_of_the_config(staged: Staged) -> None:
    settings = KueueSettings(dispatcher=INCREMENTAL, step_size=1, round_seconds=10)
    stage = staged(2, held=["worker1", "worker2"], settings=settings)
    stage.apply(config("worker2", "worker1"))
    stage.submit("cc1")
    stage.until(lambda: stage.placed("cc1"), (None, ["worker2"]))
    stage.until(lambda: stage.placed("cc1"), (None, ["worker2", "worker1"]))
    stage.fleet.release("worker1")
    stage.until_placed("cc1", "worker1")


def test_nominated_cluster_unlisted_its_copy_stays_behind(staged: Staged) -> None:
    settings = KueueSettings(dispatcher=INCREMENTAL, step_size=1, round_seconds=10)
    stage = staged(2, held=["worker1", "worker2"], settings=settings)
    stage.apply(config("worker2", "worker1"))
    stage.submit("cc1")
    stage.until_waiting("cc1", "worker2")
    stage.apply(config("worker1"))
    stage.fleet.release("worker1", "worker2")
    stage.until_placed("cc1", "worker1")
    assert stage.copies("cc1") == ["worker1", "worker2"]
    assert is_condition_true(stage.copy("cc1", "worker2") or {}, "QuotaReserved")


# config-deleted.log


def test_config_deleted_evicts_and_admits_nothing(staged: Staged) -> None:
    stage = staged(2)
    stage.submit("d2")
    stage.wait(lambda: stage.fleet.counter.running("d2"))
    stage.delete(MULTIKUEUE_CONFIG.at(V), "mkconfig")
    stage.wait(lambda: (stage.says("multikueue") or "").startswith("False BadConfig"))
    stage.submit("d2b")
    inactive = 'F:Suspended "ClusterQueue cluster-queue is inactive"'
    stage.until(lambda: stage.condition_line("d2b", "QuotaReserved"), inactive)
    assert is_condition_true(stage.workload("d2"), "Admitted")
    stage.apply(config("worker1", "worker2"))
    stage.wait(lambda: stage.fleet.counter.running("d2b"))
    assert stage.fleet.counter.counts_of("d2") == {"maxCopies": 1, "starts": 1, "finished": False}


def test_config_deleted_orphaned_copies_are_collected(staged: Staged) -> None:
    stage = staged(2, settings=KueueSettings(gc_seconds=10))
    stage.submit("d2")
    stage.wait(lambda: stage.fleet.counter.running("d2"))
    stage.delete(MULTIKUEUE_CONFIG.at(V), "mkconfig")
    stage.wait(lambda: (stage.says("multikueue") or "").startswith("False BadConfig"))
    stage.delete(JOBS, "d2", "default")
    stage.until(lambda: stage.workload("d2"), {})
    stage.until(lambda: stage.copies("d2"), [])
    stage.until_runs("d2")


# gate.txt


def test_gate_retry_deletes_waiting_copies(staged: Staged) -> None:
    workers = ["worker1", "worker2", "worker3"]
    stage = staged(held=workers)
    stage.submit("g", "cq-two")
    stage.wait(lambda: stage.checks("g"))
    stage.answer("g", "Ready")
    stage.until_waiting("g", *workers)
    stage.answer("g", "Retry", "worker2 leaves")
    stage.until(lambda: stage.copies("g"), [])
    stage.wait(lambda: is_condition_true(stage.workload("g"), "QuotaReserved"))
    stage.until(lambda: stage.placed("g"), (None, []))
    stage.apply(config("worker1", "worker3"))
    stage.answer("g", "Ready")
    stage.until_waiting("g", "worker1", "worker3")
    stage.fleet.release(*workers)
    stage.wait(lambda: stage.placed("g")[0])
    assert "worker2" not in stage.copies("g")
    stage.wait(lambda: stage.fleet.counter.counts_of("g")["starts"])
    assert stage.fleet.counter.counts_of("g") == {"maxCopies": 1, "starts": 1, "finished": False}


def test_gate_a_retry_after_admission_may_leave_the_copy(staged: Staged) -> None:
    stage = staged(2, held=["worker1", "worker2"], settings=KueueSettings(events_batch_seconds=100))
    stage.submit("g", "cq-two")
    stage.wait(lambda: stage.checks("g"))
    stage.answer("g", "Ready")
    stage.until_waiting("g", "worker1", "worker2")
    stage.kueue().slow_to_retry = True
    stage.fleet.release("worker2")
    stage.wait(lambda: is_condition_true(stage.copy("g", "worker2") or {}, "QuotaReserved"))
    stage.answer("g", "Retry", "worker2 leaves")
    stage.until_runs("g", "worker2")
    assert stage.copies("g") == ["worker2"]


def test_gate_a_retry_with_an_old_version_does_not_evict_a_placed_job(staged: Staged) -> None:
    stage = staged(2)
    stage.submit("g", "cq-two")
    stage.wait(lambda: stage.checks("g"))
    old = stage.workload("g")["metadata"]["resourceVersion"]
    stage.answer("g", "Ready")
    stage.wait(lambda: stage.placed("g")[0])
    entry = {
        "name": "placement",
        "state": "Retry",
        "message": "",
        "lastTransitionTime": "2026-11-21T10:31:00Z",
    }
    metadata = stage.identity("g") | {"resourceVersion": old}
    body = {"metadata": metadata, "status": {"admissionChecks": [entry]}}
    with pytest.raises(Exception, match="the object has been modified"):
        stage.apply_status(WORKLOADS, body, manager="placement-ac", force=True)
    assert stage.checks("g")["placement"] == 'Ready ""'


# external-dispatcher.txt


@pytest.fixture
def external(staged: Staged) -> WorkloadEnvironment:
    settings = KueueSettings(dispatcher=EXTERNAL, events_batch_seconds=20)
    return staged(held=["worker1", "worker2", "worker3"], settings=settings)


def submitted(stage: WorkloadEnvironment, name: str) -> None:
    stage.submit(name)
    stage.wait(lambda: is_condition_true(stage.workload(name), "QuotaReserved"))
    stage.wait(lambda: condition(stage.workload(name), "Admitted"))


def test_external_dispatcher_the_whole_apply_as_kueue_works(external: WorkloadEnvironment) -> None:
    submitted(external, "e")
    external.nominate("e", "worker2")
    external.until_waiting("e", "worker2")
    assert is_condition_true(external.workload("e"), "QuotaReserved")
    external.fleet.release("worker2")
    external.until_placed("e", "worker2")
    assert external.copies("e") == ["worker2"]
    with pytest.raises(Refused, match="mutually exclusive"):
        external.nominate("e", "worker3")


def by_merge(stage: WorkloadEnvironment, manager: str) -> None:
    patch = {"status": {"nominatedClusterNames": ["worker2"]}}
    where = stage.identity("e")
    stage.merge(WORKLOADS, where["name"], patch, namespace="default", subresource="status")


def by_apply(stage: WorkloadEnvironment, manager: str) -> None:
    body = {"metadata": stage.identity("e"), "status": {"nominatedClusterNames": ["worker2"]}}
    stage.apply_status(WORKLOADS, body, manager=manager, force=True)


@pytest.mark.parametrize("write", [by_merge, by_apply])
def test_external_dispatcher_fields_of_another_manager_are_never_cleared(
    external: WorkloadEnvironment, write: Callable[[WorkloadEnvironment, str], None]
) -> None:
    submitted(external, "e")
    external.fleet.release("worker2")
    write(external, "dispatcher")
    external.wait(lambda: is_condition_true(external.copy("e", "worker2") or {}, "Admitted"))
    submitted(external, "f")
    external.nominate("f", "worker2")
    external.until_placed("f", "worker2")
    assert external.placed("e") == (None, ["worker2"])


def test_external_dispatcher_applying_only_the_names_removes_the_admission(
    external: WorkloadEnvironment,
) -> None:
    submitted(external, "e")
    body = {"metadata": external.identity("e"), "status": {"nominatedClusterNames": ["worker2"]}}
    answer = external.apply_status(WORKLOADS, body, manager=KUEUE_ADMISSION, force=True)
    left = {"admissionChecks", "conditions", "nominatedClusterNames"}
    assert answer["status"].keys() == left
    assert [one["type"] for one in answer["status"]["conditions"]] == ["PodsReady"]
    external.wait(lambda: is_condition_true(external.workload("e"), "QuotaReserved"))


def test_external_dispatcher_a_denominated_copy_is_deleted(external: WorkloadEnvironment) -> None:
    submitted(external, "e")
    external.nominate("e", "worker2", "worker3")
    external.until_waiting("e", "worker2", "worker3")
    external.nominate("e", "worker3")
    external.until(lambda: external.copies("e"), ["worker3"])
    external.apply(config("worker1", "worker3"))
    external.fleet.release("worker2", "worker3")
    external.until_placed("e", "worker3")
    assert external.copies("e") == ["worker3"]


def denominated_during_admission(external: WorkloadEnvironment) -> None:
    """Let worker2 admit the copy of `e`, and remove worker2 from the nominations before Kueue records it."""
    submitted(external, "e")
    external.nominate("e", "worker2", "worker3")
    external.until_waiting("e", "worker2", "worker3")
    external.fleet.release("worker2")
    external.wait(lambda: is_condition_true(external.copy("e", "worker2") or {}, "Admitted"))
    external.nominate("e", "worker3")
    external.until_runs("e", "worker2")


def test_external_dispatcher_the_race_and_its_fix(external: WorkloadEnvironment) -> None:
    denominated_during_admission(external)
    external.until(lambda: external.copies("e"), ["worker2"])
    assert external.placed("e") == (None, ["worker3"])
    external.nominate("e", "worker2", "worker3")
    external.until_placed("e", "worker2")
    assert external.fleet.counter.counts_of("e") == {"maxCopies": 1, "starts": 1, "finished": False}


def test_external_dispatcher_the_race_then_unlisting_runs_the_job_twice(
    external: WorkloadEnvironment,
) -> None:
    denominated_during_admission(external)
    external.fleet.release("worker3")
    external.apply(config("worker1", "worker3"))
    external.until_runs("e", "worker2", "worker3")
    assert external.fleet.counter.counts_of("e")["maxCopies"] == 2


def test_external_dispatcher_draining(external: WorkloadEnvironment) -> None:
    external.fleet.release("worker1", "worker2")
    submitted(external, "d0")
    external.nominate("d0", "worker2")
    external.until_placed("d0", "worker2")
    submitted(external, "d1")
    external.nominate("d1", "worker1")
    external.until_placed("d1", "worker1")
    assert external.fleet.finish("d0") == ["worker2"]
    external.wait(lambda: is_condition_true(external.workload("d0"), "Finished"))
    external.until(lambda: external.copies("d0"), [])
    external.apply(config("worker1", "worker3"))
    external.until(lambda: external.says("multikueue"), "True Active | The admission check is active")
    assert external.placed("d1") == ("worker1", [])
    assert external.fleet.counter.counts_of("d1") == {"maxCopies": 1, "starts": 1, "finished": False}


# flips.md: what a list write costs


def copies_read(stage: WorkloadEnvironment) -> dict[str, list[str]]:
    """The copies that Kueue has read from each worker, one by one."""
    journals = {name: list(hub.journal) for name, hub in stage.fleet.hubs.items()}
    return {
        name: [one.path for one in journal if one.method == "GET" and "/workloads/job-" in one.path]
        for name, journal in journals.items()
    }


def read_at(stage: WorkloadEnvironment) -> list[float]:
    """When Kueue has read a copy, sorted."""
    journals = [request for hub in stage.fleet.hubs.values() for request in hub.journal[:]]
    return sorted(r.at for r in journals if r.method == "GET" and "/workloads/job-" in r.path)


def test_a_list_write_reads_each_copy_from_each_worker(staged: Staged) -> None:
    stage = staged()
    names = [f"one{number}" for number in range(6)]
    for name in names:
        stage.submit(name)
    stage.wait(lambda: all(stage.placed(name)[0] for name in names))
    stage.kueue().throttled = True
    before = copies_read(stage)
    stage.apply(config(*reversed(stage.fleet.names)))
    stage.wait(lambda: all(len(set(read)) == 6 for read in copies_read(stage).values()))
    assert not any(before.values())


@pytest.mark.parametrize("pace", ["0.18", "0.19 without groupKindConcurrency", "0.20"])
def test_after_a_list_write_as_many_workloads_are_read_at_once_as_the_release_does(
    staged: Staged, pace: str
) -> None:
    stage, at_once = staged(settings=KueueSettings(pace=PACES[pace])), PACES[pace].workloads_at_once
    names = [f"one{number}" for number in range(at_once + 1)]
    for name in names:
        stage.submit(name)
    stage.wait(lambda: all(stage.placed(name)[0] for name in names))
    for hub in stage.fleet.hubs.values():
        hub.faults.add("GET", "/workloads/job-", delay=1.0, times=1000)
    stage.kueue().throttled = True
    stage.apply(config(*reversed(stage.fleet.names)))
    stage.wait(lambda: len(read_at(stage)) > at_once)
    first, *_ = times = read_at(stage)
    assert sum(at < first + 0.8 for at in times) == at_once


def test_a_job_runs_on_one_worker_although_kueue_is_throttled(staged: Staged) -> None:
    stage = staged(throttled=True)
    stage.submit("demo3")
    stage.wait(lambda: stage.placed("demo3")[0])
    worker = stage.placed("demo3")[0] or ""
    stage.until_placed("demo3", worker)
    stage.fleet.finish("demo3")
    stage.wait(lambda: stage.condition_line("demo3", "Finished"))
    stage.until(lambda: stage.copies("demo3"), [])
    assert stage.fleet.counter.counts_of("demo3") == {"maxCopies": 1, "starts": 1, "finished": True}


def test_a_deleted_job_leaves_no_copy_although_kueue_is_throttled(staged: Staged) -> None:
    stage = staged(throttled=True)
    stage.submit("demo4")
    stage.wait(lambda: stage.fleet.counter.running("demo4"))
    stage.delete(JOBS, "demo4", "default")
    stage.until(lambda: stage.copies("demo4"), [])
