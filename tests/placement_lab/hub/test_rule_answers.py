"""Each recorded expression gives in a rule of a CRD what it gives in an API server's environment."""

from placement_lab.structural_schema.rules import environment
from tests.support.cel_answers import ERROR, NOT_EVALUATED, REFUSED, Answer, answered, recorded, recording

DIFFERENT: dict[str, Answer] = {
    'int(" 1")': ("int", 1),
    '"tacocat".indexOf("a", 10)': ERROR,
    'duration("1s500ms").getMilliseconds()': ("int", 500),
    '"baac".findAll("a*")': ("list", ["aa"]),
    '"%s".format([{"a": 1}])': ("string", "{a: 1}"),
    '"%e".format([1234.5])': ("string", "1.234500e+03"),
    '{1.5: "a"}': ERROR,
    '{"a": 1, "a": 2}': NOT_EVALUATED,
    '{"a": 1}.transformMap(k, v, v + 1)': NOT_EVALUATED,
    '[duration("1h"), duration("30m")].sum() == duration("90m")': NOT_EVALUATED,
    # An API server refuses a list of several types, and names in backquotes.
    '[1, "a"].size()': ("int", 2),
    "[?managedCluster.?c, 1,].size()": ("int", 1),
    '[{"b": 1}, {"key": "a"}].exists(o, o.key == "a")': ("bool", True),
    '[{"key": "a"}, {"b": 1}].exists(o, o.key == "a")': ("bool", True),
    '[{"b": 1}, {"key": "c"}].all(o, o.key == "a")': ("bool", False),
    "has(managedCluster.metadata.labels.`a-b`)": ("bool", False),
}
"""The rows of docs/develop/cel.md."""


def test_the_answers_are_those_of_an_api_server() -> None:
    """A rule that does not compile there, and one that fails: both are refused writes."""
    cluster = recording()["cluster"]
    amounts = {"allocatable": {"cpu": "8", "memory": "16Gi"}, "capacity": {"cpu": "8"}}
    variables: dict[str, object] = {"managedCluster": {**cluster, "status": {**cluster["status"], **amounts}}}
    rules = environment("managedCluster")
    given = {text: answered(rules, text, variables) for text in recorded("kubernetes")}
    assert _failing(given) == _failing(recorded("kubernetes") | DIFFERENT)


def _failing(answers: dict[str, Answer]) -> dict[str, Answer]:
    return {text: ERROR if answer == REFUSED else answer for text, answer in answers.items()}
