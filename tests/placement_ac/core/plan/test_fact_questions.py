"""When workers are asked for their queues, and how long a nomination waits for the answer."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.job_facts import JobNeeds
from placement_ac.core.inputs.queue_facts import NO_WORKLOADS, WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW, managed_cluster
from tests.support.decided import decided_inputs, nominated, ranked
from tests.support.jobs_to_dispatch import DOMAIN, GPU, gpu_pods, queues, raw_job

POLICY = PlacementPolicy(loss_grace=0.0, dispatcher=True, step_size=1)
READY = {"check": "Ready", "mk": "Pending"}
JOB = raw_job(pods=gpu_pods(4), **READY)
BOTH = ("p-a", "p-b")
KIND = "Job.v1.batch"


ROUND = Since(SinceKind.NOMINATION_ROUND, "Workload/job", 1)


def _round(job: Any) -> Since:
    count = len(job["status"].get("nominatedClusterNames", ()))
    return Since(SinceKind.NOMINATION_ROUND, job["metadata"]["uid"], count)


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        pytest.param(JobNeeds(), True, id="nobody has asked for its kind"),
        pytest.param(JobNeeds(frozenset({KIND})), True, id="no job of it waited"),
        pytest.param(JobNeeds(frozenset({KIND}), frozenset({KIND})), False, id="the answer is about it"),
    ],
)
def test_the_first_job_of_a_kind_waits_for_an_answer_about_it(asked: JobNeeds, waits: bool) -> None:
    first = raw_job(pods=gpu_pods(4), owner=("batch/v1", "Job", "train"), **READY)
    known = {name: facts(8, age=2.0, then=WorkloadsThere(needs=asked)) for name in BOTH}
    answer = answer_to(first, facts=known)
    assert answer.ask_for_facts == (BOTH if waits else ())
    assert nominated(answer) == ({} if waits else {"job": ("p-a",)})
    assert nominated(answer_to(first, facts=known, waited=2.0)) == {"job": ("p-a",)}


def test_a_job_does_not_wait_for_what_another_one_needs() -> None:
    first = raw_job("first", pods=gpu_pods(4), owner=("batch/v1", "Job", "train"), **READY)
    known = {name: facts(8, age=2.0) for name in BOTH}
    assert nominated(answer_to(JOB, first, facts=known)) == {"job": ("p-a",)}


def awaited(*names: str) -> set[Since]:
    return {Since(SinceKind.FACTS_AWAITED, name) for name in names}


def facts(gpus: int, age: float = 0.0, reserved: int = 0, **rest: Any) -> WorkerFacts:
    return WorkerFacts(queues((GPU, "default", gpus, reserved)), age=age, **rest)


def answer_to(
    *jobs: Any,
    facts: dict[str, WorkerFacts] | None = None,
    waited: float = 0.0,
    policy: PlacementPolicy = POLICY,
    unreachable: str = "",
    clusters: str = "ab",
    in_round: float = 0.0,
) -> Plan:
    """The plan for `clusters` in that order, all with labels gpu=t4.

    `waited`: for facts; `in_round`: the age of the job's round.
    """
    fleet = [managed_cluster(name, labels={"gpu": "t4"}) for name in clusters]
    seen = decided_inputs(ranked(clusters), *jobs, fleet=fleet, policy=policy)
    lost = frozenset(filter(None, [unreachable]))
    lasting = dict.fromkeys(awaited(*BOTH), waited) if waited else {}
    lasting |= {_round(job): in_round for job in jobs} if in_round else {}
    return plan(
        replace(seen, all_ages=lasting, fleet=replace(seen.fleet, queue_facts=facts or {}, unreachable=lost))
    )


def test_a_new_job_waits_for_the_first_answer_but_not_for_long() -> None:
    new = raw_job(pods=gpu_pods(4), check="Pending", mk="Pending")
    for one in (JOB, new):
        answer = answer_to(one)
        assert (answer.ask_for_facts, answer.nominations, answer.check_state_updates) == (BOTH, (), ())
        assert (answer.requeue_after, awaited(*BOTH) <= answer.lasting) == (2.0, True)
    answer = answer_to(JOB, waited=2.0)
    assert (nominated(answer), answer.ask_for_facts) == ({"job": ("p-a",)}, BOTH)
    [update] = answer_to(new, waited=2.0).check_state_updates
    assert update.state == "Ready"


@pytest.mark.parametrize(
    ("known", "nominations", "asked", "again"),
    [
        pytest.param({"p-a": facts(2), "p-b": facts(8)}, {"job": ("p-b",)}, (), 15.0, id="fresh"),
        pytest.param(
            {"p-a": facts(2, 14.0), "p-b": facts(8, 15.0)},
            {"job": ("p-b",)},
            ("p-b",),
            1.0,
            id="not as fresh",
        ),
        pytest.param({"p-a": facts(2, 17.0), "p-b": facts(8, 17.0)}, {"job": ("p-b",)}, BOTH, None, id="old"),
        pytest.param({"p-a": facts(2, 17.1), "p-b": facts(8, 17.1)}, {}, BOTH, 2.0, id="too old"),
        pytest.param({"p-a": facts(8), "p-b": facts(8, 17.1)}, {}, ("p-b",), 0.9, id="one is too old"),
        pytest.param(
            {"p-a": WorkerFacts(problem="forbidden", age=10.0), "p-b": facts(8)},
            {"job": ("p-b",)},
            (),
            5.0,
            id="a worker that refuses",
        ),
    ],
)
def test_answers(known: Any, nominations: Any, asked: Any, again: float | None) -> None:
    answer = answer_to(JOB, facts=known)
    assert (nominated(answer), answer.ask_for_facts, answer.requeue_after) == (nominations, asked, again)


def test_beside_a_cluster_with_room_a_job_waits_less_than_a_second_for_another_answer() -> None:
    """Where none is known to have room, it waits for 2 s."""
    for gpus, nominations in ((8, {"job": ("p-a",)}), (4, {})):
        known = {"p-a": facts(gpus, reserved=8 - gpus), "p-b": facts(8, 17.1)}
        assert nominated(answer_to(JOB, facts=known, waited=0.9)) == nominations


def test_a_job_that_fits_nowhere_is_looked_at_again_soon() -> None:
    answer = answer_to(JOB, facts={"p-a": facts(2, 5.0), "p-b": facts(2, 5.0)})
    why = f"0/2 clusters fit: 2 had too little quota: 4 {GPU} asked, 2 at most (Capacity)"
    assert [(one.meta.name, reason) for one, reason in answer.unfit] == [("job", why)]
    assert (answer.ask_for_facts, answer.requeue_after) == ((), 10.0)


@pytest.mark.parametrize(
    ("job", "options", "asked"),
    [
        pytest.param(raw_job(**READY), {}, (), id="no requests"),
        pytest.param(JOB, {"policy": PlacementPolicy()}, (), id="Kueue's dispatcher"),
        pytest.param(
            raw_job(pods=gpu_pods(4), cluster="p-a", check="Ready", mk="Ready"), {}, (), id="it runs"
        ),
        pytest.param(raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY), {}, BOTH, id="in a round"),
        pytest.param(
            raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY), {"in_round": 300.0}, BOTH, id="a new round"
        ),
        pytest.param(
            raw_job(pods=gpu_pods(4), nominated=[*BOTH], **READY),
            {"in_round": 300.0},
            BOTH,
            id="nominated to all",
        ),
        pytest.param(
            raw_job(pods=gpu_pods(4), annotations={f"{DOMAIN}/cluster-selector": "gpu=h100"}, **READY),
            {},
            (),
            id="it fits nowhere anyway",
        ),
        pytest.param(JOB, {"unreachable": "b"}, ("p-a",), id="OCM cannot reach it"),
    ],
)
def test_who_is_asked(job: Any, options: Any, asked: tuple[str, ...]) -> None:
    assert answer_to(job, **options).ask_for_facts == asked


def test_workers_are_asked_before_a_new_round_and_it_waits_for_no_answer() -> None:
    waits = raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY)
    before = answer_to(waits, in_round=298.0)
    assert (before.nominations, before.ask_for_facts, before.requeue_after) == ((), BOTH, 2.0)
    assert {ROUND, *awaited(*BOTH)} <= before.lasting
    assert nominated(answer_to(waits, in_round=300.0)) == {"job": BOTH}


@pytest.mark.parametrize("profile", ["ranked", "headroom"])
@pytest.mark.parametrize("age", [10.0, 61.0, 1000.0])
def test_an_old_answer_of_a_worker_where_it_is_nominated_delays_no_round(age: float, profile: str) -> None:
    """Nobody asks that worker again, so its answer would be awaited without end."""
    waits = raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY)
    policy, known = replace(POLICY, dispatch_profile=profile), {"p-a": facts(8, age), "p-b": facts(8)}
    assert nominated(answer_to(waits, in_round=300.0, facts=known, policy=policy)) == {"job": BOTH}


def test_a_restart_does_not_begin_the_round_anew() -> None:
    """Since when it is nominated stands in its managedFields; the round has begun just now."""
    waits = raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY)
    for seconds, nominations in ((299, {}), (300, {"job": BOTH})):
        when = f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
        fields = {"f:status": {"f:nominatedClusterNames": {}}}
        entry = {"manager": "kueue-admission", "operation": "Apply", "time": when, "fieldsV1": fields}
        waits["metadata"]["managedFields"] = [entry | {"subresource": "status"}]
        assert nominated(answer_to(waits)) == nominations


def test_a_job_that_waits_on_full_clusters_goes_next_to_one_with_room() -> None:
    """OCM's order is a, b, c, d: c is full, too, and d is idle."""
    waits = raw_job(pods=gpu_pods(4), nominated=["p-a", "p-b"], **READY)
    known = {f"p-{name}": facts(8, reserved=8) for name in "abc"} | {"p-d": facts(8)}
    answer = answer_to(waits, in_round=300.0, facts=known, clusters="abcd")
    assert nominated(answer) == {"job": ("p-a", "p-b", "p-d")}


def test_a_round_in_which_no_cluster_fits_is_looked_at_again_when_a_worker_has_answered() -> None:
    """The quota of b may grow, and no event says so."""
    waits = raw_job(pods=gpu_pods(4), nominated=["p-a"], **READY)
    known = facts(8, then=WorkloadsThere(waiting=frozenset({"Workload/job"})))
    answer = answer_to(waits, in_round=400.0, facts={"p-a": known, "p-b": facts(2, 5.0)})
    assert (answer.nominations, ROUND in answer.lasting, answer.requeue_after) == ((), True, 10.0)


def test_headroom_counts_what_came_after_the_answer() -> None:
    """At p-a, 8 GPUs were free when it was asked, and 6 were at p-b."""
    before = raw_job("before", pods=gpu_pods(4), cluster="p-a", check="Ready", mk="Ready")
    policy = replace(POLICY, dispatch_profile="headroom")
    for then, best in ((WorkloadsThere(frozenset({"Workload/before"})), "p-a"), (NO_WORKLOADS, "p-b")):
        known = {"p-a": facts(8, then=then), "p-b": facts(6)}
        assert nominated(answer_to(JOB, before, facts=known, policy=policy)) == {"job": (best,)}


def test_headroom_counts_what_waits_there() -> None:
    """The worker does not count it: a Workload reserves nothing before it has quota there."""
    waits = raw_job("waits", pods=gpu_pods(4), nominated=["p-a"], **READY)
    policy = replace(POLICY, dispatch_profile="headroom")
    known = {"p-a": facts(8, then=WorkloadsThere(waiting=frozenset({"Workload/waits"}))), "p-b": facts(6)}
    assert nominated(answer_to(JOB, waits, facts=known, policy=policy))["job"] == ("p-b",)


@pytest.mark.parametrize(("reserving", "best"), [(1, "p-a"), (0, "p-b")])
def test_headroom_counts_quota_once_that_the_hub_does_not_know_yet(reserving: int, best: str) -> None:
    """At p-a, 12 of 16 GPUs are free, or 8 if the job that is nominated there still waits; at p-b, 9."""
    waits = raw_job("waits", pods=gpu_pods(4), nominated=["p-a"], **READY)
    there = WorkloadsThere(waiting=frozenset({"Workload/waits"}))
    used = queues((GPU, "default", 16, 4), pending=1 - reserving, reserving=reserving)
    known = {"p-a": WorkerFacts(used, then=there), "p-b": facts(9)}
    policy = replace(POLICY, dispatch_profile="headroom")
    assert nominated(answer_to(JOB, waits, facts=known, policy=policy))["job"] == (best,)
