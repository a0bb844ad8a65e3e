"""
MultiKueue on the hub: quota, nominations, copies, and the one cluster that is recorded.

The recordings are in shared/kueue (seconds of the trace behind the name); behaviour that they do not
show is marked "by its code" (Kueue at the commit of the recordings).
"""

from dataclasses import replace

import pytest

from placement_ac.core.api.constants import KUEUE_ADMISSION
from placement_lab.standins.multikueue import (
    ALL_AT_ONCE,
    INCREMENTAL,
    CreateJob,
    ForgetRound,
    HubQueue,
    KueueSettings,
    ReconcileResult,
    StartRound,
    SuspendJob,
    copy_of,
    decide,
    keep_what_others_own,
    refusal,
    worker_job,
)
from placement_lab.standins.multikueue.objects import (
    check_of,
    condition_field,
    format_time,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    ALL,
    EXTERNAL,
    MK,
    NOW,
    RUNS,
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

# The hub's queue and quota


def test_the_checks_of_the_queue_are_added_as_pending() -> None:
    """dispatch.log 1.06."""
    fresh = workload({}) | {"status": {}}
    after = written(reconcile("workload", inputs_of(fresh, queue=HubQueue(checks=("placement", MK)))))
    entry = {"state": "Pending", "message": "", "lastTransitionTime": format_time(NOW)}
    expected = [{"name": "placement"} | entry, {"name": MK} | entry]
    assert after["status"]["admissionChecks"] == expected


def test_admission_waits_for_the_checks_after_quota_is_reserved() -> None:
    """dispatch.log 1.08, 1.10."""
    after = written(reconcile("scheduler", inputs_of(workload(true=()))))
    assert condition_field(after, "QuotaReserved") == "Quota reserved in ClusterQueue cluster-queue"
    assert after["status"]["admission"] == {
        "clusterQueue": "cluster-queue",
        "podSetAssignments": [{"name": "main", "count": 1}],
    }
    assert condition_field(after, "Admitted", "reason") == "UnsatisfiedAdmissionChecks"


def test_an_inactive_queue_keeps_the_workload_pending() -> None:
    """config-deleted.log 11.10."""
    closed = HubQueue(checks=(MK,), active=False)
    after = written(decide(inputs_of(workload(true=()), listed=None, queue=closed)))
    assert condition_field(after, "QuotaReserved", "reason") == "Suspended"
    assert condition_field(after, "QuotaReserved") == "ClusterQueue cluster-queue is inactive"
    assert reconcile("scheduler", inputs_of(after, listed=None, queue=closed)) == ReconcileResult()


def test_without_free_quota_nothing_is_reserved() -> None:
    at = inputs_of(workload(true=()), queue=HubQueue(checks=(MK,), has_room=False))
    assert reconcile("scheduler", at) == ReconcileResult()


def test_all_checks_ready_admit_and_then_the_hubs_job_starts() -> None:
    """dispatch.log 1.38."""
    ready = workload({MK: "Ready", "placement": "Ready"}, on="worker2")
    after = written(reconcile("workload", inputs_of(ready)))
    assert condition_field(after, "Admitted") == "The workload is admitted"
    assert reconcile("job", inputs_of(after)).operations == (SuspendJob(False),)


# Dispatch


def test_all_at_once_nominates_all_connected_clusters_and_creates_copies() -> None:
    """dispatch.log 1.14 to 1.20."""
    decision = reconcile(MK, inputs_of(workload(), listed=("worker3", "worker1", "worker2")))
    names = ["worker1", "worker2", "worker3"]
    assert written(decision)["status"]["nominatedClusterNames"] == names
    assert sorted(steps(decision)[1:]) == [f"CreateCopy {name}" for name in names]


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL, "open-cluster-management.io/placement"])
def test_nothing_reaches_a_worker_before_every_other_check_is_ready(dispatcher: str, state: str) -> None:
    """second-check-unanswered-then-ready.log 9.32 to 111.72: quota, and nothing on any worker."""
    waiting = workload({MK: "Pending", "placement": state}, nominated=("worker1",))
    assert (
        reconcile(MK, inputs_of(waiting, settings=KueueSettings(dispatcher=dispatcher))) == ReconcileResult()
    )


def test_the_other_check_ready_is_followed_by_the_nomination() -> None:
    """second-check-unanswered-then-ready.log 111.75."""
    decision = reconcile(MK, inputs_of(workload({MK: "Pending", "placement": "Ready"})))
    assert written(decision)["status"]["nominatedClusterNames"] == list(ALL)


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


def test_the_copy_has_the_spec_of_the_original_and_no_owner() -> None:
    created = copy_of(workload(), "multikueue")
    assert created["spec"] == workload()["spec"]
    assert created["metadata"] == {
        "name": "job-b1",
        "namespace": "default",
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
    }


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


def test_incremental_resets_its_round_with_the_quota() -> None:
    settings = KueueSettings(dispatcher=INCREMENTAL)
    at = inputs_of(workload(true=()), settings=settings, round_started=NOW - 1)
    assert reconcile("dispatcher", at).operations == (ForgetRound(),)


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


def test_copies_follow_the_external_nominations() -> None:
    """external-dispatcher.txt: [worker2, worker3], then [worker3]: worker2's waiting copy goes."""
    first = reconcile(MK, inputs_of(workload(nominated=["worker2", "worker3"]), settings=EXTERNAL))
    assert steps(first) == ["CreateCopy worker2", "CreateCopy worker3"]
    waiting = {"worker2": WAITS, "worker3": WAITS}
    then = reconcile(MK, inputs_of(workload(nominated=["worker3"]), waiting, settings=EXTERNAL))
    assert steps(then) == ["DeleteCopy worker2"]


def test_a_denominated_cluster_that_has_admitted_cannot_be_recorded() -> None:
    """external-dispatcher.txt, dt 0.04 to 0.4: worker3's copy goes, the Job runs on worker2, hub: none."""
    at = inputs_of(
        workload(nominated=["worker3"]), {"worker2": ADMITTED, "worker3": WAITS}, settings=EXTERNAL
    )
    decision = reconcile(MK, at)
    assert steps(decision) == ["DeleteCopy worker3", "CreateJob worker2", "WriteStatus"]
    refused = refusal(at.workload, written(decision))
    assert refused == "when setting clusterName it must be one of the nominatedClusterNames"


def test_a_cluster_nominated_again_is_recorded() -> None:
    """external-dispatcher.txt, heal."""
    at = inputs_of(workload(nominated=["worker2", "worker3"]), {"worker2": RUNS}, settings=EXTERNAL)
    after = written(reconcile(MK, at))
    assert after["status"]["clusterName"] == "worker2"
    assert refusal(at.workload, after) is None


def test_unlisting_after_the_race_runs_the_job_twice() -> None:
    """external-dispatcher.txt: after unlisting it runs on worker2 AND worker3."""
    at = inputs_of(
        workload(nominated=["worker3"]),
        {"worker2": RUNS},
        listed=("worker1", "worker3"),
        settings=EXTERNAL,
    )
    assert steps(reconcile(MK, at)) == ["CreateCopy worker3"]


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
