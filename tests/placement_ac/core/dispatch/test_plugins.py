"""Plugins of third parties: they narrow and put in order as ours do, and stop nobody when they fail."""

import sys
from typing import Any

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import DispatchCycle, FilterRefusal
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.plugins import Plugin
from placement_ac.core.dispatch.profiles import parse_profile
from tests.support.jobs_to_dispatch import cluster, job


def fails(job: Workload, cluster: Cluster) -> Any:
    raise LookupError("a token may be here")


def licensed(job: Workload, cluster: Cluster) -> str | None:
    return None if "license" in cluster.labels else "had no license"


def cheap(job: Workload, cluster: Cluster) -> float | None:
    price = cluster.labels.get("price")
    return None if price is None else 100.0 - float(price)


def one_each(job: Workload, cluster: Cluster) -> str | None:
    return f"had {cluster.waiting[0].meta.name}" if cluster.waiting else None


def leaves(job: Workload, cluster: Cluster) -> Any:
    sys.exit(1)


FUNCTIONS = {"Licensed": licensed, "Cheap": cheap, "Fails": fails, "OneEach": one_each, "Leaves": leaves}
PLUGINS = {name: Plugin(function) for name, function in FUNCTIONS.items()}
LABELS = ({"price": "80"}, {"price": "60", "license": ""}, {"price": "10", "license": ""})


def fleet() -> list[Cluster]:
    return [cluster("abc"[at], at, 3, labels=labels) for at, labels in enumerate(LABELS)]


def test_they_narrow_and_put_in_order() -> None:
    cycle, profile = DispatchCycle(fleet(), PLUGINS), parse_profile("Placement=1,Licensed,Cheap=5", PLUGINS)
    ranking = cycle.rank(job(), profile)
    assert ranking.order == ("p-c", "p-b")
    assert ranking.refusals == {"p-a": FilterRefusal("Licensed", "had no license")}
    assert cycle.points(job(), profile, "p-c") == {"Placement": pytest.approx(100 / 3), "Cheap": 90.0}


def test_a_profile_that_does_not_name_them_is_as_before() -> None:
    cycle, ranked = DispatchCycle(fleet(), PLUGINS), parse_profile("ranked", PLUGINS)
    assert cycle.rank(job(), parse_profile("ranked,Licensed", PLUGINS)).order == ("p-b", "p-c")
    assert cycle.rank(job(), ranked).order == ("p-a", "p-b", "p-c")


def test_a_filter_that_fails_refuses_and_a_score_that_fails_abstains() -> None:
    cycle = DispatchCycle(fleet(), PLUGINS)
    refusals = cycle.refusals(job(), parse_profile("ranked,Fails", PLUGINS))
    assert cycle.problem_of(refusals) == "0/3 clusters fit: 3 could not be judged: LookupError (Fails)"
    assert cycle.rank(job(), parse_profile("Placement=1,Fails=100", PLUGINS)).totals["p-a"] == 100.0


def test_a_filter_judges_equal_jobs_one_by_one() -> None:
    cycle, profile = DispatchCycle(fleet(), PLUGINS), parse_profile("ranked,OneEach", PLUGINS)
    places = []
    for name in ("one", "two", "three"):
        order = cycle.rank(job(name), profile).order
        cycle.nominated(job(name), order[:1])
        places.append(order)
    assert places == [("p-a", "p-b", "p-c"), ("p-b", "p-c"), ("p-c",)]
    last = cycle.refusals(job("four"), profile)
    assert [one.reason for one in last.values()] == ["had one", "had two", "had three"]


def test_one_that_wants_to_end_the_process_fails_as_others_do() -> None:
    refusals = DispatchCycle(fleet(), PLUGINS).refusals(job(), parse_profile("ranked,Leaves", PLUGINS))
    assert {refusal.reason for refusal in refusals.values()} == {"could not be judged: SystemExit"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, None),
        ("was too dear", "was too dear"),
        ("", "could not be judged: it returned str, no reason"),
        (False, "could not be judged: it returned bool, no reason"),
        (5, "could not be judged: it returned int, no reason"),
    ],
)
def test_the_answer_of_a_filter(answer: Any, reason: str | None) -> None:
    assert Plugin(lambda job, cluster: answer).refuse(job(), cluster()) == reason


@pytest.mark.parametrize(
    ("answer", "points", "problem"),
    [
        (None, None, []),
        (0, 0.0, []),
        (100, 100.0, []),
        (101, None, ["it returned int, no number of 0 to 100"]),
        (-1, None, ["it returned int, no number of 0 to 100"]),
        (float("nan"), None, ["it returned float, no number of 0 to 100"]),
        ("50", None, ["it returned str, no number of 0 to 100"]),
        (True, None, ["it returned bool, no number of 0 to 100"]),
    ],
)
def test_the_answer_of_a_score(answer: Any, points: float | None, problem: list[str]) -> None:
    reported: list[str] = []
    assert Plugin(lambda job, cluster: answer, reported.append).rate(job(), cluster()) == points
    assert reported == problem
