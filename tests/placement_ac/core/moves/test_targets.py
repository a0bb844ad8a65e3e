"""A job is moved only to a cluster where it would start: filters judge the target before it is sent back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.inputs.job_facts import NO_JOB_FACTS, NO_NEEDS, JobFacts, job_needs
from placement_ac.core.inputs.state import PlacementPolicy, Snapshot, WorkerCopies
from placement_ac.core.plan.job_fit import job_fit
from placement_ac.core.plan.moving import moving
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.decided import check_states
from tests.support.moving import POLICY, WITH_KUEUES, entry, fleet, job, recorded

JOB = "Job.v1.batch"
TRAIN, OTHER = ("batch/v1", "Job", "train"), ("batch/v1", "Job", "other")
TAKEN = JobFacts(taken={JOB: frozenset({("default", "train")})})
TWO = {"a": (8, 8), "b": (8, 2)}
THREE = {**TWO, "c": (8, 3)}
BEGAN = entry(0, "Workload/job")


def seen(
    *jobs: Any,
    there: Mapping[str, JobFacts] | None = None,
    policy: PlacementPolicy = POLICY,
    asked: bool = True,
    **rest: Any,
) -> Snapshot:
    """Clusters that said 300 s ago and just now what they have beside their queues.

    `there`: cluster → what is there. `asked`: whether they were asked for all that the jobs need.
    """

    def after(ages: Any = None) -> Snapshot:
        hub = fleet(*jobs, policy=policy, ages=ages, **rest)
        needs = job_needs(hub.workloads, moves=True) if asked else NO_NEEDS
        facts = {
            name: replace(
                one,
                jobs=(there or {}).get(name.removeprefix("p-"), NO_JOB_FACTS),
                then=one.then._replace(needs=needs),
            )
            for name, one in hub.fleet.queue_facts.items()
        }
        return replace(hub, fleet=replace(hub.fleet, queue_facts=facts))

    return after(dict.fromkeys(plan(after()).lasting, 300.0))


def objections(snapshot: Snapshot) -> list[str]:
    targets = select_targets(snapshot)
    plans = moving(snapshot, targets, job_fit(snapshot, targets), in_step=True).plan
    return [candidate.objection for candidate in plans.candidates()]


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(TAKEN, id="where another job has its name"),
        pytest.param(JobFacts(served={JOB: False}), id="where its kind is not served"),
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="as another is better"),
        pytest.param({"quarantined": {"a": "jobs keep failing"}}, id="as its own is quarantined"),
    ],
)
def test_a_job_is_not_moved(there: JobFacts, given: Any) -> None:
    trains = job(owner=TRAIN)
    (move,) = recorded(plan(seen(trains, there={"b": there}, used=THREE, **given)))
    assert move.split(":")[2:4] == ["a", "c"]
    nowhere = seen(trains, there={"b": there}, used=TWO, **given)
    assert recorded(plan(nowhere)) == []
    assert objections(nowhere) == ["no other cluster is known to have room for it"]


def test_a_job_is_not_moved_to_a_cluster_that_was_not_asked_for_what_it_needs() -> None:
    unasked = seen(job(owner=TRAIN), used=TWO, asked=False)
    assert objections(unasked) == ["no other cluster is known to have room for it"]
    assert recorded(plan(unasked)) == []


def test_a_cluster_that_lets_nobody_see_what_it_has_counts_as_for_a_job_that_waits() -> None:
    answer = plan(seen(job(owner=TRAIN), there={"b": NO_JOB_FACTS}, used=TWO))
    assert recorded(answer) == ["check:Workload/job:a:b:better"]


def test_of_jobs_that_ask_for_the_same_only_the_one_with_the_name_stays() -> None:
    alike = job("first", owner=OTHER), job("second", owner=TRAIN)
    both = {("default", "first"): True, ("default", "second"): True}
    given: Any = {"there": {"b": TAKEN}, "used": TWO, "copies": {"p-a": WorkerCopies(both, age=1.0)}}
    assert recorded(plan(seen(*alike, **given))) == ["check:Workload/first:a:b:better"]
    first_was_moved = [entry(50, "Workload/first")]
    assert len(recorded(plan(seen(*alike, **given, moves=first_was_moved)))) == 1


@pytest.mark.parametrize(
    ("given", "sent_back"),
    [
        pytest.param({"used": TWO}, {"job": "Retry"}, id="nothing has changed"),
        pytest.param({"used": TWO, "there": {"b": TAKEN}}, {}, id="its name is taken there"),
        pytest.param({"used": THREE, "there": {"b": TAKEN}}, {"job": "Retry"}, id="another one takes it"),
        pytest.param({"used": {"a": (8, 8), "b": (8, 8)}}, {}, id="it has become full"),
        pytest.param({"used": {"a": (8, 8), "b": None}}, {}, id="it is not known any more"),
    ],
)
def test_a_recorded_move_begins_only_while_there_is_a_cluster_for_it(given: Any, sent_back: Any) -> None:
    assert check_states(plan(seen(job(owner=TRAIN), moves=[BEGAN], **given))) == sent_back


def test_kueues_dispatcher_might_send_it_to_a_cluster_that_a_filter_refuses() -> None:
    used = {"a": (4, 8), "b": (8, 2), "c": (8, 2)}
    given: Any = {"used": used, "policy": WITH_KUEUES}
    assert recorded(plan(seen(job(owner=TRAIN), **given))) != []
    refused = seen(job(owner=TRAIN), there={"c": TAKEN}, **given)
    assert objections(refused) == ["Kueue's dispatcher might send it to c, which is no better"]
