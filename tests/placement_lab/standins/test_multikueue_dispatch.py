"""
MultiKueue on the hub: quota, nominations, copies, and the one cluster that is recorded.

Recordings in shared/kueue are replayed in virtual time (tests/support/virtual) and, once for each part, on a
hub (test_kueue_*.py). These tests are of what no recording shows, some by Kueue's code alone; the seconds
are those of the trace.
"""

from dataclasses import replace

import pytest

from placement_lab.standins.multikueue import (
    INCREMENTAL,
    CreateJob,
    KueueSettings,
    StartRound,
    refusal,
    worker_job,
)
from placement_lab.standins.multikueue.objects import (
    check_of,
    format_time,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    ALL,
    MK,
    NOW,
    WAITS,
    inputs_of,
    job,
    placed,
    reconcile,
    steps,
    worker_with,
    workload,
    written,
)


def test_other_copies_are_deleted_then_the_job_created_then_the_cluster_recorded() -> None:
    """dispatch.log 1.30 to 1.34."""
    at = inputs_of(workload(nominated=ALL), {"worker1": WAITS, "worker2": ADMITTED, "worker3": ADMITTED})
    earlier = worker_with("QuotaReserved", "Admitted", since=NOW - 9)
    decision = reconcile(MK, replace(at, workers={**at.workers, "worker2": earlier}))
    assert steps(decision) == [
        "DeleteCopy worker1",
        "DeleteCopy worker3",
        "CreateJob worker2",
        "WriteStatus",
    ]
    after = written(decision)
    assert after["status"]["clusterName"] == "worker2"
    assert "nominatedClusterNames" not in after["status"]
    assert check_of(after, MK) == {
        "name": MK,
        "state": "Ready",
        "message": 'The workload was admitted on "worker2"',
        "lastTransitionTime": format_time(NOW),
    }
    assert refusal(at.workload, after) is None


def test_the_workers_job_is_suspended_and_names_its_workload() -> None:
    """dispatch.log 1.32; labels and annotations by its code."""
    (created,) = [
        operation.job
        for operation in reconcile(MK, inputs_of(workload(nominated=ALL), {"worker2": ADMITTED})).operations
        if isinstance(operation, CreateJob)
    ]
    assert created["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "user-queue",
        "kueue.x-k8s.io/multikueue-origin": "multikueue",
    }
    assert created["metadata"]["annotations"] == {"kueue.x-k8s.io/prebuilt-workload-name": "job-b1"}
    assert created["spec"]["suspend"] is True
    assert "managedBy" not in created["spec"]


@pytest.mark.parametrize(
    ("kind", "annotations"),
    [
        ("StatefulSet", ["kueue.x-k8s.io/multikueue-origin-uid", "kueue.x-k8s.io/prebuilt-workload-name"]),
        ("LeaderWorkerSet", ["kueue.x-k8s.io/multikueue-origin-uid"]),
    ],
)
def test_what_the_copies_of_other_kinds_name(kind: str, annotations: list[str]) -> None:
    """By its code: statefulset_multikueue_adapter.go and leaderworkerset_multikueue_adapter.go."""
    created = worker_job(job() | {"kind": kind}, workload(), "multikueue")["metadata"]
    assert sorted(created["annotations"]) == annotations
    assert created["labels"]["kueue.x-k8s.io/multikueue-origin"] == "multikueue"


def test_incremental_nominates_three_in_the_configs_order() -> None:
    """DESIGN.md: stepSize 3 a round, exactly in the config's order since 0.19."""
    at = inputs_of(workload(), listed=("z", "b", "y", "a"), settings=KueueSettings(dispatcher=INCREMENTAL))
    decision = reconcile("dispatcher", at)
    assert written(decision)["status"]["nominatedClusterNames"] == ["z", "b", "y"]
    assert decision.operations[-1] == StartRound()


def test_incremental_ignores_other_checks() -> None:
    """By its code: only the copies wait for the other checks, the nomination does not."""
    at = inputs_of(
        workload({MK: "Pending", "placement": "Pending"}), settings=KueueSettings(dispatcher=INCREMENTAL)
    )
    assert written(reconcile("dispatcher", at))["status"]["nominatedClusterNames"] == list(ALL)


def test_a_placement_is_immutable() -> None:
    """The CRD: clusterName is immutable once set; DESIGN.md: a new nomination then is a 422."""
    assert refusal(placed("worker1"), placed("worker2")) == "clusterName is immutable once set"
    both = workload(on="worker1", nominated=["worker2"])
    message = "clusterName and nominatedClusterNames are mutually exclusive"
    assert refusal(placed("worker1"), both) == message
