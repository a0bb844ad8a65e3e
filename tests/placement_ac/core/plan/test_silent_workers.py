"""A worker that hangs while Kueue calls it connected: no new job goes there, and the condition says so."""

from dataclasses import replace

import pytest

from placement_ac.core.api.constants import SILENT
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.decided import decided_inputs, nominated, problems
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

JOB = raw_job(pods=gpu_pods(4), check="Ready", mk="Pending")
HANGS = WorkerFacts(
    problem="MultiKueueCluster p-a: the worker did not answer within 5 s", silent=True, age=1.0
)
REFUSES = WorkerFacts(problem="MultiKueueCluster p-a: connection refused", age=1.0)
ROOM = WorkerFacts(queues((GPU, "default", 8, 0)), age=1.0)
FULL = WorkerFacts(queues((GPU, "default", 8, 8)), age=1.0)
SINCE = Since(SinceKind.SILENT, "p-a")


def answer_to(
    there: WorkerFacts, beside: WorkerFacts, lasted: float = 0.0, *, dispatcher: bool = True
) -> Plan:
    """The plan for a job where a, the best cluster, is as `there`, and b as `beside`."""
    seen = decided_inputs("ab", JOB, policy=PlacementPolicy(dispatcher=dispatcher, step_size=2))
    facts = {"p-a": there, "p-b": beside}
    return plan(replace(seen, all_ages={SINCE: lasted}, fleet=replace(seen.fleet, queue_facts=facts)))


@pytest.mark.parametrize(
    ("there", "beside", "lasted", "names"),
    [
        pytest.param(HANGS, ROOM, 0.0, ("p-b",), id="another has room"),
        pytest.param(HANGS, FULL, 0.0, ("p-b",), id="rather where it queues"),
        pytest.param(HANGS, FULL, 59.0, ("p-b",), id="Kueue may not have noticed"),
        pytest.param(HANGS, FULL, 60.0, ("p-a",), id="Kueue has, or it is out of our reach alone"),
        pytest.param(REFUSES, FULL, 0.0, ("p-a",), id="Kueue notices a closed port itself"),
        pytest.param(HANGS, HANGS, 0.0, ("p-a", "p-b"), id="all are out of our reach: nothing is known"),
    ],
)
def test_where_a_new_job_goes(
    there: WorkerFacts, beside: WorkerFacts, lasted: float, names: tuple[str, ...]
) -> None:
    assert nominated(answer_to(there, beside, lasted)) == {"job": names}


@pytest.mark.parametrize(
    ("there", "lasted", "dispatcher", "says", "again"),
    [
        pytest.param(HANGS, 0.0, True, f"a: {SILENT}", 60.0, id="it hangs"),
        pytest.param(HANGS, 59.0, True, f"a: {SILENT}", 1.0, id="still"),
        pytest.param(HANGS, 60.0, True, "", None, id="no longer said"),
        pytest.param(REFUSES, 0.0, True, "", None, id="another problem"),
        pytest.param(HANGS, 0.0, False, "", None, id="without the dispatcher"),
    ],
)
def test_the_condition_says_so_for_a_minute(
    there: WorkerFacts, lasted: float, dispatcher: bool, says: str, again: float | None
) -> None:
    answer = answer_to(there, ROOM, lasted, dispatcher=dispatcher)
    assert problems(answer) == says
    assert (SINCE in answer.lasting) == (there is HANGS and dispatcher)
    if again is not None:
        assert answer.requeue_after is not None
        assert answer.requeue_after <= again
