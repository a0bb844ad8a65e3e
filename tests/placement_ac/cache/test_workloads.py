"""How much is kept of the jobs of tenants who write as much into them as they may."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from placement_ac.cache import workloads
from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import Key, PlacementPolicy
from tests.support.builders import NOW, world
from tests.support.decided import decided
from tests.support.jobs_to_dispatch import raw_job

POLICY = PlacementPolicy(dispatcher=True, avoid_after_failure=600.0)


def large_job(number: int, namespace: str, tolerations: int, podsets: int = 1, **rest: Any) -> Any:
    """A Workload with so many long tolerations in each podSet, unlike those of other Workloads."""
    pods = [
        {
            "spec": {
                "tolerations": [
                    {part: f"{number}-{n}{part}".ljust(317, "x") for part in ("key", "value", "effect")}
                    for n in range(tolerations)
                ]
            }
        }
        for _ in range(podsets)
    ]
    raw = raw_job(f"{namespace}-{number:04}", pods=tuple(pods), **rest)
    raw["metadata"]["namespace"] = namespace
    return raw


def new_cache() -> Cache:
    return world(decided("abc"), policy=POLICY)


def kept(cache: Cache) -> Mapping[str, Workload]:
    return {one.meta.name: one for one in cache.snapshot(Key("placement", "p"), NOW, {}).workloads}


def wishes(cache: Cache) -> Counter[tuple[str, str]]:
    """Namespace and what is reported of a job → the number of jobs."""
    return Counter((one.meta.namespace, one.job.problem) for one in kept(cache).values())


def test_300_jobs_of_700_kb() -> None:
    """They took 242 MB, and again after every restart."""
    cache = new_cache()
    for number in range(300):
        cache.put(WORKLOAD, large_job(number, "default", 240, podsets=3))
    assert sum(len(repr(one)) for one in kept(cache).values()) < 1_000_000
    [[_, problem]] = wishes(cache)
    assert problem == (
        "shorten its labels, annotations, node requirements and tolerations: at most 32,768 bytes are kept,"
        " they take 807,840"
    )


SURPLUS = (
    "shorten the labels, annotations, node requirements and tolerations of its jobs, or have fewer of them at"
    " once: the jobs of namespace {} have the most of what is kept of all jobs together"
)


@pytest.fixture
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "BUDGET_BYTES", 400_000)


@pytest.mark.usefixtures("_small_budget")
def test_the_namespace_with_the_most_gives_up_what_is_over_the_budget() -> None:
    """Each job takes about 20 KB that count, so that all namespaces together may have 20 of them."""
    cache = new_cache()
    for number in range(30):
        cache.put(WORKLOAD, large_job(number, "greedy", 20))
    assert wishes(cache) == {("greedy", ""): 19, ("greedy", SURPLUS.format("greedy")): 11}
    for number in range(5):
        for namespace in ("modest", "other"):
            cache.put(WORKLOAD, large_job(number, namespace, 20))
    assert wishes(cache) == {
        ("greedy", ""): 9,
        ("greedy", SURPLUS.format("greedy")): 21,
        ("modest", ""): 5,
        ("other", ""): 5,
    }


@pytest.mark.usefixtures("_small_budget")
@pytest.mark.parametrize("ends", ["finished", "deleted"])
def test_jobs_that_have_ended_make_room_for_others(ends: str) -> None:
    """The list that comes every ten minutes brings back what had been given up."""
    cache = new_cache()
    jobs = [large_job(number, "greedy", 20) for number in range(30)]
    for one in jobs:
        cache.put(WORKLOAD, one)
    over = SURPLUS.format("greedy")
    assert wishes(cache)["greedy", over] == 11
    ended = [
        number for number, one in enumerate(jobs) if not kept(cache)[one["metadata"]["name"]].job.problem
    ]
    for number in ended[:12]:
        if ends == "finished":
            cache.put(WORKLOAD, large_job(number, "greedy", 20, finished=True, version=2))
        else:
            cache.remove(WORKLOAD, jobs[number])
    left = [one for number, one in enumerate(jobs) if number not in ended[:12]]
    cache.replace(WORKLOAD, left, "9")
    assert wishes(cache) == {("greedy", ""): 18}


@pytest.mark.usefixtures("_small_budget")
def test_what_jobs_have_alike_counts_once() -> None:
    cache = new_cache()
    for number in range(100):
        raw = large_job(0, "default", 20)
        raw["metadata"] |= {"name": f"job-{number}", "uid": f"uid-{number}"}
        cache.put(WORKLOAD, raw)
    assert wishes(cache) == {("default", ""): 100}


@pytest.mark.usefixtures("_small_budget")
def test_a_copy_of_the_cache_has_the_same_budget() -> None:
    cache = new_cache()
    for number in range(19):
        cache.put(WORKLOAD, large_job(number, "greedy", 20))
    other = cache.copy()
    other.put(WORKLOAD, large_job(19, "greedy", 20))
    assert wishes(cache) == {("greedy", ""): 19}
    assert wishes(other) == {("greedy", ""): 19, ("greedy", SURPLUS.format("greedy")): 1}


@pytest.mark.usefixtures("_small_budget")
def test_a_start_has_the_same_budget() -> None:
    cache = new_cache()
    cache.load(WORKLOAD, [large_job(number, "greedy", 20) for number in range(30)], "9")
    assert wishes(cache) == {("greedy", ""): 19, ("greedy", SURPLUS.format("greedy")): 11}
