"""A listed cluster that Kueue has lost: the condition, the events, and when it is back."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from tests.support.builders import (
    NOW,
    check,
    decision,
    managed_clusters,
    multikueue_check,
    our_objects,
    placement,
    running,
    secrets,
    snapshot,
    world,
)

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
POLICY = PlacementPolicy(loss_grace=0.0)


def at(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def scene(
    lost: dict[str, float], *jobs: Any, selected: str = "abc", known: str = "", back: float = 0.0
) -> Any:
    """All of a, b, c are listed; `lost`: cluster → for how many seconds Kueue has not been connected."""
    fleet = our_objects(*"abc", owners=["check", "mk"])
    for obj in fleet[1:]:
        name = obj["metadata"]["name"].removeprefix("p-")
        since = f"{at(lost.get(name, back)):%Y-%m-%dT%H:%M:%SZ}"
        state = ("False", "ClientConnectionFailed") if name in lost else ("True", "Active")
        condition = {"type": "Active", "lastTransitionTime": since} | dict(
            zip(("status", "reason"), state, strict=True)
        )
        obj["status"] = {"conditions": [condition]}
    fleet += managed_clusters(*"abc")
    hub = [check(), multikueue_check(), placement(), decision(*selected), *secrets(*"abc"), *fleet]
    lasting = {Since(SinceKind.DISCONNECTED, f"p-{name}"): 60.0 for name in known}
    return snapshot(world(hub, *jobs, policy=POLICY), ages=lasting)


def said(answer: Plan) -> tuple[str, list[tuple[str, str]]]:
    message = answer.verdicts["check"].message.removeprefix(GENERATED).removeprefix("; ")
    return message, [(event.reason, event.message) for event in answer.events]


ONE = ("ClusterDisconnected", "1 listed cluster is not connected to Kueue: b")


@pytest.mark.parametrize(
    ("lost", "how", "message", "events"),
    [
        pytest.param({}, {}, "", [], id="connected"),
        pytest.param({"b": 9.0}, {}, "", [], id="only just lost"),
        pytest.param(
            {"b": 10.0},
            {},
            "not connected: b (ClientConnectionFailed)",
            [(ONE[0], f"{ONE[1]} (ClientConnectionFailed, since 2026-08-01T11:59:50Z)")],
            id="lost",
        ),
        pytest.param(
            {"b": 600.0},
            {"known": "bc", "back": 30.0},
            "not connected: b (ClientConnectionFailed)",
            [
                (ONE[0], f"{ONE[1]} (ClientConnectionFailed, since 2026-08-01T11:50:00Z)"),
                (
                    "ClusterReconnected",
                    "1 cluster is connected to Kueue again: c (since 2026-08-01T11:59:30Z)",
                ),
            ],
            id="another one is back",
        ),
    ],
)
def test_what_is_reported(lost: dict[str, float], how: Any, message: str, events: Any) -> None:
    assert said(plan(scene(lost, **how))) == (message, events)


def test_a_loss_is_looked_at_again_when_it_is_due() -> None:
    answer = plan(scene({"b": 4.0, "c": 60.0}))
    assert answer.requeue_after == 6.0
    assert answer.lasting >= {Since(SinceKind.DISCONNECTED, "p-c")}


def test_the_condition_names_a_cluster_that_drains_once() -> None:
    message, events = said(plan(scene({"c": 60.0}, running("job", "p-c"), selected="ab")))
    assert message == "draining: c (Workloads run there)"
    assert [reason for reason, _ in events] == ["ClusterDisconnected"]


def test_the_metric_has_each_listed_cluster() -> None:
    seen = scene({"b": 60.0})
    assert placement_stats(seen, plan(seen)).connected == {"a": True, "b": False, "c": True}
