"""
MultiKueue on the hub evicts: a cluster leaves the list, its worker is lost, another check says Retry.

Recordings in shared/kueue are replayed on a hub from end to end (test_kueue_*.py). These tests are of steps
that no recording shows so, some by Kueue's code alone; the seconds are those of the trace.
"""

from dataclasses import replace

import pytest

from placement_lab.standins.multikueue import (
    CreateCopy,
    CreateJob,
    DeactivateCopy,
    DeleteCopy,
    DeleteJob,
    KueueSettings,
    Operation,
    ReconcileResult,
    RemoteWorker,
    SuspendJob,
    WorkloadInputs,
    WriteJobStatus,
    WriteStatus,
    decide,
    refusal,
)
from placement_lab.standins.multikueue.objects import (
    check_of,
    condition,
    condition_field,
    format_time,
    is_condition_true,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    ALL,
    MK,
    NOW,
    RUNS,
    UNLISTED,
    WAITS,
    inputs_of,
    job,
    placed,
    reconcile,
    steps,
    with_retry,
    worker_with,
    workload,
    written,
)

# A cluster that leaves


def test_retry_evicts_and_resets_cluster_and_checks() -> None:
    """cluster-unlisted-while-running.log 9.84; second-check-unanswered-then-ready.log 241.11."""
    running = placed()
    running["status"]["admissionChecks"] = [
        {"name": MK, "state": "Retry", "message": UNLISTED},
        {"name": "placement", "state": "Ready", "message": "ok"},
    ]
    after = written(reconcile("workload", inputs_of(running)))
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


def test_quota_stays_while_the_hubs_job_counts_active_pods() -> None:
    """cluster-unlisted-while-running.log 9.85 (suspended), 13.01 (quota gone, once 12.97 copied active 0)."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"))
    busy = reconcile("job", inputs_of(evicted, job=job(suspend=False, active=1)))
    assert busy.operations == (SuspendJob(True),)
    after = written(reconcile("job", inputs_of(evicted)))
    assert condition_field(after, "QuotaReserved", "reason") == "PendingEvaluation"
    assert condition_field(after, "Admitted", "reason") == "NoReservation"
    assert (condition(after, "Requeued") or {})["status"] == "False"
    assert "admission" not in after["status"]


def test_a_copy_admitted_while_the_hub_evicts_is_deactivated() -> None:
    """cluster-unlisted-while-running.log 10.90."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    decision = reconcile(MK, inputs_of(evicted, {"worker1": ADMITTED}, listed=("worker1",)))
    (operation,) = decision.operations
    assert isinstance(operation, DeactivateCopy)
    assert (
        condition_field({"status": operation.status}, "DeactivationTarget")
        == "Evicted on manager: why Evicted"
    )


def test_the_hubs_job_is_suspended_before_it_loses_its_start_time() -> None:
    """An API server refuses the worker's status as long as the hub's Job is not suspended."""
    evicted = workload(true=("QuotaReserved", "Admitted", "Evicted"), nominated=["worker1"])
    stopped = {"worker1": worker_with("Evicted", with_job=True, suspend=True)}
    started = {"startTime": format_time(NOW - 60)}
    runs, suspended = job(suspend=False, active=1), job(active=1)
    for hubs_job in (runs, suspended):
        hubs_job["status"] |= started
    at = inputs_of(evicted, stopped, listed=("worker1",))
    assert decide(replace(at, job=runs)).operations == (SuspendJob(True),)
    assert decide(replace(at, job=suspended)).operations == (WriteJobStatus({"active": 0}),)


# A worker that is lost


@pytest.mark.parametrize(
    ("lost", "expected"),
    [pytest.param(29.0, None, id="not yet"), pytest.param(30.5, "Admitting remote lost", id="too long")],
)
def test_a_lost_worker_is_retried_elsewhere_after_the_timeout(lost: float, expected: str | None) -> None:
    """worker-lost-and-back.log 9.33 to 38.31, workerLostTimeout 30 s."""
    gone = RemoteWorker(connected=False, lost_since=NOW - lost)
    decision = reconcile(
        MK, inputs_of(placed(), {"worker2": gone}, settings=KueueSettings(worker_lost_seconds=30))
    )
    if expected is None:
        assert decision == ReconcileResult(requeue_after=1.0)
    else:
        message = (check_of(written(decision), MK) or {})["message"]
        assert message == f'{expected}, Previously: "Ready"'


def test_a_listed_cluster_without_an_object_never_times_out() -> None:
    """DESIGN.md, by its code."""
    at = inputs_of(placed())
    without = {name: worker for name, worker in at.workers.items() if name != "worker2"}
    assert reconcile(MK, replace(at, workers=without)) == ReconcileResult(requeue_after=900.0)


# Our check


def test_retry_with_a_delay_takes_effect_after_it() -> None:
    """second-check-unanswered-then-ready.log 236.85, 236.88, 241.11."""
    at = inputs_of(with_retry(5))
    waits = written(reconcile("workload", at))
    assert waits["status"]["requeueState"] == {"requeueAt": format_time(NOW + 5)}
    assert reconcile("workload", replace(at, workload=waits)) == ReconcileResult(requeue_after=5.0)
    later = replace(at, workload=waits, now=NOW + 5)
    assert is_condition_true(written(reconcile("workload", later)), "Evicted")


def test_the_delay_is_removed_before_requeueing() -> None:
    """second-check-unanswered-then-ready.log 241.20, 241.22."""
    evicted = workload(true=("Evicted",))
    evicted["status"]["requeueState"] = {"requeueAt": format_time(NOW - 1)}
    assert "requeueState" not in written(reconcile("workload", inputs_of(evicted)))["status"]


# The gate


def test_retry_deletes_a_copy_that_was_just_admitted() -> None:
    """gate.txt: 0.05 s and 0.2 s after the admission, clusterName still empty."""
    checks = {MK: "Pending", "placement": "Retry"}
    at = inputs_of(workload(checks, nominated=ALL), {"worker1": WAITS, "worker2": ADMITTED})
    assert "DeleteCopy worker2" in _until_nothing_is_left(at)


UNRECORDED = workload({MK: "Pending", "placement": "Ready"})


def test_an_old_running_copy_is_not_recorded_without_a_nomination() -> None:
    """By its code: Kueue tries to record it before any nomination, and is refused (DESIGN.md hopes not)."""
    decision = reconcile(MK, inputs_of(UNRECORDED, {"worker2": RUNS}))
    assert steps(decision) == ["WriteStatus"]
    assert refusal(UNRECORDED, written(decision)) is not None


def _until_nothing_is_left(at: WorkloadInputs) -> list[str]:
    """Carry out the hub's operations until none is left; return them."""
    done: list[str] = []
    for _ in range(20):
        decision = decide(at)
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
