"""
The virtual Kueue runs jobs as the recordings of real Kueue; each test names its recording in shared/kueue.

A seed determines the delays of one run. Behaviour that real Kueue shows only in most runs is tested with
many seeds.
"""

import pytest

from placement_ac.core.api.errors import NotFound
from placement_lab.standins.multikueue import INCREMENTAL, KueueSettings
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.kueues import ALL, NEVER, kueue, placed_on, runs_on, seeds, submitted, without


@seeds
def test_from_creation_to_running(seed: int) -> None:
    """dispatch.log 1.02 to 1.38 (0.36 s), cluster-unlisted-while-running.log 1.03 to 2.35 (1.32 s)."""
    at = submitted(kueue(seed))
    assert at.until(lambda: bool(at.placed("b1"))) < 1.8
    winner = at.placed("b1")
    assert at.has_copy("b1") == {winner}, "the losers' copies have gone before"
    at.until(runs_on(at, winner))
    at.advance(60)
    assert (at.max_copies["b1"], len(at.starts["b1"])) == (1, 1)


def test_other_copies_are_deleted_before_the_job_is_created() -> None:
    """dispatch.log 1.30 to 1.32."""
    at = submitted(kueue(1))
    at.until(lambda: bool(at.placed("b1")))
    operations = [what.split(": ")[1] for _, _, what in at.log if ": " in what]
    assert operations.index("CreateJob") > max(i for i, one in enumerate(operations) if one == "DeleteCopy")


@seeds
def test_a_finished_job_finishes_on_the_hub_and_leaves_no_copy(seed: int) -> None:
    """external-dispatcher.txt, drain."""
    at = placed_on(seed, "worker2")
    at.finish("b1")
    at.until(lambda: at.holds("b1", "Finished"))
    at.until(lambda: not at.has_copy("b1"))
    assert at.running("b1") == set()
    assert at.evictions_after_placement["b1"] == 0


@seeds
def test_a_job_deleted_on_the_hub_is_deleted_on_the_worker(seed: int) -> None:
    """cluster-unlisted-variants.log 94.91 to 94.99."""
    at = placed_on(seed, "worker2")
    at.delete("b1")
    assert at.until(lambda: not at.has_copy("b1")) < 0.5
    at.advance(3)
    assert at.workloads() == []
    with pytest.raises(NotFound):
        at.workload("b1")


@seeds
def test_a_full_worker_lets_the_copy_wait_until_a_job_ends(seed: int) -> None:
    at = VirtualKueue(seed, {"worker1": 1}, delays=NEVER)
    submitted(at, "first").until(runs_on(at, "worker1", "first"))
    submitted(at, "second").advance(30)
    assert (at.placed("second"), at.has_copy("second")) == ("", {"worker1"})
    at.finish("first")
    at.until(runs_on(at, "worker1", "second"))


@seeds
def test_a_careless_unlisting_doubles_a_running_job(seed: int) -> None:
    """cluster-unlisted-while-running.log 9.82 to 85: evicted, elsewhere 4 s later, the first copy runs on."""
    at = placed_on(seed, "worker2")
    at.set_config(without("worker2"))
    took = at.until(lambda: at.placed("b1") not in ("", "worker2"), limit=10)
    assert 1.0 < took < 7.0
    at.advance(76)
    assert at.running("b1") == {"worker2", at.placed("b1")}
    assert (at.max_copies["b1"], at.evictions_after_placement["b1"]) == (2, 1)


@seeds
def test_the_first_copy_goes_with_the_hubs_job_by_garbage_collection(seed: int) -> None:
    """cluster-unlisted-while-running.log 86.0 to 99.38."""
    at = placed_on(seed, "worker2")
    at.set_config(without("worker2"))
    at.advance(20)
    at.delete("b1")
    at.advance(5)
    assert at.has_copy("b1") <= {"worker2"}
    at.advance(60)
    assert at.has_copy("b1") == set()


@seeds
def test_with_its_object_deleted_too_the_copy_is_never_deleted(seed: int) -> None:
    """cluster-unlisted-variants.log 129.0 to 204.74: until the object is back."""
    at = placed_on(seed, "worker2")
    at.set_config(without("worker2"))
    at.remove_cluster("worker2")
    at.advance(20)
    at.delete("b1")
    at.advance(300)
    assert at.running("b1") == {"worker2"}
    at.add_cluster("worker2")
    at.advance(61)
    assert at.has_copy("b1") == set()


@seeds
def test_listed_again_the_newer_copy_is_deleted_and_the_status_is_wrong(seed: int) -> None:
    """cluster-unlisted-variants.log 19.74 to 94.91."""
    at = placed_on(seed, "worker2")
    at.set_config(without("worker2"))
    at.advance(20)
    newer = at.placed("b1")
    at.set_config(ALL)
    at.until(lambda: at.running("b1") == {"worker2"})
    at.advance(75)
    assert (at.running("b1"), at.placed("b1")) == ({"worker2"}, newer)


@seeds
def test_a_waiting_copy_on_an_unlisted_cluster_reserves_quota_later(seed: int) -> None:
    """DESIGN.md: "stays behind and later reserved quota there"; no Job follows, it is no remote any more."""
    at = kueue(seed)
    at.hold(*ALL)
    submitted(at).until(lambda: at.has_copy("b1") == set(ALL))
    at.set_config(without("worker2"))
    at.advance(3)
    at.release("worker1")
    at.until(runs_on(at, "worker1"))
    at.release("worker2")
    at.advance(30)
    assert (at.running("b1"), at.squatting("b1")) == ({"worker1"}, {"worker2"})
    assert at.max_copies["b1"] == 1


@seeds
def test_under_incremental_the_job_stalls_until_the_round_ends(seed: int) -> None:
    """nominated-cluster-unlisted-incremental.log: 1.27 to 301.27."""
    settings = KueueSettings(dispatcher=INCREMENTAL)
    at = VirtualKueue(seed, dict.fromkeys((*ALL, "worker4"), 5), settings=settings, delays=NEVER)
    at.hold(*ALL)
    submitted(at).until(lambda: at.has_copy("b1") == set(ALL))
    at.set_config(["worker4"])
    at.advance(290)
    assert (at.placed("b1"), at.nominated("b1")) == ("", list(ALL))
    at.advance(12)
    assert runs_on(at, "worker4")()
    assert at.has_copy("b1") == {*ALL, "worker4"}


@seeds
def test_a_lost_worker_is_replaced_and_its_old_copy_wins_when_it_returns(seed: int) -> None:
    """worker-lost-and-back.log: lost 9.33, Retry 38.31, elsewhere 42.67, back 84.38, newer gone 85.40."""
    at = placed_on(seed, "worker2", settings=KueueSettings(worker_lost_seconds=30.0))
    at.lose("worker2")
    at.advance(29)
    assert at.placed("b1") == "worker2"
    took = at.until(lambda: at.placed("b1") not in ("", "worker2"), limit=10)
    assert 1.0 < took < 8.0
    at.advance(40)
    assert at.running("b1") == {"worker2", at.placed("b1")}, "what runs on a lost worker runs on"
    at.find("worker2")
    at.until(lambda: at.running("b1") == {"worker2"})
    assert at.placed("b1") != "worker2"


@seeds
def test_shorter_than_the_timeout_a_loss_is_nothing(seed: int) -> None:
    at = placed_on(seed, "worker2")
    at.lose("worker2")
    at.advance(800)
    at.find("worker2")
    at.advance(200)
    assert runs_on(at, "worker2")()
    assert (at.max_copies["b1"], at.evictions_after_placement["b1"]) == (1, 0)


@seeds
def test_without_a_config_running_jobs_stay_and_new_jobs_wait(seed: int) -> None:
    """config-deleted.log."""
    at = placed_on(seed, "worker2")
    before = at.workload("b1")["status"]
    at.set_config(None)
    at.advance(3)
    submitted(at, "new").advance(30)
    at.finish("b1")
    at.advance(30)
    assert at.workload("b1")["status"] == before
    assert not at.holds("new", "QuotaReserved")
    at.set_config(ALL)
    at.until(lambda: at.placed("new") != "")
    at.until(lambda: at.holds("b1", "Finished"))


@seeds
def test_a_workload_evicted_on_the_hub_is_placed_once_again(seed: int) -> None:
    at = placed_on(seed, "worker2")
    at.evict("b1")
    at.until(lambda: at.evictions_after_placement["b1"] == 1)
    at.until(lambda: at.placed("b1") != "" and len(at.running("b1")) == 1, limit=15)
    at.advance(30)
    assert at.max_copies["b1"] == 1


@seeds
def test_preempted_on_the_worker_the_hub_dispatches_it_again(seed: int) -> None:
    """By Kueue's code; the preempting Workload takes the free slot."""
    at = placed_on(seed, "worker2")
    at.hold("worker2")
    at.preempt("b1", "worker2")
    at.until(lambda: at.evictions_after_placement["b1"] == 1)
    at.until(lambda: at.placed("b1") != "" and len(at.running("b1")) == 1, limit=15)
    at.advance(30)
    assert at.max_copies["b1"] == 1
