"""While OCM moves clusters between decisions nothing is taken away; what other configs list stays."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.decode import cluster_profile as read_profile
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.plan.diff import Delete, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    check,
    decision,
    inputs,
    our_cluster,
    our_config,
    our_objects,
    placement,
    profile,
    secrets,
    selection_of,
)

TWO_GROUPS = placement(selected=2, groups=[(["p-decision-1"], 1), (["p-decision-2"], 1)])


def two(first: str, second: str) -> list[Any]:
    return [decision(first), decision(second, index=2, group=1)]


@pytest.mark.parametrize(
    ("decisions", "age", "clusters", "recheck"),
    [
        pytest.param(two("b", "b"), 0.0, {"a", "b"}, 2.0, id="a has been displaced, b not yet moved"),
        pytest.param(two("b", "b"), 2.0, {"b"}, 2.0, id="displaced for 2 s; then that is reported"),
        pytest.param(two("a", "c"), 0.0, {"a", "b", "c"}, 0.25, id="c came, b may be moving"),
        pytest.param(two("a", "c"), 0.25, {"a", "c"}, None, id="b was not moving"),
        pytest.param(two("b", "a"), 0.0, {"a", "b"}, None, id="both have moved"),
    ],
)
def test_a_cluster_that_may_be_moving_between_decisions_stays(
    decisions: list[Any], age: float, clusters: set[str], recheck: float | None
) -> None:
    objects = [check(), TWO_GROUPS, *decisions, secrets("a", "b", "c"), our_objects("a", "b")]
    answer = selection_of(inputs(*objects, ages={"a": age, "b": age}))
    assert ({entry.cluster for entry in answer.listable}, answer.requeue_after) == (clusters, recheck)


def _placement_made(seconds_ago: float, **spec: Any) -> Any:
    raw = placement(spec=spec)
    when = NOW - timedelta(seconds=seconds_ago)
    raw["metadata"]["creationTimestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return raw


@pytest.mark.parametrize(
    ("made_again", "clusters", "recheck"),
    [
        pytest.param(_placement_made(1), {"a", "b"}, 2.0, id="made just now, decided bit by bit"),
        pytest.param(_placement_made(60), {"a"}, None, id="an old one whose status nobody keeps"),
        pytest.param(
            _placement_made(60, decisionStrategy={"groupStrategy": {}}),
            {"a", "b"},
            0.25,
            id="spread over groups",
        ),
        pytest.param(placement(), {"a"}, None, id="no time given"),
    ],
)
def test_a_placement_that_says_nothing_yet(
    made_again: Any, clusters: set[str], recheck: float | None
) -> None:
    answer = selection_of(
        inputs(check(), made_again, decision("a"), secrets("a", "b"), our_objects("a", "b"))
    )
    assert ({entry.cluster for entry in answer.listable}, answer.requeue_after) == (clusters, recheck)


def deleted(*objects: Any, hub: HubFacts) -> list[str]:
    """Return what the key of the shared MultiKueueCluster's own name deletes."""
    seen = inputs(*objects, hub=hub, of="a")
    return [act.name for phase in diff(seen, plan(seen)) for act in phase if isinstance(act, Delete)]


def test_after_a_change_of_names_a_cluster_stays_as_long_as_a_config_lists_it() -> None:
    """`{cluster}` became `{placement}-{cluster}`, and Placement q is not there to let go of a."""
    objects = [check(), placement(), decision("a"), secrets("a"), our_cluster("a", None)]
    assert deleted(*objects, hub=HubFacts()) == ["a"]
    assert deleted(*objects, our_config("a"), hub=HubFacts()) == []
    assert deleted(*objects, check("two", "q"), our_config("a", of="q"), hub=HubFacts()) == []


@pytest.mark.parametrize(
    ("labels", "cluster"),
    [
        pytest.param({}, "a", id="no labels"),
        pytest.param({"x-k8s.io/cluster-manager": "open-cluster-management"}, "a", id="OCM's"),
        pytest.param({"x-k8s.io/cluster-manager": "fleet"}, "", id="another manager's"),
        pytest.param(
            {"x-k8s.io/cluster-manager": "fleet", "open-cluster-management.io/cluster-name": "b"},
            "b",
            id="another manager's, of a managed cluster",
        ),
    ],
)
def test_the_name_of_a_cluster_profile_counts_if_ocm_gave_it(labels: dict[str, str], cluster: str) -> None:
    raw: Any = profile("a", labels=labels)
    assert read_profile(raw).cluster == cluster
