"""
MultiKueue on the hub evicts: a cluster leaves the list, its worker is lost, another check says Retry.

Recordings in shared/kueue are replayed in virtual time (tests/support/virtual) and, once for each part, on a
hub (test_kueue_*.py). These tests are of what no recording shows, some by Kueue's code alone; the seconds
are those of the trace.
"""

from dataclasses import replace

from placement_lab.standins.multikueue import (
    DeactivateCopy,
    ReconcileResult,
    SuspendJob,
    WriteJobStatus,
    decide,
)
from placement_lab.standins.multikueue.objects import (
    condition,
    condition_field,
    format_time,
    is_condition_true,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    MK,
    NOW,
    UNLISTED,
    inputs_of,
    job,
    placed,
    reconcile,
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
