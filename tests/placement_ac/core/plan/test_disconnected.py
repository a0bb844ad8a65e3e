"""A listed cluster that Kueue has lost: the condition, the events, and when it is back."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind, Snapshot
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from tests.support import builders
from tests.support.builders import NOW, condition, running, the
from tests.support.decided import decided, problems

POLICY = PlacementPolicy(loss_grace=0.0)


def inputs(
    lost: dict[str, float], *jobs: Any, selected: str = "abc", known: str = "", back: float = 0.0
) -> Snapshot:
    """All of a, b, c are listed; `lost`: cluster → for how many seconds Kueue has not been connected."""
    hub = decided(selected, "abc")
    for name in "abc":
        since = NOW - timedelta(seconds=lost.get(name, back))
        reason = "ClientConnectionFailed" if name in lost else "Active"
        active = condition(str(name not in lost), reason, lastTransitionTime=f"{since:%Y-%m-%dT%H:%M:%SZ}")
        the(hub, "MultiKueueCluster", f"p-{name}")["status"] = {"conditions": [active]}
    lasting = {Since(SinceKind.DISCONNECTED, f"p-{name}"): 60.0 for name in known}
    return builders.inputs(hub, *jobs, policy=POLICY, ages=lasting)


def problems_and_events(answer: Plan) -> tuple[str, list[tuple[str, str]]]:
    return problems(answer), [(event.reason, event.message) for event in answer.events]


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
def test_lost_and_reconnected_clusters_are_reported(
    lost: dict[str, float], how: Any, message: str, events: Any
) -> None:
    assert problems_and_events(plan(inputs(lost, **how))) == (message, events)


def test_a_loss_is_looked_at_again_when_it_is_due() -> None:
    answer = plan(inputs({"b": 4.0, "c": 60.0}))
    assert answer.requeue_after == 6.0
    assert answer.lasting >= {Since(SinceKind.DISCONNECTED, "p-c")}


def test_the_condition_names_a_cluster_that_drains_once() -> None:
    message, events = problems_and_events(plan(inputs({"c": 60.0}, running("job", "p-c"), selected="ab")))
    assert message == "draining: c (Workloads run there)"
    assert [reason for reason, _ in events] == ["ClusterDisconnected"]


def test_the_metric_has_each_listed_cluster() -> None:
    seen = inputs({"b": 60.0})
    assert placement_stats(seen, plan(seen)).connected == {"a": True, "b": False, "c": True}
