"""
Copies: when MultiKueue deletes them, and what a worker's own Kueue does with them.

Recordings in shared/kueue are replayed on a hub from end to end (test_kueue_*.py). These tests are of steps
that no recording shows so, some by Kueue's code alone; the seconds are those of the trace.
"""

from typing import Any

import pytest

from placement_lab.standins.multikueue import (
    KueueSettings,
    ReconcileResult,
    RemoteWorker,
    SuspendJob,
    WriteStatus,
    copy_of,
    orphans,
    preempted_status,
    reconcile_copy,
    worker_job,
)
from placement_lab.standins.multikueue.objects import (
    check_of,
    condition_field,
    format_time,
    is_condition_true,
    set_condition,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    ALL,
    MK,
    NOW,
    RUNS,
    WAITS,
    Obj,
    inputs_of,
    job,
    placed,
    reconcile,
    steps,
    worker_with,
    workload,
    written,
)

# The end


def test_deactivation_removes_the_copies_at_once() -> None:
    """gate.txt ("spec.active false"); by its code, because the copy's spec differs."""
    inactive = workload(nominated=ALL)
    inactive["spec"]["active"] = False
    decision = reconcile(MK, inputs_of(inactive, {"worker1": WAITS, "worker2": RUNS}))
    assert steps(decision) == ["DeleteCopy worker1", "DeleteJob worker2", "DeleteCopy worker2"]


def test_activated_again_it_needs_a_new_nomination() -> None:
    """external-dispatcher.txt: deactivated and activated again: nominations none, check Pending."""
    inactive = workload(nominated=ALL)
    inactive["spec"]["active"] = False
    evicted = written(reconcile("workload", inputs_of(inactive)))
    assert condition_field(evicted, "Evicted", "reason") == "Deactivated"
    assert "nominatedClusterNames" not in evicted["status"]
    cleared = written(reconcile("job", inputs_of(evicted)))
    back = written(reconcile("workload", inputs_of(cleared)))
    assert condition_field(back, "Requeued", "reason") == "Reactivated"


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
    inputs = inputs_of(of, {"worker2": ended(reason)}, settings=KueueSettings(**settings))
    statuses = [step.status for step in reconcile(MK, inputs).operations if isinstance(step, WriteStatus)]
    after = of | {"status": statuses[-1]} if statuses else of
    entry = check_of(after, MK) or {}
    assert (entry["state"], entry["message"]) == state
    assert is_condition_true(after, "Finished") is finished


def test_an_eviction_by_the_worker_evicts_on_the_hub() -> None:
    """By its code, step 4."""
    out = worker_with("QuotaReserved", "Admitted", "Evicted", with_job=True)
    after = written(reconcile(MK, inputs_of(placed(), {"worker2": out})))
    message = 'Workload evicted on worker cluster: "worker2", resetting for re-admission. Previously: "Ready"'
    assert (check_of(after, MK) or {}) == {
        "name": MK,
        "state": "Retry",
        "message": message,
        "lastTransitionTime": format_time(NOW),
    }


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


def test_a_deactivated_copy_is_evicted_and_keeps_its_quota_until_its_job_has_stopped() -> None:
    """cluster-unlisted-while-running.log 10.90 to 12.02."""
    target = worker_with("QuotaReserved", "Admitted", "DeactivationTarget").copy
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
