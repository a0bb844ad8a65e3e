"""Each score: how many points a cluster gets for a job."""

from typing import Any

import pytest

from placement_ac.core.api.label_selector import SelectorError
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.dispatch.scores.preferred import parse_preferences
from tests.support.jobs_to_dispatch import DOMAIN, GPU, cluster, gpu_pods, job, queues

PREFERRED = f"{DOMAIN}/preferred-clusters"
MINE, THEIRS = job("one"), job("two", queue="theirs")


@pytest.mark.parametrize(
    ("name", "candidate", "points"),
    [
        pytest.param("Placement", cluster("a", 0, 4), 100.0, id="the first of OCM's order"),
        pytest.param("Placement", cluster("a", 3, 4), 25.0, id="the last of four"),
        pytest.param("Spread", cluster("a", running=[MINE], waiting=[MINE, THEIRS]), 100 / 3, id="spread"),
        pytest.param("Pack", cluster("a", running=[MINE, MINE], waiting=[MINE]), 75.0, id="pack"),
        pytest.param("Waiting", cluster("a", waiting=[THEIRS]), 50.0, id="one waits, of any queue"),
        pytest.param(
            "Waiting",
            cluster("a", waiting=[THEIRS], queue_facts=queues(pending=3), newcomers=[THEIRS]),
            20.0,
            id="three when the worker was asked, and one since",
        ),
        pytest.param(
            "Waiting", cluster("a", waiting=[THEIRS], queue_facts=queues()), 100.0, id="it has quota"
        ),
        pytest.param("Waiting", cluster("a", queue_facts={}), 100.0, id="it lacks the LocalQueue"),
        pytest.param("Preferred", cluster("a"), None, id="no preference"),
    ],
)
def test_points(name: str, candidate: Any, points: float | None) -> None:
    assert SCORES[name](job(), candidate) == points


@pytest.mark.parametrize(
    ("group", "points"),
    [
        pytest.param("", None, id="no group"),
        pytest.param("first", 100.0, id="it was here"),
        pytest.param("other", 0.0, id="it was elsewhere"),
        pytest.param("new", None, id="it was nowhere yet"),
    ],
)
def test_sticky(group: str, points: float | None) -> None:
    candidate = cluster("a", last_by_group={("default", "first"): "a", ("default", "other"): "b"})
    assert SCORES["Sticky"](job(annotations={f"{DOMAIN}/group": group}), candidate) == points


@pytest.mark.parametrize(
    ("preferences", "points"),
    [
        pytest.param("80:gpu=h100;20:claim:region=eu", 80.0, id="one of two"),
        pytest.param("1:gpu=h100", 100.0, id="the only one"),
        pytest.param("10:gpu=t4", 0.0, id="none"),
        pytest.param("gpu=h100", None, id="no weight: it cannot be read"),
        pytest.param("5:gpu h100", None, id="no selector"),
        pytest.param("1:gpu=h100;" * 128, 100.0, id="as many as are read"),
        pytest.param("1:gpu=h100;" * 129, None, id="more than are read"),
    ],
)
def test_preferred(preferences: str, points: float | None) -> None:
    one = job(annotations={PREFERRED: preferences})
    assert SCORES["Preferred"](one, cluster("a", labels={"gpu": "h100"})) == points


@pytest.mark.parametrize("text", ["0:a=b", "101:a=b", "-1:a=b", ":a=b", "1000:a", "²:a"])
def test_a_weight_is_1_to_100(text: str) -> None:
    with pytest.raises(SelectorError, match="does not begin with a weight of 1 to 100 and a colon"):
        parse_preferences(text)


@pytest.mark.parametrize(
    ("asked", "candidate", "points"),
    [
        pytest.param(gpu_pods(2), queues((GPU, "a", 8)), 87.5, id="four times as much is free"),
        pytest.param(gpu_pods(2), queues((GPU, "a", 8, 6)), 50.0, id="just enough"),
        pytest.param(gpu_pods(2), queues((GPU, "a", 8, 8), (GPU, "b", 4)), 75.0, id="the better flavor"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 8)), 25 * 8 / 12, id="nothing"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 6, 8)), 37.5, id="half of it, the rest is borrowed"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 12, 8)), 25.0, id="all is borrowed"),
        pytest.param(
            gpu_pods(4), queues((GPU, "a", 8, 14, 8)), 25 * 16 / 18, id="half of it can be borrowed"
        ),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 9, None)), 25.0, id="a cohort without a limit"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 28, None)), 12.5, id="it may lend less than that"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 0, 0, None)), 25.0, id="all comes from the cohort"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 8, 36)), 5.0, id="four more jobs of 7 wait"),
        pytest.param(gpu_pods(4), queues((GPU, "a", 32, 36)), 20.0, id="the same in a larger cluster"),
        pytest.param(gpu_pods(4, 4), queues((GPU, "a", 4), (GPU, "b", 4)), 50.0, id="each in its flavor"),
        pytest.param(
            gpu_pods(1, cpu=4), queues((GPU, "a", 8), ("cpu", "a", 8)), 75.0, id="the scarcest resource"
        ),
        pytest.param(gpu_pods(2), queues(("cpu", "a", 8)), 0.0, id="no such resource"),
        pytest.param(gpu_pods(2), queues((GPU, "a", 8), ("pods", "a", 2)), 75.0, id="Pods are scarcer"),
        pytest.param((), queues((GPU, "a", 8)), None, id="no requests"),
        pytest.param(gpu_pods(2), {}, 0.0, id="no LocalQueue"),
        pytest.param(gpu_pods(2), queues((GPU, "a", 8), active=False), 0.0, id="stopped"),
        pytest.param(gpu_pods(2), None, None, id="nothing is known"),
    ],
)
def test_headroom(asked: Any, candidate: Any, points: float | None) -> None:
    assert SCORES["Headroom"](job(pods=asked), cluster("a", queue_facts=candidate)) == points


def test_headroom_subtracts_those_that_the_facts_do_not_count() -> None:
    coming = [job("one", pods=gpu_pods(3)), job("two", pods=gpu_pods(1)), job("three", queue="theirs")]
    candidate = cluster("a", queue_facts=queues((GPU, "a", 4), (GPU, "b", 8)), came=coming)
    assert SCORES["Headroom"](job(pods=gpu_pods(2)), candidate) == 87.5
    candidate.add_waiting([job("four", pods=gpu_pods(4))])
    assert SCORES["Headroom"](job(pods=gpu_pods(2)), candidate) == 75.0
