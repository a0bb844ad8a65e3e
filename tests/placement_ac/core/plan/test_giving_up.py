"""Jobs that have waited as long as they say are deactivated, but never one that runs or may run."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import MOVED_FROM
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.fields import format_time
from placement_ac.core.inputs.state import PlacementPolicy, Plan, WorkerCopies
from placement_ac.core.plan.diff import Deactivate, diff
from placement_ac.core.plan.event_intents import dispatch_events
from placement_ac.core.plan.giving_up import give_ups
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import NOW
from tests.support.decided import decided_inputs, nominated, ranked
from tests.support.jobs_to_dispatch import DOMAIN, raw_job

GIVE_UP = f"{DOMAIN}/give-up-after"
SELECTOR = f"{DOMAIN}/cluster-selector"
POLICY = PlacementPolicy(loss_grace=0.0, dispatcher=True, give_up=True)
READY = {"check": "Ready", "mk": "Pending"}
NOWHERE = {"p-a": WorkerCopies(), "p-b": WorkerCopies()}
HAS_QUOTA = WorkerCopies({("default", "job"): True})
TRY_AGAIN = "set spec.active to true to try again: it gave up after 120 min: "


def waiting(
    name: str = "job",
    after: str = "2h",
    *,
    minutes: float = 121,
    conditions: Sequence[tuple[str, str, str, str, float]] = (),
    annotations: dict[str, str] | None = None,
    **rest: Any,
) -> Any:
    """A Workload that was created so many minutes ago.

    `conditions`: type, status, reason, message, and how many minutes ago.
    """
    raw = raw_job(name, annotations={GIVE_UP: after} | (annotations or {}), **(READY | rest))
    raw["metadata"]["creationTimestamp"] = before(minutes)
    raw["status"]["conditions"] += [
        {"type": kind, "status": status, "reason": why, "message": text, "lastTransitionTime": before(at)}
        for kind, status, why, text, at in conditions
    ]
    return raw


def without_multikueue() -> Any:
    job = waiting()
    job["status"]["admissionChecks"] = job["status"]["admissionChecks"][:1]
    return job


def before(minutes: float) -> str:
    return format_time(NOW - timedelta(minutes=minutes))


def answer_to(
    *jobs: Any, copies: dict[str, WorkerCopies] | None = None, policy: PlacementPolicy = POLICY
) -> Plan:
    seen = decided_inputs(ranked("ab"), *jobs, policy=policy)
    return plan(replace(seen, fleet=replace(seen.fleet, worker_copies=copies or {})))


@pytest.mark.parametrize("state", ["Pending", "Ready"])
def test_a_job_that_has_left_a_copy_is_recorded_there_and_does_not_give_up(state: str) -> None:
    left = f"due to: {MOVED_FROM.format('a')} b has room and is better; move 1 of 12 in this hour"
    job = waiting(conditions=[("Evicted", "False", "AdmissionCheck", left, 125)], minutes=200, check=state)
    assert given_up(answer_to(job, copies=NOWHERE)) != {}
    assert given_up(answer_to(job, copies=NOWHERE | {"p-a": HAS_QUOTA})) == {}


def given_up(answer: Plan) -> dict[str, str]:
    return {workload.meta.name: why for workload, why in answer.give_ups}


def test_a_job_that_waits_on_clusters_gives_up_when_they_have_said_that_it_has_no_quota_there() -> None:
    job = waiting(nominated=("p-a", "p-b"))
    asked = answer_to(job)
    assert (given_up(asked), asked.ask_for_copies) == ({}, ("p-a", "p-b"))
    assert given_up(answer_to(job, copies=NOWHERE)) == {
        "job": f"{TRY_AGAIN}nominated to a, b, and got no quota there"
    }


@pytest.mark.parametrize("nominated", [(), ("p-b",)])
def test_a_job_with_a_copy_where_it_is_not_nominated_does_not_give_up(nominated: tuple[str, ...]) -> None:
    job = waiting(nominated=nominated)
    assert given_up(answer_to(job, copies=NOWHERE | {"p-a": HAS_QUOTA})) == {}
    unanswered = answer_to(job, copies={"p-b": WorkerCopies()})
    assert (given_up(unanswered), unanswered.ask_for_copies) == ({}, ("p-a",))
    assert given_up(answer_to(job, copies=NOWHERE)) != {}


def test_of_very_many_jobs_others_give_up_a_second_later() -> None:
    jobs = [waiting(f"j{n}", quota=False) for n in range(300)]
    seen = decided_inputs(ranked("ab"), *jobs, policy=POLICY)
    seen = replace(seen, fleet=replace(seen.fleet, worker_copies=NOWHERE))
    found = [given_up(plan(replace(seen, now=NOW + timedelta(seconds=at)))).keys() for at in range(3)]
    assert [len(names) for names in found] == [200] * 3
    assert len(frozenset().union(*found)) == 300


def test_a_job_whose_write_was_refused_is_nominated_and_tried_again_a_minute_later() -> None:
    seen = decided_inputs(ranked("ab"), waiting(), policy=POLICY)
    seen = replace(seen, fleet=replace(seen.fleet, worker_copies=NOWHERE))

    def then(answer: Plan, seconds: float) -> Plan:
        return plan(replace(seen, all_ages=dict.fromkeys(answer.lasting, seconds)))

    for first in (plan(seen), then(plan(seen), 60.0)):
        assert (given_up(first).keys(), nominated(first)) == ({"job"}, {})
        second = then(first, 59.0)
        assert (given_up(second), nominated(second)) == ({}, {"job": ("p-a", "p-b")})
        assert second.requeue_after == 1.0
        assert given_up(then(second, 60.0)).keys() == {"job"}


def test_a_job_that_was_withdrawn_from_a_cluster_with_a_copy_of_it_does_not_give_up() -> None:
    seen = decided_inputs(ranked("ab"), waiting(), policy=POLICY)
    seen = replace(seen, fleet=replace(seen.fleet, worker_copies=NOWHERE))
    targets, uid = select_targets(seen), seen.workloads[0].meta.uid
    assert give_ups(seen, targets, {}).uids == {uid}
    assert give_ups(seen, targets, {}, {uid}).uids == frozenset()


@pytest.mark.parametrize(
    ("copies", "asks"),
    [
        pytest.param(HAS_QUOTA, (), id="it has quota there"),
        pytest.param(WorkerCopies(problem="no answer"), (), id="just no answer"),
        pytest.param(WorkerCopies(problem="no answer", age=16.0), ("p-a",), id="no answer long ago"),
        pytest.param(WorkerCopies(age=11.0), ("p-a",), id="an answer of long ago"),
    ],
)
def test_a_job_that_may_run_somewhere_does_not_give_up(copies: WorkerCopies, asks: tuple[str, ...]) -> None:
    answer = answer_to(waiting(nominated=("p-a", "p-b")), copies=NOWHERE | {"p-a": copies})
    assert (given_up(answer), answer.ask_for_copies) == ({}, asks)


def test_why_a_job_gives_up_that_was_sent_nowhere() -> None:
    nowhere = waiting("nowhere", annotations={SELECTOR: "gpu=h100"})
    answer = answer_to(nowhere, waiting("no-quota", quota=False), copies=NOWHERE)
    assert given_up(answer) == {
        "nowhere": f"{TRY_AGAIN}0/2 clusters fit: 2 didn't match gpu=h100 (ClusterAffinity)",
        "no-quota": f"{TRY_AGAIN}it got no quota on the hub",
    }
    assert answer.nominations == answer.check_state_updates == (), "one write to a Workload at a time"


@pytest.mark.parametrize(
    ("job", "left"),
    [
        pytest.param(waiting(minutes=119, quota=False), 60.0, id="not long enough"),
        pytest.param(waiting(active=False, quota=False), None, id="not active"),
        pytest.param(waiting(finished=True), None, id="finished"),
        pytest.param(waiting(cluster="p-a", check="Ready", mk="Ready"), None, id="it runs"),
        pytest.param(waiting(check="Ready", mk="Ready"), None, id="Kueue has placed it"),
        pytest.param(without_multikueue(), None, id="no check of MultiKueue: it may run on the hub"),
        pytest.param(waiting(after="0s", quota=False), None, id="at once"),
        pytest.param(waiting(after="soon", quota=False), None, id="no duration"),
    ],
)
def test_other_jobs_do_not_give_up(job: Any, left: float | None) -> None:
    answer = answer_to(job)
    assert given_up(answer) == {}
    assert left is None or answer.requeue_after == left


def test_without_the_setting_nobody_gives_up_and_the_job_says_so() -> None:
    answer = answer_to(waiting(), policy=replace(POLICY, give_up=False))
    assert given_up(answer) == {}
    why = f"ask an admin for the setting --give-up true: without it, {GIVE_UP} is ignored"
    assert [text for _, text in answer.ignored] == [why]


@pytest.mark.parametrize("dispatcher", [True, False])
def test_a_duration_that_cannot_be_read_is_reported(dispatcher: bool) -> None:
    answer = answer_to(waiting(after="30s"), policy=replace(POLICY, dispatcher=dispatcher))
    why = "it is ignored: a duration is like 90s, 5m or 1h30m, at least 1m: '30s'"
    assert [text for _, text in answer.ignored] == [f"correct the annotation {GIVE_UP}, {why}"]


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        pytest.param([], 300, id="since it was created"),
        pytest.param([("Evicted", "True", "Preempted", "Preempted", 100)], 100, id="since it ran last"),
        pytest.param(
            [("Evicted", "True", "AdmissionCheck", "NoClusterFits: 0/2 clusters fit: …", 100)],
            300,
            id="it was sent back because it fits nowhere: it has waited all the time",
        ),
        pytest.param(
            [
                ("Evicted", "False", "Deactivated", "The workload is deactivated", 200),
                ("Requeued", "True", "Reactivated", "The workload was reactivated", 20),
            ],
            20,
            id="since it was activated again",
        ),
    ],
)
def test_since_when_a_job_waits(conditions: Any, since: float) -> None:
    job = workload_with_job(waiting(minutes=300, conditions=conditions))
    assert job.waits_since == NOW - timedelta(minutes=since)


def test_the_write_is_bound_to_what_was_seen_and_an_event_says_why() -> None:
    seen = decided_inputs(ranked("ab"), waiting(quota=False), policy=POLICY)
    seen = replace(seen, fleet=replace(seen.fleet, worker_copies=NOWHERE))
    answer = plan(seen)
    writes = [action for phase in diff(seen, answer) for action in phase if isinstance(action, Deactivate)]
    assert [(write.name, write.workload.meta.resource_version) for write in writes] == [("job", "1")]
    [event] = dispatch_events(answer, writes)
    assert (event.reason, event.message) == ("GaveUp", f"{TRY_AGAIN}it got no quota on the hub")


@pytest.mark.parametrize("seed", range(20))
def test_a_job_that_runs_or_is_placed_is_never_deactivated(seed: int) -> None:
    """Over random jobs and answers of workers."""
    chance, jobs, busy = random.Random(seed), [], set()
    copies = {
        name: WorkerCopies(
            {("default", f"j{n}"): chance.random() < 0.5 for n in range(60) if chance.random() < 0.3},
            "no answer" if chance.random() < 0.1 else "",
            chance.choice([0.0, 5.0, 5.0, 60.0]),
        )
        for name in ("p-a", "p-b")
        if chance.random() < 0.9
    }
    unknown = len(copies) < 2 or any(one.problem or one.age > 10 for one in copies.values())
    for n in range(60):
        nominated = tuple(name for name in ("p-a", "p-b") if chance.random() < 0.4)
        cluster = chance.choice(["", "", "p-a", "p-gone"])
        states = {"check": chance.choice(["Ready", "Pending"]), "mk": chance.choice(["Pending", "Ready"])}
        quota = chance.random() < 0.8
        one = waiting(f"j{n}", "1h", minutes=chance.choice([1, 61, 600]), cluster=cluster, quota=quota)
        one["status"] |= {
            "admissionChecks": [{"name": name, "state": state} for name, state in states.items()],
            "nominatedClusterNames": list(nominated),
        }
        jobs.append(one)
        has_copy = any(one.copies.get(("default", f"j{n}")) for one in copies.values())
        if cluster or states["mk"] == "Ready" or has_copy or unknown:
            busy.add(f"j{n}")
    found = given_up(answer_to(*jobs, copies=copies)).keys()
    assert bool(found) is not unknown, "some give up if all clusters have answered"
    assert not found & busy
