"""Who is not moved, and where to: quarantine, failures, maintenance, and what is written by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from placement_ac.core.api.constants import ANNOTATION_CLUSTER_NAMES, MOVED_FROM
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.plan.moving import moving
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import NOW
from tests.support.decided import check_states, nominated
from tests.support.moving import WITH_KUEUES, after, entry, evicted, explained, job, planned, recorded

EARLIER, LATER = NOW - timedelta(minutes=5), NOW + timedelta(minutes=5)
IN_40_MINUTES = NOW + timedelta(minutes=40)
SOON = MaintenanceWindow(NOW + timedelta(hours=1))
FAILING = {"a": "jobs keep failing there"}


def objections(*jobs: Any, **rest: Any) -> list[str]:
    return [candidate.objection for candidate in explained(*jobs, **rest).candidates()]


# -- quarantine and failures


def test_the_job_that_tries_a_quarantined_cluster_is_not_moved_away() -> None:
    tries, was_there = job(since=NOW), job(since=NOW - timedelta(minutes=6))
    quarantine: Any = {"quarantined": FAILING, "retry_at": {"a": EARLIER}}
    assert objections(tries, **quarantine) == ["it tries its cluster, which is quarantined"]
    assert recorded(planned(tries, **quarantine)) == []
    assert recorded(planned(was_there, **quarantine)) == ["check:Workload/job:a:b:quarantine"]


def test_a_job_is_not_moved_to_a_cluster_where_it_failed() -> None:
    others_have_room = {"a": (8, 8), "b": (8, 2), "c": (8, 3)}
    assert recorded(planned(job(), used=others_have_room, avoided={"b": LATER})) == [
        "check:Workload/job:a:c:better"
    ]
    nowhere = objections(job(), used={"a": (8, 8), "b": (8, 2)}, avoided={"b": LATER})
    assert nowhere == ["no other cluster is known to have room for it"]


# -- maintenance


def test_a_movable_job_is_sent_last_to_a_cluster_whose_maintenance_is_announced() -> None:
    waits = job(cluster="")
    assert nominated(planned(waits, maintenance={"b": SOON}))["job"] == ("p-c", "p-a")
    assert nominated(planned(job(cluster="", movable=""), maintenance={"b": SOON}))["job"][0] == "p-b"
    every = dict.fromkeys("abc", SOON)
    assert nominated(planned(waits, maintenance=every))["job"][0] == "p-b"


def test_a_cluster_that_another_filter_refuses_is_not_taken_for_one_without_room() -> None:
    """Kueue's dispatcher does not read that annotation, so it might send the job back to its own cluster."""
    runs = job()
    runs["metadata"]["annotations"][ANNOTATION_CLUSTER_NAMES] = "b"
    used = {"a": (8, 2), "b": (8, 2)}
    assert "which has room without it" in "".join(objections(runs, used=used, policy=WITH_KUEUES))


# -- what somebody has written by hand


def with_another_name(seen: Snapshot) -> Snapshot:
    """The list also holds the name of a MultiKueueCluster that is not the controller's."""
    config = seen.objects.config
    assert config
    spec = {"clusters": [*config.listed, "by-hand"]}
    return replace(seen, objects=replace(seen.objects, config=replace(config, spec=spec)))


def test_a_name_in_the_list_that_is_not_ours_stops_no_plan_and_no_decision_on_moves() -> None:
    jobs, given = [job()], {"used": {"a": (4, 8), "b": (8, 2)}, "policy": WITH_KUEUES}
    seen = with_another_name(after(300.0, *jobs, **given))
    targets = select_targets(seen)
    (candidate,) = moving(seen, targets, None, in_step=True).plan.candidates()
    assert candidate.objection == "Kueue's dispatcher might send it to by-hand, which is no better"
    assert check_states(plan(seen)) == {}


def test_a_quarantined_cluster_that_is_not_listed_stops_no_plan() -> None:
    answer = planned(job(), quarantined={"x": "jobs keep failing there"}, retry_at={"x": LATER})
    assert answer.requeue_after is not None
    assert recorded(answer) == ["check:Workload/job:a:b:better"]


def test_a_record_by_hand_moves_no_job_that_does_not_say_that_it_may_be_moved() -> None:
    record = [entry(0, "Workload/job")]
    assert check_states(planned(job(), moves=record)) == {"job": "Retry"}
    assert check_states(planned(job(movable=""), moves=record)) == {}


# -- one at a time


def test_no_other_job_is_moved_while_kueue_does_not_take_the_first_one_back() -> None:
    """Kueue is down: the entry is Retry, and the job still runs on its cluster."""
    first = job("first", check="Retry")
    record = [entry(0.9, "Workload/first")]
    answer = explained(first, job(), moves=record)
    assert (answer.objections["check"], answer.record) == ("default/first moves from cluster a", "")
    much_later = explained(first, job(), moves=[entry(50, "Workload/first")])
    assert (much_later.objections, much_later.record) == (answer.objections, "")


def test_the_cooldown_begins_when_kueue_has_taken_the_job_back_however_late() -> None:
    why = f"due to: {MOVED_FROM.format('c')} a has room and is better; move 1 of 12 in this hour"
    moved_late = evicted(job(), why, NOW - timedelta(minutes=20))
    moved_late["status"]["clusterName"] = "p-a"
    (objection,) = objections(moved_late, moves=[entry(65, "Workload/job")])
    assert objection == f"it was moved before, and may be moved again from {IN_40_MINUTES:%H:%M:%SZ} on"
