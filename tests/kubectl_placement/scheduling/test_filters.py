"""Which clusters pass: sets, predicates, taints; and what is objected to."""

from datetime import timedelta
from typing import Any

import pytest

from kubectl_placement.scheduling import ClusterVerdict, FilterStep, Fleet, schedule
from tests.kubectl_placement.scheduling.builders import (
    NOW,
    binding,
    cluster,
    cluster_set,
    decision,
    placement,
    selected_by,
)
from tests.support.growth import calls_of

UNREACHABLE = {"key": "unreachable", "effect": "NoSelect", "timeAdded": "2026-11-21T11:59:00Z"}


def selector(**parts: Any) -> dict[str, Any]:
    return {"predicates": [{"requiredClusterSelector": parts}]}


def expressions(*wanted: dict[str, Any]) -> dict[str, Any]:
    return selector(labelSelector={"matchExpressions": list(wanted)})


def selected(wanted: dict[str, Any], *objects: dict[str, Any]) -> list[str]:
    outcome = schedule(wanted, Fleet.of([cluster_set(), binding(), *objects]), NOW)
    return sorted(selected_by(outcome))


def condition(wanted: dict[str, Any], fleet: Fleet, kind: str) -> tuple[str, str, str]:
    found = {one["type"]: one for one in schedule(wanted, fleet, NOW).status["conditions"]}[kind]
    return found["status"], found["reason"], found["message"]


EU, US, BARE = cluster("eu", {"region": "eu"}), cluster("us", {"region": "us"}), cluster("bare")


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param({}, ["bare", "eu", "us"], id="no predicates"),
        pytest.param(selector(labelSelector={"matchLabels": {"region": "eu"}}), ["eu"], id="matchLabels"),
        pytest.param(expressions({"key": "region", "operator": "In", "values": ["us"]}), ["us"], id="In"),
        pytest.param(
            expressions({"key": "region", "operator": "NotIn", "values": ["us"]}), ["bare", "eu"], id="NotIn"
        ),
        pytest.param(expressions({"key": "region", "operator": "Exists"}), ["eu", "us"], id="Exists"),
        pytest.param(expressions({"key": "region", "operator": "DoesNotExist"}), ["bare"], id="DoesNotExist"),
        pytest.param(
            expressions({"key": "a.b/c", "operator": "DoesNotExist"}), ["bare", "eu", "us"], id="prefix"
        ),
        pytest.param({"predicates": "wrong"}, ["bare", "eu", "us"], id="predicates of a wrong type"),
        pytest.param(
            {
                "predicates": [
                    {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": one}}}}
                    for one in ("eu", "us")
                ]
            },
            ["eu", "us"],
            id="any predicate will do",
        ),
    ],
)
def test_labels(spec: dict[str, Any], names: list[str]) -> None:
    assert selected(placement(**spec), EU, US, BARE) == names


def test_claims_are_those_of_the_status_and_have_no_match_labels() -> None:
    claimed = cluster("c", status={"clusterClaims": [{"name": "cloud", "value": "AWS"}]})
    wanted = {"matchExpressions": [{"key": "cloud", "operator": "In", "values": ["AWS"]}]}
    spec = selector(claimSelector={**wanted, "matchLabels": {"not": "read"}})
    assert selected(placement(**spec), claimed, EU) == ["c"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            expressions({"key": "region", "operator": "Like", "values": ["e"]}),
            'Predicate:"Like" is not a valid label selector operator',
            id="unknown operator",
        ),
        pytest.param(
            expressions({"key": "region"}),
            'Predicate:"None" is not a valid label selector operator',
            id="no operator",
        ),
        pytest.param(
            expressions({"key": "region", "operator": "In"}),
            "Predicate:values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            expressions({"key": "region", "operator": "Exists", "values": ["eu"]}),
            "Predicate:values: Invalid value: values set must be empty for exists and does not exist",
            id="Exists with values",
        ),
        pytest.param(
            expressions({"key": "a b", "operator": "Exists"}),
            "Predicate:key: Invalid value: 'a b': must be a qualified name",
            id="bad key",
        ),
        pytest.param(
            expressions({"key": "A/b", "operator": "Exists"}),
            "Predicate:key: Invalid value: 'A/b': must be a qualified name",
            id="bad prefix of a key",
        ),
        pytest.param(
            selector(labelSelector={"matchLabels": {"region": "not a value"}}),
            "Predicate:values: Invalid value: 'not a value': must be a valid label value",
            id="bad value",
        ),
        pytest.param(
            selector(labelSelector={"matchLabels": {"region": 3}}),
            "Predicate:values: Invalid value: 3: must be a string",
            id="value that is no text",
        ),
        pytest.param(
            selector(celSelector={"celExpressions": ["1 +"]}),
            "Predicate:compilation failed: syntax error at line 1, column 4: 1 +",
            id="CEL syntax",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Equal", "value": "x"}]},
            "TaintToleration:If the key is empty, operator must be Exists.",
            id="toleration without key",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Exists", "value": "x"}]},
            "TaintToleration:If the operator is Exists, the value should be empty.",
            id="Exists with a value",
        ),
        pytest.param(
            {"prioritizerPolicy": {"mode": "Best"}}, ":incorrect prioritizer policy mode: Best", id="mode"
        ),
        pytest.param(
            {"prioritizerPolicy": {"configurations": [{"weight": 1}]}},
            ":scoreCoordinate field is required",
            id="no coordinate",
        ),
        pytest.param(
            {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Luck"}}]}},
            ":incorrect builtin prioritizer: Luck",
            id="unknown prioritizer",
        ),
        pytest.param(
            {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"type": "AddOn"}}]}},
            ":addOn should not be empty",
            id="no add-on",
        ),
    ],
)
def test_a_malformed_placement_is_misconfigured_and_selects_nothing(
    spec: dict[str, Any], message: str
) -> None:
    fleet = Fleet.of([cluster_set(), binding(), EU])
    outcome = schedule(placement(**spec), fleet, NOW)
    assert condition(placement(**spec), fleet, "PlacementMisconfigured") == ("True", "Misconfigured", message)
    assert condition(placement(**spec), fleet, "PlacementSatisfied")[1] == "NoManagedClusterMatched"
    assert outcome.clusters["eu"].dropped is FilterStep.MISCONFIGURED
    assert [one["status"]["decisions"] for one in outcome.decisions] == [[]]


def test_without_a_cluster_to_judge_a_wrong_expression_goes_unnoticed() -> None:
    spec = selector(celSelector={"celExpressions": ["1 +"]})
    fleet = Fleet.of([cluster_set(), binding()])
    assert condition(placement(**spec), fleet, "PlacementMisconfigured")[0] == "False"


@pytest.mark.parametrize("wrong", [None, "text", 7, [], {"predicates": [None, 3], "tolerations": {}}])
def test_no_spec_however_wrong_raises(wrong: Any) -> None:
    outcome = schedule({**placement(), "spec": wrong}, Fleet.of([cluster_set(), binding(), EU]), NOW)
    assert selected_by(outcome) == ("eu",)


EXISTS = {"key": "unreachable", "operator": "Exists"}


@pytest.mark.parametrize(
    ("taint", "toleration", "stays"),
    [
        pytest.param(UNREACHABLE, None, False, id="not tolerated"),
        pytest.param(UNREACHABLE, EXISTS, True, id="Exists"),
        pytest.param(UNREACHABLE, {"operator": "Exists"}, True, id="every taint"),
        pytest.param(UNREACHABLE, {"key": "other", "operator": "Exists"}, False, id="another key"),
        pytest.param(UNREACHABLE, {**EXISTS, "effect": "NoSelectIfNew"}, False, id="another effect"),
        pytest.param({**UNREACHABLE, "value": "v"}, {"key": "unreachable", "value": "v"}, True, id="equal"),
        pytest.param(
            {**UNREACHABLE, "value": "v"}, {"key": "unreachable", "value": "w"}, False, id="unequal"
        ),
        pytest.param(UNREACHABLE, {"key": "unreachable", "operator": "Like"}, False, id="unknown operator"),
        pytest.param({**UNREACHABLE, "effect": "PreferNoSelect"}, None, True, id="PreferNoSelect"),
        pytest.param({**UNREACHABLE, "effect": "NoSelectIfNew"}, None, False, id="NoSelectIfNew"),
        pytest.param(UNREACHABLE, {**EXISTS, "tolerationSeconds": 61}, True, id="still tolerated"),
        pytest.param(UNREACHABLE, {**EXISTS, "tolerationSeconds": 60}, False, id="no longer tolerated"),
        pytest.param(UNREACHABLE, {**EXISTS, "tolerationSeconds": 10**12}, True, id="beyond the year 9999"),
        pytest.param(UNREACHABLE, {**EXISTS, "tolerationSeconds": -(10**12)}, False, id="before the year 1"),
        pytest.param(
            {"key": "unreachable", "effect": "NoSelect"},
            {**EXISTS, "tolerationSeconds": 60},
            False,
            id="since nobody knows when",
        ),
        pytest.param(
            {**UNREACHABLE, "timeAdded": "soon"}, {**EXISTS, "tolerationSeconds": 60}, False, id="bad time"
        ),
        pytest.param(
            {**UNREACHABLE, "timeAdded": "2026-11-21T11:59:00"},
            {**EXISTS, "tolerationSeconds": 61},
            False,
            id="no RFC 3339 time, as it has no zone",
        ),
    ],
)
def test_taints(taint: dict[str, Any], toleration: dict[str, Any] | None, stays: bool) -> None:
    wanted = placement(tolerations=[toleration] if toleration else [])
    tainted = cluster("c", spec={"taints": [taint]})
    assert selected(wanted, tainted) == (["c"] if stays else [])


def test_no_select_if_new_spares_the_decided() -> None:
    taints = {"taints": [{**UNREACHABLE, "effect": "NoSelectIfNew"}]}
    here, new = cluster("here", spec=taints), cluster("new", spec=taints)
    assert selected(placement(), here, new, decision("here")) == ["here"]


def test_the_placement_is_due_again_when_the_first_toleration_of_a_decided_cluster_ends() -> None:
    tolerations = [{**EXISTS, "tolerationSeconds": 90}, {"key": "late", "operator": "Exists"}]
    taints = [UNREACHABLE, {**UNREACHABLE, "key": "late"}]
    intolerable = [UNREACHABLE, {"key": "x", "effect": "NoSelect"}]
    objects = [
        cluster("soon", spec={"taints": taints}),
        cluster("new", spec={"taints": taints}),
        cluster("out", spec={"taints": intolerable}),
        decision("soon", "out", "gone"),
    ]
    fleet = Fleet.of([cluster_set(), binding(), *objects])
    outcome = schedule(placement(tolerations=tolerations), fleet, NOW)
    assert outcome.reschedule_at == NOW + timedelta(seconds=30)
    assert schedule(placement(), fleet, NOW).reschedule_at is None


IN_EU = cluster_set("eu", selectorType="LabelSelector", labelSelector={"matchLabels": {"region": "eu"}})


@pytest.mark.parametrize(
    ("spec", "objects", "expected"),
    [
        pytest.param({}, [EU], ("NoManagedClusterSetBindings", []), id="no binding"),
        pytest.param({}, [EU, binding("eu")], ("NoManagedClusterSetBindings", []), id="bound set is missing"),
        pytest.param(
            {}, [EU, IN_EU, binding("eu", "other")], ("NoManagedClusterSetBindings", []), id="bound elsewhere"
        ),
        pytest.param(
            {"clusterSets": ["us"]}, [EU, IN_EU, binding("eu")], ("NoIntersection", []), id="asks for another"
        ),
        pytest.param({}, [US, IN_EU, binding("eu")], ("AllManagedClusterSetsEmpty", []), id="empty set"),
        pytest.param({}, [EU, US, IN_EU, binding("eu")], ("AllDecisionsScheduled", ["eu"]), id="by label"),
        pytest.param(
            {},
            [EU, US, cluster_set(selectorType="ExclusiveClusterSetLabel"), binding()],
            ("AllDecisionsScheduled", ["eu", "us"]),
            id="exclusive",
        ),
        pytest.param(
            {},
            [EU, cluster_set(selectorType="LabelSelector"), binding()],
            ("AllManagedClusterSetsEmpty", []),
            id="no selector selects nothing",
        ),
        pytest.param(
            {},
            [EU, cluster_set(selectorType="LabelSelector", labelSelector={}), binding()],
            ("AllDecisionsScheduled", ["eu"]),
            id="empty selector selects all",
        ),
        pytest.param(
            {},
            [cluster("c", metadata={"deletionTimestamp": "2026-11-21T11:00:00Z"}), cluster_set(), binding()],
            ("AllManagedClusterSetsEmpty", []),
            id="terminating",
        ),
        pytest.param(
            selector(labelSelector={"matchLabels": {"region": "ap"}}),
            [EU, cluster_set(), binding()],
            ("NoManagedClusterMatched", []),
            id="no match",
        ),
        pytest.param(
            {"numberOfClusters": 3},
            [EU, US, cluster_set(), binding()],
            ("NotAllDecisionsScheduled", ["eu", "us"]),
            id="too few",
        ),
        pytest.param(
            {"numberOfClusters": 1},
            [EU, US, cluster_set(), binding()],
            ("AllDecisionsScheduled", ["eu"]),
            id="more than enough",
        ),
        pytest.param(
            {"numberOfClusters": 0},
            [EU, cluster_set(), binding()],
            ("NoManagedClusterMatched", []),
            id="zero",
        ),
    ],
)
def test_sets_and_satisfaction(
    spec: dict[str, Any], objects: list[dict[str, Any]], expected: tuple[str, list[str]]
) -> None:
    fleet = Fleet.of(objects)
    reason = condition(placement(**spec), fleet, "PlacementSatisfied")[1]
    assert (reason, sorted(selected_by(schedule(placement(**spec), fleet, NOW)))) == expected


@pytest.mark.parametrize(
    "broken",
    [
        cluster_set(selectorType="Lottery"),
        cluster_set(
            selectorType="LabelSelector", labelSelector={"matchExpressions": [{"key": "a", "operator": "b"}]}
        ),
    ],
    ids=["type", "operator"],
)
def test_a_broken_set_holds_everything(broken: dict[str, Any]) -> None:
    outcome = schedule(placement(), Fleet.of([broken, binding(), EU]), NOW)
    assert "ManagedClusterSet all" in outcome.hold
    assert (outcome.decisions, outcome.status) == ((), {})


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": "2026-11-21T11:00:00Z"},
        {"annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}},
    ],
    ids=["being deleted", "disabled"],
)
def test_some_placements_are_left_alone(metadata: dict[str, Any]) -> None:
    wanted = placement()
    wanted["metadata"] |= metadata
    assert schedule(wanted, Fleet.of([cluster_set(), binding(), EU]), NOW).hold


def test_the_outcome_of_each_cluster() -> None:
    tainted = cluster("tainted", {"region": "eu"}, spec={"taints": [{**UNREACHABLE, "value": "yes"}]})
    leaving = cluster("leaving", metadata={"deletionTimestamp": "2026-11-21T11:00:00Z"})
    outside = {"kind": "ManagedCluster", "metadata": {"name": "outside"}}
    second = cluster("z", {"region": "eu"})
    spec = selector(labelSelector={"matchLabels": {"region": "eu"}}) | {"numberOfClusters": 1}
    objects = [cluster_set(), binding(), EU, US, second, tainted, leaving, outside]
    clusters = schedule(placement(**spec), Fleet.of(objects), NOW).clusters
    output = {name: (verdict.dropped, verdict.why, verdict.score) for name, verdict in clusters.items()}
    assert output == {
        "eu": (None, "", 100),
        "us": (FilterStep.PREDICATE, "label region is us, and the predicate wants eu", None),
        "z": (FilterStep.NUMBER, "rank 2 of 2, and numberOfClusters is 1", 100),
        "tainted": (FilterStep.TAINT, "taint unreachable=yes:NoSelect is not tolerated", None),
        "leaving": (FilterStep.TERMINATING, "is being deleted", None),
        "outside": (FilterStep.CLUSTER_SET, "in none of the sets [all]", None),
    }
    assert (clusters["eu"].scores, clusters["eu"].group) == ({"Balance": 100, "Steady": 0}, 0)


def region(**expression: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": [{"key": "region", **expression}]}}


def claim(**expression: Any) -> dict[str, Any]:
    return {"claimSelector": {"matchExpressions": [{"key": "platform", **expression}]}}


WHY = [
    pytest.param(
        [region(operator="In", values=["eu", "ap"])],
        "label region is us, and the predicate wants eu or ap",
        id="another value",
    ),
    pytest.param(
        [{"labelSelector": {"matchLabels": {"gpu": "t4"}}}],
        "label gpu is missing, and the predicate wants t4",
        id="no label",
    ),
    pytest.param(
        [region(operator="NotIn", values=["us", "ap"])],
        "label region is us, and the predicate wants any but us or ap",
        id="one of the wrong ones",
    ),
    pytest.param(
        [region(operator="DoesNotExist")], "label region is us, and the predicate wants none", id="a label"
    ),
    pytest.param(
        [claim(operator="Exists")], "claim platform is missing, and the predicate wants one", id="no claim"
    ),
    pytest.param(
        [{"celSelector": {"celExpressions": ["1 > 2"]}}], "the CEL expression 1 > 2 is not true", id="CEL"
    ),
    pytest.param(
        [region(operator="In", values=["eu"]), claim(operator="In", values=["AWS"])],
        "predicate 1: label region is us, and the predicate wants eu; "
        "predicate 2: claim platform is missing, and the predicate wants AWS",
        id="none of several",
    ),
]


@pytest.mark.parametrize(("predicates", "why"), WHY)
def test_why_no_predicate_takes_a_cluster(predicates: list[dict[str, Any]], why: str) -> None:
    wanted = placement(predicates=[{"requiredClusterSelector": predicate} for predicate in predicates])
    clusters = schedule(wanted, Fleet.of([cluster_set(), binding(), US]), NOW).clusters
    assert clusters == {"us": ClusterVerdict(FilterStep.PREDICATE, why)}


def test_cel_that_is_not_evaluated_leaves_the_decision_open() -> None:
    text = "[1,2,3,4,5,6,7,8,9]"
    costly = f"{text}.all(a,{text}.all(b,{text}.all(c,{text}.all(d,{text}.all(e,true)))))"
    wanted = placement(**selector(celSelector={"celExpressions": [costly]}))
    outcome = schedule(wanted, Fleet.of([cluster_set(), binding(), US]), NOW)
    why = f"the CEL expression is not evaluated, because it takes more than 9,999 iterations: {costly}"
    assert outcome.unsupported == why


def test_a_toleration_beyond_the_year_9999_never_ends() -> None:
    wanted = placement(tolerations=[{**EXISTS, "tolerationSeconds": 10**12}])
    tainted = cluster("a", spec={"taints": [UNREACHABLE]})
    fleet = Fleet.of([cluster_set(), binding(), tainted, decision(0, "a")])
    assert schedule(wanted, fleet, NOW).reschedule_at is None


@pytest.mark.parametrize(
    ("added", "why"),
    [
        ("2026-11-21T11:00:00Z", "no longer tolerated, since 2026-11-21T11:00:30+00:00"),
        (None, "no longer tolerated, because it has no timeAdded"),
    ],
    ids=["ended", "no time"],
)
def test_why_a_toleration_is_over(added: str | None, why: str) -> None:
    taint = {**UNREACHABLE, "timeAdded": added}
    lost = cluster("lost", spec={"taints": [taint]})
    wanted = placement(tolerations=[{"key": "unreachable", "operator": "Exists", "tolerationSeconds": 30}])
    clusters = schedule(wanted, Fleet.of([cluster_set(), binding(), lost]), NOW).clusters
    output = f"taint unreachable:NoSelect is {why} (tolerationSeconds 30)"
    assert clusters == {"lost": ClusterVerdict(FilterStep.TAINT, output)}


LARGE = {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(15_000)]}
MANY = [cluster(f"c{number}") for number in range(200)]


@pytest.mark.parametrize(
    ("spec", "the_set"),
    [
        pytest.param(
            {"predicates": [{"requiredClusterSelector": {"labelSelector": LARGE}}]},
            cluster_set(),
            id="predicate",
        ),
        pytest.param({}, cluster_set(selectorType="LabelSelector", labelSelector=LARGE), id="set"),
        pytest.param(
            {
                "decisionStrategy": {
                    "groupStrategy": {
                        "decisionGroups": [
                            {"groupName": "g", "groupClusterSelector": {"labelSelector": LARGE}}
                        ]
                    }
                }
            },
            cluster_set(),
            id="group",
        ),
    ],
)
def test_selectors_that_are_too_large_are_not_evaluated(
    spec: dict[str, Any], the_set: dict[str, Any]
) -> None:
    wanted, fleet = placement(**spec), Fleet.of([*MANY, the_set, binding()])
    outcome = schedule(wanted, fleet, NOW)
    assert outcome.unsupported == ("the label selectors are too large: 15,000 requirements on 200 clusters")
    assert calls_of(lambda: schedule(wanted, fleet, NOW)) < 15_000 * 200 / 4


def test_a_reason_shows_few_of_many_values() -> None:
    values = {"key": "region", "operator": "In", "values": [f"v{n}" for n in range(1000)]}
    selector = {"requiredClusterSelector": {"labelSelector": {"matchExpressions": [values]}}}
    outcome = schedule(placement(predicates=[selector]), Fleet.of([EU, cluster_set(), binding()]), NOW)
    (verdict,) = outcome.clusters.values()
    assert verdict.why.endswith("v8 or v9 or 990 more")
