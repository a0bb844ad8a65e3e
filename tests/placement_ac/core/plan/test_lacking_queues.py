"""A listed worker without a queue of the jobs: the condition says so, and the commands repeat it."""

from dataclasses import replace

import pytest

from kubectl_placement.status.queues import queue_remarks_of
from placement_ac.core.api import decode
from placement_ac.core.api.constants import GENERATED
from placement_ac.core.inputs.queue_facts import QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import check, condition
from tests.support.decided import decided_inputs, problems
from tests.support.jobs_to_dispatch import QUEUE, gpu_pods, queues, raw_job

NAMESPACE, NAME = QUEUE
SINCE = Since(SinceKind.QUEUE_LACKING, f"p-b {NAMESPACE} {NAME}")
JOB = raw_job(pods=gpu_pods(4))
MISSING = f"b: no quota there for jobs of LocalQueue {NAMESPACE}/{NAME} (there is no such LocalQueue)"


def answer_to(there: WorkerFacts, lasted: float, *jobs: object, dispatcher: bool = True) -> Plan:
    """The plan where a has the queue, and b is as its answer says, and has lacked it for `lasted` seconds."""
    seen = decided_inputs("ab", *jobs, policy=PlacementPolicy(dispatcher=dispatcher))
    facts = {"p-a": WorkerFacts(queues()), "p-b": there}
    ages = {SINCE: lasted} if lasted else {}
    return plan(replace(seen, all_ages=ages, fleet=replace(seen.fleet, queue_facts=facts)))


@pytest.mark.parametrize(
    ("there", "lasted", "says", "lasts"),
    [
        pytest.param(WorkerFacts(queues()), 60.0, "", False, id="it has the queue"),
        pytest.param(WorkerFacts(), 0.0, "", True, id="only just missing"),
        pytest.param(WorkerFacts(), 29.0, "", True, id="not for long"),
        pytest.param(WorkerFacts(), 30.0, MISSING, True, id="missing"),
        pytest.param(
            WorkerFacts({QUEUE: QueueFacts("cq", active=False, exists=False)}),
            30.0,
            MISSING.replace("there is no such LocalQueue", "there is no ClusterQueue cq"),
            True,
            id="without its ClusterQueue",
        ),
        pytest.param(
            WorkerFacts({QUEUE: QueueFacts("cq", active=False)}),
            30.0,
            MISSING.replace("there is no such LocalQueue", "it or ClusterQueue cq is stopped or not active"),
            True,
            id="stopped",
        ),
    ],
)
def test_the_condition_names_a_worker_without_quota(
    there: WorkerFacts, lasted: float, says: str, lasts: bool
) -> None:
    answer = answer_to(there, lasted, JOB)
    assert (problems(answer), SINCE in answer.lasting) == (says, lasts)


@pytest.mark.parametrize(
    ("lasted", "says", "lasts"), [(0.0, "", False), (60.0, MISSING, True), (3600.0, "", False)]
)
def test_it_is_kept_for_an_hour_after_the_last_job(lasted: float, says: str, lasts: bool) -> None:
    answer = answer_to(WorkerFacts(), lasted)
    assert (problems(answer), SINCE in answer.lasting) == (says, lasts)


def test_without_the_dispatcher_nothing_is_said() -> None:
    assert problems(answer_to(WorkerFacts(), 60.0, JOB, dispatcher=False)) == ""


@pytest.mark.parametrize(
    ("lasted", "age", "asked"),
    [(10.0, 14.0, ()), (10.0, 15.0, ("p-b",)), (60.0, 59.0, ()), (60.0, 60.0, ("p-b",))],
)
def test_the_worker_is_asked_again_until_it_has_the_queue(
    lasted: float, age: float, asked: tuple[str, ...]
) -> None:
    assert answer_to(WorkerFacts(age=age), lasted).ask_for_facts == asked


def test_the_commands_read_it_in_the_condition() -> None:
    message = f"{GENERATED}; {MISSING}; draining: c (Workloads run there)"
    found = decode.check(check(active=condition(message=message)))
    assert queue_remarks_of(found) == {"b": MISSING.removeprefix("b: ")}
