"""Scheduling never raises, whatever an object contains."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_placement.scheduling import Fleet, schedule
from kubectl_placement.scheduling.cel import CelError, Expression, compile_expression
from tests.kubectl_placement.scheduling.builders import (
    NOW,
    binding,
    cluster,
    cluster_set,
    decision,
    placement,
)

SELECTOR = {
    "labelSelector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
    },
    "claimSelector": {"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]},
    "celSelector": {"celExpressions": ["managedCluster.spec.x > 1"]},
}
ADDON = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}}
SPEC = {
    "clusterSets": ["all"],
    "numberOfClusters": 2,
    "sortBy": "Score",
    "scoreRateLimit": "1m",
    "predicates": [{"requiredClusterSelector": SELECTOR}, {"requiredClusterSelector": {}}],
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSelect", "tolerationSeconds": 300}],
    "prioritizerPolicy": {
        "mode": "Additive",
        "configurations": [
            {"scoreCoordinate": ADDON, "weight": 2},
            {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableMemory"}, "weight": -1},
        ],
    },
    "decisionStrategy": {
        "groupStrategy": {
            "clustersPerDecisionGroup": "50%",
            "decisionGroups": [{"groupName": "x", "groupClusterSelector": {"labelSelector": {}}}],
        }
    },
}
OBJECTS = [
    {
        **placement(**SPEC),
        "status": {"lastScoreUpdateTime": "2026-11-21T11:59:30Z", "conditions": [{"type": "x"}]},
    },
    cluster_set(
        selectorType="LabelSelector", labelSelector=SELECTOR["labelSelector"] | {"matchExpressions": []}
    ),
    binding(),
    *(
        cluster(
            name,
            {"a": "b"},
            spec={"taints": [{"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-21T11:59:00Z"}]},
            status={
                "allocatable": {"memory": "1Gi"},
                "capacity": {"memory": "2Gi"},
                "clusterClaims": [{"name": "n", "value": "v"}],
            },
        )
        for name in ("c", "d")
    ),
    {
        "kind": "AddOnPlacementScore",
        "metadata": {"name": "usage", "namespace": "c"},
        "status": {"validUntil": "2026-11-22T00:00:00Z", "scores": [{"name": "gpu", "value": 5}]},
    },
    decision("c"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)

TOKENS = r"""
managedCluster . metadata labels ( ) [ ] { } , : ? && || ! + - * / % in == < 1 2.5 1u 'a' b'' r'\d' true null
x has( exists(x, map(x, quantity( semver( sum( scores( split( matches( int( type( dyn( // \ " ' é
"""
WORDS = st.sampled_from(TOKENS.split())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in [(*path, key), *places(one, (*path, key))]]


SACRED = {"kind", "name", "namespace", "metadata"}
PLACES = [(n, *path) for n, one in enumerate(OBJECTS) for path in places(one) if path[-1] not in SACRED]


@settings(max_examples=40)
@given(place=st.sampled_from(PLACES), value=JSON, write_scores=st.booleans())
def test_never_raises(place: tuple[Any, ...], value: Any, write_scores: bool) -> None:
    objects: Any = copy.deepcopy(OBJECTS)
    *way, last = place
    inner = objects
    for step in way:
        inner = inner[step]
    inner[last] = value
    outcome = schedule(objects[0], Fleet.of(objects[1:]), NOW, write_scores=write_scores)
    assert outcome.hold or "PlacementSatisfied" in [
        condition.get("type") for condition in outcome.status["conditions"]
    ]


@settings(max_examples=200)
@given(words=st.lists(WORDS, max_size=12))
def test_no_expression_raises_anything_else(words: list[str]) -> None:
    try:
        expression = compile_expression("".join(words))
    except CelError:
        return
    assert Expression.is_true(expression, OBJECTS[3], Fleet.of(OBJECTS)) in (True, False)
