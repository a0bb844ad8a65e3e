"""CEL expressions on a cluster: refused, not evaluated, kept. test_cel_answers has what they give."""

import subprocess
import sys
from typing import Any

import pytest

from kubectl_placement.scheduling import Fleet
from kubectl_placement.scheduling.canonical_quantities import canonical
from kubectl_placement.scheduling.cel import CelError, Expression, compile_expression
from kubectl_placement.scheduling.cel_environment import DEPTH, ITERATIONS
from kubectl_placement.scheduling.selectors import UnsupportedError
from tests.support.cel_answers import recording

CLUSTER: dict[str, Any] = recording()["cluster"]
SCORES = {
    "kind": "AddOnPlacementScore",
    "metadata": {"name": "usage", "namespace": "c"},
    "status": {"scores": recording()["scores"]["usage"]},
}
DIGITS = "[1,2,3,4,5,6,7,8,9]"


def nested(macro: str, body: str = "true") -> str:
    for name in "edcba":
        body = f"{DIGITS}.{macro}({name},{body})"
    return body


def repeated(body: str, value: str, start: str, times: int = 15) -> str:
    """Bind `x` to `value` again and again, which contains the previous x twice."""
    for _ in range(times):
        body = f"[{value}].all(x,{body})"
    return f"[{start}].all(x,{body})"


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
        ("1 +", "syntax error at line 1, column 4"),
        ("", "syntax error at line 1, column 1"),
        ("cluster.metadata.name == 'c'", "undeclared reference to 'cluster.metadata.name' at line 1"),
        ("managedCluster.nosuch(1)", "undeclared reference to 'nosuch' at line 1, column 22"),
        ("[1].exists(x, x == 1) &&\nx == 1", "undeclared reference to 'x' at line 2, column 1"),
        ("sets.contains([1], [1])", "undeclared reference to 'sets' at line 1, column 1"),
        (
            "semver('v1', true).major() == 1",
            "no overload of 'semver' takes as many arguments at line 1",
        ),
        ("1 < 2.0", "found no matching overload for '_<_' applied to '(int, double)' at line 1, column 3"),
        ("'a' == '\ud800'", "it is no valid text"),
    ],
)
def test_an_expression_that_does_not_compile_is_an_error_that_says_why(text: str, objection: str) -> None:
    with pytest.raises(CelError, match=r"^compilation failed: ") as caught:
        compile_expression(text)
    assert objection in str(caught.value)


def test_a_message_stays_short() -> None:
    with pytest.raises(CelError) as caught:
        compile_expression(f"{'nosuch(' * 20}{'x' * 10_000}{')' * 20}")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            pytest.param(nested(macro), f"it takes more than {ITERATIONS:,} iterations", id=macro)
            for macro in ("all", "exists_one", "map")
        ),
        pytest.param("(" * 40 + "true" + ")" * 40, f"it is more than {DEPTH} deep", id="brackets"),
        pytest.param("+".join("1" * 40) + " > 1", f"it is more than {DEPTH} deep", id="a sum"),
        *(
            pytest.param(
                repeated(body, value, start), "its macros may repeat a value more than 10,000 times", id=body
            )
            for body, value, start in (
                ("x == x", "x+x", "'aa'"),
                ("x in [x]", "[x,x]", "1"),
                ("x.replace('a', x) == x", "x+x", "'aa'"),
            )
        ),
        pytest.param(
            "'a'.matches('\\\\pL{100}')", "its pattern may repeat a Unicode class", id="a large pattern"
        ),
        pytest.param(
            "{'a': 1, 'a': 2}.a == 2", "the runtime gives up: duplicate key in map", id="a key twice"
        ),
    ],
)
def test_what_exceeds_a_limit_is_not_evaluated(text: str, why: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_expression(text).lack(CLUSTER, Fleet())
    shown = text if len(text) <= 200 else f"{text[:200]} …"
    assert str(caught.value) == f"the CEL expression is not evaluated, because {why}: {shown}"


@pytest.mark.parametrize(("claims", "is_evaluated"), [(ITERATIONS, True), (ITERATIONS + 1, False)])
def test_the_limit_of_the_iterations(claims: int, is_evaluated: bool) -> None:
    cluster = {"metadata": {"name": "c"}, "status": {"clusterClaims": [{"name": "a"}] * claims}}
    expression = compile_expression('managedCluster.status.clusterClaims.all(c, c.name == "a")')
    if is_evaluated:
        assert expression.is_true(cluster, Fleet())
    else:
        with pytest.raises(UnsupportedError):
            expression.is_true(cluster, Fleet())


def deep(depth: int) -> Any:
    value: Any = "c"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("name", ["\ud800", deep(900)], ids=["half a surrogate pair", "deep lists"])
def test_a_cluster_that_cannot_be_read_is_not_evaluated(name: Any) -> None:
    expression = compile_expression('managedCluster.metadata.name == "c"')
    with pytest.raises(UnsupportedError):
        expression.is_true({"metadata": {"name": name}}, Fleet())


def test_nulls_are_left_out() -> None:
    """OCM's typed object has none."""
    cluster = {"metadata": {"name": "c", "labels": {"a": None}}}
    expression = compile_expression('!("a" in managedCluster.metadata.labels)')
    assert expression.is_true(cluster, Fleet())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *(("8", "8"), ("8000m", "8"), ("1500m", "1500m"), ("0.1", "100m"), ("1000000", "1M"), ("0", "0")),
        *(("1024Mi", "1Gi"), ("1536Ki", "1536Ki"), ("0.5Gi", "512Mi"), ("1.5Ki", "1536"), ("0.5Ki", "512")),
        *(("1e3", "1e3"), ("12e5", "1200e3"), ("1E", "1E"), ("-5", "-5"), ("lots", "lots")),
    ],
)
def test_an_amount_is_written_as_go_writes_it(given: str, wanted: str) -> None:
    assert canonical(given) == wanted


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
sys.exit("cel_expr_python" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == is_loaded
