"""The cost limit of CEL expressions: those that would take seconds, or all memory, are given up."""

from typing import Any

import pytest

from kubectl_placement.scheduling import Fleet, cel
from kubectl_placement.scheduling.cel import TOO_COSTLY, compile_expression
from kubectl_placement.scheduling.cel_budget import STEPS, Budget
from tests.kubectl_placement.scheduling import test_cel
from tests.support.growth import calls_of

DIGITS = "[1,2,3,4,5,6,7,8,9]"
CALLS_PER_STEP = 30
"""Of functions, in C or not: a step of the budget stands for no more."""
ORDINARY = [text for mark in test_cel.test_true.pytestmark for text in mark.args[1]]  # type: ignore[attr-defined]


def nested(macro: str, body: str = "true") -> str:
    for name in "edcba":
        body = f"{DIGITS}.{macro}({name},{body})"
    return body


def doubled(body: str, value: str, start: str = "1", times: int = 25) -> str:
    """Bind `x` to `value` again and again, which contains the previous x twice."""
    for _ in range(times):
        body = f"[{value}].all(x,{body})"
    return f"[{start}].all(x,{body})"


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[Budget]:
    """The budgets of the evaluations."""
    used: list[Budget] = []

    def budget() -> Budget:
        used.append(Budget())
        return used[-1]

    monkeypatch.setattr(cel, "Budget", budget)
    return used


@pytest.mark.parametrize(
    "text",
    [
        *(
            pytest.param(nested(macro), id=macro)
            for macro in ("all", "exists", "map", "filter", "exists_one")
        ),
        pytest.param(doubled("x == x", "x+x", "'aa'", 40), id="long text"),
        *(
            pytest.param(doubled(body, "[x,x]"), id=f"nested lists: {body}")
            for body in (
                *("x == x", "x in [x]", "string(x) == ''", "[x].join() == ''", "x || true", "x.foo == 1"),
                *("x.scores(x) == 1", "all(x)", "[1].all(y, x)", "[1].exists(y, {1: x})", "[x].min() == x"),
            )
        ),
        pytest.param(nested("all", "''.matches('(\\\\pL{500}){2}' + string(a) + string(b))"), id="patterns"),
        pytest.param(
            doubled("x.findAll('a|a.*?b').size() > 0", "x+x", "'aaaaaaaaaaaaaaaa'", 12), id="findAll"
        ),
        pytest.param(doubled("x.replace('a', x) == x", "x+x", "'aaaaaaaaaaaaaaaa'", 12), id="replace"),
    ],
)
def test_too_costly(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tenth of the budget: each expression uses up all of it."""
    monkeypatch.setattr(cel, "Budget", lambda: Budget(STEPS // 10))
    assert calls_until_it_is_given_up(text) < CALLS_PER_STEP * STEPS // 10


def test_the_budget_of_an_expression() -> None:
    assert calls_until_it_is_given_up(nested("all")) < 1_500_000


def calls_until_it_is_given_up(text: str) -> int:
    expression, found = compile_expression(text), list[str]()
    calls = calls_of(lambda: found.append(expression.lack(test_cel.CLUSTER, Fleet())))
    assert found == [TOO_COSTLY]
    return calls


@pytest.mark.parametrize(
    ("text", "lack"),
    [
        pytest.param(f"('{'a' * 34}!').find('^(a+)+$') == ''", "", id="find"),
        pytest.param(f"('{'a' * 60}!').findAll('(a|aa)+$').size() == 0", "", id="findAll"),
        pytest.param(f"duration('{'a' * 60}!') == duration('1h')", "is not true", id="duration"),
        pytest.param("'%999999999d' % 1 == 'a'", "is not true", id="formatted text"),
        pytest.param("b'%999999999d' % 1 == b'a'", "is not true", id="formatted bytes"),
        pytest.param("[[1], [2]].sum() == [1, 2]", "is not true", id="sum of lists"),
        pytest.param("duration('1h30m') == duration('90m') && 7 % 4 == 3", "", id="as before"),
    ],
)
def test_cheap_now(text: str, lack: str) -> None:
    assert compile_expression(text).lack(test_cel.CLUSTER, Fleet()) == lack


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_expressions_take_a_fortieth_at_most(text: str, budgets: list[Budget]) -> None:
    assert compile_expression(text).is_true(test_cel.CLUSTER, Fleet.of([test_cel.SCORES]))
    assert STEPS - budgets[0].left <= STEPS // 40


def test_a_large_cluster_takes_a_tenth_at_most(budgets: list[Budget]) -> None:
    claims: list[Any] = [{"name": f"claim-{number}", "value": "x" * 60} for number in range(50)]
    cluster = {"metadata": {"name": "c"}, "status": {"clusterClaims": claims}}
    text = 'managedCluster.status.clusterClaims.exists(c, c.name == "claim-49" && c.value.startsWith("x"))'
    assert compile_expression(text).is_true(cluster, Fleet())
    assert STEPS - budgets[0].left <= STEPS // 10
