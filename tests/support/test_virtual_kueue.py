"""
The virtual Kueue behaves as the recordings of real Kueue; each test names its recording in shared/kueue.

A seed determines the delays of one run. Behaviour that real Kueue shows only in most runs is tested with
many seeds.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kubectl_placement.structural_schema.schema_node import SchemaNode
from kubectl_placement.structural_schema.validation import validate
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, WORKLOAD, Kind
from placement_ac.core.api.errors import Conflict, NotFound, Refused, Unavailable
from placement_lab.standins.multikueue import INCREMENTAL, PACES, KueueSettings
from tests.support.shared import published_crds
from tests.support.virtual_kueue import CHECK, Delays, VirtualKueue

ALL = ("worker1", "worker2", "worker3")
ONLY_MULTIKUEUE = (CHECK,)
NEVER = Delays(left_behind=0.0)
ALWAYS = Delays(left_behind=1.0)
EXTERNAL = KueueSettings(dispatcher="open-cluster-management.io/placement")
seeds = pytest.mark.parametrize("seed", range(8))


def kueue(seed: int, slots: int = 5, **more: Any) -> VirtualKueue:
    return VirtualKueue(seed, dict.fromkeys(ALL, slots), **{"delays": NEVER} | more)


def submitted(at: VirtualKueue, name: str = "b1", checks: tuple[str, ...] = ONLY_MULTIKUEUE) -> VirtualKueue:
    at.submit(name, checks)
    return at


def runs_on(at: VirtualKueue, worker: str, name: str = "b1") -> Callable[[], bool]:
    return lambda: at.placed(name) == worker and at.running(name) == {worker} and at.holds(name, "Admitted")


def placed_on(seed: int, worker: str, **more: Any) -> VirtualKueue:
    """A hub whose only job runs on `worker`; afterwards the other workers are released."""
    at = kueue(seed, **more)
    at.hold(*(name for name in ALL if name != worker))
    submitted(at).until(runs_on(at, worker))
    at.advance(3)
    at.release(*ALL)
    return at


def without(worker: str) -> list[str]:
    return [name for name in ALL if name != worker]


# From creation to the end


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


# A cluster that leaves while it runs a job


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
def test_an_idle_cluster_can_be_unlisted(seed: int) -> None:
    """external-dispatcher.txt, drain: nothing evicted, nothing left."""
    at = placed_on(seed, "worker2")
    at.finish("b1")
    at.until(lambda: at.holds("b1", "Finished") and not at.has_copy("b1"))
    at.set_config(without("worker2"))
    at.advance(120)
    assert (at.max_copies["b1"], at.evictions_after_placement["b1"]) == (1, 0)


# A cluster that leaves while a copy waits there


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


# The worker is lost


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


def test_a_lost_worker_does_not_answer() -> None:
    at = placed_on(1, "worker2")
    assert [one["metadata"]["name"] for one in at.copies("worker2")] == ["job-b1"]
    at.lose("worker2")
    with pytest.raises(Unavailable):
        at.copies("worker2")


@seeds
def test_shorter_than_the_timeout_a_loss_is_nothing(seed: int) -> None:
    at = placed_on(seed, "worker2")
    at.lose("worker2")
    at.advance(800)
    at.find("worker2")
    at.advance(200)
    assert runs_on(at, "worker2")()
    assert (at.max_copies["b1"], at.evictions_after_placement["b1"]) == (1, 0)


# The config is deleted


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


# Our check


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


# The gate


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
def test_ready_alone_does_not_recover_the_copy(seed: int) -> None:
    """By Kueue's code: recording comes first and is refused, nothing is nominated (DESIGN.md hopes not)."""
    at = left_running(seed)
    at.answer("b1", "Ready")
    at.advance(30)
    assert (at.placed("b1"), at.nominated("b1"), at.running("b1")) == ("", [], {"worker2"})


@seeds
def test_ready_recovers_the_copy_if_kueue_nominates_first(seed: int) -> None:
    """DESIGN.md, the gate, 3, "by analogy"."""
    at = left_running(seed, settings=KueueSettings(nominates_admitted=True))
    at.answer("b1", "Ready")
    at.until(runs_on(at, "worker2"), limit=3)
    assert (at.max_copies["b1"], len(at.starts["b1"])) == (1, 1)


@seeds
def test_one_more_retry_deletes_the_copy_that_was_left_behind(seed: int) -> None:
    """By Kueue's code: the next Retry is like the first, and in most tries it removes every copy."""
    at = left_running(seed)
    at.delays = NEVER
    at.answer("b1", "Retry", "worker2 leaves")
    at.advance(30)
    if at.holds("b1", "Evicted"):
        at.answer("b1", "Ready")
        at.advance(10)
    assert at.max_copies["b1"] == 1


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


# An external dispatcher


def dispatched(seed: int, *clusters: str, **how: Any) -> VirtualKueue:
    """All workers hold; the Workload is nominated to `clusters`, and a copy waits on each."""
    at = kueue(seed, settings=EXTERNAL)
    at.hold(*ALL)
    submitted(at).until(lambda: at.holds("b1", "QuotaReserved"))
    at.advance(5)
    assert (at.nominated("b1"), at.has_copy("b1")) == ([], set())
    at.nominate("b1", clusters, **how)
    assert at.until(lambda: at.has_copy("b1") == set(clusters)) < 0.2
    return at


@seeds
def test_a_nomination_as_kueue_admission_is_recorded(seed: int) -> None:
    """external-dispatcher.txt: copy 0.05 s later, clusterName after 1.1 s."""
    at = dispatched(seed, "worker2")
    at.release(*ALL)
    assert at.until(lambda: at.placed("b1") == "worker2") < 1.5
    assert at.nominated("b1") == []


@pytest.mark.parametrize("manager", ["placement-ac", "kueue-admission/Update"])
@seeds
def test_any_other_managers_nomination_is_never_recorded(seed: int, manager: str) -> None:
    """external-dispatcher.txt, the table: dispatched, clusterName never."""
    at = dispatched(seed, "worker2", manager=manager)
    at.release(*ALL)
    at.advance(60)
    assert at.running("b1") == {"worker2"}
    assert (at.placed("b1"), at.nominated("b1")) == ("", ["worker2"])


def test_an_apply_with_the_names_alone_takes_quota_away_for_a_moment() -> None:
    """external-dispatcher.txt: admission and the conditions are back 0.3 s later."""
    at = kueue(1, settings=EXTERNAL)
    submitted(at).until(lambda: at.holds("b1", "QuotaReserved"))
    at.nominate("b1", ["worker2"], complete=False)
    assert not at.holds("b1", "QuotaReserved")
    assert at.until(lambda: at.holds("b1", "QuotaReserved")) < 0.5


def test_a_nomination_of_a_placed_workload_is_refused_and_an_old_version_is_a_conflict() -> None:
    """DESIGN.md: 422 means that it is placed."""
    at = dispatched(1, "worker2")
    read = at.workload("b1")["metadata"]["resourceVersion"]
    at.release(*ALL)
    at.until(runs_on(at, "worker2"))
    with pytest.raises(Conflict):
        at.nominate("b1", ["worker1"], resource_version=read)
    with pytest.raises(Refused):
        at.nominate("b1", ["worker1"])


@seeds
def test_a_denominated_cluster_loses_its_waiting_copy_and_can_be_unlisted(seed: int) -> None:
    """external-dispatcher.txt: gone after 0.04 to 0.6 s, unlisted: nothing left (5 of 5)."""
    at = dispatched(seed, "worker2", "worker3")
    at.nominate("b1", ["worker3"])
    assert at.until(lambda: at.has_copy("b1") == {"worker3"}) < 0.6
    at.set_config(without("worker2"))
    at.release(*ALL)
    at.until(runs_on(at, "worker3"))
    at.advance(60)
    assert (at.max_copies["b1"], at.squatting("b1")) == (1, set())


def raced(seed: int) -> VirtualKueue:
    """worker2 has admitted, and leaves the nominations before the hub has recorded it."""
    at = dispatched(seed, "worker2", "worker3")
    at.advance(3)
    at.release("worker2")
    at.until(lambda: at.squatting("b1") == {"worker2"})
    at.nominate("b1", ["worker3"])
    at.advance(6)
    return at


@seeds
def test_denominated_during_its_admission_the_copy_runs_unrecorded(seed: int) -> None:
    """external-dispatcher.txt, race, dt 0.04 to 0.4."""
    at = raced(seed)
    assert at.running("b1") == {"worker2"}
    assert (at.placed("b1"), at.has_copy("b1")) == ("", {"worker2"})


@seeds
def test_unlisting_after_the_race_runs_the_job_twice(seed: int) -> None:
    """external-dispatcher.txt, race: worker2 AND worker3."""
    at = raced(seed)
    at.set_config(without("worker2"))
    at.release("worker3")
    at.until(runs_on_both(at))
    assert at.max_copies["b1"] == 2


def runs_on_both(at: VirtualKueue) -> Callable[[], bool]:
    return lambda: at.running("b1") == {"worker2", "worker3"}


@seeds
def test_a_cluster_nominated_again_is_recorded(seed: int) -> None:
    """external-dispatcher.txt, heal: within 0.3 s, one copy."""
    at = raced(seed)
    at.nominate("b1", ["worker2", "worker3"])
    assert at.until(lambda: at.placed("b1") == "worker2") < 0.4
    at.advance(30)
    assert (at.max_copies["b1"], len(at.starts["b1"])) == (1, 1)


# Evicted by somebody else


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


# The executor itself


def test_the_same_seed_gives_the_same_run() -> None:
    def story(seed: int) -> list[tuple[float, str, str]]:
        at = placed_on(seed, "worker2")
        at.set_config(without("worker2"))
        at.advance(20)
        return at.log

    assert story(5) == story(5)
    assert story(5) != story(6)


def test_a_listener_is_called_on_every_change_of_the_hub() -> None:
    at = kueue(1)
    changes: dict[tuple[Kind, str], str] = {}
    versions: list[int] = []

    def listen(what: str, kind: Kind, item: dict[str, Any]) -> None:
        changes[kind, item["metadata"]["name"]] = what
        versions.append(int(item["metadata"]["resourceVersion"]))

    at.listeners.append(listen)
    submitted(at).until(lambda: at.placed("b1") != "")
    at.set_config(["worker1"])
    assert changes == {(WORKLOAD, "job-b1"): "put", (MULTIKUEUE_CONFIG, "mk"): "put"}
    assert versions == sorted(set(versions))
    at.delete("b1")
    at.set_config(None)
    at.advance(3)
    assert set(changes.values()) == {"remove"}


def test_returned_objects_are_complete_copies() -> None:
    at = submitted(kueue(1))
    raw = at.workload("b1")
    assert (raw["apiVersion"], raw["kind"]) == ("kueue.x-k8s.io/v1beta2", "Workload")
    wanted = {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"}
    assert wanted <= raw["metadata"].keys()
    assert raw["spec"]["queueName"] == "user-queue"
    raw["spec"]["active"] = False
    assert at.workload("b1")["spec"]["active"] is True


@pytest.mark.parametrize("seed", range(3))
def test_all_objects_are_valid_by_the_published_crds(seed: int) -> None:
    """Every Workload and config of a run with many faults, including the rules for changes."""
    nodes = {crd["spec"]["names"]["kind"]: schema_of(crd) for crd in published_crds() if is_kueues(crd)}
    at = VirtualKueue(seed, dict.fromkeys(ALL, 1), delays=Delays(left_behind=0.3))
    before: dict[str, dict[str, Any]] = {}
    faults: list[Any] = []

    def listen(what: str, kind: Kind, item: dict[str, Any]) -> None:
        old = before.get(item["metadata"]["name"])
        faults.extend(validate(nodes[kind.kind], item, old, []))
        before[item["metadata"]["name"]] = item

    at.listeners.append(listen)
    for name in ("j0", "j1", "j2"):
        at.submit(name)
    for turn in range(60):
        trouble(at, f"j{turn % 3}")
        at.set_config([one for one in ALL if at.random.random() < 0.8] or ALL)
        at.advance(at.random.choice((0.1, 0.7, 5.0)))
    assert len(before) == 4
    assert faults == []


def is_kueues(crd: dict[str, Any]) -> bool:
    return bool(crd["spec"]["group"] == WORKLOAD.group)


def schema_of(crd: dict[str, Any]) -> SchemaNode:
    (served,) = (version for version in crd["spec"]["versions"] if version["name"] == "v1beta2")
    return SchemaNode(served["schema"]["openAPIV3Schema"])


def test_a_config_of_another_version_is_a_conflict_and_a_change_of_its_spec_is_a_generation() -> None:
    at = kueue(1)
    before = at.config() or {}
    at.set_config(["worker1"], resource_version=before["metadata"]["resourceVersion"])
    after = at.config() or {}
    assert (before["metadata"]["generation"], after["metadata"]["generation"]) == (1, 2)
    with pytest.raises(Conflict):
        at.set_config(ALL, resource_version=before["metadata"]["resourceVersion"])


def test_an_answer_for_a_check_that_is_not_listed_is_refused() -> None:
    at = submitted(kueue(1))
    at.advance(1)
    with pytest.raises(Refused):
        at.answer("b1", "Ready")


def test_a_missed_deadline_fails_with_the_log() -> None:
    at = submitted(kueue(1))
    with pytest.raises(AssertionError, match="not reached within 2"):
        at.until(lambda: False, limit=2)


def test_a_clock_without_events_goes_on() -> None:
    at = kueue(1)
    start = at.now
    at.advance(7)
    assert at.now == start + 7


@pytest.mark.parametrize("seed", range(12))
def test_while_all_clusters_stay_listed_and_reachable_a_job_runs_once(seed: int) -> None:
    """DESIGN.md: "as long as the cluster stays listed there is one running copy"."""
    at = VirtualKueue(seed, dict.fromkeys(ALL, 1), delays=Delays(left_behind=0.3))
    jobs = [f"j{number}" for number in range(4)]
    for name in jobs:
        at.submit(name)
    for _ in range(80):
        trouble(at, at.random.choice(jobs))
        at.advance(at.random.choice((0.0, 0.02, 0.1, 0.7, 2.0, 10.0)))
    assert max(at.max_copies.values()) == 1, at.log


def trouble(at: VirtualKueue, name: str) -> None:
    """Apply a random fault to a job or to a worker."""
    worker = at.random.choice(ALL)
    happens: list[Callable[[], object]] = [
        lambda: at.answer(name, "Ready"),
        lambda: at.answer(name, "Retry"),
        lambda: at.evict(name),
        lambda: at.hold(worker),
        lambda: at.release(worker),
        lambda: at.activate(name, at.random.random() < 0.7),
        lambda: at.preempt(name, worker) if worker in at.running(name) else None,
    ]
    if at.state(name, "placement"):
        at.random.choice(happens)()


# The cost of a list write (flips.md)


UP_TO_019 = ["0.19", "0.19 without groupKindConcurrency"]


def throttled(running: int, pace: str = "0.19") -> VirtualKueue:
    """A hub with that many running jobs, on all workers, and MultiKueue at rest."""
    at = kueue(1, slots=running, settings=KueueSettings(pace=PACES[pace]))
    for number in range(running):
        at.submit(f"running-{number}", ONLY_MULTIKUEUE)
    at.until(lambda: all(at.placed(f"running-{number}") for number in range(running)))
    at.advance(60)
    at.throttled = True
    return at


def seconds_to_place(at: VirtualKueue) -> float:
    return submitted(at).until(lambda: bool(at.placed("b1")), limit=120)


@pytest.mark.long
def test_without_a_list_write_running_workloads_delay_no_placement() -> None:
    assert seconds_to_place(throttled(60)) < 3


@pytest.mark.parametrize("running", [30, 100])
@pytest.mark.parametrize("pace", UP_TO_019)
def test_a_list_write_delays_a_placement_by_a_fifth_of_a_second_for_each_workload(
    running: int, pace: str
) -> None:
    at = throttled(running, pace)
    at.set_config(ALL[::-1])
    at.advance(0.5)
    delay = seconds_to_place(at)
    assert running / 5 - 3 < delay < running / 5 + 3


@pytest.mark.parametrize("running", [30, 100])
def test_a_list_write_hardly_delays_a_placement_on_kueue_0_20(running: int) -> None:
    at = throttled(running, "0.20")
    at.set_config(ALL[::-1])
    at.advance(0.5)
    assert seconds_to_place(at) < 3


@pytest.mark.long
def test_other_controllers_do_not_wait_for_a_list_write() -> None:
    at = throttled(60)
    at.set_config(ALL[::-1])
    at.advance(0.5)
    submitted(at)
    assert at.until(lambda: at.holds("b1", "QuotaReserved")) < 1


@pytest.mark.long
def test_a_list_write_costs_nothing_without_the_limiter() -> None:
    at = throttled(60)
    at.throttled = False
    at.set_config(ALL[::-1])
    assert seconds_to_place(at) < 1.8
