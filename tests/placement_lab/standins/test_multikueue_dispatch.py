"""
MultiKueue on the hub: quota, nominations, copies, and the one cluster that is recorded.

Recordings in shared/kueue are replayed on a hub from end to end (test_kueue_*.py). These tests are of steps
that no recording shows so, some by Kueue's code alone; the seconds are those of the trace.
"""

from dataclasses import replace

import pytest

from placement_ac.core.api.constants import KUEUE_ADMISSION
from placement_lab.standins.multikueue import (
    ALL_AT_ONCE,
    INCREMENTAL,
    CreateJob,
    KueueSettings,
    ReconcileResult,
    StartRound,
    decide,
    keep_what_others_own,
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
    EXTERNAL,
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

# Dispatch


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL, "open-cluster-management.io/placement"])
def test_nothing_reaches_a_worker_before_every_other_check_is_ready(dispatcher: str, state: str) -> None:
    """second-check-unanswered-then-ready.log 9.32 to 111.72: quota, and nothing on any worker."""
    waiting = workload({MK: "Pending", "placement": state}, nominated=("worker1",))
    assert (
        reconcile(MK, inputs_of(waiting, settings=KueueSettings(dispatcher=dispatcher))) == ReconcileResult()
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


@pytest.mark.parametrize(
    ("age", "nominated"),
    [
        pytest.param(299.9, None, id="within the round nothing is added"),
        pytest.param(300.1, ["worker3", "worker1", "worker2"], id="then the next, behind the one that left"),
    ],
)
def test_incremental_stalls_until_the_round_ends(age: float, nominated: list[str] | None) -> None:
    """nominated-cluster-unlisted-incremental.log: nominated 1.27, worker3 leaves, next at 301.27."""
    at = inputs_of(
        workload(nominated=["worker3"]),
        {"worker3": WAITS},
        listed=("worker1", "worker2"),
        settings=KueueSettings(dispatcher=INCREMENTAL),
        round_started=NOW - age,
    )
    decision = reconcile("dispatcher", at)
    if nominated is None:
        assert decision.operations == ()
        assert decision.requeue_after == pytest.approx(0.1, abs=0.01)
    else:
        assert written(decision)["status"]["nominatedClusterNames"] == nominated
    assert reconcile(MK, at).operations == (), "worker3's copy is out of reach, nobody else is nominated"


def test_incremental_ignores_other_checks() -> None:
    """By its code: only the copies wait for the other checks, the nomination does not."""
    at = inputs_of(
        workload({MK: "Pending", "placement": "Pending"}), settings=KueueSettings(dispatcher=INCREMENTAL)
    )
    assert written(reconcile("dispatcher", at))["status"]["nominatedClusterNames"] == list(ALL)


def test_with_an_external_dispatcher_kueue_nominates_nothing() -> None:
    """external-dispatcher.txt: nothing until somebody writes status.nominatedClusterNames."""
    assert decide(inputs_of(workload(true=("QuotaReserved",)), settings=EXTERNAL)).operations[1:] == ()
    for controller in (MK, "dispatcher"):
        assert reconcile(controller, inputs_of(workload(), settings=EXTERNAL)) == ReconcileResult()


@pytest.mark.parametrize(
    ("owners", "refused"),
    [
        pytest.param([KUEUE_ADMISSION], None, id="Kueue's own manager: cleared"),
        pytest.param([], None, id="nobody else's"),
        pytest.param(
            ["placement-ac"],
            "clusterName and nominatedClusterNames are mutually exclusive",
            id="another manager: never",
        ),
        pytest.param(
            [KUEUE_ADMISSION, "kueue-admission/Update"],
            "clusterName and nominatedClusterNames are mutually exclusive",
            id="a merge patch under Kueue's name: never",
        ),
    ],
)
def test_kueue_clears_only_fields_that_it_owns_alone(owners: list[str], refused: str | None) -> None:
    """external-dispatcher.txt, the table of writes."""
    before = workload(nominated=["worker2"])
    decided = written(reconcile(MK, inputs_of(before, {"worker2": ADMITTED}, settings=EXTERNAL)))
    after = decided | {"status": keep_what_others_own(before, decided["status"], owners)}
    assert refusal(before, after) == refused


def test_a_placement_is_immutable() -> None:
    """The CRD: clusterName is immutable once set; DESIGN.md: a new nomination then is a 422."""
    assert refusal(placed("worker1"), placed("worker2")) == "clusterName is immutable once set"
    both = workload(on="worker1", nominated=["worker2"])
    message = "clusterName and nominatedClusterNames are mutually exclusive"
    assert refusal(placed("worker1"), both) == message
