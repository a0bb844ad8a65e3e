"""A job that is nominated to full clusters: its entry says where it waits, and what is short."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.fields import format_time
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import Plan
from tests.placement_ac.core.plan.test_fact_questions import POLICY, answer_to
from tests.support.builders import NOW
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

BEFORE = "1 of 2 selected clusters usable: a"
THERE = WorkloadsThere(waiting=frozenset({"Workload/job"}))
FULL = "0 of 8 nvidia.com/gpu free (8 used by 2 jobs)"


def waits(*nominated: str, message: str = BEFORE, gpus: tuple[int, ...] = (8,), **rest: Any) -> Any:
    job = raw_job(pods=gpu_pods(*gpus), nominated=list(nominated), check="Ready", mk="Pending", **rest)
    for entry in job["status"]["admissionChecks"]:
        if entry["name"] == "check":
            entry["message"] = message
    return job


def worker(used: int, age: float = 1.0, **rest: Any) -> WorkerFacts:
    return WorkerFacts(queues((GPU, "default", 8, used), reserving=2, **rest), age=age)


def check_entries(answer: Plan) -> list[tuple[str, str]]:
    return [(update.state, update.message) for update in answer.check_state_updates]


@pytest.mark.parametrize(
    ("job", "known", "how", "message"),
    [
        pytest.param(
            waits("p-a"),
            {"p-a": worker(8)},
            {"in_round": 120.0},
            f"waits for a: at 12:00:00Z, {FULL}; next round at 12:03:00Z",
            id="full",
        ),
        pytest.param(
            waits("p-a", "p-b"),
            {"p-a": worker(8), "p-b": worker(4)},
            {},
            f"waits for a and 1 more: at 12:00:00Z, {FULL}; no other cluster fits",
            id="nominated to all",
        ),
        pytest.param(
            waits("p-a"),
            {"p-a": worker(0, active=False)},
            {},
            "waits for a: at 12:00:00Z, ClusterQueue cluster-queue is not active; next round at 12:05:00Z",
            id="a stopped queue",
        ),
        pytest.param(
            waits("p-a"),
            {"p-a": WorkerFacts(queues(("cpu", "default", 8)), age=1.0)},
            {},
            f"waits for a: at 12:00:00Z, ClusterQueue cluster-queue has no quota of {GPU}: it never runs"
            " there; next round at 12:05:00Z",
            id="a resource that the queue does not name",
        ),
        pytest.param(
            waits("p-a", gpus=(4, 4)),
            {"p-a": worker(4)},
            {},
            f"waits for a: at 12:00:00Z, 4 of 8 {GPU} free (4 used by 2 jobs); next round at 12:05:00Z",
            id="room for one podSet alone",
        ),
        pytest.param(waits("p-a", gpus=(4, 4)), {"p-a": worker(0)}, {}, None, id="room for all podSets"),
        pytest.param(waits("p-a"), {"p-a": worker(0)}, {}, None, id="there is room"),
        pytest.param(
            waits("p-a", "p-b"), {"p-a": worker(8), "p-b": worker(0)}, {}, None, id="on one of them"
        ),
        pytest.param(
            waits("p-a"), {"p-a": replace(worker(8), then=THERE)}, {}, None, id="it has quota there"
        ),
        pytest.param(waits("p-a"), {"p-a": worker(8, 61.0)}, {}, None, id="too old"),
        pytest.param(waits("p-a"), {}, {}, None, id="not known"),
        pytest.param(
            waits("p-a", message="waits for a: at 11:58:00Z, 1 of 8"),
            {"p-a": worker(8)},
            {},
            None,
            id="said already",
        ),
    ],
)
def test_message(job: Any, known: Any, how: Any, message: str | None) -> None:
    answer = answer_to(job, facts=known, policy=POLICY, **how)
    assert check_entries(answer) == ([("Ready", message)] if message else [])


def test_a_job_that_was_taken_back_from_the_cluster_says_where_it_waits_now() -> None:
    job = waits("p-b", message=f"waits for a: at 11:58:00Z, {FULL}; next round at 12:03:00Z")
    assert "p-b" in answer_to(job, facts={"p-b": worker(8, 61.0)}, policy=POLICY).ask_for_facts
    [(_, message)] = check_entries(answer_to(job, facts={"p-b": worker(8)}, policy=POLICY))
    assert message.startswith("waits for b: at 12:00:00Z")


def new(*nominated: str, seconds: int = 0, name: str = "job", **rest: Any) -> Any:
    """A Workload that was nominated so many seconds ago."""
    job = waits(*nominated, name=name, **rest)
    fields = {"f:status": {"f:nominatedClusterNames": {}}}
    entry = {"manager": "kueue-admission", "operation": "Apply", "fieldsV1": fields}
    job["metadata"]["managedFields"] = [{**entry, "time": format_time(NOW - timedelta(seconds=seconds))}]
    return job


@pytest.mark.parametrize(
    ("jobs", "in_round", "messages"),
    [
        pytest.param(
            [new("p-a")], 0.2, ["nominated to p-a"], id="Kueue looks at once when its Workload changes"
        ),
        pytest.param([new("p-a")], 0.05, [], id="its worker has had no time to answer"),
        pytest.param([new("p-a", message=f"{BEFORE}; nominated to p-a")], 0.2, [], id="said already"),
        pytest.param(
            [new("p-b", message=f"{BEFORE}; nominated to p-a")],
            0.2,
            ["nominated to p-b"],
            id="elsewhere since",
        ),
        pytest.param([new("p-a", message="waits for b: at 11:58:00Z")], 0.2, [], id="it is known to wait"),
        pytest.param([new("p-a", seconds=6)], 0.2, [], id="before a restart: Kueue has looked since"),
        pytest.param([new("p-a", name=f"job-{n}") for n in range(6)], 0.2, [], id="many are under way"),
    ],
)
def test_the_entry_of_a_new_nomination(jobs: list[Any], in_round: float, messages: list[str]) -> None:
    answer = answer_to(*jobs, facts={}, policy=POLICY, in_round=in_round)
    assert check_entries(answer) == [("Ready", f"{BEFORE}; {message}") for message in messages]


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        pytest.param(
            queues(("cpu", "default", 8)),
            f"the ClusterQueues of all 2 clusters that fit have no quota of {GPU}: the job never runs, unless"
            " Kueue there ignores that",
            id="no queue names it",
        ),
        pytest.param(queues((GPU, "default", 8, 8)), None, id="one names it"),
    ],
)
def test_an_event_names_a_resource_that_no_cluster_gives(others: Any, problem: str | None) -> None:
    known = {"p-a": WorkerFacts(queues(("cpu", "default", 8)), age=1.0), "p-b": WorkerFacts(others, age=1.0)}
    answer = answer_to(waits(), facts=known, policy=POLICY)
    assert [why for _, why in answer.unfit] == ([problem] if problem else [])
