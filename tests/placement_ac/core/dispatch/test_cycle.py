"""The cycle: filters narrow, scores put in order, ties are broken by the Placement's order."""

from collections.abc import Sequence
from typing import Any

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import DispatchCycle, FilterRefusal
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.profiles import parse_profile
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.inputs.job_facts import JobFacts
from tests.support.jobs_to_dispatch import DOMAIN, GPU, cluster, gpu_pods, job, queues

RANKED, SPREAD = parse_profile("ranked"), parse_profile("spread")
HEADROOM = parse_profile("headroom")
SELECTOR, ANTI = f"{DOMAIN}/cluster-selector", f"{DOMAIN}/anti-affinity"
PREFERRED = f"{DOMAIN}/preferred-clusters"


def fleet(**labels: str) -> list[Cluster]:
    return [cluster(name, at, 3, labels={"gpu": labels.get(name, "t4")}) for at, name in enumerate("abc")]


def problem(cycle: DispatchCycle, workload: Workload) -> str:
    return cycle.problem_of(cycle.refusals(workload))


def test_without_wishes_it_is_the_placements_order() -> None:
    cycle = DispatchCycle(fleet())
    ranking = cycle.rank(job(), RANKED)
    assert (ranking.order, ranking.refusals, problem(cycle, job())) == (("p-a", "p-b", "p-c"), {}, "")


def test_filters_narrow_and_scores_put_in_order() -> None:
    one = job(annotations={SELECTOR: "gpu in (t4, l4)", PREFERRED: "10:gpu=l4"})
    cycle = DispatchCycle(fleet(a="h100", c="l4"))
    ranking = cycle.rank(one, RANKED)
    assert ranking.order == ("p-c", "p-b")
    assert ranking.refusals == {"p-a": FilterRefusal("ClusterAffinity", "didn't match gpu in (t4, l4)")}
    assert problem(cycle, one) == "", "the others fit"


def test_why_none_fits_the_most_common_reason_first() -> None:
    one = job(annotations={SELECTOR: "gpu=h100", "kueue.x-k8s.io/multikueue-cluster-names": "b,c"})
    assert problem(DispatchCycle(fleet()), one) == (
        "0/3 clusters fit: 2 didn't match gpu=h100 (ClusterAffinity), "
        "1 didn't match kueue.x-k8s.io/multikueue-cluster-names (ClusterNames)"
    )


def test_each_job_knows_where_those_before_it_were_nominated() -> None:
    cycle, places = DispatchCycle(fleet()), []
    for n in range(6):
        one = job(f"j{n}")
        best = cycle.rank(one, SPREAD).order[0]
        cycle.nominated(one, [best, "not listed"])
        places.append(best)
    assert places == ["p-a", "p-b", "p-c", "p-a", "p-b", "p-c"]


def test_anti_affinity_within_one_cycle() -> None:
    cycle, apart = DispatchCycle(fleet()), {"labels": {"app": "x"}, "annotations": {ANTI: "app=x"}}
    for n, left in enumerate([("p-a", "p-b", "p-c"), ("p-b", "p-c"), ("p-c",), ()]):
        one = job(f"j{n}", **apart)
        ranking = cycle.rank(one, RANKED)
        assert ranking.order == left
        cycle.nominated(one, left[:1])
    assert problem(cycle, job("last", **apart)) == (
        "0/3 clusters fit: 3 had a Workload with app=x (AntiAffinity)"
    )


def test_the_points_of_a_cluster() -> None:
    every = parse_profile(",".join(f"{name}=1" for name in SCORES))
    points = DispatchCycle(fleet()).points(job(), every, "p-b")
    assert {name: value and round(value) for name, value in points.items()} == {
        "Placement": 67,
        "Spread": 100,
        "Pack": 0,
        "Preferred": None,
        "Sticky": None,
        "Waiting": 100,
        "Headroom": None,
        "Data": None,
        "Cost": None,
    }


def gpu_fleet(*numbers: int) -> list[Cluster]:
    names = enumerate("abc"[: len(numbers)])
    return [
        cluster(name, at, len(numbers), queue_facts=queues((GPU, "all", numbers[at]))) for at, name in names
    ]


def test_too_little_quota_is_counted_by_the_most_that_there_is() -> None:
    cycle = DispatchCycle(gpu_fleet(2, 8, 8))
    assert problem(cycle, job(pods=gpu_pods(16))) == (
        f"0/3 clusters fit: 2 had too little quota: 16 {GPU} asked, 8 at most (Capacity), "
        f"1 had too little quota: 16 {GPU} asked, 2 at most (Capacity)"
    )


@pytest.mark.parametrize(
    ("sizes", "places"),
    [
        pytest.param([1] * 6, ["p-b", "p-b", "p-b", "p-a", "p-b", "p-a"], id="where most is left"),
        pytest.param([5, 4, 2], ["p-b", "p-a", "p-b"], id="mixed sizes"),
        pytest.param([16], [], id="too large"),
    ],
)
def test_headroom_counts_the_jobs_of_this_cycle(sizes: Sequence[int], places: list[str]) -> None:
    cycle, found = DispatchCycle(gpu_fleet(4, 7)), []
    for n, size in enumerate(sizes):
        one = job(f"j{n}", pods=gpu_pods(size))
        best = cycle.rank(one, HEADROOM).order[:1]
        cycle.nominated(one, best)
        found += best
    assert found == places


def test_of_equal_jobs_the_one_whose_name_is_taken_goes_elsewhere() -> None:
    taken = JobFacts(taken={"Job.v1.batch": frozenset({("default", "train")})})
    cycle = DispatchCycle([cluster("a", jobs=taken), cluster("b", 1, 2)])
    jobs = [job(f"w-{name}", owner=("batch/v1", "Job", name)) for name in ("other", "train", "other")]
    assert [cycle.rank(one, RANKED).order for one in jobs] == [("p-a", "p-b"), ("p-b",), ("p-a", "p-b")]


def test_facts_matter_where_no_other_filter_refuses() -> None:
    cycle = DispatchCycle([*gpu_fleet(2, 8), cluster("d", labels={"gpu": "t4"})])
    one = job(pods=gpu_pods(16), annotations={SELECTOR: "gpu!=t4"})
    assert cycle.asks_about(one) == {"p-a", "p-b"}
    assert cycle.asks_about(job()) == set(), "without requests there is nothing to ask"


@pytest.mark.parametrize("profile", ["ranked", "headroom"])
@pytest.mark.parametrize(
    ("first", "why"),
    [
        pytest.param(
            queues((GPU, "all", 8), active=False),
            "ClusterQueue cluster-queue or its LocalQueue is on hold, or not ready",
            id="on hold",
        ),
        pytest.param(
            queues(("cpu", "all", 8)), f"ClusterQueue cluster-queue has no quota of {GPU}", id="not named"
        ),
        pytest.param(queues((GPU, "all", 8)), "", id="Pods that are not named do not count"),
    ],
)
def test_where_it_is_doubtful_that_the_job_gets_quota_it_goes_last(
    first: Any, why: str, profile: str
) -> None:
    """It fits nevertheless: a queue on hold may go on, and Kueue may ignore what is not named."""
    a = cluster("a", 0, 2, queue_facts=first)
    b = cluster("b", 1, 2, queue_facts=queues((GPU, "all", 8, 8)))
    cycle, one = DispatchCycle([a, b]), job(pods=gpu_pods(1))
    ranking = cycle.rank(one, parse_profile(profile))
    assert ranking.order == (("p-b", "p-a") if why else ("p-a", "p-b"))
    assert (cycle.doubt(one, "p-a"), cycle.doubt(one, "p-b")) == (why, "")
    assert ranking.refusals == {}
