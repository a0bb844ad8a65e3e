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
    """All of a, b, c are listed; `lost`: cluster → for how many seconds Kueue has not been connected.

    `known`: those whose loss is reported; `back`: for how many seconds the others are connected.
    """
    hub = decided(selected, "abc")
    for name in "abc":
        since = NOW - timedelta(seconds=lost.get(name, back))
        reason = "ClientConnectionFailed" if name in lost else "Active"
        active = condition(str(name not in lost), reason, lastTransitionTime=f"{since:%Y-%m-%dT%H:%M:%SZ}")
        the(hub, "MultiKueueCluster", f"p-{name}")["status"] = {"conditions": [active]}
    lasting = {Since(SinceKind.DISCONNECTED, f"p-{name} ClientConnectionFailed"): 60.0 for name in known}
    return builders.inputs(hub, *jobs, policy=POLICY, ages=lasting)


def problems_and_events(answer: Plan) -> tuple[str, list[tuple[str, str]]]:
    return problems(answer), [(event.reason, event.message) for event in answer.events]


LOST = "connection lost: b (ClientConnectionFailed)"
EVENT = ("ClusterDisconnected", "1 listed cluster is not connected to Kueue: b (ClientConnectionFailed)")


@pytest.mark.parametrize(
    ("lost", "how", "message", "events"),
    [
        pytest.param({}, {}, "", [], id="connected"),
        pytest.param({"b": 9.0}, {}, "", [], id="only just lost"),
        pytest.param(
            {"b": 10.0},
            {},
            LOST,
            [EVENT],
            id="lost",
        ),
        pytest.param({}, {"known": "b", "back": 5.0}, LOST, [], id="only just back"),
        pytest.param({"b": 4.0}, {"known": "b"}, LOST, [EVENT], id="lost again"),
        pytest.param(
            {"b": 600.0},
            {"known": "bc", "back": 120.0},
            LOST,
            [EVENT, ("ClusterReconnected", "1 cluster is connected to Kueue again: c")],
            id="another one is back",
        ),
    ],
)
def test_lost_and_reconnected_clusters_are_reported(
    lost: dict[str, float], how: Any, message: str, events: Any
) -> None:
    assert problems_and_events(plan(inputs(lost, **how))) == (message, events)


@pytest.mark.parametrize(
    ("lost", "how", "seconds", "lasting"),
    [
        pytest.param({"b": 4.0, "c": 60.0}, {}, 6.0, "c", id="a loss"),
        pytest.param({}, {"known": "c", "back": 20.0}, 100.0, "c", id="its end"),
        pytest.param({}, {"known": "c", "back": 120.0}, None, "", id="over"),
    ],
)
def test_it_is_looked_at_again_when_a_loss_or_its_end_is_due(
    lost: dict[str, float], how: Any, seconds: float | None, lasting: str
) -> None:
    answer = plan(inputs(lost, **how))
    since = {Since(SinceKind.DISCONNECTED, f"p-{name} ClientConnectionFailed") for name in lasting}
    found = {one for one in answer.lasting if one.kind is SinceKind.DISCONNECTED}
    assert (answer.requeue_after, found) == (seconds, since)


def test_the_condition_names_a_cluster_that_drains_once() -> None:
    message, events = problems_and_events(plan(inputs({"c": 60.0}, running("job", "p-c"), selected="ab")))
    assert message == "draining: c (Workloads run there)"
    assert [reason for reason, _ in events] == ["ClusterDisconnected"]


def test_the_metric_has_each_listed_cluster() -> None:
    seen = inputs({"b": 60.0})
    assert placement_stats(seen, plan(seen)).connected == {"a": True, "b": False, "c": True}
