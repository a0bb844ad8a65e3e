"""Jobs of tenants that are made to be slow: what they cost is bounded, and the reason names the limit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from placement_ac.config.policy import JUDGED_AT_ONCE
from placement_ac.core.inputs.state import Plan, Since, SinceKind, Snapshot
from placement_ac.core.plan.job_fit import ROUND_SECONDS
from placement_ac.core.plan.plan import plan
from tests.placement_ac.core.plan import test_job_fit
from tests.support.ages import unchecked_plan
from tests.support.decided import nominated
from tests.support.growth import calls_of
from tests.support.jobs_to_dispatch import DOMAIN, gpu_pods, raw_job

READY = test_job_fit.READY
SELECTOR, PREFERRED, ANTI = (
    f"{DOMAIN}/{name}" for name in ("cluster-selector", "preferred-clusters", "anti-affinity")
)
POLICY = replace(test_job_fit.POLICY, node_labels={"zone": "gpu"})


CALLS_OF_A_PLAN = 400_000
"""So many calls of functions, in C or not, take about 0.1 s."""


def with_terms(job: int, number: int, operator: str = "In") -> Any:
    """A Pod template with so many terms of node affinity, different for each job."""
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": operator, "values": [f"z{job}-{n}"]}]}
        for n in range(number)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"spec": {"affinity": {"nodeAffinity": required}}}


@pytest.mark.parametrize(
    ("number", "size", "wishes", "limit"),
    [
        pytest.param(
            1,
            200_000,
            lambda _, size: {"annotations": {SELECTOR: "," * size}},
            "at most 8,192 characters",
            id="commas",
        ),
        pytest.param(
            5,
            8_000,
            lambda n, size: {"pods": (with_terms(n, size),)},
            "at most 256 are read, it has 16,000",
            id="affinity terms",
        ),
        pytest.param(
            60,
            50_000,
            lambda n, size: {"annotations": {PREFERRED: "1:a;" * size + f"1:b{n}"}},
            "at most 8,192 characters",
            id="preferences",
        ),
        pytest.param(
            150,
            2_000,
            lambda n, size: {
                "annotations": {ANTI: f"app=x{n}"},
                "labels": {f"l{label}": f"v{n}" for label in range(size)},
            },
            "at most 256 are read, it has 2,000",
            id="anti-affinity",
        ),
        pytest.param(
            15,
            60,
            lambda n, size: {"pods": (with_terms(n, 100),) * size},
            "at most 512 are read, it has 12,000",
            id="in all",
        ),
    ],
)
def test_a_job_that_is_made_to_be_slow(
    number: int, size: int, wishes: Callable[[int, int], Any], limit: str
) -> None:
    """Without the limits, a plan took 1 to 90 s."""

    def inputs(size: int) -> Snapshot:
        jobs = [raw_job(f"slow-{n}", **wishes(n, size), **READY) for n in range(number)]
        return test_job_fit.inputs(*jobs, raw_job("other", **READY), policy=POLICY)

    whole, half = inputs(size), inputs(size // 2)
    answer = unchecked_plan(whole)
    assert nominated(answer) == {"other": ("p-a",)}
    assert len(answer.unfit) == number
    assert {limit in why for _, why in answer.unfit} == {True}
    assert calls_of(lambda: unchecked_plan(whole)) < 1.1 * calls_of(lambda: unchecked_plan(half))


def passes(jobs: Sequence[Any], most: int) -> Iterator[Plan]:
    """Plan after plan, each a second after the one before; nothing of them is written."""
    ages: dict[Since, float] = {}
    while True:
        answer = plan(test_job_fit.inputs(*jobs, policy=replace(POLICY, judged_at_once=most), ages=ages))
        yield answer
        ages = {since: ages.get(since, 0.0) + 1.0 for since in answer.lasting}


def unfit(answer: Plan) -> list[str]:
    return [workload.meta.name for workload, _ in answer.unfit]


def test_jobs_that_are_too_many_for_one_plan_take_turns() -> None:
    jobs = [raw_job(f"j{n}", annotations={SELECTOR: f"gpu=none{n}"}, **READY) for n in range(5)]
    found = list(islice(passes(jobs, 2), 6))
    assert [unfit(one) for one in found] == [
        ["j0", "j1"],
        ["j2", "j3"],
        ["j0", "j4"],
        ["j1", "j2"],
        ["j0", "j3"],
        ["j1", "j4"],
    ]
    assert [one.requeue_after for one in found] == [0.0, 0.0, 2.0, 2.0, 2.0, 2.0]
    assert [len(one.check_state_updates) for one in found] == [0] * 6, "they are Ready: nothing is written"


def test_jobs_whose_turn_passed_while_workers_were_asked_come_first_once_none_is_awaited() -> None:
    jobs = [
        raw_job("small", **READY),
        *(raw_job(f"j{n}", annotations={SELECTOR: "gpu"}, pods=gpu_pods(1), **READY) for n in range(3)),
    ]
    found = list(islice(passes(jobs, 1), 7))
    assert found[0].ask_for_facts == ("p-a", "p-b", "p-c"), "for those whose turn comes"
    assert [list(nominated(one)) for one in found] == [[], [], ["j2"], ["small"], ["j0"], ["j1"], ["j2"]]
    assert [one.requeue_after for one in found] == [0.0] * 5 + [2.0] * 2


def test_those_that_fit_nowhere_do_not_hold_back_a_new_one() -> None:
    jobs = [raw_job(f"j{n}", annotations={SELECTOR: f"gpu=none{n}"}, **READY) for n in range(5)]
    several = passes(jobs, 2)
    for _ in range(3):
        next(several)
    jobs.append(raw_job("new", **READY))
    assert nominated(next(several)) == {"new": ("p-a",)}


def test_a_deferred_job_keeps_its_nominations_its_round_and_its_answer() -> None:
    slow = raw_job("a-slow", annotations={SELECTOR: ",".join(f"l{n}=x" for n in range(100))}, **READY)
    waits = raw_job("waits", nominated=["p-a"], **READY)
    held = raw_job("held", check="Pending", mk="Pending")
    limited = replace(POLICY, judged_at_once=1)
    due = Since(SinceKind.NOMINATION_ROUND, "Workload/waits", 1)
    answer = plan(test_job_fit.inputs(slow, waits, held, policy=limited, ages={due: ROUND_SECONDS}))
    assert (nominated(answer), answer.check_state_updates) == ({}, ())
    assert (due in answer.lasting, answer.requeue_after) == (True, 0.0)


def test_without_a_limit_all_are_judged() -> None:
    jobs = [raw_job(f"j{n}", annotations={SELECTOR: f"gpu=none{n}"}, **READY) for n in range(50)]
    answer = plan(test_job_fit.inputs(*jobs, policy=POLICY))
    assert len(answer.unfit) == 50
    assert not [since for since in answer.lasting if since.kind is SinceKind.JUDGED]


@pytest.mark.parametrize(
    ("number", "wishes"),
    [
        pytest.param(
            10,
            lambda n: {
                "annotations": {
                    PREFERRED: ";".join(f"1:l{one}=x{n}" for one in range(120)),
                    SELECTOR: ",".join(f"l{one}!=x{n}" for one in range(120)),
                },
                "pods": (with_terms(n, 128, "NotIn"),),
            },
            id="as much as is read",
        ),
        pytest.param(
            10,
            lambda n: {
                "annotations": {ANTI: f"app=x{n}"},
                "labels": {f"l{one}": str(n) for one in range(256)},
            },
            id="anti-affinity",
        ),
    ],
)
def test_a_plan_for_1000_jobs_that_are_all_different(number: int, wishes: Callable[[int], Any]) -> None:
    """Without the limit, 1,000 jobs with preferences took 1.7 s on a quiet machine."""
    jobs = [raw_job(f"j{n}", **wishes(n), **READY) for n in range(1000)]

    def inputs(most: int) -> Snapshot:
        return test_job_fit.inputs(*jobs, policy=replace(POLICY, judged_at_once=most))

    limited, of_one = inputs(JUDGED_AT_ONCE), inputs(1)
    answer = unchecked_plan(limited)
    assert len(answer.nominations) == number
    assert answer.requeue_after == 0.0
    judging = calls_of(lambda: unchecked_plan(limited)) - calls_of(lambda: unchecked_plan(of_one))
    assert judging < CALLS_OF_A_PLAN
