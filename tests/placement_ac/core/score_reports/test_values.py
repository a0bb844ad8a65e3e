"""The scores of one cluster, by the state of its worker and the jobs that it runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.objects import AdmissionCheckState
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts
from placement_ac.core.inputs.score_reports import WorkerReading
from placement_ac.core.score_reports.values import score_values
from tests.support.builders import NOW, workload
from tests.support.score_reports import GPU, inputs

Q = ("team", "q")
R = ("team", "r")


def queue(name: str = "cq", pending: int = 0, *, active: bool = True, **used: tuple[int, int]) -> QueueFacts:
    """A ClusterQueue with one flavor; `used`: resource → how much is reserved of how much."""
    names = {"gpu": GPU, "cpu": "cpu", "memory": "memory"}
    quotas = {names[key]: (FlavorQuota("f", of * 1000, part * 1000),) for key, (part, of) in used.items()}
    return QueueFacts(name, quotas, pending, active=active)


def scores(
    queues: dict[Any, QueueFacts], health: float | None = None, *, mine: Any = (Q, R), **rest: Any
) -> dict[str, int]:
    reading = WorkerReading(WorkerFacts(queues), health)
    return score_values(inputs(queues=frozenset(mine), **rest), reading)


def test_all_scores_of_an_empty_cluster() -> None:
    assert scores({Q: queue(gpu=(0, 8), cpu=(0, 64))}, health=1.0) == {
        "gpuFree": 100,
        "cpuFree": 100,
        "queueFree": 100,
        "waiting": 100,
        "placementSeconds": 100,
        "reliable": 100,
        "gpuHealthy": 100,
    }


def test_the_health_of_gpus_is_reported_only_where_it_is_known() -> None:
    assert "gpuHealthy" not in scores({Q: queue(gpu=(0, 8))})
    assert scores({Q: queue(gpu=(0, 8))}, health=0.75)["gpuHealthy"] == 75


@pytest.mark.parametrize(
    ("queues", "gpu_free", "queue_free"),
    [
        pytest.param({Q: queue(gpu=(2, 8), cpu=(48, 64))}, 75, 25, id="the scarcest resource"),
        pytest.param({Q: queue(gpu=(8, 8))}, 0, 0, id="full"),
        pytest.param({Q: queue(gpu=(12, 8))}, -50, -50, id="it has borrowed"),
        pytest.param({Q: queue(gpu=(80, 8))}, -100, -100, id="no less than OCM allows"),
        pytest.param({Q: queue(cpu=(0, 64))}, -100, 100, id="no GPUs"),
        pytest.param({}, -100, -100, id="no such queue"),
        pytest.param({Q: queue(gpu=(2, 8), active=False)}, 0, 0, id="on hold"),
        pytest.param({Q: QueueFacts("cq", active=False, exists=False)}, -100, -100, id="no ClusterQueue"),
        pytest.param({Q: queue(gpu=(4, 8)), R: queue(gpu=(4, 8))}, 50, 50, id="two LocalQueues of one"),
        pytest.param(
            {Q: queue(gpu=(4, 8)), R: queue(gpu=(4, 8), active=False)}, 50, 50, id="one of them on hold"
        ),
        pytest.param({Q: queue(gpu=(8, 8)), R: queue("other", gpu=(0, 24))}, 75, 75, id="two queues"),
        pytest.param({Q: queue(gpu=(4, 8)), ("team", "theirs"): queue("t", gpu=(0, 8))}, 50, 50, id="theirs"),
    ],
)
def test_what_is_free(queues: Any, gpu_free: int, queue_free: int) -> None:
    found = scores(queues)
    assert (found["gpuFree"], found["queueFree"]) == (gpu_free, queue_free)


@pytest.mark.parametrize(("pending", "score"), [(0, 100), (1, 91), (10, 50), (90, 10), (100_000, 0)])
def test_fewer_waiting_jobs_are_better(pending: int, score: int) -> None:
    assert scores({Q: queue(pending=pending, gpu=(0, 8))})["waiting"] == score


def placed(after: float, age: float = 0.0, *, recorded: bool = True) -> Any:
    """A Workload that got quota on the hub, and that many seconds later was placed."""
    when = NOW - timedelta(seconds=age)
    states = (
        AdmissionCheckState("check", "Ready", "", when - timedelta(seconds=after)),
        AdmissionCheckState("mk", "Ready" if recorded else "Pending", "", when),
    )
    there = decode.workload(workload(cluster="p-a"))
    return replace(there, check_states=states, quota_since=when - timedelta(seconds=after))


@pytest.mark.parametrize(
    ("workloads", "score"),
    [
        pytest.param((placed(0.0),), 100, id="at once"),
        pytest.param((placed(60.0),), 50, id="after a minute"),
        pytest.param((placed(-60.0),), 100, id="before it had quota, as clocks differ"),
        pytest.param((placed(30.0), placed(90.0)), 50, id="the mean"),
        pytest.param((placed(600.0, recorded=False),), 100, id="not placed yet"),
        pytest.param(
            (*[placed(60.0, age) for age in range(10)], placed(3600.0, 60.0)), 50, id="only the last ten"
        ),
    ],
)
def test_how_soon_jobs_were_placed(workloads: Any, score: int) -> None:
    assert scores({Q: queue(gpu=(0, 8))}, workloads=workloads)["placementSeconds"] == score


@pytest.mark.parametrize(("share", "score"), [(None, 100), (1.0, 100), (0.4, 40), (0.0, 0)])
def test_how_reliable_it_is(share: float | None, score: int) -> None:
    assert scores({Q: queue(gpu=(0, 8))}, reliability=share)["reliable"] == score
