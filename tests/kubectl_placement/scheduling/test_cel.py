"""CEL expressions on a cluster, and versions."""

import subprocess
import sys
from typing import Any

import pytest

from kubectl_placement.scheduling import Fleet
from kubectl_placement.scheduling.cel import CelError, Expression, compile_expression
from kubectl_placement.scheduling.cel_functions import parse_version
from kubectl_placement.scheduling.selectors import UnsupportedError

CLUSTER: dict[str, Any] = {
    "metadata": {"name": "c", "labels": {"tier": "gold", "version": "v1.31.2"}},
    "spec": {"hubAcceptsClient": True, "leaseDurationSeconds": 60},
    "status": {
        "allocatable": {"cpu": 8, "memory": "16Gi"},
        "version": {"kubernetes": "v1.31.2"},
        "conditions": [{"type": "ManagedClusterJoined", "status": "True"}],
        "clusterClaims": [{"name": "info", "value": '{"gpus": 4, "zones": ["a", "b"]}'}],
    },
}
SCORES = {
    "kind": "AddOnPlacementScore",
    "metadata": {"name": "usage", "namespace": "c"},
    "status": {"scores": [{"name": "gpu", "value": 70}, {"name": "cpu", "value": -5}]},
}


@pytest.mark.parametrize(
    "text",
    [
        'managedCluster.metadata.labels["tier"] == "gold"',
        '"tier" in managedCluster.metadata.labels && !("zone" in managedCluster.metadata.labels)',
        "has(managedCluster.metadata.labels.tier)",
        'managedCluster.status.version.kubernetes.startsWith("v1.3")',
        'managedCluster.status.version.kubernetes.matches("^v1[.]3[0-9]")',
        "managedCluster.spec.leaseDurationSeconds > 59.5",
        "managedCluster.spec.leaseDurationSeconds <= 60 && 60.0 >= 60u && 1 < 2",
        'managedCluster.status.conditions.exists(c, c.type == "ManagedClusterJoined" && c.status == "True")',
        'managedCluster.scores("usage").filter(s, s.name == "gpu").all(e, e.value > 50)',
        'managedCluster.scores("usage").map(s, s.value).sum() == 65',
        'quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("8Gi"))',
        'quantity(managedCluster.status.allocatable.cpu).compareTo(quantity("8000m")) == 0',
        'quantity("1Gi").isLessThan(quantity("2Gi")) && quantity("1") == quantity("1000m")',
        'quantity("1k").add(quantity("1")).asInteger() == 1001 && quantity("3").sub(4).sign() == -1',
        'quantity("1500m").asApproximateFloat() == 1.5 && !quantity("1500m").isInteger()',
        'isQuantity("5M") && !isQuantity("5 M")',
        'semver("1.31.2").isGreaterThan(semver("1.4.0")) && semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))',
        "semver(managedCluster.status.version.kubernetes, true).minor() == 31",
        'isSemver("1.2.3") && !isSemver("v1.2.3") && isSemver("v1", true)',
        'isSemver("1.0.0-0.1a.01a.-1") && !isSemver("1.0.0-01") && !isSemver("1.0.0-rc.01", true)',
        'semver("1.2.3+build").major() == 1 && semver("1.2.3").patch() == 3',
        'semver("1.2.3").compareTo(semver("1.2.3")) == 0 && semver("1.2.3") == semver("1.2.3+b")',
        'managedCluster.status.clusterClaims.exists(c, c.name == "info" && c.value.parseJSON().gpus >= 4)',
        '"a,b,c".split(",").size() == 3 && "a,b,c".split(",", 2)[1] == "b,c" && "a".split(",", 1)[0] == "a"',
        '"a,b".split(",", 0).size() == 0 && ["a", "b"].join("-") == "a-b" && ["a", "b"].join() == "ab"',
        '"tacocat".indexOf("c") == 2 && "tacocat".indexOf("c", 3) == 4 && "tacocat".lastIndexOf("c") == 4',
        '"tacocat".lastIndexOf("c", 3) == 2 && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2',
        "[1].indexOf(5) == -1 && [1].lastIndexOf(5) == -1",
        '"TacoCat".lowerAscii() == "tacocat" && "Tacö".upperAscii() == "TACö"',
        '"hello hello".replace("he", "we", 1) == "wello hello" && " x ".trim() == "x"',
        '"tacocat".substring(4) == "cat" && "tacocat".substring(0, 4) == "taco" && "abc".charAt(1) == "b"',
        '"abc".charAt(3) == "" && "abc".reverse() == "cba"',
        "[1, 3].isSorted() && ![3, 1].isSorted() && [1, 3].min() == 1 && [1, 3].max() == 3",
        "[].sum() == 0",
        '"abc 123".find("[0-9]+") == "123" && "abc".find("[0-9]+") == ""',
        '"1 2 3".findAll("[0-9]").size() == 3 && "1 2 3".findAll("[0-9]", 2).size() == 2',
        "true || managedCluster.absent < 3",
    ],
)
def test_true(text: str) -> None:
    assert Expression.is_true(compile_expression(text), CLUSTER, Fleet.of([SCORES]))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('managedCluster.metadata.labels["zone"] == "a"', id="no such key"),
        pytest.param('managedCluster.metadata.labels["zone"] < 3', id="error on the left"),
        pytest.param('3 < managedCluster.metadata.labels["zone"]', id="error on the right"),
        pytest.param('"gold"', id="not a bool"),
        pytest.param('managedCluster.scores("none").size() == 0', id="no such scores"),
        pytest.param('quantity("lots").isInteger()', id="no quantity"),
        pytest.param('quantity("1").isLessThan(3)', id="no such overload"),
        pytest.param('quantity("1").isGreaterThan(semver("1.0.0"))', id="two kinds"),
        pytest.param('quantity("1500m").asInteger() == 1', id="no integer"),
        pytest.param('semver("v1").major() == 1', id="no version"),
        pytest.param('semver("1\u0661.0.0").major() == 11', id="a version in other digits"),
        pytest.param('semver("\u0661", true).major() == 1', id="a normalized version in other digits"),
        pytest.param('semver("1.0.0-01").isGreaterThan(semver("1.0.0-1"))', id="leading zero"),
        pytest.param('"abc".substring(2, 9) == "c"', id="out of range"),
        pytest.param('"abc".split("").size() == 3', id="empty separator"),
        pytest.param('"{".parseJSON().size() == 0', id="no JSON"),
        pytest.param('"x".find("(") == ""', id="no pattern"),
        pytest.param("[].min() == 0", id="minimum of nothing"),
        pytest.param("1 / 0 == 1", id="division by zero"),
        pytest.param("[1].exists()", id="macro without arguments"),
    ],
)
def test_not_true(text: str) -> None:
    assert not Expression.is_true(compile_expression(text), CLUSTER, Fleet.of([SCORES]))


def test_a_memo_answers_for_the_same_object_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_placement.scheduling.cel.KEPT_ANSWERS", 2)
    fleet = Fleet(memo={})
    gold = compile_expression('managedCluster.metadata.labels.tier == "gold"')
    changed: dict[str, Any] = {"metadata": {"labels": {"tier": "gold"}}}
    assert Expression.is_true(gold, changed, fleet)
    changed["metadata"] = {}
    assert Expression.is_true(gold, changed, fleet), "it was promised not to change"
    assert not Expression.is_true(gold, dict(changed), fleet)
    assert not Expression.is_true(gold, dict(changed), fleet)
    assert len(fleet.memo or {}) == 1


def test_an_expression_that_reads_scores_is_evaluated_each_time() -> None:
    reads = compile_expression('managedCluster.scores("usage").size() == 2')
    fleet = Fleet(scores={("c", "usage"): SCORES}, memo={})
    assert Expression.is_true(reads, CLUSTER, fleet)
    assert fleet.memo == {}


def test_a_cluster_without_status_is_judged_too() -> None:
    assert Expression.is_true(
        compile_expression('managedCluster.metadata.name == "c"'), {"metadata": {"name": "c"}}, Fleet()
    )


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("1 +", "syntax error at line 1, column 3"),
        ("", "syntax error"),
        ("cluster.metadata.name == 'c'", "undeclared reference to 'cluster'"),
        ("managedCluster.nosuch(1)", "undeclared reference to 'nosuch'"),
        ("nosuch(1)", "undeclared reference to 'nosuch'"),
        ("[1].exists(x, y == 1)", "undeclared reference to 'y'"),
        ("[1].exists(x, x == 1) && x == 1", "undeclared reference to 'x'"),
        ("(" * 300 + "true" + ")" * 300, "recursion limit exceeded"),
    ],
)
def test_an_expression_that_does_not_compile_is_an_error_that_says_why(text: str, objection: str) -> None:
    with pytest.raises(CelError, match=r"^compilation failed: ") as caught:
        compile_expression(text)
    assert objection in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("managedCluster.status.?clusterClaims.orValue([]).size() > 0", "optional types"),
        ('managedCluster.metadata.labels[?"a"].orValue("b") == "b"', "optional types"),
        ('{?"a": managedCluster.?b}.size() == 0 && [?managedCluster.?c, 1,].size() == 1', "optional types"),
        ("managedCluster.?a.optMap(v, v == 1).orValue(false)", "optional types"),
        ("optional.none().orValue(true)", "orValue"),
        ("optional.of(1) == optional.of(1)", "of"),
        ("managedCluster.`a-b` == 1", "quoted identifiers"),
        ("isURL('https://a')", "isURL"),
        ('isIP("10.0.0.1") && ip("10.0.0.1").family() == 4', "isIP"),
        ('ip.isCanonical("::1")', "isCanonical"),
        ('"%s-%d".format(["a", 1]) == "a-1"', "format"),
        ('!format.dns1123Label().validate("A").hasValue()', "hasValue"),
        ("sets.contains([1], [1])", "sets"),
        ("cel.bind(x, 1, x == 1)", "bind"),
        ("{'a': 1}.all(k, v, v == 1)", "all/3"),
        ("[1, 2].map(x, x > 1, x) == [2]", "map/3"),
        ("[1].transformList(i, v, v + i) == [1]", "transformList"),
    ],
)
def test_an_expression_that_only_ocm_can_evaluate_is_named_as_unsupported(text: str, name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_expression(text)
    assert str(caught.value) == f"the CEL expression uses {name}, which only OCM can evaluate: {text}"


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("cluster.?name.hasValue()", "undeclared reference to 'cluster'"),
        ("managedCluster.?a +", "syntax error at line 1, column 19"),
        ("cel.bind(x, 1, y == 1)", "undeclared reference to 'y'"),
        ("nosuch(isIP('::1'))", "undeclared reference to 'nosuch'"),
    ],
)
def test_an_unsupported_expression_with_a_compile_error_is_a_compile_error(text: str, objection: str) -> None:
    with pytest.raises(CelError) as caught:
        compile_expression(text)
    assert objection in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, ].size() == 2 && {'a': 1,}.size() == 1",
        """".?a" != '[?"b"]' && r"`c`" == "`c`" // d.?e""",
        "true ? [true ? 1 : 2][0] == 1 : false",
    ],
)
def test_syntax_that_means_the_same(text: str) -> None:
    assert compile_expression(text).is_true(CLUSTER, Fleet())


PREDICATE = {"labelSelector": {"matchLabels": {"vendor": "OpenShift"}}}


@pytest.mark.parametrize(
    ("selector", "is_loaded"),
    [
        pytest.param(PREDICATE, False, id="labels alone"),
        pytest.param(PREDICATE | {"celSelector": {"celExpressions": ["true"]}}, True, id="CEL"),
    ],
)
def test_it_is_loaded_when_it_is_asked_for(selector: dict[str, Any], is_loaded: bool) -> None:
    code = f"""
import sys
from kubectl_placement.scheduling.predicates import parse_predicate
parse_predicate({selector!r})
sys.exit("celpy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == is_loaded


def test_versions_in_their_order() -> None:
    order = (
        "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.10.0"
    )
    versions = [parse_version(text) for text in order.split()]
    versions_mixed = versions[4:] + versions[:4]
    assert sorted(versions_mixed) == versions
