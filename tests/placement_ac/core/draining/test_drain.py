"""How a cluster leaves: a test per step of the gate (DESIGN.md, “The gate”), and per reason of leaving.

Everywhere the Placement selects b and the config lists a and b, so that a is to go.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_DRAINING, IMMEDIATE, MANAGED_CLUSTER
from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, Plan, Since, SinceKind, WorkerCopies
from placement_ac.core.plan.diff import Phase, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    check,
    decision,
    inputs,
    listed_in,
    managed_clusters,
    our_cluster,
    our_config,
    placement,
    planned,
    posts,
    running,
    secrets,
    snapshot,
    the,
    unmarked,
    workload,
    world,
    write_names,
)
from tests.support.decided import (
    NO_COPIES,
    check_messages,
    check_states,
    decided,
    decided_inputs,
    decided_plan,
    problems,
)

PATIENT = PlacementPolicy(retention=0.0, loss_grace=0.0, waiting_grace=60.0)
AT_ONCE = PlacementPolicy(retention=0.0, loss_grace=0.0, removal=IMMEDIATE)
A_LONG_TIME_AGO = NOW - timedelta(hours=1)
CLOSED, QUIET = Since(SinceKind.GATE_CLOSED_FOR, "a"), Since(SinceKind.QUIET, "a")
UNGATED = {"mk": "Pending"}


def leaving(*objects: Any, policy: PlacementPolicy = PATIENT, **rest: Any) -> Plan:
    """The plan on a hub where a is listed beside b, and is not selected."""
    return decided_plan("b", *objects, listed="ab", policy=policy, **rest)


def phases_of(*objects: Any, policy: PlacementPolicy = PATIENT, **rest: Any) -> tuple[Phase, ...]:
    """The writes of objects, without conditions."""
    before = decided_inputs("b", *objects, listed="ab", policy=policy, **rest)
    return diff(before, replace(plan(before), verdicts={}))


# -- without jobs, and with jobs elsewhere


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="no Workload"),
        pytest.param([workload("job", finished=True, nominated=["p-a"])], id="one that has finished"),
        pytest.param([workload("job", other="Pending", nominated=["p-a"])], id="one of another queue"),
    ],
)
def test_a_cluster_goes_at_once_when_no_job_can_be_there(others: Any) -> None:
    answer = leaving(*others)
    assert (listed_in(answer), answer.ask_for_copies, problems(answer)) == (("p-b",), (), "")


def test_where_the_last_job_has_just_ended_kueue_has_a_moment_to_clear_up() -> None:
    since = {"a": A_LONG_TIME_AGO}
    first = leaving(draining=since)
    assert (listed_in(first), first.requeue_after, first.ask_for_copies) == (("p-b", "p-a"), 2.0, ())
    assert listed_in(leaving(draining=since, ages={QUIET: 2.0})) == ("p-b",)


def test_where_jobs_run_elsewhere_the_cluster_is_asked_before_it_goes() -> None:
    """It may have been lost to Kueue, which has moved a job that still runs there."""
    elsewhere = running("job", "p-b")
    assert leaving(elsewhere).ask_for_copies == ("p-a",)
    quiet = {CLOSED: 3.0, QUIET: 2.5}
    assert listed_in(leaving(elsewhere, ages=quiet, copies=WorkerCopies({}, age=0.2))) == ("p-b",)
    holds = leaving(
        elsewhere, workload("new"), ages=quiet, copies=WorkerCopies({("default", "job"): True}, age=0.2)
    )
    assert (listed_in(holds), check_states(holds)) == (("p-b", "p-a"), {"new": "Ready"})
    assert problems(holds) == "draining: a (it holds copies of Workloads that are placed elsewhere)"
    assert holds.requeue_after == 14.8


# -- step 2, first half: jobs run there


def test_a_cluster_stays_listed_last_while_a_job_runs_there() -> None:
    answer = leaving(running("job", "p-a"))
    assert listed_in(answer) == ("p-b", "p-a")
    assert problems(answer) == "draining: a (Workloads run there)"
    assert (answer.ask_for_copies, answer.check_state_updates, answer.requeue_after) == ((), (), None)


def test_meanwhile_the_gate_is_open() -> None:
    answer = leaving(running("job", "p-a"), workload("new"))
    assert check_states(answer) == {"new": "Ready"}
    assert answer.check_state_updates[0].message == "1 of 1 selected clusters usable: b"


def test_it_stays_although_nothing_is_selected_any_more() -> None:
    answer = decided_plan("", running("job", "p-a"), listed="a", policy=PATIENT)
    verdict = answer.verdicts["check"]
    assert (verdict.status, verdict.reason, listed_in(answer)) == ("False", "NoClusterSelected", ("p-a",))
    assert verdict.message.endswith("; draining: a (Workloads run there)")


def test_a_cluster_that_is_selected_again_simply_stays() -> None:
    answer = decided_plan("ab", running("job", "p-a"), policy=PATIENT, ages={CLOSED: 5.0})
    assert (listed_in(answer), problems(answer)) == (("p-a", "p-b"), "")
    assert CLOSED not in answer.lasting


def test_a_cluster_that_somebody_else_listed_stays_while_a_job_runs_there() -> None:
    hub = decided("b", "ab")
    the(hub, "MultiKueueConfig")["spec"] = {"clusters": ["p-b", "theirs"]}
    answer = planned(hub, running("job", "theirs"))
    assert listed_in(answer) == ("p-b", "theirs")
    assert "theirs" not in {cluster.name for cluster in answer.clusters}


# -- step 1: the gate closes


def test_the_gate_closes_only_for_a_cluster_that_answers() -> None:
    waiting = workload("waits", nominated=["p-a", "p-b"], check="Ready", mk="Pending")
    first = leaving(waiting, workload("new"))
    assert (first.ask_for_copies, check_states(first), listed_in(first)) == (
        ("p-a",),
        {"new": "Ready"},
        ("p-b", "p-a"),
    )
    problem = leaving(waiting, workload("new"), copies=WorkerCopies({}, "no answer", 1.0))
    assert (problem.ask_for_copies, check_states(problem)) == ((), {"new": "Ready"})
    assert problems(problem) == "draining: a (it cannot be asked for copies: no answer)"
    then = leaving(waiting, workload("new"), copies=NO_COPIES)
    assert (check_states(then), CLOSED in then.lasting) == ({"new": "Pending"}, True)


def test_a_cluster_that_could_not_be_asked_is_asked_again_later() -> None:
    assert leaving(workload(), copies=WorkerCopies({}, "no answer", 20.0)).ask_for_copies == ("p-a",)
    assert leaving(workload(), copies=WorkerCopies({}, "no answer", 5.0)).requeue_after == 10.0


def test_behind_a_closed_gate_nothing_becomes_ready_but_what_is_placed() -> None:
    placed = running("placed", "p-b", check="Pending", mk="Ready")
    answer = leaving(placed, workload("new"), ages={CLOSED: 1.0}, copies=NO_COPIES)
    assert check_states(answer) == {"placed": "Ready", "new": "Pending"}
    assert check_messages(answer) == {
        "placed": "it runs on p-b",
        "new": "waits: a is leaving: it takes a moment",
    }


# -- step 2, second half: what only waits


def test_a_job_that_only_waits_has_its_grace_and_is_then_sent_back() -> None:
    waits = workload("waits", nominated=["p-a"], check="Ready", mk="Pending", since=A_LONG_TIME_AGO)
    early = leaving(waits, ages={CLOSED: 20.0}, copies=NO_COPIES)
    assert (early.check_state_updates, early.requeue_after) == ((), 40.0)
    late = leaving(waits, ages={CLOSED: 60.0}, copies=NO_COPIES)
    assert check_states(late) == {"waits": "Retry"}
    assert late.check_state_updates[0].message == "cluster a is leaving the Placement"


def test_a_job_that_has_just_become_ready_has_its_grace_as_well() -> None:
    waits = workload("waits", check="Ready", mk="Pending", since=NOW - timedelta(seconds=10))
    answer = leaving(waits, ages={CLOSED: 60.0}, copies=NO_COPIES)
    assert (answer.check_state_updates, answer.requeue_after) == ((), 50.0)


def test_a_workload_that_is_ready_without_quota_is_taken_back_without_an_eviction() -> None:
    """It would be dispatched as soon as it has quota, however the gate stands."""
    answer = leaving(
        workload("early", quota=False, check="Ready", mk="Pending"), ages={CLOSED: 1.0}, copies=NO_COPIES
    )
    assert check_states(answer) == {"early": "Pending"}


def test_workloads_without_our_check_are_waited_for_with_the_gate_open() -> None:
    answer = leaving(workload("theirs", nominated=["p-a"], **UNGATED), workload("new"), copies=NO_COPIES)
    assert (listed_in(answer), check_states(answer)) == (("p-b", "p-a"), {"new": "Ready"})
    assert "Workloads without our check" in problems(answer)


# -- step 3: nothing there, and the cluster itself is asked


def test_it_is_quiet_for_a_while_before_the_cluster_is_asked() -> None:
    first = leaving(workload(), ages={CLOSED: 3.0}, copies=NO_COPIES)
    assert (first.ask_for_copies, first.requeue_after, QUIET in first.lasting) == ((), 2.0, True)
    then = leaving(workload(), ages={CLOSED: 5.0, QUIET: 2.0}, copies=NO_COPIES)
    assert (then.ask_for_copies, listed_in(then)) == (("p-a",), ("p-b", "p-a"))


def test_an_answer_from_before_it_was_quiet_does_not_count() -> None:
    early = leaving(workload(), ages={CLOSED: 5.0, QUIET: 2.2}, copies=WorkerCopies({}, age=0.5))
    assert (early.ask_for_copies, listed_in(early)) == (("p-a",), ("p-b", "p-a"))
    then = leaving(workload(), ages={CLOSED: 5.0, QUIET: 2.5}, copies=WorkerCopies({}, age=0.5))
    assert (then.ask_for_copies, listed_in(then)) == ((), ("p-b",))


@pytest.mark.parametrize("quota", [True, False], ids=["a copy with quota", "a copy that waits"])
def test_a_copy_that_the_hub_does_not_know_of_is_let_through_again(quota: bool) -> None:
    answer = leaving(
        *(workload("lost"), workload("other")),
        ages={CLOSED: 5.0, QUIET: 3.0},
        copies=WorkerCopies({("default", "lost"): quota}),
    )
    assert (listed_in(answer), check_states(answer)) == (
        ("p-b", "p-a"),
        {"lost": "Ready", "other": "Pending"},
    )
    assert Since(SinceKind.MADE_READY, "Workload/lost") in answer.lasting


def test_if_kueue_does_not_record_it_soon_it_is_sent_back_once_more() -> None:
    """By Kueue's code an admitted copy that is not nominated is never recorded."""
    lost = workload("lost", check="Ready", mk="Pending")
    healed = Since(SinceKind.MADE_READY, "Workload/lost")
    assert leaving(lost, ages={CLOSED: 6.0, healed: 1.0}, copies=NO_COPIES).check_state_updates == ()
    assert check_states(leaving(lost, ages={CLOSED: 8.0, healed: 3.0}, copies=NO_COPIES)) == {"lost": "Retry"}


def test_copies_of_others_keep_nobody() -> None:
    copies = WorkerCopies({("default", "stranger"): True, ("other", "new"): True})
    assert listed_in(leaving(workload("new"), ages={CLOSED: 5.0, QUIET: 3.0}, copies=copies)) == ("p-b",)


def test_a_copy_of_what_does_not_carry_our_check_is_waited_for_with_the_gate_open() -> None:
    copies = WorkerCopies({("default", "theirs"): True}, age=0.2)
    objects = [workload("theirs", **UNGATED), workload("new")]
    answer = leaving(*objects, ages={CLOSED: 5.0, QUIET: 3.0}, copies=copies)
    assert (listed_in(answer), check_states(answer), CLOSED in answer.lasting) == (
        ("p-b", "p-a"),
        {"new": "Ready"},
        False,
    )


def test_a_cluster_that_kueue_has_lost_is_left_alone() -> None:
    """Kueue could not take a copy away there, nor record one."""
    for job, policy in ((workload("job"), PATIENT), (running("job", "p-a"), AT_ONCE)):
        answer = leaving(job, policy=policy, off="a", ages={CLOSED: 1.0}, copies=NO_COPIES)
        assert listed_in(answer) == ("p-b", "p-a")
        assert "Kueue is not connected to it" in problems(answer)
        assert "Retry" not in check_states(answer).values()


def test_a_cluster_that_cannot_be_asked_any_more_opens_the_gate() -> None:
    answer = leaving(workload("new"), ages={CLOSED: 5.0, QUIET: 3.0}, copies=WorkerCopies({}, "no answer"))
    assert (listed_in(answer), check_states(answer), CLOSED in answer.lasting) == (
        ("p-b", "p-a"),
        {"new": "Ready"},
        False,
    )


# -- step 4: the gate opens


def test_the_gate_opens_a_moment_after_the_cluster_was_unlisted() -> None:
    """Kueue must have seen the new list before anything becomes Ready."""
    left = Since(SinceKind.JUST_UNLISTED, "a")
    early = decided_plan("b", workload("new"), policy=PATIENT, ages={left: 0.4})
    assert (check_states(early), early.requeue_after) == ({"new": "Pending"}, 0.6)
    late = decided_plan("b", workload("new"), policy=PATIENT, ages={left: 1.0})
    assert (check_states(late), left in late.lasting) == ({"new": "Ready"}, False)


SHUT, AIRED = Since(SinceKind.GATE_CLOSED), Since(SinceKind.GATE_REOPENED)


def test_the_gate_is_aired_when_it_has_been_closed_for_long() -> None:
    sent = workload("sent", check="Retry", mk="Pending")
    closed = leaving(sent, workload("new"), ages={CLOSED: 9.0, SHUT: 119.0}, copies=NO_COPIES)
    assert (check_states(closed), closed.requeue_after) == ({"new": "Pending"}, 1.0)
    aired = leaving(sent, workload("new"), ages={CLOSED: 9.0, SHUT: 120.0}, copies=NO_COPIES)
    assert (check_states(aired), listed_in(aired)) == ({"new": "Ready"}, ("p-b", "p-a"))
    assert aired.lasting & {AIRED, SHUT, CLOSED} == {AIRED}
    still = leaving(sent, workload("new"), ages={AIRED: 59.0}, copies=NO_COPIES)
    assert (check_states(still), still.requeue_after) == ({"new": "Ready"}, 1.0)
    again = leaving(sent, workload("new"), ages={AIRED: 60.0}, copies=NO_COPIES)
    assert again.lasting & {AIRED, SHUT, CLOSED} == {SHUT, CLOSED}


def test_it_is_aired_whoever_closed_it() -> None:
    """A second cluster that begins to leave does not keep it closed."""
    jobs = [workload("sent", check="Retry", mk="Pending"), workload("new")]
    ages = {CLOSED: 121.0, Since(SinceKind.GATE_CLOSED_FOR, "b"): 30.0, SHUT: 121.0}
    answer = decided_plan("c", *jobs, listed="abc", policy=PATIENT, ages=ages, copies=NO_COPIES)
    assert check_states(answer) == {"new": "Ready"}


# -- policies


def test_immediate_sends_back_what_runs_there_while_it_is_listed() -> None:
    job = running("job", "p-a")
    first = leaving(job, policy=AT_ONCE)
    assert (first.ask_for_copies, first.check_state_updates, listed_in(first)) == (
        ("p-a",),
        (),
        ("p-b", "p-a"),
    )
    closing = leaving(job, policy=AT_ONCE, copies=NO_COPIES)
    assert (closing.check_state_updates, CLOSED in closing.lasting) == ((), True)
    answer = leaving(job, workload("new"), policy=AT_ONCE, copies=NO_COPIES, ages={CLOSED: 0.1})
    assert (check_states(answer), listed_in(answer)) == ({"job": "Retry", "new": "Pending"}, ("p-b", "p-a"))
    back = "sent back from cluster a, which leaves at once; it starts again elsewhere"
    assert posts(answer)[:2] == [
        ("WorkloadsSentBack", "", "cluster a leaves at once; sent back: default/job"),
        ("SentBack", "job", back),
    ]


def evicted(name: str, seconds: float, why: str = "cluster a is leaving the Placement") -> Any:
    """A Workload that Kueue took back for our Retry, and that has quota again."""
    when = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    job = workload(name)
    job["status"]["conditions"].append(
        {
            "type": "Evicted",
            "status": "False",
            "reason": "QuotaReserved",
            "message": f'Previously: Evicted due to AdmissionCheck in Retry state: "check" ({why})',
            "lastTransitionTime": when,
        }
    )
    return job


@pytest.mark.parametrize("policy", [AT_ONCE, PATIENT, replace(AT_ONCE, dispatcher=True)])
def test_a_job_that_was_sent_back_waits_until_the_cluster_has_let_go_of_it(policy: PlacementPolicy) -> None:
    """Though the gate be open, and the controller new: nobody knows whether it still runs there."""
    answer = leaving(evicted("job", 9), workload("new"), policy=policy, copies=WorkerCopies({}, "no answer"))
    assert check_states(answer) == {"job": "Pending", "new": "Ready"}
    assert check_messages(answer)["job"] == "waits until cluster a holds no copy of it"


def test_it_waits_no_more_when_the_cluster_has_answered_though_others_keep_it() -> None:
    others = workload("theirs", cluster="p-a", mk="Ready")
    unasked = leaving(evicted("job", 9), others, policy=AT_ONCE)
    assert (check_states(unasked), unasked.ask_for_copies) == ({"job": "Pending"}, ("p-a",))
    early = leaving(evicted("job", 3), others, policy=AT_ONCE, copies=WorkerCopies({}, age=1.0))
    assert (check_states(early), early.requeue_after) == ({"job": "Pending"}, 2.0)
    late = leaving(evicted("job", 9), others, policy=AT_ONCE, copies=WorkerCopies({}, age=1.0))
    assert check_states(late) == {"job": "Ready"}


def test_a_copy_that_was_left_is_healed_whatever_else_keeps_the_cluster() -> None:
    others = workload("theirs", cluster="p-a", mk="Ready")
    left = WorkerCopies({("default", "job"): True}, age=1.0)
    healed = leaving(evicted("job", 9), others, policy=AT_ONCE, copies=left)
    assert (check_states(healed), Since(SinceKind.MADE_READY, "Workload/job") in healed.lasting) == (
        {"job": "Ready"},
        True,
    )
    ready = evicted("job", 20)
    ready["status"]["admissionChecks"][0]["state"] = "Ready"
    again = leaving(
        ready, others, policy=AT_ONCE, copies=left, ages={Since(SinceKind.MADE_READY, "Workload/job"): 3.0}
    )
    assert check_states(again) == {"job": "Retry"}


@pytest.mark.parametrize(
    "why",
    [
        pytest.param("cluster a is leaving the Placement", id="from a cluster that leaves"),
        pytest.param("moved from cluster a because it drains; move 1 of 12", id="by an earlier version"),
    ],
)
def test_one_that_was_sent_back_once_and_is_sent_nowhere_comes_back_once_more(why: str) -> None:
    stuck = evicted("job", 200, why)
    entry = stuck["status"]["admissionChecks"][0]
    entry |= {"state": "Ready", "lastTransitionTime": "2026-08-01T11:59:30Z"}
    early = leaving(stuck, fleet=managed_clusters("b"))
    assert (check_states(early), early.requeue_after) == ({}, 30.0)
    entry["lastTransitionTime"] = "2026-08-01T11:59:00Z"
    late = leaving(stuck, fleet=managed_clusters("b"))
    assert check_states(late) == {"job": "Retry"}
    assert late.check_state_updates[0].message == "cluster a was left, but Kueue sends it nowhere"
    stuck["status"]["nominatedClusterNames"] = ["p-b"]
    assert check_states(leaving(stuck, fleet=managed_clusters("b"))) == {}


def test_a_list_that_was_deleted_by_hand_comes_back_with_those_on_which_jobs_run() -> None:
    hub = [obj for obj in decided("b", "ab") if obj["kind"] != "MultiKueueConfig"]
    answer = planned(hub, running("job", "p-a"), policy=PATIENT)
    assert (listed_in(answer), answer.retained) == (("p-b", "p-a"), frozenset())
    assert problems(answer) == "draining: a (Workloads run there)"


def test_a_multikueuecluster_that_kueue_has_lost_is_kept_for_long() -> None:
    policy = PlacementPolicy(loss_grace=0.0)
    old = {Since(SinceKind.RETAINED, "p-a"): 600.0}
    assert leaving(policy=policy, off="a", ages=old).retained == {"p-a"}


def test_an_evicted_workload_is_answered_while_it_holds_quota() -> None:
    """Else an eviction may never end: Kueue hears that its Pods have gone from a new copy only."""
    job = evicted("job", 1)
    job["status"]["conditions"][-1] |= {"status": "True", "message": "Preempted"}
    assert check_states(leaving(job)) == {"job": "Ready"}


def test_a_job_on_a_cluster_that_cannot_be_asked_is_not_sent_back() -> None:
    answer = leaving(running("job", "p-a"), policy=AT_ONCE, copies=WorkerCopies({}, "no answer", 1.0))
    assert (answer.check_state_updates, listed_in(answer)) == ((), ("p-b", "p-a"))
    assert "cannot be asked" in problems(answer)


def test_jobs_without_our_check_cannot_be_sent_back() -> None:
    theirs = workload("theirs", cluster="p-a", mk="Ready")
    answer = leaving(theirs, running("job", "p-a"), policy=AT_ONCE, copies=NO_COPIES, ages={CLOSED: 1.0})
    assert (answer.check_state_updates, listed_in(answer)) == ((), ("p-b", "p-a"))
    assert "Workloads without our check" in problems(answer)


def test_a_deadline_that_expires_sends_back_too_with_an_event() -> None:
    policy = PlacementPolicy(retention=0.0, drain_deadline=600.0)
    job = running("job", "p-a")
    early = leaving(job, policy=policy, copies=NO_COPIES, draining={"a": NOW - timedelta(seconds=500)})
    assert (early.check_state_updates, early.requeue_after) == ((), 100.0)
    late = leaving(
        job, policy=policy, copies=NO_COPIES, ages={CLOSED: 0.1}, draining={"a": NOW - timedelta(seconds=600)}
    )
    assert check_states(late) == {"job": "Retry"}
    assert posts(late) == [
        ("WorkloadsSentBack", "", "cluster a leaves as the deadline has passed; sent back: default/job"),
        (
            "SentBack",
            "job",
            "sent back from cluster a, which leaves as the deadline has passed; it starts again elsewhere",
        ),
    ]


# -- reasons of leaving


def test_an_unreachable_cluster_is_left_to_kueues_own_timer() -> None:
    fleet = managed_clusters("a", "b", unreachable=["a"])
    for policy in (PATIENT, AT_ONCE):
        answer = leaving(
            running("job", "p-a"), fleet=fleet, policy=policy, copies=NO_COPIES, ages={CLOSED: 1.0}
        )
        assert (listed_in(answer), answer.check_state_updates) == (("p-b", "p-a"), ())
        assert problems(answer) == "draining: a (OCM cannot reach it)"


def test_a_deleted_managed_cluster_goes_at_once_and_its_workloads_get_an_event() -> None:
    answer = leaving(running("job", "p-a"), running("other", "p-b"), fleet=managed_clusters("b"))
    assert listed_in(answer) == ("p-b",)
    lost = "cluster a, where it was, is lost with its ManagedCluster; it starts again elsewhere"
    assert posts(answer) == [
        ("ClusterLost", "", "ManagedCluster a is gone, and with it: default/job"),
        ("ClusterLost", "job", lost),
        ("ClusterRemoved", "", "1 cluster is no longer listed: a (its ManagedCluster is gone)"),
    ]


def test_a_hub_without_managed_clusters_does_not_make_all_of_them_gone() -> None:
    seen_by = world(decided("b", "ab"), running("job", "p-a"), policy=PATIENT)
    seen_by.replace(MANAGED_CLUSTER, (), "")
    assert listed_in(plan(snapshot(seen_by))) == ("p-b", "p-a")


def test_a_selected_cluster_that_lost_its_credentials_stays_while_jobs_run_there() -> None:
    answer = decided_plan("ab", running("job", "p-a"), credentials="b", policy=PATIENT, ages={"a": 9.0})
    assert listed_in(answer) == ("p-b", "p-a")
    assert "left out: a (create Secret" in problems(answer)
    assert "draining: a (Workloads run there)" in problems(answer)


# -- slots


def test_a_draining_cluster_keeps_its_slot_and_the_one_that_waits_for_it_is_reported() -> None:
    names = [f"c{number:02}" for number in range(20)]
    answer = decided_plan(names, running("job", "p-a"), listed=["a", *names[:19]], policy=PATIENT)
    assert listed_in(answer) == (*(f"p-{name}" for name in names[:19]), "p-a")
    assert answer.verdicts["check"].reason == "SomeClustersUnusable"
    assert "waiting for the slot of a cluster that leaves: c19" in problems(answer)


# -- retention


def test_an_unlisted_multikueuecluster_stays_for_a_while() -> None:
    policy = PlacementPolicy(loss_grace=0.0)
    answer = leaving(policy=policy)
    assert (listed_in(answer), answer.retained) == (("p-b",), {"p-a"})
    assert (Since(SinceKind.RETAINED, "p-a") in answer.lasting, answer.requeue_after) == (True, 3600.0)
    assert write_names(phases_of(policy=policy)) == [["Apply MultiKueueConfig p"]]
    assert write_names(phases_of(policy=policy, ages={Since(SinceKind.RETAINED, "p-a"): 3600.0})) == [
        ["Apply MultiKueueConfig p"],
        ["Delete MultiKueueCluster p-a"],
    ]


def test_one_that_served_all_placements_stays_for_a_while_as_well() -> None:
    shared = HubFacts(naming="{cluster}")
    hub = [check(), placement(), decision("b"), *secrets("b"), our_cluster("a", None), our_cluster("b", None)]
    objects = [*hub, our_config("a", "b")]
    for key in ("p", "a"):  # the second is nobody's name, under which it is looked at as well
        seen_by = inputs(objects, hub=shared, policy=PlacementPolicy(loss_grace=0.0), of=key)
        writes = [write for phase in write_names(diff(seen_by, plan(seen_by))) for write in phase]
        assert "Delete MultiKueueCluster a" not in writes


def test_a_drain_under_way_is_not_forgotten_while_nothing_can_be_decided() -> None:
    """The Placement is deleted and made again."""
    hub = [obj for obj in decided("b", "ab") if obj["kind"] != "Placement"]
    ages = {Since(SinceKind.JUST_UNLISTED, "c"): 0.3, Since(SinceKind.BEING_UNLISTED, "d"): 0.1, QUIET: 1.0}
    answer = planned(hub, workload("job"), policy=PATIENT, ages=ages)
    assert answer.verdicts["check"].reason == "PlacementNotFound"
    assert answer.lasting & ages.keys() == {
        Since(SinceKind.JUST_UNLISTED, "c"),
        Since(SinceKind.BEING_UNLISTED, "d"),
    }


def test_the_gate_opens_a_moment_after_the_list_was_seen_without_it_however_long_that_took() -> None:
    slow = {Since(SinceKind.BEING_UNLISTED, "a"): 9.0}
    answer = decided_plan("b", workload("new"), policy=PATIENT, ages=slow)
    assert (
        check_states(answer),
        answer.requeue_after,
        Since(SinceKind.JUST_UNLISTED, "a") in answer.lasting,
    ) == ({"new": "Pending"}, 1.0, True)


def test_since_when_a_cluster_leaves_is_written_down_once() -> None:
    job = running("job", "p-a")
    (write,) = phases_of(job)[0]
    assert write.body["metadata"]["annotations"] == {ANNOTATION_DRAINING: "p-a=2026-08-01T12:00:00Z"}
    config = leaving(job, draining={"a": A_LONG_TIME_AGO}).config
    assert config is not None
    assert config.draining == {"p-a": NOW - timedelta(hours=1)}


def test_the_plan_is_the_same_after_a_crash_save_for_the_time_that_is_waited_again() -> None:
    """A new controller remembers no marks: it opens the gate or closes it anew, and loses nothing."""
    objects = [workload("sent"), running("job", "p-b")]
    before = leaving(*objects, ages={CLOSED: 5.0, QUIET: 1.0}, copies=NO_COPIES)
    after = leaving(*objects)
    assert listed_in(before) == listed_in(after) == ("p-b", "p-a")
    assert (after.ask_for_copies, unmarked(after).config) == (("p-a",), before.config)
