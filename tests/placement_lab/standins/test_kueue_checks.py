"""
The stand-in for Kueue dispatches Workloads beside a check of ours, as recorded in shared/kueue.

Each test names the recording that it follows. Kueue's times pass 20 times as fast here.
"""

from placement_lab.standins.multikueue import KueueSettings
from placement_lab.standins.multikueue.objects import is_condition_true
from tests.placement_lab.standins.workload_environment import Staged, config, our_check

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
