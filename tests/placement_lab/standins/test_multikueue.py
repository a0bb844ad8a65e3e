"""
One reconcile of a Workload by MultiKueue: each test names the recording that it follows.

The recordings are in shared/kueue (seconds of the trace behind the name); behaviour that they do not
show is marked "by its code" (Kueue at the commit of the recordings).
"""

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placement_lab.standins import multikueue
from placement_lab.standins.multikueue import (
    ALL_AT_ONCE,
    INCREMENTAL,
    KUEUE_MANAGER,
    CreateCopy,
    CreateJob,
    DeactivateCopy,
    DeleteCopy,
    DeleteJob,
    ForgetRound,
    HubQueue,
    KueueSettings,
    Operation,
    ReconcileResult,
    RemoteWorker,
    SetActive,
    StartRound,
    SuspendJob,
    WorkloadInputs,
    WriteJobStatus,
    WriteStatus,
    copy_of,
    decide,
    hub_job,
    keep_what_others_own,
    orphans,
    preempted_status,
    reconcile_copy,
    refusal,
    worker_job,
    workload_of,
)
from placement_lab.standins.multikueue import CONTROLLERS as LOOKS
from placement_lab.standins.multikueue.objects import (
    check_of,
    condition,
    condition_field,
    format_time,
    is_condition_true,
    set_condition,
)

Obj = dict[str, Any]
NOW = 1_790_000_000.0
MK = "multikueue"
ALL = ("worker1", "worker2", "worker3")
UNLISTED = 'Admitting remote no longer exists, Previously: "Ready"'


def job(*, suspend: bool = True, active: int = 0) -> Obj:
    item = hub_job("b1", "default", "user-queue")
    item["metadata"]["uid"] = "job-uid"
    item["spec"]["suspend"] = suspend
    item["status"] = {"active": active} if active else {}
    return item


def workload(
    checks: Mapping[str, str] | None = None,
    *,
    true: Iterable[str] = ("QuotaReserved",),
    on: str = "",
    nominated: Iterable[str] = (),
) -> Obj:
    """A Workload with quota; its multikueue check is Pending by default."""
    item = workload_of(job())
    item["metadata"]["generation"] = 1
    states = {MK: "Pending"} if checks is None else checks
    item["status"] = {
        "admissionChecks": [
            {"name": name, "state": state, "message": "", "lastTransitionTime": format_time(NOW - 60)}
            for name, state in states.items()
        ]
    }
    for kind in true:
        set_condition(item, kind, True, kind, f"why {kind}", NOW - 60)
    if "QuotaReserved" in true and "Admitted" not in true:
        message = "The workload has not all checks ready"
        set_condition(item, "Admitted", False, "UnsatisfiedAdmissionChecks", message, NOW - 60)
    if on:
        item["status"]["clusterName"] = on
    if names := list(nominated):
        item["status"]["nominatedClusterNames"] = names
    return item


def placed(on: str = "worker2") -> Obj:
    item = workload({MK: "Ready"}, true=("QuotaReserved", "Admitted"), on=on)
    item["status"]["admissionChecks"][0]["message"] = f'The workload was admitted on "{on}"'
    return item


def there(*true: str, since: float = NOW - 5, with_job: bool = False, suspend: bool = False) -> RemoteWorker:
    """A worker with a copy whose conditions `true` are True, optionally with its Job."""
    found = copy_of(workload(), "multikueue")
    for kind in true:
        set_condition(found, kind, True, kind, "", since)
    remote_job = worker_job(job(), workload(), "multikueue") if with_job else None
    if remote_job:
        remote_job["spec"]["suspend"] = suspend
        remote_job["status"] = {"active": 0 if suspend else 1}
    return RemoteWorker(copy=found, job=remote_job)


ADMITTED = there("QuotaReserved", "Admitted")
WAITS = there()
RUNS = there("QuotaReserved", "Admitted", with_job=True)
EMPTY = RemoteWorker()


def seen(
    of: Obj,
    workers: Mapping[str, RemoteWorker] | None = None,
    *,
    listed: Iterable[str] | None = ALL,
    **fields: Any,
) -> WorkloadInputs:
    checks = tuple(admission_check["name"] for admission_check in of["status"].get("admissionChecks", ()))
    found = dict.fromkeys(ALL, EMPTY) | dict(workers or {})
    return WorkloadInputs(
        workload=of,
        check=MK,
        clusters=None if listed is None else tuple(listed),
        now=NOW,
        workers=found,
        **{"job": job(), "queue": HubQueue(checks=checks)} | fields,
    )


def steps(decision: ReconcileResult) -> list[str]:
    """The operations in order: type and, if any, cluster."""
    return [
        " ".join(filter(None, (type(operation).__name__, getattr(operation, "cluster", ""))))
        for operation in decision.operations
    ]


def written(decision: ReconcileResult) -> Obj:
    """The Workload after the only write of its status."""
    statuses = [operation.status for operation in decision.operations if isinstance(operation, WriteStatus)]
    assert len(statuses) == 1, decision
    return workload() | {"status": statuses[0]}


def look(controller: str, at: WorkloadInputs) -> ReconcileResult:
    return LOOKS[controller](at)


# The hub's queue and quota


def test_the_checks_of_the_queue_are_added_as_pending() -> None:
    """dispatch.log 1.06."""
    fresh = workload({}) | {"status": {}}
    after = written(look("workload", seen(fresh, queue=HubQueue(checks=("placement", MK)))))
    entry = {"state": "Pending", "message": "", "lastTransitionTime": format_time(NOW)}
    expected = [{"name": "placement"} | entry, {"name": MK} | entry]
    assert after["status"]["admissionChecks"] == expected


def test_admission_waits_for_the_checks_after_quota_is_reserved() -> None:
    """dispatch.log 1.08, 1.10."""
    after = written(look("scheduler", seen(workload(true=()))))
    assert condition_field(after, "QuotaReserved") == "Quota reserved in ClusterQueue cluster-queue"
    assert after["status"]["admission"] == {
        "clusterQueue": "cluster-queue",
        "podSetAssignments": [{"name": "main", "count": 1}],
    }
    assert condition_field(after, "Admitted", "reason") == "UnsatisfiedAdmissionChecks"


def test_an_inactive_queue_keeps_the_workload_pending() -> None:
    """config-deleted.log 11.10."""
    closed = HubQueue(checks=(MK,), active=False)
    after = written(decide(seen(workload(true=()), listed=None, queue=closed)))
    assert condition_field(after, "QuotaReserved", "reason") == "Suspended"
    assert condition_field(after, "QuotaReserved") == "ClusterQueue cluster-queue is inactive"
    assert look("scheduler", seen(after, listed=None, queue=closed)) == ReconcileResult()


def test_without_free_quota_nothing_is_reserved() -> None:
    at = seen(workload(true=()), queue=HubQueue(checks=(MK,), has_room=False))
    assert look("scheduler", at) == ReconcileResult()


def test_all_checks_ready_admit_and_then_the_hubs_job_starts() -> None:
    """dispatch.log 1.38."""
    ready = workload({MK: "Ready", "placement": "Ready"}, on="worker2")
    after = written(look("workload", seen(ready)))
    assert condition_field(after, "Admitted") == "The workload is admitted"
    assert look("job", seen(after)).operations == (SuspendJob(False),)


# Dispatch


def test_all_at_once_nominates_all_connected_clusters_and_creates_copies() -> None:
    """dispatch.log 1.14 to 1.20."""
    decision = look(MK, seen(workload(), listed=("worker3", "worker1", "worker2")))
    names = ["worker1", "worker2", "worker3"]
    assert written(decision)["status"]["nominatedClusterNames"] == names
    assert sorted(steps(decision)[1:]) == [f"CreateCopy {name}" for name in names]


@pytest.mark.parametrize("state", ["Pending", "Retry", "Rejected"])
@pytest.mark.parametrize("dispatcher", [ALL_AT_ONCE, INCREMENTAL, "open-cluster-management.io/placement"])
def test_nothing_reaches_a_worker_before_every_other_check_is_ready(dispatcher: str, state: str) -> None:
    """second-check-unanswered-then-ready.log 9.32 to 111.72: quota, and nothing on any worker."""
    waiting = workload({MK: "Pending", "placement": state}, nominated=("worker1",))
    assert look(MK, seen(waiting, settings=KueueSettings(dispatcher=dispatcher))) == ReconcileResult()


def test_the_other_check_ready_is_followed_by_the_nomination() -> None:
    """second-check-unanswered-then-ready.log 111.75."""
    decision = look(MK, seen(workload({MK: "Pending", "placement": "Ready"})))
    assert written(decision)["status"]["nominatedClusterNames"] == list(ALL)


def test_other_copies_are_deleted_then_the_job_created_then_the_cluster_recorded() -> None:
    """dispatch.log 1.30 to 1.34."""
    at = seen(workload(nominated=ALL), {"worker1": WAITS, "worker2": ADMITTED, "worker3": ADMITTED})
    earlier = there("QuotaReserved", "Admitted", since=NOW - 9)
    decision = look(MK, replace(at, workers={**at.workers, "worker2": earlier}))
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


def test_the_workers_job_is_suspended_and_labelled() -> None:
    """dispatch.log 1.32; the labels by its code."""
    (created,) = [
        operation.job
        for operation in look(MK, seen(workload(nominated=ALL), {"worker2": ADMITTED})).operations
        if isinstance(operation, CreateJob)
    ]
    assert created["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "user-queue",
        "kueue.x-k8s.io/multikueue-origin": "multikueue",
        "kueue.x-k8s.io/prebuilt-workload-name": "job-b1",
    }
    assert created["spec"]["suspend"] is True
    assert "managedBy" not in created["spec"]


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
    at = seen(workload(), listed=("z", "b", "y", "a"), settings=KueueSettings(dispatcher=INCREMENTAL))
    decision = look("dispatcher", at)
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
    at = seen(
        workload(nominated=["worker3"]),
        {"worker3": WAITS},
        listed=("worker1", "worker2"),
        settings=KueueSettings(dispatcher=INCREMENTAL),
        round_started=NOW - age,
    )
    decision = look("dispatcher", at)
    if nominated is None:
        assert decision.operations == ()
        assert decision.requeue_after == pytest.approx(0.1, abs=0.01)
    else:
        assert written(decision)["status"]["nominatedClusterNames"] == nominated
    assert look(MK, at).operations == (), "worker3's copy is out of reach, nobody else is nominated"


def test_incremental_resets_its_round_with_the_quota() -> None:
    settings = KueueSettings(dispatcher=INCREMENTAL)
    at = seen(workload(true=()), settings=settings, round_started=NOW - 1)
    assert look("dispatcher", at).operations == (ForgetRound(),)


def test_incremental_ignores_other_checks() -> None:
    """By its code: only the copies wait for the other checks, the nomination does not."""
    at = seen(
        workload({MK: "Pending", "placement": "Pending"}), settings=KueueSettings(dispatcher=INCREMENTAL)
    )
    assert written(look("dispatcher", at))["status"]["nominatedClusterNames"] == list(ALL)


EXTERNAL = KueueSettings(dispatcher="open-cluster-management.io/placement")


def test_with_an_external_dispatcher_kueue_nominates_nothing() -> None:
    """external-dispatcher.txt: nothing until somebody writes status.nominatedClusterNames."""
    assert decide(seen(workload(true=("QuotaReserved",)), settings=EXTERNAL)).operations[1:] == ()
    for controller in (MK, "dispatcher"):
        assert look(controller, seen(workload(), settings=EXTERNAL)) == ReconcileResult()


def test_copies_follow_the_external_nominations() -> None:
    """external-dispatcher.txt: [worker2, worker3], then [worker3]: worker2's waiting copy goes."""
    first = look(MK, seen(workload(nominated=["worker2", "worker3"]), settings=EXTERNAL))
    assert steps(first) == ["CreateCopy worker2", "CreateCopy worker3"]
    waiting = {"worker2": WAITS, "worker3": WAITS}
    then = look(MK, seen(workload(nominated=["worker3"]), waiting, settings=EXTERNAL))
    assert steps(then) == ["DeleteCopy worker2"]


def test_a_denominated_cluster_that_has_admitted_cannot_be_recorded() -> None:
    """external-dispatcher.txt, dt 0.04 to 0.4: worker3's copy goes, the Job runs on worker2, hub: none."""
    at = seen(workload(nominated=["worker3"]), {"worker2": ADMITTED, "worker3": WAITS}, settings=EXTERNAL)
    decision = look(MK, at)
    assert steps(decision) == ["DeleteCopy worker3", "CreateJob worker2", "WriteStatus"]
    refused = refusal(at.workload, written(decision))
    assert refused == "when setting clusterName it must be one of the nominatedClusterNames"


def test_a_cluster_nominated_again_is_recorded() -> None:
    """external-dispatcher.txt, heal."""
    at = seen(workload(nominated=["worker2", "worker3"]), {"worker2": RUNS}, settings=EXTERNAL)
    after = written(look(MK, at))
    assert after["status"]["clusterName"] == "worker2"
    assert refusal(at.workload, after) is None


def test_unlisting_after_the_race_runs_the_job_twice() -> None:
    """external-dispatcher.txt: after unlisting it runs on worker2 AND worker3."""
    at = seen(
        workload(nominated=["worker3"]),
        {"worker2": RUNS},
        listed=("worker1", "worker3"),
        settings=EXTERNAL,
    )
    assert steps(look(MK, at)) == ["CreateCopy worker3"]


@pytest.mark.parametrize(
    ("owners", "refused"),
    [
        pytest.param([KUEUE_MANAGER], None, id="Kueue's own manager: cleared"),
        pytest.param([], None, id="nobody else's"),
        pytest.param(
            ["placement-ac"],
            "clusterName and nominatedClusterNames are mutually exclusive",
            id="another manager: never",
        ),
        pytest.param(
            [KUEUE_MANAGER, "kueue-admission/Update"],
            "clusterName and nominatedClusterNames are mutually exclusive",
            id="a merge patch under Kueue's name: never",
        ),
    ],
)
def test_kueue_clears_only_fields_that_it_owns_alone(owners: list[str], refused: str | None) -> None:
    """external-dispatcher.txt, the table of writes."""
    before = workload(nominated=["worker2"])
    decided = written(look(MK, seen(before, {"worker2": ADMITTED}, settings=EXTERNAL)))
    after = decided | {"status": keep_what_others_own(before, decided["status"], owners)}
    assert refusal(before, after) == refused


def test_a_placement_is_immutable() -> None:
    """The CRD: clusterName is immutable once set; DESIGN.md: a new nomination then is a 422."""
    assert refusal(placed("worker1"), placed("worker2")) == "clusterName is immutable once set"
    both = workload(on="worker1", nominated=["worker2"])
    message = "clusterName and nominatedClusterNames are mutually exclusive"
    assert refusal(placed("worker1"), both) == message


# A cluster that leaves


def test_unlisting_a_running_cluster_retries_at_once() -> None:
    """cluster-unlisted-while-running.log 9.82; workerLostTimeout plays no part."""
    at = seen(placed(), {"worker2": RUNS}, listed=("worker1", "worker3"))
    after = written(look(MK, at))
    assert check_of(after, MK) == {
        "name": MK,
        "state": "Retry",
        "message": UNLISTED,
        "lastTransitionTime": format_time(NOW),
    }


def test_retry_evicts_and_resets_cluster_and_checks() -> None:
    """cluster-unlisted-while-running.log 9.84; second-check-unanswered-then-ready.log 241.11."""
    running = placed()
    running["status"]["admissionChecks"] = [
        {"name": MK, "state": "Retry", "message": UNLISTED},
        {"name": "placement", "state": "Ready", "message": "ok"},
    ]
    after = written(look("workload", seen(running)))
    message = f'Evicted due to AdmissionCheck in Retry state: "multikueue" ({UNLISTED})'
    assert condition_field(after, "Evicted") == message
    assert condition_field(after, "Evicted", "reason") == "AdmissionCheck"
    assert "clusterName" not in after["status"]
    reset = "Reset to Pending after eviction. Previously:"
    at = {"state": "Pending", "lastTransitionTime": format_time(NOW)}
    assert after["status"]["admissionChecks"] == [
        {"name": MK, "message": f"{reset} Retry", "retryCount": 1} | at,
        {"name": "placement", "message": f"{reset} Ready"} | at,
    ]
    assert is_condition_true(after, "Admitted"), "until the quota is given back (13.01)"


def test_an_evicted_workload_with_quota_is_nominated_elsewhere_at_once() -> None:
    """cluster-unlisted-while-running.log 9.85."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"))
    decision = look(MK, seen(evicted, {"worker2": RUNS}, listed=("worker1",)))
    assert steps(decision) == ["WriteStatus", "CreateCopy worker1"]
    assert written(decision)["status"]["nominatedClusterNames"] == ["worker1"]


def test_quota_stays_while_the_hubs_job_counts_active_pods() -> None:
    """cluster-unlisted-while-running.log 9.85 (suspended), 13.01 (quota gone, once 12.97 copied active 0)."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"))
    busy = look("job", seen(evicted, job=job(suspend=False, active=1)))
    assert busy.operations == (SuspendJob(True),)
    after = written(look("job", seen(evicted)))
    assert condition_field(after, "QuotaReserved", "reason") == "PendingEvaluation"
    assert condition_field(after, "Admitted", "reason") == "NoReservation"
    assert (condition(after, "Requeued") or {})["status"] == "False"
    assert "admission" not in after["status"]


def test_a_copy_admitted_while_the_hub_evicts_is_deactivated() -> None:
    """cluster-unlisted-while-running.log 10.90."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    decision = look(MK, seen(evicted, {"worker1": ADMITTED}, listed=("worker1",)))
    (operation,) = decision.operations
    assert isinstance(operation, DeactivateCopy)
    assert (
        condition_field({"status": operation.status}, "DeactivationTarget")
        == "Evicted on manager: why Evicted"
    )


def test_an_evicted_jobs_status_is_copied_so_that_the_hubs_job_stops() -> None:
    """cluster-unlisted-while-running.log 11.93, 12.97."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    busy = job(suspend=True, active=1)
    first = look(MK, seen(evicted, {"worker1": there("Evicted")}, listed=("worker1",), job=busy))
    assert steps(first) == ["CreateJob worker1"]
    stopped = there("Evicted", with_job=True, suspend=True)
    then = look(MK, seen(evicted, {"worker1": stopped}, listed=("worker1",), job=busy))
    assert then.operations == (WriteJobStatus({"active": 0}),)


def test_the_hubs_job_is_suspended_before_it_loses_its_start_time() -> None:
    """An API server refuses the worker's status as long as the hub's Job is not suspended."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    stopped = {"worker1": there("Evicted", with_job=True, suspend=True)}
    started = {"startTime": format_time(NOW - 60)}
    runs, suspended = job(suspend=False, active=1), job(active=1)
    for one in (runs, suspended):
        one["status"] |= started
    at = seen(evicted, stopped, listed=("worker1",))
    assert decide(replace(at, job=runs)).operations == (SuspendJob(True),)
    assert decide(replace(at, job=suspended)).operations == (WriteJobStatus({"active": 0}),)


def test_a_status_is_copied_once_though_an_api_server_leaves_out_zeros() -> None:
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    stopped = {"worker1": there("Evicted", with_job=True, suspend=True)}
    assert look(MK, seen(evicted, stopped, listed=("worker1",), job=job())).operations == ()


def test_a_job_has_limits_so_that_an_api_server_accepts_its_gpus() -> None:
    gpus = {"nvidia.com/gpu": "4"}
    [container] = hub_job("b1", "default", "user-queue", gpus)["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": gpus, "limits": gpus}


def test_without_quota_on_the_hub_all_reachable_copies_are_deleted() -> None:
    """cluster-unlisted-while-running.log 13.02, 13.04: on worker1; on worker2, not listed, it runs on."""
    at = seen(
        workload(true=("Evicted",)),
        {"worker1": there("Evicted", with_job=True), "worker2": RUNS},
        listed=("worker1",),
    )
    assert look(MK, at).operations == (DeleteJob("worker1"), DeleteCopy("worker1"))


def test_the_backoff_ends_and_quota_is_reserved_again() -> None:
    """cluster-unlisted-while-running.log 13.06, 13.11."""
    evicted = workload(true=("Evicted",))
    set_condition(evicted, "Requeued", False, "AdmissionCheck", "", NOW)
    requeued = written(look("workload", seen(evicted)))
    assert condition_field(requeued, "Requeued", "reason") == "BackoffFinished"
    assert look("scheduler", seen(evicted)) == ReconcileResult(), "not before that"
    reserved = written(look("scheduler", seen(requeued)))
    assert condition(reserved, "Evicted") == {
        "type": "Evicted",
        "status": "False",
        "reason": "QuotaReserved",
        "message": "Previously: why Evicted",
        "lastTransitionTime": format_time(NOW),
        "observedGeneration": 1,
    }


def test_after_listing_again_the_older_copy_wins_and_the_status_is_wrong() -> None:
    """cluster-unlisted-variants.log 19.74 to 94.91: worker1's go, clusterName stays worker1."""
    older = there("QuotaReserved", "Admitted", since=NOW - 90, with_job=True)
    running = job(suspend=False)
    at = seen(placed("worker1"), {"worker1": RUNS, "worker2": older}, job=running)
    decision = look(MK, at)
    assert steps(decision) == ["DeleteJob worker1", "DeleteCopy worker1", "WriteJobStatus"]


def test_a_waiting_copy_on_an_unlisted_cluster_stays_and_is_admitted_later() -> None:
    """nominated-cluster-unlisted-incremental.log; DESIGN.md: it "stays behind and later reserved quota"."""
    at = seen(workload(nominated=["worker3"]), {"worker3": WAITS}, listed=("worker1",), settings=EXTERNAL)
    assert look(MK, at).operations == ()
    admitted = reconcile_copy(WAITS.copy, None, queue="cluster-queue", room=True, now=NOW)
    assert is_condition_true(written(admitted), "Admitted")


def test_a_deleted_config_stops_everything() -> None:
    """config-deleted.log 5.20 to 56.84: nothing evicted, no status copied, nothing taken off."""
    for of in (placed(), workload(true=("Evicted",)), workload(nominated=ALL)):
        assert look(MK, seen(of, {"worker2": RUNS}, listed=None)) == ReconcileResult()


# A worker that is lost


@pytest.mark.parametrize(
    ("lost", "expected"),
    [pytest.param(29.0, None, id="not yet"), pytest.param(30.5, "Admitting remote lost", id="too long")],
)
def test_a_lost_worker_is_retried_elsewhere_after_the_timeout(lost: float, expected: str | None) -> None:
    """worker-lost-and-back.log 9.33 to 38.31, workerLostTimeout 30 s."""
    gone = RemoteWorker(connected=False, lost_since=NOW - lost)
    decision = look(MK, seen(placed(), {"worker2": gone}, settings=KueueSettings(worker_lost_seconds=30)))
    if expected is None:
        assert decision == ReconcileResult(requeue_after=1.0)
    else:
        message = (check_of(written(decision), MK) or {})["message"]
        assert message == f'{expected}, Previously: "Ready"'


def test_a_listed_cluster_without_an_object_never_times_out() -> None:
    """DESIGN.md, by its code."""
    at = seen(placed())
    without = {name: one for name, one in at.workers.items() if name != "worker2"}
    assert look(MK, replace(at, workers=without)) == ReconcileResult(requeue_after=900.0)


def test_after_reconnecting_the_old_copy_wins() -> None:
    """worker-lost-and-back.log 85.40."""
    old = there("QuotaReserved", "Admitted", since=NOW - 60, with_job=True)
    at = seen(placed("worker1"), {"worker1": RUNS, "worker2": old}, job=job(suspend=False))
    assert steps(look(MK, at))[:2] == ["DeleteJob worker1", "DeleteCopy worker1"]


# Our check


def test_pending_on_an_admitted_workload_is_ignored() -> None:
    """second-check-unanswered-then-ready.log 230.54."""
    running = placed()
    running["status"]["admissionChecks"].append({"name": "placement", "state": "Pending", "message": ""})
    at = seen(running, {"worker2": RUNS}, job=job(suspend=False, active=1))
    assert decide(at).operations == ()


def _with_retry(after: int) -> Obj:
    running = placed()
    entry = {"name": "placement", "state": "Retry", "message": "placement changed"}
    entry |= {"requeueAfterSeconds": after, "lastTransitionTime": format_time(NOW)}
    running["status"]["admissionChecks"].append(entry)
    return running


def test_retry_with_a_delay_takes_effect_after_it() -> None:
    """second-check-unanswered-then-ready.log 236.85, 236.88, 241.11."""
    at = seen(_with_retry(5))
    waits = written(look("workload", at))
    assert waits["status"]["requeueState"] == {"requeueAt": format_time(NOW + 5)}
    assert look("workload", replace(at, workload=waits)) == ReconcileResult(requeue_after=5.0)
    later = replace(at, workload=waits, now=NOW + 5)
    assert is_condition_true(written(look("workload", later)), "Evicted")


def test_the_delay_is_removed_before_requeueing() -> None:
    """second-check-unanswered-then-ready.log 241.20, 241.22."""
    evicted = workload(true=("Evicted",))
    evicted["status"]["requeueState"] = {"requeueAt": format_time(NOW - 1)}
    assert "requeueState" not in written(look("workload", seen(evicted)))["status"]


def test_rejected_deactivates() -> None:
    """second-check-unanswered-then-ready.log 262.20 to 262.23."""
    running = placed()
    entry = {"name": "placement", "state": "Rejected", "message": "no cluster matches"}
    running["status"]["admissionChecks"].append(entry)
    target = written(look("workload", seen(running)))
    why = 'AdmissionCheck in Rejected state: "placement" (no cluster matches)'
    assert condition_field(target, "DeactivationTarget") == why
    assert look("workload", seen(target)).operations == (SetActive(False),)
    inactive = target | {"spec": target["spec"] | {"active": False}}
    evicted = written(look("workload", seen(inactive)))
    assert condition_field(evicted, "Evicted") == f"The workload is deactivated due to {why}"
    assert condition_field(evicted, "Evicted", "reason") == "DeactivatedDueToAdmissionCheck"
    assert condition(evicted, "DeactivationTarget") is None


# The gate


def test_retry_on_a_waiting_workload_deletes_its_copies() -> None:
    """gate.txt: all copies gone after 0.23 s, checks Pending, nothing nominated while ours is."""
    checks = {MK: "Pending", "placement": "Retry"}
    at = seen(workload(checks, nominated=ALL), dict.fromkeys(ALL, WAITS))
    done = _until_nothing_is_left(at)
    assert {"DeleteCopy worker1", "DeleteCopy worker2", "DeleteCopy worker3"} < set(done)
    assert done[-1] == "WriteStatus", "quota again"
    assert not [one for one in done[done.index("DeleteCopy worker1") :] if one.startswith("Create")]


def test_retry_deletes_a_copy_that_was_just_admitted() -> None:
    """gate.txt: 0.05 s and 0.2 s after the admission, clusterName still empty."""
    checks = {MK: "Pending", "placement": "Retry"}
    at = seen(workload(checks, nominated=ALL), {"worker1": WAITS, "worker2": ADMITTED})
    assert "DeleteCopy worker2" in _until_nothing_is_left(at)


def test_copies_stay_if_multikueue_is_busy_until_quota_is_reserved() -> None:
    """gate.txt, second series: Retry 0.7 s after the admission, worker2's copy ran on."""
    checks = {MK: "Pending", "placement": "Retry"}
    at = seen(workload(checks, nominated=ALL), {"worker2": RUNS})
    done = _until_nothing_is_left(at, busy=True)
    assert done == ["WriteStatus"] * 4, "evicted, quota given back, requeued, quota again"


UNRECORDED = workload({MK: "Pending", "placement": "Ready"})


def test_an_old_running_copy_is_not_recorded_without_a_nomination() -> None:
    """By its code: Kueue tries to record it before any nomination, and is refused (DESIGN.md hopes not)."""
    decision = look(MK, seen(UNRECORDED, {"worker2": RUNS}))
    assert steps(decision) == ["WriteStatus"]
    assert refusal(UNRECORDED, written(decision)) is not None


def test_an_old_running_copy_is_recorded_after_a_nomination() -> None:
    """external-dispatcher.txt, heal; DESIGN.md, the gate, 3."""
    hopeful = KueueSettings(nominates_admitted=True)
    first = written(look(MK, seen(UNRECORDED, {"worker2": RUNS}, settings=hopeful)))
    assert first["status"]["nominatedClusterNames"] == list(ALL)
    assert refusal(UNRECORDED, first) is None
    then = written(look(MK, seen(first, {"worker2": RUNS}, settings=hopeful)))
    assert then["status"]["clusterName"] == "worker2"


def _until_nothing_is_left(at: WorkloadInputs, *, busy: bool = False) -> list[str]:
    """Carry out the hub's operations until none is left; return them."""
    done: list[str] = []
    for _ in range(20):
        decision = decide(at, busy=busy)
        if not decision.operations:
            return done
        done += steps(decision)
        for operation in decision.operations:
            at = _carried_out(at, operation)
    raise AssertionError(done)


def _carried_out(at: WorkloadInputs, operation: Operation) -> WorkloadInputs:
    match operation:
        case WriteStatus(status):
            return replace(at, workload=at.workload | {"status": status})
        case DeleteCopy(cluster):
            return replace(at, workers={**at.workers, cluster: replace(at.workers[cluster], copy=None)})
        case DeactivateCopy(cluster, status):
            found = at.workers[cluster]
            evicted = (found.copy or {}) | {"status": status}
            return replace(at, workers={**at.workers, cluster: replace(found, copy=evicted)})
        case CreateCopy() | DeleteJob() | CreateJob():
            return at
    raise AssertionError(operation)


# The end


def test_deactivation_removes_the_copies_at_once() -> None:
    """gate.txt ("spec.active false"); by its code, because the copy's spec differs."""
    inactive = workload(nominated=ALL)
    inactive["spec"]["active"] = False
    decision = look(MK, seen(inactive, {"worker1": WAITS, "worker2": RUNS}))
    assert steps(decision) == ["DeleteCopy worker1", "DeleteJob worker2", "DeleteCopy worker2"]


def test_activated_again_it_needs_a_new_nomination() -> None:
    """external-dispatcher.txt: deactivated and activated again: nominations none, check Pending."""
    inactive = workload(nominated=ALL)
    inactive["spec"]["active"] = False
    evicted = written(look("workload", seen(inactive)))
    assert condition_field(evicted, "Evicted", "reason") == "Deactivated"
    assert "nominatedClusterNames" not in evicted["status"]
    cleared = written(look("job", seen(evicted)))
    back = written(look("workload", seen(cleared)))
    assert condition_field(back, "Requeued", "reason") == "Reactivated"


def test_a_finished_copy_finishes_the_workload_and_is_deleted() -> None:
    """external-dispatcher.txt, drain: d0 completes, hub Finished=True."""
    done = there("QuotaReserved", "Admitted", "Finished", with_job=True)
    assert done.job
    done.job["status"] = {"succeeded": 1}
    decision = look(MK, seen(placed(), {"worker2": done}, job=job(suspend=False)))
    assert steps(decision) == ["WriteJobStatus", "WriteStatus"]
    finished = written(decision)
    assert is_condition_true(finished, "Finished")
    then = look(MK, seen(finished, {"worker2": done}))
    assert then.operations == (DeleteJob("worker2"), DeleteCopy("worker2"))


OUT_OF_SYNC = (
    'Remote workload on worker cluster "worker2" is out of sync with its user job, resetting for re-dispatch,'
    ' Previously: "Ready"'
)


def ended(reason: str) -> RemoteWorker:
    copy = copy_of(workload(), "multikueue")
    set_condition(copy, "Finished", True, reason, "", NOW - 5)
    return RemoteWorker(copy=copy)


@pytest.mark.parametrize(
    ("reason", "of", "settings", "state", "finished"),
    [
        pytest.param("OutOfSync", placed(), {}, ("Retry", OUT_OF_SYNC), False, id="out of sync"),
        pytest.param("OwnerNotFound", placed(), {}, ("Retry", OUT_OF_SYNC), False, id="owner not found"),
        pytest.param(
            "OwnerNotFound",
            placed(),
            {"sync_failures": frozenset({"OutOfSync"})},
            ("Ready", 'The workload was admitted on "worker2"'),
            True,
            id="owner not found up to 0.19.2",
        ),
        pytest.param("OutOfSync", workload(), {}, ("Pending", ""), False, id="quota again, too soon"),
    ],
)
def test_a_copy_that_has_not_run_its_job_is_retried(
    reason: str, of: Obj, settings: Any, state: tuple[str, str], finished: bool
) -> None:
    """By its code and, for OwnerNotFound, by the changelog of 0.20; a copy that stays blocks everything."""
    inputs = seen(of, {"worker2": ended(reason)}, settings=KueueSettings(**settings))
    written = [one.status for one in LOOKS[MK](inputs).operations if isinstance(one, WriteStatus)]
    after = of | {"status": written[-1]} if written else of
    entry = check_of(after, MK) or {}
    assert (entry["state"], entry["message"]) == state
    assert is_condition_true(after, "Finished") is finished


def test_a_copy_beside_a_foreign_job_is_admitted_and_never_recorded() -> None:
    """By its code (issue 12404): the other copies are deleted, then Kueue fails, again and again."""
    foreign = replace(ADMITTED, has_foreign_job=True)
    inputs = seen(workload(nominated=ALL), {"worker1": WAITS, "worker2": foreign})
    decision = LOOKS[MK](inputs)
    assert decision.operations == (DeleteCopy("worker1"),)
    assert decision.failed


def test_an_eviction_by_the_worker_evicts_on_the_hub() -> None:
    """By its code, step 4."""
    out = there("QuotaReserved", "Admitted", "Evicted", with_job=True)
    after = written(look(MK, seen(placed(), {"worker2": out})))
    message = 'Workload evicted on worker cluster: "worker2", resetting for re-admission. Previously: "Ready"'
    assert (check_of(after, MK) or {}) == {
        "name": MK,
        "state": "Retry",
        "message": message,
        "lastTransitionTime": format_time(NOW),
    }


def test_a_deleted_workload_is_deleted_on_reachable_workers() -> None:
    """cluster-unlisted-variants.log 94.96; config-deleted.log 78.62: without a config nothing is."""
    deleted = placed()
    deleted["metadata"]["deletionTimestamp"] = format_time(NOW)
    at = seen(deleted, {"worker1": WAITS, "worker2": RUNS}, listed=("worker1",))
    assert steps(look(MK, at)) == ["DeleteCopy worker1"]
    assert look(MK, replace(at, clusters=None)) == ReconcileResult()


def test_garbage_collection_deletes_orphaned_copies() -> None:
    """cluster-unlisted-while-running.log 99.38: once the hub's is gone, and on unlisted clusters too."""
    ours = copy_of(workload(), "multikueue")
    other = ours | {"metadata": ours["metadata"] | {"labels": {}}}
    assert orphans([ours], {("default", "job-b1")}, "multikueue") == []
    assert orphans([ours, other], set(), "multikueue") == [("default", "job-b1")]
    assert orphans([ours], set(), "another hub") == []


# The worker's own Kueue


def on_worker(found: Obj | None, remote_job: Obj | None = None, *, room: bool = True) -> ReconcileResult:
    return reconcile_copy(found, remote_job, queue="cluster-queue", room=room, now=NOW)


def test_a_copy_is_admitted_if_there_is_quota_and_waits_otherwise() -> None:
    """dispatch.log 1.18; cluster-unlisted-while-running.log 1.24."""
    assert is_condition_true(written(on_worker(WAITS.copy)), "Admitted")
    waits = written(on_worker(WAITS.copy, room=False))
    assert condition_field(waits, "QuotaReserved") == "ClusterQueue cluster-queue is inactive"
    assert condition_field(waits, "Admitted") == "The workload has no reservation"
    assert on_worker(waits, room=False) == ReconcileResult()


def test_the_workers_job_starts_with_the_admission_and_stops_with_the_copy() -> None:
    """dispatch.log 1.38."""
    remote_job = worker_job(job(), workload(), "multikueue")
    assert on_worker(ADMITTED.copy, remote_job).operations == (SuspendJob(False),)
    remote_job["spec"]["suspend"] = False
    assert on_worker(None, remote_job).operations == (SuspendJob(True),)
    assert on_worker(ADMITTED.copy, remote_job) == ReconcileResult()


def test_a_deactivated_copy_is_evicted_and_keeps_its_quota_until_its_job_has_stopped() -> None:
    """cluster-unlisted-while-running.log 10.90 to 12.02."""
    target = there("QuotaReserved", "Admitted", "DeactivationTarget").copy
    decision = on_worker(target)
    assert steps(decision) == ["SetActive", "WriteStatus"]
    evicted = written(decision) | {"spec": workload()["spec"] | {"active": False}}
    assert condition_field(evicted, "Evicted", "reason") == "DeactivatedDueToDeactivationTarget"
    assert on_worker(evicted) == ReconcileResult(), "no Job: nothing to stop, and it stays"
    remote_job = worker_job(job(), workload(), "multikueue")
    gone = written(on_worker(evicted, remote_job))
    assert condition_field(gone, "QuotaReserved", "reason") == "PendingEvaluation"
    stays = gone | {"spec": evicted["spec"]}
    assert on_worker(stays, remote_job) == ReconcileResult()


@pytest.mark.parametrize(("kind", "reason"), [("Complete", "Succeeded"), ("Failed", "Failed")])
def test_a_finished_job_finishes_its_copy(kind: str, reason: str) -> None:
    remote_job = worker_job(job(), workload(), "multikueue")
    remote_job["status"] = {"conditions": [{"type": kind, "status": "True", "message": "done"}]}
    after = written(on_worker(ADMITTED.copy, remote_job))
    assert (condition_field(after, "Finished"), condition_field(after, "Finished", "reason")) == (
        "done",
        reason,
    )
    assert on_worker(after, remote_job) == ReconcileResult()


def test_a_preempted_copy_stops_and_requests_quota_again() -> None:
    """By its code."""
    out = (ADMITTED.copy or {}) | {"status": preempted_status(ADMITTED.copy or {}, NOW)}
    remote_job = worker_job(job(), workload(), "multikueue")
    remote_job["spec"]["suspend"] = False
    assert on_worker(out, remote_job).operations == (SuspendJob(True),)
    remote_job["spec"]["suspend"] = True
    free = written(on_worker(out, remote_job))
    assert not is_condition_true(free, "QuotaReserved")
    assert is_condition_true(written(on_worker(free, remote_job)), "Admitted")


# The engine itself


def test_the_engine_imports_no_clock_io_or_framework() -> None:
    forbidden = {"aiohttp", "asyncio", "kopf", "kubernetes", "logging", "random", "structlog", "time"}
    modules = sorted(Path(multikueue.__file__).parent.glob("*.py"))
    assert len(modules) > 5
    for module in modules:
        nodes = list(ast.walk(ast.parse(module.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {name.partition(".")[0] for name in names} & forbidden, module.name


@pytest.mark.parametrize("controller", [*LOOKS, "all of them"])
def test_deciding_does_not_change_the_inputs(controller: str) -> None:
    retried = workload({MK: "Pending", "placement": "Retry"}, nominated=ALL)
    for of in (workload(true=()), workload(), placed(), retried, workload(true=("QuotaReserved", "Evicted"))):
        at = seen(of, {"worker1": WAITS, "worker2": RUNS}, job=job(suspend=False))
        before = copy.deepcopy(at)
        decide(at) if controller == "all of them" else look(controller, at)
        assert at == before


def test_decide_returns_the_earliest_requeue() -> None:
    waits = _with_retry(5)
    waits["status"]["requeueState"] = {"requeueAt": format_time(NOW + 5)}
    gone = RemoteWorker(connected=False, lost_since=NOW - 899)
    assert decide(seen(waits, {"worker2": gone}, job=job(suspend=False))) == ReconcileResult(
        requeue_after=1.0
    )
