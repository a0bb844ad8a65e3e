"""The scores of each prioritizer, and the effect of the weights."""

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
    selected_by,
)

PAST, FUTURE = "2026-11-21T11:59:59Z", "2026-11-21T12:00:00.5Z"
A, B, C = (cluster(name) for name in "abc")


def built_in(name: str, weight: int | None = None) -> dict[str, Any]:
    config = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}}
    return config if weight is None else {**config, "weight": weight}


def addon(score: str, weight: int = 1) -> dict[str, Any]:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": score}}
    return {"scoreCoordinate": coordinate, "weight": weight}


def exact(*configs: dict[str, Any]) -> dict[str, Any]:
    return {"prioritizerPolicy": {"mode": "Exact", "configurations": list(configs)}}


def additive(*configs: dict[str, Any]) -> dict[str, Any]:
    return {"prioritizerPolicy": {"configurations": list(configs)}}


def usage(of: str, valid_until: str = "", **scores: int) -> dict[str, Any]:
    status: dict[str, Any] = {"scores": [{"name": name, "value": value} for name, value in scores.items()]}
    return {
        "kind": "AddOnPlacementScore",
        "metadata": {"name": "usage", "namespace": of},
        "status": {**status, "validUntil": valid_until} if valid_until else status,
    }


def sized(name: str, **amounts: Any) -> dict[str, Any]:
    return cluster(name, status={"allocatable": amounts, "capacity": amounts})


def run(spec: dict[str, Any], *objects: dict[str, Any]) -> SchedulingResult:
    return schedule(placement(**spec), Fleet.of([cluster_set(), binding(), *objects]), NOW)


def scores(spec: dict[str, Any], *objects: dict[str, Any]) -> dict[str, int | None]:
    return {name: verdict.score for name, verdict in run(spec, *objects).clusters.items()}


def elsewhere(*names: str, number: int) -> dict[str, Any]:
    return decision(*names, owner="other", number=number)


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        pytest.param([], {"a": 100, "b": 100, "c": 100}, id="nobody is used"),
        pytest.param(
            [elsewhere("a", "b", number=1), elsewhere("a", number=2), elsewhere("a", number=3)],
            {"a": -100, "b": 32, "c": 100},
            id="by share of the most used, cut before it is doubled",
        ),
        pytest.param(
            [elsewhere("x", number=1), elsewhere("x", number=2), elsewhere("a", number=3)],
            {"a": 0, "b": 100, "c": 100},
            id="the most used may be no candidate",
        ),
        pytest.param([decision("a")], {"a": 100, "b": 100, "c": 100}, id="own decisions do not count"),
        pytest.param(
            [decision("a", namespace="elsewhere")],
            {"a": -100, "b": 100, "c": 100},
            id="a namesake in another namespace does",
        ),
    ],
)
def test_balance(decisions: list[dict[str, Any]], expected: dict[str, int]) -> None:
    assert scores(exact(built_in("Balance", 1)), A, B, C, *decisions) == expected


def test_steady_prefers_the_decided() -> None:
    assert scores(exact(built_in("Steady", 1)), A, B, decision("b")) == {"a": 0, "b": 100}


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        pytest.param([A], {"a": 0}, id="nobody has a quantity"),
        pytest.param([A, sized("b", cpu="4")], {"a": 0, "b": 100}, id="one has a quantity"),
        pytest.param([sized("a", cpu=2), sized("b", cpu="2000m")], {"a": 100, "b": 100}, id="all the same"),
        pytest.param(
            [sized("a", cpu="1"), sized("b", cpu="3"), sized("c", cpu="8")],
            {"a": -100, "b": -42, "c": 100},
            id="spread, cut towards zero",
        ),
        pytest.param([sized("a", cpu="lots"), sized("b", cpu="1")], {"a": 0, "b": 100}, id="no quantity"),
        pytest.param(
            [cluster("a", status={"allocatable": {"cpu": "1"}}), sized("b", cpu="1")],
            {"a": 0, "b": 100},
            id="no capacity",
        ),
    ],
)
def test_allocatable(clusters: list[dict[str, Any]], expected: dict[str, int]) -> None:
    assert scores(exact(built_in("ResourceAllocatableCPU", 1)), *clusters) == expected


def test_memory_is_compared_by_amount() -> None:
    spec = exact(built_in("ResourceAllocatableMemory", 1))
    assert scores(spec, sized("a", memory="16Gi"), sized("b", memory="17179869184k")) == {"a": -100, "b": 100}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], {"a": 0, "b": 0}, id="no scores"),
        pytest.param([usage("a", gpu=70), usage("b", cpu=5)], {"a": 70, "b": 0}, id="by name"),
        pytest.param([usage("a", PAST, gpu=70)], {"a": 0, "b": 0}, id="expired"),
        pytest.param([usage("a", FUTURE, gpu=70)], {"a": 70, "b": 0}, id="still valid"),
        pytest.param([usage("a", "never", gpu=70)], {"a": 70, "b": 0}, id="no time"),
    ],
)
def test_addon_scores(objects: list[dict[str, Any]], expected: dict[str, int]) -> None:
    assert scores(exact(addon("gpu")), A, B, *objects) == expected


@pytest.mark.parametrize(
    ("objects", "warned"),
    [
        pytest.param([A], True, id="nobody writes it"),
        pytest.param([A, usage("a", cpu=5)], True, id="it has another name"),
        pytest.param([A, B, usage("b", gpu=5)], False, id="one cluster has it"),
        pytest.param([], False, id="there is no cluster"),
    ],
)
def test_a_score_that_no_cluster_has_is_a_warning(objects: list[dict[str, Any]], warned: bool) -> None:
    warning = "AddOn/usage/gpu: no cluster has this score, so it counts 0 for all"
    assert run(exact(addon("gpu")), *objects).warnings == ((warning,) if warned else ())


def test_an_expired_score_is_a_warning() -> None:
    outcome = run(exact(addon("gpu")), A, usage("a", PAST, gpu=7))
    assert outcome.warnings == ("AddOn/usage/gpu: the score of a has expired",)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"a": 200, "b": 100}, id="default: Balance and Steady"),
        pytest.param(additive(built_in("Balance", 3)), {"a": 400, "b": 300}, id="Additive replaces a weight"),
        pytest.param(additive(built_in("Steady", 0)), {"a": 100, "b": 100}, id="Additive switches one off"),
        pytest.param(additive(addon("gpu", 2)), {"a": 202, "b": 104}, id="Additive adds"),
        pytest.param(exact(), {"a": 0, "b": 0}, id="Exact knows no default"),
        pytest.param(exact(built_in("Steady")), {"a": 100, "b": 0}, id="weight 1 by default"),
        pytest.param(exact(addon("gpu", -10)), {"a": -10, "b": -20}, id="negative weight"),
        pytest.param(exact(addon("gpu", 0)), {"a": 0, "b": 0}, id="add-on of weight 0"),
        pytest.param(exact(addon("gpu"), addon("gpu", 2)), {"a": 3, "b": 6}, id="an add-on twice is added"),
        pytest.param(
            exact(built_in("Steady", 5), built_in("Steady", 2)), {"a": 200, "b": 0}, id="the last one counts"
        ),
    ],
)
def test_weights(spec: dict[str, Any], expected: dict[str, int]) -> None:
    objects = [A, B, decision("a"), usage("a", gpu=1), usage("b", gpu=2)]
    assert scores(spec, *objects) == expected


def test_the_best_are_selected_and_ties_go_by_name() -> None:
    spec = exact(addon("gpu")) | {"numberOfClusters": 2}
    outcome = run(spec, C, B, A, usage("c", gpu=5))
    assert (outcome.ranked, selected_by(outcome)) == (("c", "a", "b"), ("c", "a"))
    assert outcome.prioritizers[0].scores == {"a": 0, "b": 0, "c": 5}
