"""A quarantined cluster gets no new jobs, the last that fits does, and what waits there is taken back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind, Snapshot, WorkerCopies
from placement_ac.core.maintenance.window import MaintenanceWindow
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW, running
from tests.support.decided import NO_COPIES, decided_inputs, nominated, problems, ranked, ready
from tests.support.jobs_to_dispatch import DOMAIN, GPU, gpu_pods, queues, raw_job

OURS = PlacementPolicy(
    retention=0.0,
    loss_grace=0.0,
    dispatcher=True,
    step_size=1,
    avoid_after_failure=600.0,
    unlist_after=3600.0,
)
JOB = ("default", "job")
WHY = "5 of 5 jobs failed there"
LATER, EARLIER = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)


def quarantined(
    selected: str, whom: str, *jobs: Any, retry_at: datetime | None = LATER, **rest: Any
) -> Snapshot:
    """OCM decides `selected` in that order, and `whom` of them are quarantined."""
    given = {"policy": OURS, "listed": selected} | rest
    snapshot = decided_inputs(ranked(selected), *jobs, **given)
    fleet = replace(
        snapshot.fleet,
        quarantined=dict.fromkeys(whom, WHY),
        retry_at=dict.fromkeys(whom, retry_at) if retry_at else {},
    )
    return replace(snapshot, fleet=fleet)


def planned(*args: Any, **rest: Any) -> Plan:
    return plan(quarantined(*args, **rest))


def test_a_new_job_goes_to_the_next_cluster() -> None:
    answer = planned("abc", "a", ready())
    assert nominated(answer) == {"job": ("p-b",)}
    assert answer.refusals == {"Quarantine": 1}
    assert problems(answer) == f"quarantined: a ({WHY})"


@pytest.mark.parametrize(
    ("whose", "retry_at", "goes_to"),
    [
        pytest.param("default", LATER, "p-b", id="its own"),
        pytest.param("team", LATER, "p-a", id="another's"),
        pytest.param("default", EARLIER, "p-a", id="it may try"),
    ],
)
def test_a_quarantine_for_one_namespace_concerns_no_job_of_another(
    whose: str, retry_at: datetime, goes_to: str
) -> None:
    """Nor does a job of another one try it."""
    others = running("others", "p-a")
    others["metadata"]["namespace"] = "others"
    snapshot = quarantined("abc", "a", ready(), others, retry_at=retry_at)
    fleet = replace(snapshot.fleet, quarantined_for={"a": (whose,)})
    assert nominated(plan(replace(snapshot, fleet=fleet))) == {"job": (goes_to,)}


@pytest.mark.parametrize("whom", ["a", "ab"])
def test_never_the_last_cluster_that_fits(whom: str) -> None:
    assert nominated(planned("ab", whom, ready(), off="" if whom == "ab" else "b")) == {"job": ("p-a",)}


def test_one_job_tries_it_when_it_is_time_and_the_others_do_not() -> None:
    jobs = [ready(name=name) for name in ("one", "two")]
    assert nominated(planned("ab", "a", *jobs, retry_at=EARLIER)) == {"one": ("p-a",), "two": ("p-b",)}
    assert nominated(planned("ab", "a", *jobs, retry_at=None)) == {"one": ("p-b",), "two": ("p-b",)}
    tries = [running("before", "p-a"), ready(name="two")]
    assert nominated(planned("ab", "a", *tries, retry_at=NOW)) == {"two": ("p-b",)}
    assert nominated(planned("ab", "a", *tries, retry_at=NOW + timedelta(seconds=1))) == {"two": ("p-b",)}


def test_a_job_that_ran_there_before_does_not_try_it() -> None:
    there = running("before", "p-a")
    there["status"]["admissionChecks"][1]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    there["status"]["admissionChecks"][0]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    assert nominated(planned("ab", "a", there, ready(name="new"), retry_at=EARLIER)) == {"new": ("p-a",)}


def test_the_job_that_tries_it_stays_nominated() -> None:
    tries = ready("p-a")
    assert nominated(planned("ab", "a", tries, retry_at=NOW, copies=NO_COPIES)) == {}


def sized(name: str, gpus: int, *nominated_to: str) -> Any:
    return raw_job(name, pods=gpu_pods(gpus), check="Ready", mk="Pending", nominated=nominated_to)


def trying(*jobs: Any, free: int | None, seconds: float = 0.0, **rest: Any) -> Plan:
    """Cluster a is quarantined and has these GPUs free (None: unknown), and a job waits there that long."""
    a = WorkerFacts(problem="forbidden") if free is None else WorkerFacts(queues((GPU, "f", 8, 8 - free)))
    facts = {"p-a": a, "p-b": WorkerFacts(queues((GPU, "f", 8)))}
    snapshot = quarantined("ab", "a", *jobs, retry_at=EARLIER, **rest)
    snapshot = replace(snapshot, fleet=replace(snapshot.fleet, queue_facts=facts))
    ages = {since: seconds for since in plan(snapshot).lasting if since.kind is SinceKind.TRIES}
    return plan(replace(snapshot, all_ages=ages))


def test_the_job_that_tries_it_is_one_that_has_room_there_now() -> None:
    answer = trying(sized("large", 8), sized("small", 2), free=4)
    assert nominated(answer) == {"large": ("p-b",), "small": ("p-a",)}
    unknown = trying(sized("large", 8), free=None)  # of b it is known that there is room
    assert nominated(unknown) == {"large": ("p-b",)}


def test_a_cluster_that_has_no_room_for_the_job_that_would_try_it_is_asked_again() -> None:
    full = {"p-a": WorkerFacts(queues((GPU, "f", 8, 8)), age=60.0), "p-b": WorkerFacts(queues((GPU, "f", 8)))}
    snapshot = quarantined("ab", "a", sized("job", 2), retry_at=EARLIER)
    fleet = replace(snapshot.fleet, queue_facts=full)
    assert plan(replace(snapshot, fleet=fleet)).ask_for_facts == ("p-a",)


def test_after_a_round_in_which_it_was_not_placed_another_job_may_try_it() -> None:
    jobs = [sized("waits", 2, "p-a"), sized("next", 2)]
    copies = {"copies": NO_COPIES}
    assert nominated(trying(*jobs, free=8, seconds=299.0, **copies)) == {"next": ("p-b",)}
    after = trying(*jobs, free=8, seconds=300.0, **copies)
    assert nominated(after)["next"] == ("p-a",)
    assert trying(*jobs, free=8, seconds=299.0).requeue_after == 1.0


# -- what waits there


def test_what_waits_there_is_taken_back_by_a_fresh_report() -> None:
    first = planned("abc", "a", ready("p-a"))
    assert (first.ask_for_copies, nominated(first)) == (("p-a",), {})
    then = planned("abc", "a", ready("p-a"), copies=NO_COPIES)
    assert nominated(then) == {"job": ("p-b",)}
    assert nominated(planned("abc", "a", ready("p-a", "p-c"), copies=NO_COPIES)) == {"job": ("p-c", "p-b")}


def test_those_that_wait_there_take_turns_if_they_are_too_many_for_one_plan() -> None:
    waiting = [ready("p-a", name=name) for name in ("one", "two")]
    one_each = {"policy": replace(OURS, judged_at_once=1), "copies": NO_COPIES}
    snapshot = quarantined("ab", "a", *waiting, **one_each)
    plans = [plan(replace(snapshot, now=NOW + timedelta(seconds=seconds))) for seconds in (0, 1)]
    assert sorted(name for one in plans for name in nominated(one)) == ["one", "two"]
    confirmed = {"ages": {Since(SinceKind.WITHDRAWN, "a"): 60.0}} | one_each
    nowhere_else = [quarantined("a", "a", *some, **confirmed) for some in (waiting, waiting[:1])]
    assert [plan(one).requeue_after for one in nowhere_else] == [2.0, 300.0]


def test_many_that_wait_there_are_taken_back_together_even_while_new_jobs_are_too_many_for_one_plan() -> None:
    waiting = [ready("p-a", name=f"w{n}") for n in range(20)]
    selectors = [{f"{DOMAIN}/cluster-selector": f"gpu!=x{n}"} for n in range(200)]
    new = [raw_job(f"n{n}", annotations=one, check="Ready", mk="Pending") for n, one in enumerate(selectors)]
    half = {"policy": replace(OURS, judged_at_once=100), "copies": NO_COPIES}
    found = nominated(planned("ab", "a", *waiting, *new, **half))
    assert {name: to for name, to in found.items() if name.startswith("w")} == dict.fromkeys(
        [f"w{n}" for n in range(20)], ("p-b",)
    )
    assert 0 < len(found) - 20 < 200


def test_what_has_quota_there_stays_nominated_until_kueue_has_recorded_it() -> None:
    assert nominated(planned("ab", "a", ready("p-a"), copies=WorkerCopies({JOB: True}, age=0.5))) == {}


def test_where_no_other_cluster_fits_it_stays() -> None:
    only = planned("a", "a", ready("p-a"), copies=NO_COPIES)
    assert (nominated(only), only.ask_for_copies) == ({}, ())


def test_a_cluster_that_cannot_be_asked_keeps_its_nominations() -> None:
    assert nominated(planned("ab", "a", ready("p-a"), copies=WorkerCopies({}, "no answer", 1.0))) == {}


def again(copies: WorkerCopies, job: Any, age: float = 5.0) -> Plan:
    since = {Since(SinceKind.WITHDRAWN, "a"): age}
    return planned("abc", "a", job, copies={"p-a": copies}, ages=since)


def test_it_is_asked_once_more_and_what_got_quota_in_that_second_is_nominated_again() -> None:
    job = ready("p-b", since=NOW - timedelta(minutes=1))
    assert again(WorkerCopies({}, age=4.5), job).ask_for_copies == ("p-a",)
    assert nominated(again(WorkerCopies({JOB: True}, age=0.5), job)) == {"job": ("p-b", "p-a")}
    assert nominated(again(WorkerCopies({JOB: False}, age=0.5), job)) == {}


def test_a_report_about_an_earlier_try_nominates_nothing_again() -> None:
    """The job ran there when the worker was asked, failed, and has quota on the hub anew."""
    job = ready("p-b", since=NOW - timedelta(seconds=10))
    assert nominated(again(WorkerCopies({JOB: True}, age=60.0), job, age=3600.0)) == {}


@pytest.mark.parametrize(
    "seconds", [None, 7200], ids=["quarantined", "quarantined, and it would run too long"]
)
def test_in_announced_maintenance_too_it_is_asked_again_only_when_nothing_is_withdrawn_any_more(
    seconds: int | None,
) -> None:
    job = ready("p-a")
    job["spec"]["maximumExecutionTimeSeconds"] = seconds
    confirmed = Since(SinceKind.WITHDRAWN, "a")
    snapshot = quarantined("ab", "a", job, copies=NO_COPIES, ages={confirmed: 60.0})
    soon = {"a": MaintenanceWindow(NOW + timedelta(hours=1))}
    answer = plan(replace(snapshot, fleet=replace(snapshot.fleet, maintenance=soon)))
    assert (nominated(answer), confirmed in answer.lasting) == ({"job": ("p-b",)}, False)


# -- events


def test_the_beginning_and_the_end_are_events() -> None:
    begins = planned("ab", "a")
    assert [(event.reason, event.message) for event in begins.events] == [
        ("ClusterQuarantined", f"no new job is sent to a: {WHY}")
    ]
    assert begins.requeue_after == 300.0
    ends = planned("ab", "", ages={Since(SinceKind.QUARANTINED, "a"): 60.0})
    assert [(event.reason, event.message) for event in ends.events] == [
        ("ClusterReturned", "jobs are sent to a again: it is no longer quarantined")
    ]


# -- where the job itself failed


def avoiding(selected: str, whom: str, *jobs: Any, **rest: Any) -> Plan:
    snapshot = decided_inputs(ranked(selected), *jobs, policy=rest.pop("policy", OURS), **rest)
    avoided = {"Workload/job": dict.fromkeys(whom, LATER)}
    return plan(replace(snapshot, fleet=replace(snapshot.fleet, avoided=avoided)))


def test_a_job_goes_last_to_a_cluster_where_it_failed() -> None:
    three = replace(OURS, step_size=3)
    assert nominated(avoiding("abc", "a", ready(), policy=three)) == {"job": ("p-b", "p-c")}
    late = {Since(SinceKind.NOMINATION_ROUND, "Workload/job", 2): 300.0}
    after = avoiding("abc", "a", ready("p-b", "p-c"), policy=three, ages=late)
    assert nominated(after) == {"job": ("p-b", "p-c", "p-a")}
    assert nominated(avoiding("ab", "ab", ready(), policy=three)) == {"job": ("p-a", "p-b")}
    assert nominated(avoiding("abc", "a", ready(name="another"), policy=three)) == {
        "another": ("p-a", "p-b", "p-c")
    }
