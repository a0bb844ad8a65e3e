"""Of several answers about one worker, the last one without a problem counts."""

from itertools import permutations

import pytest

from placement_ac.core.expected_start.worker_pools import newest, worker_pools
from placement_ac.core.inputs.queue_facts import WorkerFacts
from tests.support.builders import NOW
from tests.support.jobs_to_dispatch import GPU, queues


def says(gpus: int, age: float, problem: str = "") -> WorkerFacts:
    return WorkerFacts(queues((GPU, "gpu", gpus)), age=age, problem=problem)


OLD, LAST, BROKEN = says(4, 600), says(8, 5), says(2, 1, "it does not answer")
ORDERS = list(permutations([OLD, LAST, BROKEN]))


@pytest.mark.parametrize("order", ORDERS, ids=[f"order {number}" for number in range(len(ORDERS))])
def test_of_several_answers_the_last_one_without_a_problem_counts(order: tuple[WorkerFacts, ...]) -> None:
    found = None
    for one in order:
        found = newest(found, one)
    assert found == LAST
    names = dict(zip(("p1-a", "p2-a", "p3-a"), order, strict=True))
    pools = worker_pools(names, dict.fromkeys(names, "a"), (), {}, NOW)
    assert [spec.quotas[GPU] for spec in pools.specs.values()] == [(8000,)]
    assert {name for name, _ in pools.pool_of} == set(names)
