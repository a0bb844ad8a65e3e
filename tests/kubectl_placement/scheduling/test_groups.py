"""Decision groups, the decisions that hold them, the status, and the proposed scores."""

from datetime import timedelta
from typing import Any

import pytest

from kubectl_placement.scheduling import Fleet, SchedulingResult, schedule
from tests.kubectl_placement.scheduling.builders import (
    NOW,
    binding,
    cluster,
    cluster_set,
    decision,
    placement,
)

OCM = "cluster.open-cluster-management.io"


def strategy(length: Any = None, *groups: tuple[str, str]) -> dict[str, Any]:
    decision_groups = [
        {"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"tier": tier}}}}
        for name, tier in groups
    ]
    return {
        "decisionStrategy": {
            "groupStrategy": {"clustersPerDecisionGroup": length, "decisionGroups": decision_groups}
        }
    }


def run(spec: dict[str, Any], *clusters: dict[str, Any], status: Any = None, **more: Any) -> SchedulingResult:
    wanted = {**placement(**spec), "status": status or {}}
    return schedule(wanted, Fleet.of([cluster_set(), binding(), *clusters]), NOW, **more)


def names(outcome: SchedulingResult) -> list[list[str]]:
    return [[one["clusterName"] for one in held["status"]["decisions"]] for held in outcome.decisions]


FIVE = [cluster(name, {"tier": "gold" if name in "bd" else "tin"}) for name in "ebdca"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [["a", "b", "c", "d", "e"]], id="one group by name"),
        pytest.param(strategy(2), [["a", "b"], ["c", "d"], ["e"]], id="number"),
        pytest.param(strategy("40%"), [["a", "b"], ["c", "d"], ["e"]], id="percentage"),
        pytest.param(strategy("41%"), [["a", "b", "c"], ["d", "e"]], id="percentage is rounded up"),
        pytest.param(strategy("100%"), [["a", "b", "c", "d", "e"]], id="all"),
        pytest.param(strategy(0), [["a", "b", "c", "d", "e"]], id="zero"),
        pytest.param(strategy(9), [["a", "b", "c", "d", "e"]], id="more than there are"),
        pytest.param(strategy(2.5), [["a", "b", "c", "d", "e"]], id="of a wrong type"),
        pytest.param(strategy(None, ("x", "gold")), [["b", "d"], ["a", "c", "e"]], id="by selector"),
        pytest.param(
            strategy(1, ("x", "gold"), ("y", "none")), [["b"], ["d"], ["a"], ["c"], ["e"]], id="both"
        ),
        pytest.param(
            strategy(None, ("x", "gold"), ("y", "gold")), [["b", "d"], ["a", "c", "e"]], id="taken once"
        ),
    ],
)
def test_groups(spec: dict[str, Any], expected: list[list[str]]) -> None:
    assert names(run(spec, *FIVE)) == expected


@pytest.mark.parametrize("length", ["2", "many%", "nan%", "inf%"])
def test_a_length_that_is_no_percentage_is_misconfigured_and_leaves_no_decision(length: str) -> None:
    outcome = run(strategy(length), *FIVE)
    conditions = {
        condition["type"]: (condition["status"], condition["message"])
        for condition in outcome.status["conditions"]
    }
    message = f":{length} invalid type: string is not a percentage"
    assert conditions["PlacementMisconfigured"] == ("True", message)
    assert (outcome.decisions, outcome.status["decisionGroups"]) == ((), [])
    assert outcome.clusters["a"].group is None


def test_the_groups_before_a_malformed_one_stand() -> None:
    spec = strategy(None, ("x", "gold"), ("y", "tin"))
    groups = spec["decisionStrategy"]["groupStrategy"]["decisionGroups"]
    groups[1]["groupClusterSelector"] = {
        "claimSelector": {"matchExpressions": [{"key": "k", "operator": "Z"}]}
    }
    outcome = run(spec, *FIVE)
    assert names(outcome) == [["b", "d"]]
    assert outcome.status["conditions"][0]["reason"] == "Misconfigured"


def test_at_most_a_hundred_to_a_decision() -> None:
    outcome = run(strategy(150), *(cluster(f"c{number:03}") for number in range(250)))
    sizes = [(one["metadata"]["name"], len(one["status"]["decisions"])) for one in outcome.decisions]
    assert sizes == [("p-decision-1", 100), ("p-decision-2", 50), ("p-decision-3", 100)]
    assert outcome.status["decisionGroups"] == [
        {
            "decisionGroupIndex": 0,
            "decisionGroupName": "",
            "decisions": ["p-decision-1", "p-decision-2"],
            "clusterCount": 150,
        },
        {
            "decisionGroupIndex": 1,
            "decisionGroupName": "",
            "decisions": ["p-decision-3"],
            "clusterCount": 100,
        },
    ]


def test_conditions_keep_their_time_until_their_status_changes() -> None:
    kept = "2026-01-01T00:00:00Z"
    status = {
        "lastScoreUpdateTime": kept,
        "conditions": [
            {"type": "Other", "status": "True"},
            {"type": "PlacementSatisfied", "status": "False", "reason": "Old", "lastTransitionTime": kept},
            {
                "type": "PlacementMisconfigured",
                "status": "False",
                "reason": "Old",
                "lastTransitionTime": kept,
            },
        ],
    }
    written = run({}, *FIVE, status=status).status
    assert written["lastScoreUpdateTime"] == kept
    assert [
        (condition["type"], condition.get("reason"), condition.get("lastTransitionTime"))
        for condition in written["conditions"]
    ] == [
        ("Other", None, None),
        ("PlacementSatisfied", "AllDecisionsScheduled", "2026-11-21T12:00:00Z"),
        ("PlacementMisconfigured", "Succeedconfigured", kept),
    ]


def scored(**values: int) -> list[dict[str, Any]]:
    return [
        {
            "kind": "AddOnPlacementScore",
            "metadata": {"name": "usage", "namespace": name},
            "status": {"scores": [{"name": "gpu", "value": value}]},
        }
        for name, value in values.items()
    ]


BY_SCORE = {
    "sortBy": "Score",
    "prioritizerPolicy": {
        "mode": "Exact",
        "configurations": [
            {
                "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}},
                "weight": 1,
            }
        ],
    },
}
THREE = [cluster(name) for name in "abc"]


@pytest.mark.parametrize(
    ("spec", "write_scores", "expected"),
    [
        pytest.param(BY_SCORE, False, [("a", None), ("b", None), ("c", None)], id="today: by name, no score"),
        pytest.param(BY_SCORE, True, [("b", 9), ("c", None), ("a", -3)], id="proposed: by score, no zero"),
        pytest.param(
            {**BY_SCORE, "sortBy": "ClusterName"},
            True,
            [("a", -3), ("b", 9), ("c", None)],
            id="proposed: by name, with score",
        ),
    ],
)
def test_scores_in_decisions(
    spec: dict[str, Any], write_scores: bool, expected: list[tuple[str, int | None]]
) -> None:
    outcome = run(spec, *THREE, *scored(a=-3, b=9), write_scores=write_scores)
    entries = outcome.decisions[0]["status"]["decisions"]
    assert [(entry["clusterName"], entry.get("score")) for entry in entries] == expected
    assert ("lastScoreUpdateTime" in outcome.status) == write_scores


def later(
    spec: dict[str, Any], seconds: int, *objects: dict[str, Any]
) -> tuple[SchedulingResult, SchedulingResult]:
    """Decide once, then again with other objects."""
    first = run(spec, *THREE, *scored(a=1, b=2), write_scores=True)
    wanted = {**placement(**spec), "status": first.status}
    fleet = Fleet.of([cluster_set(), binding(), *first.decisions, *objects])
    return first, schedule(wanted, fleet, NOW + timedelta(seconds=seconds), write_scores=True)


@pytest.mark.parametrize(
    ("limit", "seconds", "held"),
    [
        pytest.param("10s", 9, True, id="within"),
        pytest.param("10s", 10, False, id="after"),
        pytest.param("1h", 3599, True, id="hours"),
        pytest.param("", 59, True, id="a minute by default"),
        pytest.param("0s", 0, False, id="no limit"),
    ],
)
def test_scores_alone_are_written_at_a_limited_rate(limit: str, seconds: int, held: bool) -> None:
    first, second = later({**BY_SCORE, "scoreRateLimit": limit}, seconds, *THREE, *scored(a=5, b=2))
    assert names(second) == ([["b", "a", "c"]] if held else [["a", "b", "c"]])
    assert (second.decisions == first.decisions) is held
    assert (second.reschedule_at is not None) is held


def test_another_choice_is_written_at_once_and_takes_the_scores_along() -> None:
    _, second = later({**BY_SCORE, "scoreRateLimit": "1h"}, 5, *THREE[:2], *scored(a=5, b=2))
    assert names(second) == [["a", "b"]]
    assert second.status["lastScoreUpdateTime"] == "2026-11-21T12:00:05Z"


def test_without_a_change_nothing_is_held_and_no_time_is_noted() -> None:
    first, second = later({**BY_SCORE, "scoreRateLimit": "1h"}, 5, *THREE, *scored(a=1, b=2))
    assert (second.decisions, second.status, second.reschedule_at) == (first.decisions, first.status, None)


def test_decisions_of_others_are_not_ours() -> None:
    outcome = run({}, *THREE, decision("a", owner="q"), write_scores=True)
    assert names(outcome) == [["a", "b", "c"]]
