"""Plugins of third parties: they narrow and put in order as ours do, and stop nobody when they fail."""

from typing import Any

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import DispatchCycle, Refusal
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.plugins import as_filter, as_score
from placement_ac.core.dispatch.profiles import parse_profile
from tests.support.jobs_to_dispatch import cluster, job


def fails(job: Workload, cluster: Cluster) -> Any:
    raise LookupError("a token may be here")


def licensed(job: Workload, cluster: Cluster) -> str | None:
    return None if "license" in cluster.labels else "had no license"


def cheap(job: Workload, cluster: Cluster) -> float | None:
    price = cluster.labels.get("price")
    return None if price is None else 100.0 - float(price)


PLUGINS = {"Licensed": licensed, "Cheap": cheap, "Fails": fails}
FLEET = (
    cluster("a", 0, 3, labels={"price": "80"}),
    cluster("b", 1, 3, labels={"price": "60", "license": ""}),
    cluster("c", 2, 3, labels={"price": "10", "license": ""}),
)


def test_they_narrow_and_put_in_order() -> None:
    cycle, profile = DispatchCycle(FLEET, PLUGINS), parse_profile("Placement=1,Licensed,Cheap=5", PLUGINS)
    ranking = cycle.rank(job(), profile)
    assert ranking.order == ("p-c", "p-b")
    assert ranking.refusals == {"p-a": Refusal("Licensed", "had no license")}
    assert cycle.points(job(), profile, "p-c") == {"Placement": pytest.approx(100 / 3), "Cheap": 90.0}


def test_a_profile_that_does_not_name_them_is_as_before() -> None:
    cycle, ranked = DispatchCycle(FLEET, PLUGINS), parse_profile("ranked", PLUGINS)
    assert cycle.rank(job(), parse_profile("ranked,Licensed", PLUGINS)).order == ("p-b", "p-c")
    assert cycle.rank(job(), ranked).order == ("p-a", "p-b", "p-c")


def test_a_filter_that_fails_refuses_and_a_score_that_fails_abstains() -> None:
    cycle = DispatchCycle(FLEET, PLUGINS)
    refusals = cycle.refusals(job(), parse_profile("ranked,Fails", PLUGINS))
    assert cycle.problem_of(refusals) == "0/3 clusters fit: 3 could not be judged: LookupError (Fails)"
    assert cycle.rank(job(), parse_profile("Placement=1,Fails=100", PLUGINS)).totals["p-a"] == 100.0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, None),
        ("was too dear", "was too dear"),
        ("", "could not be judged: the filter returned str, no reason"),
        (False, "could not be judged: the filter returned bool, no reason"),
        (5, "could not be judged: the filter returned int, no reason"),
    ],
)
def test_the_answer_of_a_filter(answer: Any, reason: str | None) -> None:
    assert as_filter(lambda job, cluster: answer)(job(), cluster()) == reason


@pytest.mark.parametrize(
    ("answer", "points"),
    [(None, None), (0, 0.0), (100, 100.0), (101, None), (-1, None), (float("nan"), None), ("50", None)],
)
def test_the_answer_of_a_score(answer: Any, points: float | None) -> None:
    assert as_score(lambda job, cluster: answer)(job(), cluster()) == points
