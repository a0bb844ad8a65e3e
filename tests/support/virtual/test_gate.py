"""The virtual Kueue treats our check as the recordings of real Kueue (shared/kueue), Retry among it."""

from typing import Any

import pytest

from placement_ac.core.api.errors import Conflict
from placement_lab.standins.multikueue import KueueSettings
from tests.support.virtual.clock import Delays
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.kueues import ALL, kueue, runs_on, seeds, without

ALWAYS = Delays(left_behind=1.0)


@seeds
def test_nothing_is_nominated_before_our_check_is_ready(seed: int) -> None:
    """second-check-unanswered-then-ready.log 9.32 to 111.75."""
    at = kueue(seed)
    at.submit("b1")
    at.advance(100)
    assert at.holds("b1", "QuotaReserved")
    assert (at.nominated("b1"), at.has_copy("b1")) == ([], set())
    at.answer("b1", "Ready", "placement decided")
    assert at.until(lambda: at.nominated("b1") != []) < 0.15


@seeds
def test_pending_on_an_admitted_one_is_ignored_and_retry_evicts(seed: int) -> None:
    """second-check-unanswered-then-ready.log 230.54 to 253.1."""
    at = kueue(seed)
    at.submit("b1")
    at.answer_when_asked("b1", "Ready")
    at.until(lambda: at.holds("b1", "Admitted"))
    at.advance(2)
    at.answer("b1", "Pending", "re-deciding")
    at.advance(10)
    assert at.holds("b1", "Admitted")
    at.answer("b1", "Retry", "placement changed", requeue_after=5)
    at.advance(3.5)
    assert not at.holds("b1", "Evicted")
    at.until(lambda: at.evictions_after_placement["b1"] == 1, limit=3)
    assert (at.state("b1"), at.state("b1", "placement")) == ("Pending", "Pending")


@seeds
def test_rejected_deactivates(seed: int) -> None:
    """second-check-unanswered-then-ready.log 262.18 to 262.30."""
    at = kueue(seed)
    at.submit("b1")
    at.answer_when_asked("b1", "Ready")
    at.until(lambda: at.holds("b1", "Admitted"))
    at.answer("b1", "Rejected", "no cluster matches")
    at.until(lambda: not at.has_copy("b1"))
    at.advance(30)
    assert at.workload("b1")["spec"]["active"] is False
    assert at.running("b1") == set()


def waiting_everywhere(seed: int, **more: Any) -> VirtualKueue:
    """All workers hold, our entry is Ready, a copy waits on each."""
    at = kueue(seed, **more)
    at.hold(*ALL)
    at.submit("b1")
    at.answer_when_asked("b1", "Ready")
    at.until(lambda: at.has_copy("b1") == set(ALL))
    at.advance(3)
    return at


@seeds
def test_retry_on_a_waiting_workload_deletes_all_its_copies(seed: int) -> None:
    """gate.txt: gone after 0.23 s, quota again at once to 2 s later, no nomination while ours is Pending."""
    at = waiting_everywhere(seed)
    at.answer("b1", "Retry", "worker2 leaves")
    assert at.until(lambda: not at.has_copy("b1")) < 0.4
    assert at.until(lambda: at.holds("b1", "QuotaReserved")) < 2.5
    at.advance(10)
    assert (at.nominated("b1"), at.has_copy("b1"), at.state("b1", "placement")) == ([], set(), "Pending")
    at.set_config(without("worker2"))
    at.advance(0.5)
    at.answer("b1", "Ready")
    at.until(lambda: at.nominated("b1") == ["worker1", "worker3"])
    at.release(*ALL)
    at.until(lambda: len(at.running("b1")) == 1)
    at.advance(30)
    assert (at.max_copies["b1"], "worker2" in at.running("b1")) == (1, False)


@pytest.mark.parametrize("after", [0.05, 0.2])
@seeds
def test_retry_just_after_a_worker_has_admitted_removes_that_copy_too(seed: int, after: float) -> None:
    """gate.txt: 0.05 s, 0.2 s after the admission; its first seconds are lost, it does not run twice."""
    at = waiting_everywhere(seed)
    at.release("worker2")
    at.until(lambda: bool(at.squatting("b1") or at.running("b1")))
    at.advance(after)
    assert at.placed("b1") == ""
    at.answer("b1", "Retry", "worker2 leaves")
    at.until(lambda: not at.has_copy("b1"), limit=6)
    at.set_config(without("worker2"))
    at.advance(0.5)
    at.release(*ALL)
    at.answer("b1", "Ready")
    at.until(lambda: at.placed("b1") in ("worker1", "worker3"))
    at.advance(30)
    assert at.max_copies["b1"] == 1


def test_retry_with_an_old_version_does_not_evict_a_placed_workload() -> None:
    """gate.txt: 0.5 s after the admission clusterName was already set: a conflict, not an eviction."""
    at = waiting_everywhere(1)
    read = at.workload("b1")["metadata"]["resourceVersion"]
    at.release("worker2")
    at.until(runs_on(at, "worker2"))
    with pytest.raises(Conflict):
        at.answer("b1", "Retry", "worker2 leaves", resource_version=read)
    at.advance(10)
    assert at.evictions_after_placement["b1"] == 0


def left_running(seed: int, **more: Any) -> VirtualKueue:
    """Retry, and quota again before MultiKueue looks: worker2's copy is left, and runs."""
    at = waiting_everywhere(seed, delays=ALWAYS, **more)
    at.release("worker2")
    at.answer("b1", "Retry", "worker2 leaves")
    at.advance(5)
    return at


@seeds
def test_a_copy_may_be_left_behind_and_nothing_on_the_hub_shows_it(seed: int) -> None:
    """gate.txt, second series, d = 0.7: runs on worker2, hub clusterName none, our entry Pending."""
    at = left_running(seed)
    assert at.running("b1") == {"worker2"}
    assert (at.placed("b1"), at.nominated("b1"), at.state("b1", "placement")) == ("", [], "Pending")
    assert [one["metadata"]["name"] for one in at.copies("worker2")] == ["job-b1"]


@seeds
def test_unlisting_then_runs_the_job_twice(seed: int) -> None:
    at = left_running(seed)
    at.set_config(without("worker2"))
    at.release(*ALL)
    at.advance(1)
    at.answer("b1", "Ready")
    at.until(lambda: len(at.running("b1")) == 2)
    assert at.max_copies["b1"] == 2


@seeds
def test_ready_recovers_the_copy_if_kueue_nominates_first(seed: int) -> None:
    """DESIGN.md, the gate, 3, "by analogy"."""
    at = left_running(seed, settings=KueueSettings(nominates_admitted=True))
    at.answer("b1", "Ready")
    at.until(runs_on(at, "worker2"), limit=3)
    assert (at.max_copies["b1"], len(at.starts["b1"])) == (1, 1)


def test_about_one_in_eight_is_left_behind() -> None:
    """gate.txt: 1 of 8 tries."""
    left = 0
    for seed in range(64):
        at = waiting_everywhere(seed, delays=Delays())
        at.answer("b1", "Retry", "worker2 leaves")
        at.advance(5)
        left += bool(at.has_copy("b1"))
    assert 3 <= left <= 16


@seeds
def test_deactivated_and_activated_again_nothing_is_left(seed: int) -> None:
    """gate.txt: 24 of 24."""
    at = waiting_everywhere(seed, delays=Delays(left_behind=0.5))
    at.release("worker2")
    at.advance(seed / 8)
    at.activate("b1", False)
    at.advance(3)
    assert at.has_copy("b1") == set()
    at.set_config(without("worker2"))
    at.release(*ALL)
    at.activate("b1", True)
    at.answer_when_asked("b1", "Ready")
    at.until(lambda: at.placed("b1") in ("worker1", "worker3"))
    at.advance(30)
    assert at.max_copies["b1"] == 1
