"""
The stand-in for a worker's Kueue behaves as recorded in shared/kueue, and the fleet counts running Jobs.

Each test names the recording that it follows. The test itself makes MultiKueue's writes.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from placement_ac.core.api.constants import JOB, LABEL_ORIGIN, PREBUILT_WORKLOAD, WORKLOAD
from placement_ac.kube.client import Object
from placement_lab.standins.fleet import WorkerFleet
from tests.support.admin import Admin, login_to
from tests.support.installation import contains
from tests.support.real_hub import HubMaker

WORKLOADS, JOBS = WORKLOAD.at("v1beta2"), JOB.at("v1")
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
ORIGIN = {LABEL_ORIGIN: "multikueue"}

QUOTA = "QuotaReserved=T:QuotaReserved Quota reserved in ClusterQueue cluster-queue"
ADMITTED = "Admitted=T:Admitted The workload is admitted"
HELD = "QuotaReserved=F:Suspended ClusterQueue cluster-queue is inactive"
NO_RESERVATION = "Admitted=F:NoReservation The workload has no reservation"


def copy_of(name: str) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"job-{name}-abcde", "namespace": "default", "labels": ORIGIN},
        "spec": {"queueName": "user-queue", "podSets": [{"name": "main", "count": 1, "template": TEMPLATE}]},
    }


def job_of(name: str) -> Object:
    annotations = {PREBUILT_WORKLOAD: f"job-{name}-abcde"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": ORIGIN, "annotations": annotations},
        "spec": {"suspend": True, "template": TEMPLATE},
    }


class OnWorker(Admin):
    """MultiKueue's requests to one worker."""

    def conditions(self, name: str) -> list[str] | None:
        """The conditions of the copy, in the recordings' form and sorted; None without a copy."""
        item = self.get(WORKLOADS, f"job-{name}-abcde", "default")
        found = ((item or {}).get("status") or {}).get("conditions") or ()
        lines = sorted(f"{c['type']}={c['status'][0]}:{c['reason']} {c['message']}" for c in found)
        return lines if item else None

    def expect(self, name: str, *conditions: str) -> None:
        self.until(lambda: self.conditions(name), sorted(conditions))

    def job(self, name: str) -> tuple[bool, bool] | None:
        """Whether the Job is suspended, and whether it has started."""
        item = self.get(JOBS, name, "default")
        return (item["spec"]["suspend"], "startTime" in (item.get("status") or {})) if item else None

    def deactivate(self, name: str, message: str) -> None:
        """Deactivate the copy, as MultiKueue does after an eviction on the hub."""
        item = self.get(WORKLOADS, f"job-{name}-abcde", "default") or {}
        target = {
            "type": "DeactivationTarget",
            "status": "True",
            "reason": "EvictedOnManagerCluster",
            "message": message,
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }
        conditions = [*item["status"]["conditions"], target]
        patch = {"status": {"conditions": conditions}}
        self.merge(WORKLOADS, f"job-{name}-abcde", patch, namespace="default", subresource="status")


Opened = Callable[..., tuple[WorkerFleet, OnWorker]]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Starts a fleet with one worker, `w`."""
    with ExitStack() as stack:

        def start(**options: Any) -> tuple[WorkerFleet, OnWorker]:
            fleet = stack.enter_context(WorkerFleet(["w"], **options))
            return fleet, stack.enter_context(OnWorker(fleet.login("w")))

        yield start


def test_dispatch_a_copy_gets_quota_and_its_job_runs(opened: Opened) -> None:
    fleet, worker = opened()
    worker.apply(copy_of("demo2"))
    worker.expect("demo2", ADMITTED, QUOTA)
    worker.apply(job_of("demo2"))
    worker.until(lambda: worker.job("demo2"), (False, True))
    worker.expect("demo2", ADMITTED, QUOTA)
    assert fleet.counter.counts_of("demo2") == {"maxCopies": 1, "starts": 1, "finished": False}


def test_cluster_unlisted_while_running_a_held_worker_reserves_no_quota(opened: Opened) -> None:
    fleet, worker = opened(held=["w"])
    worker.apply(copy_of("b1"))
    worker.expect("b1", HELD, NO_RESERVATION)
    fleet.release("w")
    worker.expect("b1", ADMITTED, QUOTA)


def test_deleting_a_workload_frees_its_slot(opened: Opened) -> None:
    fleet, worker = opened(slots=1)
    worker.apply(copy_of("a"))
    worker.expect("a", ADMITTED, QUOTA)
    worker.apply(copy_of("b"))
    worker.expect("b", HELD, NO_RESERVATION)
    worker.delete(WORKLOADS, "job-a-abcde", "default")
    worker.expect("b", ADMITTED, QUOTA)
    worker.apply(copy_of("c"))
    worker.expect("c", HELD, NO_RESERVATION)
    fleet.resize("w", 2)
    worker.expect("c", ADMITTED, QUOTA)


def test_finishing_frees_the_slot(opened: Opened) -> None:
    fleet, worker = opened(slots=1)
    worker.apply(copy_of("a"), job_of("a"))
    worker.until(lambda: worker.job("a"), (False, True))
    worker.apply(copy_of("b"))
    assert fleet.finish("a") == ["w"]
    worker.expect("b", ADMITTED, QUOTA)
    done = "Finished=T:Succeeded Reached expected number of succeeded pods"
    worker.until(lambda: done in (worker.conditions("a") or ()), True)
    worker.until(lambda: fleet.counter.counts_of("a"), {"maxCopies": 1, "starts": 1, "finished": True})
    assert fleet.finish("a") == []


def test_cluster_unlisted_while_running_a_deactivated_copy_keeps_its_quota_until_its_job_is_there(
    opened: Opened,
) -> None:
    why = 'Evicted on manager: Evicted due to AdmissionCheck in Retry state: "multikueue" (gone)'
    fleet, worker = opened()
    worker.apply(copy_of("b1"))
    worker.expect("b1", ADMITTED, QUOTA)
    worker.deactivate("b1", why)
    evicted = f"The workload is deactivated due to {why}"
    reason = "DeactivatedDueToEvictedOnManagerCluster"
    worker.expect("b1", ADMITTED, QUOTA, f"Evicted=T:{reason} {evicted}")
    worker.apply(job_of("b1"))
    worker.expect(
        "b1",
        NO_RESERVATION,
        f"QuotaReserved=F:PendingEvaluation {evicted}",
        f"Evicted=T:{reason} {evicted}",
        f"Requeued=F:{reason} {evicted}",
    )
    assert worker.job("b1") == (True, False)
    assert fleet.counter.counts_of("b1")["starts"] == 0


def test_a_running_job_starts_without_status(a_hub: HubMaker) -> None:
    with a_hub() as hub, Admin(login_to(hub)) as admin:
        admin.create(JOBS, job_of("a") | {"spec": {"template": TEMPLATE}, "status": {"active": 7}})
        found = admin.get(JOBS, "a", "default") or {}
        wanted = {"completions": 1, "parallelism": 1, "suspend": False, "template": TEMPLATE}
        assert contains(found["spec"], wanted)  # an API server adds its defaults
        assert not found.get("status")
