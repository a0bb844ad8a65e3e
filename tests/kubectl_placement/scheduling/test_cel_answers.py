"""Each recorded expression gives what OCM's package gives."""

from kubectl_placement.scheduling import Fleet
from kubectl_placement.scheduling.cel import as_typed, compile_expression, ocm, reading
from tests.support.cel_answers import ERROR, NOT_EVALUATED, REFUSED, Answer, answered, recorded, recording

DIFFERENT: dict[str, Answer] = {
    'int(" 1")': ("int", 1),
    '"tacocat".indexOf("a", 10)': ERROR,
    'duration("1s500ms").getMilliseconds()': ("int", 500),
    '"baac".findAll("a*")': ("list", ["aa"]),
    '"%d".format(["a"])': ERROR,
    '"%s %s".format(["a"])': ERROR,
    '"abc".find("(")': ERROR,
    '{1.5: "a"}': ERROR,
    '{"a": 1, "a": 2}': NOT_EVALUATED,
    '[duration("1h"), duration("30m")].sum() == duration("90m")': NOT_EVALUATED,
}
"""The rows of docs/develop/cel.md."""
SCORES = {
    "kind": "AddOnPlacementScore",
    "metadata": {"name": "usage", "namespace": "c"},
    "status": {"scores": recording()["scores"]["usage"]},
}


def test_the_answers_are_those_of_ocm() -> None:
    variables: dict[str, object] = {"managedCluster": as_typed(recording()["cluster"])}
    with reading(Fleet.of([SCORES])):
        given = {text: answered(ocm(), text, variables) for text in recorded("ocm")}
    assert given == recorded("ocm") | DIFFERENT
    assert len(given) - len(DIFFERENT) >= 300


def test_an_expression_selects_where_it_selects_in_ocm() -> None:
    compiled = {text: answer for text, answer in recorded("ocm").items() if answer != REFUSED}
    fleet = Fleet.of([SCORES])
    given = {
        text: compile_expression(text).is_true(recording()["cluster"], fleet)
        for text in compiled.keys() - DIFFERENT.keys()
    }
    assert given == {text: compiled[text] == ("bool", True) for text in given}
