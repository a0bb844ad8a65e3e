"""A plan compares a limited number of running jobs; the next plan goes on."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from placement_ac.core.inputs.state import PlacementPolicy, Since, SinceKind
from placement_ac.core.moves.planning import MovePlan
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.plan.moving import moving
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.moving import POLICY, WITH_KUEUES, fleet, job, recorded

LATER = "so many different jobs run that it is compared later"
KINDS = tuple(job(f"j{gpus}", gpus=gpus) for gpus in range(1, 5))
ONE_EACH = replace(POLICY, judged_at_once=1)
USED = {"a": (8, 8), "b": (8, 4)}


def move_plans(*jobs: Any, policy: PlacementPolicy, seconds: float, **rest: Any) -> Iterator[MovePlan]:
    """One plan after the other, so many seconds apart."""
    ages: dict[Since, float] = {}
    while True:
        seen = fleet(*jobs, policy=policy, ages=ages, used=USED, **rest)
        targets = select_targets(seen)
        yield moving(seen, targets, JobFit(seen, targets), in_step=True).plan
        ages = {since: ages.get(since, 0.0) + seconds for since in plan(seen).lasting}


def compared(answer: MovePlan) -> list[str]:
    return sorted(one.workload.meta.name for one in answer.candidates() if one.objection != LATER)


def test_jobs_that_are_too_many_for_one_plan_are_compared_in_turn() -> None:
    for policy in (ONE_EACH, replace(WITH_KUEUES, judged_at_once=1)):
        found = list(islice(move_plans(*KINDS, policy=policy, seconds=1.0), 5))
        assert [compared(one) for one in found] == [["j4"], ["j3"], ["j2"], ["j1"], ["j4"]]
        assert [one.requeue_after for one in found] == [2.0] * 5
    (enough,) = islice(move_plans(*KINDS, policy=POLICY, seconds=1.0), 1)
    assert (compared(enough), enough.requeue_after) == (["j1", "j2", "j3", "j4"], None)


def test_a_cluster_has_had_room_meanwhile_as_when_the_job_was_compared_last() -> None:
    ages = [one.lasting for one in islice(move_plans(*KINDS, policy=ONE_EACH, seconds=1.0), 5)]
    assert [sum(since.kind is SinceKind.HAS_ROOM for since in one) for one in ages] == [1, 2, 3, 4, 4]


def test_the_job_that_would_move_is_compared_until_its_cluster_has_answered() -> None:
    plans = move_plans(*KINDS, policy=ONE_EACH, seconds=100.0, copies={})
    asking = next(one for one in plans if one.ask_for_copies)
    (chosen,) = compared(asking)
    assert compared(next(plans)) == [chosen]


def test_in_the_end_one_of_many_is_moved() -> None:
    answers = list(islice(move_plans(*KINDS, policy=ONE_EACH, seconds=100.0), 8))
    assert any(one.record for one in answers)
    assert recorded(plan(fleet(*KINDS, policy=ONE_EACH))) == []
