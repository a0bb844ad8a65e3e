"""
Copies: when MultiKueue deletes them, and what a worker's own Kueue does with them.

Recordings in shared/kueue are replayed in virtual time (tests/support/virtual) and, once for each part, on a
hub (test_kueue_*.py). These tests are of what no recording shows, some by Kueue's code alone; the seconds
are those of the trace.
"""

from typing import Any

import pytest

from placement_lab.standins.multikueue import (
    KueueSettings,
    QueueState,
    ReconcileResult,
    RemoteWorker,
    SuspendJob,
    WriteStatus,
    copy_of,
    reconcile_copy,
    worker_job,
)
from placement_lab.standins.multikueue.objects import (
    check_of,
    condition_field,
    is_condition_true,
    set_condition,
)
from tests.placement_lab.standins.workload_inputs import (
    ADMITTED,
    MK,
    NOW,
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


# The worker's own Kueue


def on_worker(found: Obj | None, remote_job: Obj | None = None, *, room: bool = True) -> ReconcileResult:
    return reconcile_copy(found, remote_job, queue=QueueState(active=room), now=NOW)


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


def test_the_workers_job_starts_with_the_admission_and_stops_with_the_copy() -> None:
    """dispatch.log 1.38."""
    remote_job = worker_job(job(), workload(), "multikueue")
    assert on_worker(ADMITTED.copy, remote_job).operations == (SuspendJob(False),)
    remote_job["spec"]["suspend"] = False
    assert on_worker(None, remote_job).operations == (SuspendJob(True),)
    assert on_worker(ADMITTED.copy, remote_job) == ReconcileResult()
