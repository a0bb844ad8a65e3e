"""When scores are written, and which: damping, validity, other owners."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.fields import format_time
from placement_ac.core.score_reports.history import ScoreHistory
from placement_ac.core.score_reports.planning import plan_scores
from tests.support.builders import NOW, scores
from tests.support.score_reports import OWNERS, VirtualScores, inputs, with_policy


def written(world: VirtualScores) -> list[tuple[float, str, Any]]:
    """Every write: seconds since the beginning, cluster, value."""
    return [((at - NOW).total_seconds(), name, values[world.score]) for at, name, values in world.writes]


@pytest.fixture
def world() -> VirtualScores:
    """Cluster a has 50, since five minutes; its last write is known."""
    world = VirtualScores()
    world.wait(300, lambda: world.read("a", gpuFree=50))
    del world.writes[:-1]
    return world


def test_the_object_of_a_cluster() -> None:
    world = VirtualScores()
    world.read("a", gpuFree=50, waiting=100)
    [metadata, status] = (world.objects["a"][part] for part in ("metadata", "status"))
    assert (metadata["name"], metadata["namespace"]) == ("placement-ac", "a")
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "placement-ac",
        "open-cluster-management.io/cluster-name": "a",
    }
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("AdmissionCheck", "check", "uid")
    entries = [{"name": "gpuFree", "value": 50}, {"name": "waiting", "value": 100}]
    assert status == {"scores": entries, "validUntil": format_time(NOW + timedelta(seconds=180))}


def test_a_value_that_stays_is_written_before_it_expires_and_not_more_often() -> None:
    world = VirtualScores()
    world.wait(3600, lambda: world.read("a", gpuFree=50))
    times = [at for at, _, _ in written(world)]
    assert {later - at for at, later in itertools.pairwise(times)} == {120.0}


@pytest.mark.parametrize(
    ("values", "after"),
    [
        pytest.param([60] * 40, 60, id="it differs by the step"),
        pytest.param([59] * 40, 50, id="by less"),
        pytest.param([60, 60, 60, 55] * 10, 50, id="not for long enough"),
        pytest.param([70, 30] * 20, 50, id="now more, now less"),
        pytest.param([40] * 40, 40, id="less by the step"),
        pytest.param([0] * 40, 0, id="much less"),
    ],
)
def test_a_new_value_is_written_if_it_differs_by_the_step_for_long_enough(
    world: VirtualScores, values: list[int], after: int
) -> None:
    rest = iter(values)
    world.wait(len(values) * 15, lambda: world.read("a", gpuFree=next(rest)))
    assert world.value("a") == after
    assert {value for _, _, value in written(world)} <= {50, after}


def test_a_new_value_counts_after_the_hold_and_at_most_one_write_in_an_interval(world: VirtualScores) -> None:
    world.wait(600, lambda: world.read("a", gpuFree=int((world.now - NOW).total_seconds()) % 90))
    times = [at for at, _, _ in written(world)]
    assert len(times) > 3
    assert all(later - at >= 60 for at, later in itertools.pairwise(times))
    late = VirtualScores()
    late.wait(600, lambda: late.read("a", gpuFree=50 if late.now < NOW + timedelta(seconds=300) else 90))
    first = next(at for at, _, value in written(late) if value == 90)
    assert 360 <= first <= 360 + 60


def test_a_restart_writes_neither_sooner_nor_another_value(world: VirtualScores) -> None:
    for _ in range(40):  # a controller that is restarted again and again
        world.restart()
        world.wait(15, lambda: world.read("a", gpuFree=55))
    times = [at for at, _, _ in written(world)]
    assert {value for _, _, value in written(world)} == {50}
    assert all(later - at >= 60 for at, later in itertools.pairwise(times))


def test_a_cluster_that_cannot_be_read_is_not_written_and_its_score_expires(world: VirtualScores) -> None:
    world.wait(240, lambda: world.fail("a"))
    assert (len(written(world)), world.value("a")) == (1, None)
    world.read("a", gpuFree=90)
    assert world.value("a") == 90


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        pytest.param({"owners": {}}, "no Placement", id="no Placement uses the score"),
        pytest.param({"credentials": None}, "no credentials", id="its worker cannot be read"),
    ],
)
def test_nothing_is_written_where_nobody_wants_a_score(missing: Any, why: str) -> None:
    history = ScoreHistory(60.0)
    history.add("a", 0.0, {"gpuFree": 50})
    assert plan_scores(inputs(**missing), history, list).phases == (), why


@pytest.mark.parametrize(
    "marks", [{}, {"labels": {"app.kubernetes.io/managed-by": "resource-usage-collector"}}]
)
def test_a_score_of_somebody_else_is_left_alone(marks: Any) -> None:
    history = ScoreHistory(60.0)
    history.add("a", 0.0, {"gpuFree": 50})
    theirs = scores("a", "placement-ac", gpuFree=10)
    theirs["metadata"] |= marks
    assert plan_scores(inputs(observed=theirs), history, list).phases == ()
    theirs["metadata"]["annotations"] = {"placement-ac.open-cluster-management.io/adopt": "true"}
    assert plan_scores(inputs(observed=theirs), history, list).phases != ()


def test_another_owner_is_written_and_the_values_stay(world: VirtualScores) -> None:
    history = ScoreHistory(60.0)
    history.add("a", 0.0, {"gpuFree": 90})
    [[apply]] = plan_scores(
        inputs(observed=world.objects["a"], owners=OWNERS | {"two": "b"}), history, list
    ).phases
    assert [owner["name"] for owner in apply.body["metadata"]["ownerReferences"]] == ["b", "check"]
    assert "status" not in apply.body


@pytest.mark.parametrize(
    ("hold", "interval", "seconds"),
    [(60.0, 60.0, 15.0), (600.0, 600.0, 15.0), (60.0, 20.0, 5.0), (0.0, 60.0, 15.0), (0.5, 1.0, 0.25)],
)
def test_how_often_a_worker_is_read(hold: float, interval: float, seconds: float) -> None:
    assert with_policy(hold=hold, interval=interval).reading == seconds


# -- the clusters that OCM has selected


def contest(before: dict[str, int], selected: str = "a", **policy: Any) -> VirtualScores:
    """Clusters whose values have been so for five minutes."""
    world = VirtualScores(with_policy(**policy), selected=(selected,))

    def read() -> None:
        for name, value in before.items():
            world.read(name, gpuFree=value)

    world.wait(300, read)
    return world


def later(world: VirtualScores, seconds: float = 600, **values: int) -> dict[str, int | None]:
    def read() -> None:
        for name, value in values.items():
            world.read(name, gpuFree=value)

    world.wait(seconds, read)
    return {name: world.value(name) for name in values}


@pytest.mark.parametrize(
    ("before", "now", "reported"),
    [
        pytest.param({"a": 60, "b": 40}, {"a": 60, "b": 69}, {"a": 60, "b": 59}, id="better, but by less"),
        pytest.param({"a": 60, "b": 40}, {"a": 60, "b": 70}, {"a": 60, "b": 70}, id="better by the step"),
        pytest.param({"a": 60, "b": 50}, {"a": 45, "b": 50}, {"a": 60, "b": 50}, id="the best becomes worse"),
        pytest.param({"a": 80, "b": 50}, {"a": 45, "b": 50}, {"a": 51, "b": 50}, id="much worse"),
        pytest.param({"a": 60, "b": 50}, {"a": 40, "b": 50}, {"a": 40, "b": 50}, id="worse by the step"),
        pytest.param({"a": 100, "b": 100}, {"a": 0, "b": 100}, {"a": 0, "b": 100}, id="it is full"),
        pytest.param(
            {"a": 90, "b": 0, "c": 9}, {"a": 90, "b": 80, "c": 95}, {"a": 90, "b": 80, "c": 89}, id="3"
        ),
    ],
)
def test_the_best_stays_best_until_another_is_better_by_the_step(
    before: Any, now: Any, reported: Any
) -> None:
    assert later(contest(before), **now) == reported


def test_a_cluster_that_is_not_read_any_more_is_passed_when_its_score_expires() -> None:
    world = contest({"a": 60, "b": 40})
    assert later(world, 120, b=69)["b"] == 59
    assert later(world, 300, b=69)["b"] == 69
