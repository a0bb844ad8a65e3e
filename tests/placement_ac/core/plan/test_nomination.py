"""Our own dispatcher: the Placement's order, a few clusters a round, a clean way out of the nominations."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind, WorkerCopies
from placement_ac.core.plan.diff import Nominate, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW, listed_in, workload
from tests.support.decided import NO_COPIES, decided_inputs, decided_plan, nominated, ranked, ready

OURS = PlacementPolicy(retention=0.0, loss_grace=0.0, dispatcher=True, step_size=2)
JOB = ("default", "job")


def dispatched(selected: str, *objects: Any, policy: PlacementPolicy = OURS, **rest: Any) -> Plan:
    """The plan for clusters that OCM decides in that order."""
    return decided_plan(ranked(selected), *objects, policy=policy, **rest)


def test_it_nominates_the_first_few_in_the_placements_order() -> None:
    assert nominated(dispatched("cab", ready())) == {"job": ("p-c", "p-a")}


def test_it_is_off_unless_it_is_set() -> None:
    assert nominated(dispatched("cab", ready(), policy=PlacementPolicy())) == {}


def test_it_works_without_our_check_in_the_queue() -> None:
    assert nominated(dispatched("ab", workload("job", mk="Pending"))) == {"job": ("p-a", "p-b")}


def test_who_is_not_nominated() -> None:
    jobs = [
        workload("waits-for-us", check="Pending", mk="Pending"),
        workload("waits-for-another", check="Ready", other="Pending", mk="Pending"),
        ready(name="without-quota", quota=False),
        ready(name="inactive", active=False),
        workload("placed", cluster="p-a", check="Ready", mk="Ready"),
        workload("of-no-multikueue", check="Ready"),
    ]
    assert nominated(dispatched("ab", *jobs)) == {}


def test_never_a_cluster_that_is_not_connected_or_not_listed_yet() -> None:
    assert nominated(dispatched("abc", ready(), off="a")) == {"job": ("p-b", "p-c")}
    assert nominated(dispatched("xab", ready(), listed="ab")) == {"job": ("p-a", "p-b")}


def test_the_next_round_adds_the_next_ones() -> None:
    early = dispatched(
        "abcde", ready("p-a", "p-b"), ages={Since(SinceKind.NOMINATION_ROUND, "Workload/job", 2): 100.0}
    )
    assert (nominated(early), early.requeue_after) == ({}, 198.0)  # then the workers are asked
    late = dispatched(
        "abcde", ready("p-a", "p-b"), ages={Since(SinceKind.NOMINATION_ROUND, "Workload/job", 2): 300.0}
    )
    assert nominated(late) == {"job": ("p-a", "p-b", "p-c", "p-d")}


def test_when_all_are_nominated_there_is_no_next_round() -> None:
    answer = dispatched(
        "ab", ready("p-a", "p-b"), ages={Since(SinceKind.NOMINATION_ROUND, "Workload/job", 2): 999.0}
    )
    assert (nominated(answer), answer.requeue_after) == ({}, None)


# -- a cluster that leaves: a is to go


def test_a_cluster_that_leaves_is_asked_before_it_is_taken_out() -> None:
    first = dispatched("bc", ready("p-a", "p-b"), listed="abc")
    assert (first.ask_for_copies, nominated(first), listed_in(first)) == (("p-a",), {}, ("p-a", "p-b", "p-c"))
    then = dispatched("bc", ready("p-a", "p-b"), listed="abc", copies=NO_COPIES)
    assert (nominated(then), listed_in(then)) == ({"job": ("p-b", "p-c")}, ("p-a", "p-b", "p-c"))


def test_if_it_was_the_only_one_the_next_ones_are_nominated() -> None:
    assert nominated(dispatched("bc", ready("p-a"), listed="abc", copies=NO_COPIES)) == {
        "job": ("p-b", "p-c")
    }


def test_where_the_copy_has_quota_it_stays_nominated_until_kueue_has_recorded_it() -> None:
    has_quota = WorkerCopies({JOB: True}, age=0.5)
    answer = dispatched("bc", ready("p-a", "p-b"), listed="abc", copies=has_quota)
    assert (nominated(answer), answer.requeue_after is not None) == ({}, True)
    only_waits = WorkerCopies({JOB: False}, age=0.5)
    withdrawn = dispatched("bc", ready("p-a", "p-b"), listed="abc", copies=only_waits)
    assert nominated(withdrawn) == {"job": ("p-b", "p-c")}


def test_a_cluster_that_cannot_be_asked_is_never_taken_out() -> None:
    silent = WorkerCopies({}, "no answer", 1.0)
    answer = dispatched("bc", ready("p-a", "p-b"), listed="abc", copies=silent)
    assert (nominated(answer), listed_in(answer)) == ({}, ("p-a", "p-b", "p-c"))


def test_it_is_asked_once_more_when_nothing_has_waited_there_for_a_while() -> None:
    quiet = Since(SinceKind.QUIET, "a")
    objects = [ready("p-b")]
    assert dispatched("bc", *objects, listed="abc", ages={quiet: 1.0}, copies=NO_COPIES).ask_for_copies == ()
    assert dispatched("bc", *objects, listed="abc", ages={quiet: 2.0}, copies=NO_COPIES).ask_for_copies == (
        "p-a",
    )
    gone = dispatched("bc", *objects, listed="abc", ages={quiet: 2.5}, copies=NO_COPIES)
    assert listed_in(gone) == ("p-b", "p-c")


def test_a_copy_that_was_admitted_in_that_second_is_nominated_again() -> None:
    asked = WorkerCopies({JOB: True}, age=0.1)
    answer = dispatched(
        "bc", ready("p-b"), listed="abc", ages={Since(SinceKind.QUIET, "a"): 2.5}, copies=asked
    )
    assert (nominated(answer), listed_in(answer)) == ({"job": ("p-b", "p-a")}, ("p-a", "p-b", "p-c"))


def test_meanwhile_new_workloads_go_to_the_others() -> None:
    new = ready(name="new")
    answer = dispatched("bc", ready("p-a", "p-b"), new, listed="abc", copies=NO_COPIES)
    assert nominated(answer)["new"] == ("p-b", "p-c")


# -- a cluster that leaves while a job runs there: it is not to start those that wait

RUNS = workload("runs", cluster="p-a", check="Ready", mk="Ready")
WITHDRAWN = Since(SinceKind.WITHDRAWN, "a")
STABLE = replace(OURS, unlist_after=3600.0)


@pytest.mark.parametrize("policy", [OURS, STABLE], ids=["unlisted", "stable list"])
def test_jobs_that_wait_on_a_leaving_cluster_are_withdrawn_though_a_job_runs_there(
    policy: PlacementPolicy,
) -> None:
    def leaves(*jobs: Any, **how: Any) -> Plan:
        return dispatched("bc", RUNS, *jobs, listed="abc", policy=policy, **how)

    first = leaves(ready("p-a", "p-b"), ready("p-a", name="only-there"))
    assert (first.ask_for_copies, nominated(first), listed_in(first)) == (("p-a",), {}, ("p-a", "p-b", "p-c"))
    then = leaves(ready("p-a", "p-b"), ready("p-a", name="only-there"), copies=NO_COPIES)
    assert nominated(then) == {"job": ("p-b", "p-c"), "only-there": ("p-b", "p-c")}
    has_quota = WorkerCopies({JOB: True}, age=0.5)
    assert (nominated(leaves(ready("p-a", "p-b"), copies=has_quota)), listed_in(then)) == (
        {},
        listed_in(first),
    )


def test_the_cluster_is_asked_once_more_after_the_withdrawal() -> None:
    def later(seconds: float, asked: WorkerCopies, quota_for: float = 60.0) -> Plan:
        job = ready("p-b", since=NOW - timedelta(seconds=quota_for))
        return dispatched("bc", RUNS, job, listed="abc", ages={WITHDRAWN: seconds}, copies=asked)

    early = later(0.5, NO_COPIES)
    assert (early.ask_for_copies, early.requeue_after, WITHDRAWN in early.lasting) == ((), 1.5, True)
    assert later(2.0, NO_COPIES).ask_for_copies == ("p-a",)
    confirmed = later(60.0, WorkerCopies({}, age=57.0))
    assert (confirmed.ask_for_copies, nominated(confirmed)) == ((), {})
    admitted = later(2.5, WorkerCopies({JOB: True}, age=0.1))
    assert nominated(admitted) == {"job": ("p-b", "p-a")}
    of_an_earlier_try = later(60.0, WorkerCopies({JOB: True}, age=57.0), quota_for=30.0)
    assert (nominated(of_an_earlier_try), of_an_earlier_try.ask_for_copies) == ({}, ("p-a",))


def test_a_leaving_cluster_that_cannot_be_asked_keeps_its_nominations_and_is_asked_again() -> None:
    silent = dispatched(
        "bc", RUNS, ready("p-a", "p-b"), listed="abc", copies=WorkerCopies({}, "no answer", 10.0)
    )
    assert (nominated(silent), silent.ask_for_copies, silent.requeue_after) == ({}, (), 5.0)
    later = dispatched(
        "bc", RUNS, ready("p-a", "p-b"), listed="abc", copies=WorkerCopies({}, "no answer", 15.0)
    )
    assert later.ask_for_copies == ("p-a",)


def test_the_write_carries_the_version_that_was_seen() -> None:
    seen = decided_inputs("a", ready(version=9), policy=OURS)
    *_, phase = diff(seen, plan(seen))
    (action,) = phase
    assert isinstance(action, Nominate)
    assert (action.name, action.workload.meta.resource_version, action.clusters) == ("job", "9", ("p-a",))
