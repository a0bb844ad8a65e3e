"""A filter or score that fails costs its own answer; odd answers of workers reach none of them."""

import itertools
import math
from typing import Any

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import DispatchCycle, FilterRefusal
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters import FILTERS, QUARANTINE, Filter
from placement_ac.core.dispatch.guard import GuardedScore
from placement_ac.core.dispatch.profiles import parse_profile
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.inputs.queue_facts import worker_facts
from tests.support.jobs_to_dispatch import DOMAIN, GPU, QUEUE, cluster, gpu_pods, job

ODD = (
    *(None, 0, 1, -1, -2, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400), 1.5, -0.5),
    *(math.nan, math.inf, -math.inf, True, "", "-1", "-8", "1e99", "8", "x", []),
)


def fails(job: Workload, cluster: Cluster) -> Any:
    raise ZeroDivisionError("a token may be here")


@pytest.mark.parametrize("name", list(FILTERS))
def test_a_filter_that_fails_refuses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS, name, Filter(fails))
    problems: list[tuple[str, str]] = []
    # A quarantine refuses only while another cluster fits.
    clusters = [cluster(quarantine="it fails"), cluster("b")] if name == QUARANTINE else [cluster()]
    cycle = DispatchCycle(clusters, report=lambda *problem: problems.append(problem))
    ranking = cycle.rank(job(), parse_profile("ranked"))
    assert ranking.refusals == {"p-a": FilterRefusal(name, "could not be judged: ZeroDivisionError")}
    [(rule, problem)] = problems
    assert (rule, problem.startswith("ZeroDivisionError "), "token" in problem) == (name, True, False)


@pytest.mark.parametrize("name", list(SCORES))
def test_a_score_that_fails_abstains(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, name, fails)  # type: ignore[attr-defined]
    problems: list[str] = []
    cycle = DispatchCycle([cluster()], report=lambda rule, _: problems.append(rule))
    others = "Pack=1" if name == "Placement" else "Placement=1"
    asks = dict.fromkeys((f"{DOMAIN}/{key}" for key in ("preferred-clusters", "group", "data")), "x")
    ranking = cycle.rank(job(annotations=asks), parse_profile(f"{others},{name}=100"))
    assert ranking.totals == {"p-a": 0.0 if name == "Placement" else 100.0}
    assert problems == [name]


@pytest.mark.parametrize(
    ("points", "counted", "problems"),
    [
        (None, None, []),
        (0.0, 0.0, []),
        (100.0, 100.0, []),
        (101.0, None, ["it returned 101, not 0 to 100"]),
        (-1.0, None, ["it returned -1, not 0 to 100"]),
        (math.nan, None, ["it returned nan, not 0 to 100"]),
    ],
)
def test_points_of_less_than_0_or_more_than_100_do_not_count(
    points: float | None, counted: float | None, problems: list[str]
) -> None:
    reported: list[str] = []
    assert GuardedScore(lambda job, cluster: points, reported.append).rate(job(), cluster()) == counted
    assert reported == problems


def test_odd_answers_of_workers_never_fail_a_filter_or_score() -> None:
    """Each of 13,824: the worker abstains, or its answer is sound."""
    profile = parse_profile(",".join(f"{name}=1" for name in SCORES))
    one, failed, known = job(pods=gpu_pods(4)), list[str](), 0
    local = {"metadata": dict(zip(("namespace", "name"), QUEUE, strict=True)), "spec": {"clusterQueue": "cq"}}
    for pending, nominal, limit in itertools.product(ODD, repeat=3):
        amounts = {"name": GPU, "nominalQuota": nominal, "borrowingLimit": limit}
        reserved = [{"name": "f", "resources": [{"name": GPU, "total": limit}]}]
        flavors = [{"name": "f", "resources": [amounts]}]
        there = {
            "metadata": {"name": "cq"},
            "spec": {"cohortName": "all", "resourceGroups": [{"flavors": flavors}]},
            "status": {"pendingWorkloads": pending, "flavorsReservation": reserved},
        }
        facts = worker_facts([local], [there])
        known += facts.known is not None
        clusters = [cluster(queue_facts=facts.known)]
        DispatchCycle(clusters, report=lambda *problem: failed.append(str(problem))).rank(one, profile)
    assert failed == []
    assert known == 2 * 10 * 10, "2 of the 24 are numbers of Workloads, and 10 are quantities"
