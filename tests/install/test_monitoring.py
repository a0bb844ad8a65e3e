"""Alerts and dashboard: the PromQL names existing metrics and labels; each alert has an action."""

import re
from itertools import pairwise
from typing import Any

import promql_parser
import pytest
import yaml
from promql_parser import AggModifierType, AggregateExpr, BinaryExpr, Call, VectorSelector

from placement_ac.observability.metric_definitions import DEFINITIONS, QUARANTINED
from tests.support.documents import MONITORING, table
from tests.support.monitoring import (
    FOLDER,
    VARIABLES,
    Expression,
    dashboard,
    expressions,
    nodes,
    panels,
    rules,
    selectors,
    without_variables,
)

TARGET = {"job", "instance", "pod"}
"""Labels that Prometheus adds to each series."""
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
"""Process metrics of prometheus_client."""
COUNTING = ("rate", "increase")
ALL = [pytest.param(expression, id=expression.where) for expression in expressions()]


def exported() -> dict[str, set[str]]:
    """Name → labels of every series that a scrape can return."""
    found: dict[str, set[str]] = {name: set(TARGET) for name in PROCESS}
    for measure in DEFINITIONS:
        labels = {*measure.labels, *TARGET}
        if measure.type == "histogram":
            found[f"{measure.name}_bucket"] = labels | {"le"}
            found[f"{measure.name}_count"] = found[f"{measure.name}_sum"] = labels
        else:
            found[measure.name] = labels
    return found


def labels_of(node: Any) -> set[str]:
    """Return the labels of an expression's result; at most those of its leftmost selector."""
    if isinstance(node, VectorSelector):
        return exported()[node.name]
    if isinstance(node, AggregateExpr):
        assert node.modifier is None or node.modifier.type == AggModifierType.By
        return set(node.modifier.labels) if node.modifier else set()
    if isinstance(node, Call):
        vectors = [labels_of(argument) for argument in node.args]
        return set().union(*vectors) - ({"le"} if node.func.name == "histogram_quantile" else set())
    if isinstance(node, BinaryExpr):
        left = labels_of(node.lhs)
        return left or labels_of(node.rhs)
    inner = getattr(node, "vector_selector", None) or getattr(node, "expr", None)
    return labels_of(inner) if inner is not None else set()


@pytest.mark.parametrize("expression", ALL)
def test_promql_parses_and_names_existing_metrics_and_labels(expression: Expression) -> None:
    known = exported()
    for selector in selectors(expression.text):
        assert selector.name in known
        assert {matcher.name for matcher in selector.matchers.matchers} <= known[selector.name]
    for node in nodes(expression.text):
        if isinstance(node, AggregateExpr) and node.modifier:
            assert set(node.modifier.labels) <= labels_of(node.expr)


@pytest.mark.parametrize("expression", ALL)
def test_a_counter_is_never_looked_at_without_a_rate(expression: Expression) -> None:
    counters = re.compile(r"_(total|bucket|count|sum)$")
    counted = [
        node.args[0].vector_selector.name
        for node in nodes(expression.text)
        if isinstance(node, Call) and node.func.name in COUNTING
    ]
    named = [selector.name for selector in selectors(expression.text) if counters.search(selector.name)]
    assert counted == named


@pytest.mark.parametrize("expression", ALL)
def test_templates_name_labels_that_the_result_has(expression: Expression) -> None:
    there = labels_of(promql_parser.parse(expression.text))
    for template in expression.templates:
        named = {found.removeprefix("$labels.") for found in re.findall(r"{{\s*([\w.$]+)", template)}
        assert named - {"$value"} <= there


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule["alert"]) for rule in rules()])
def test_a_person_can_act_on_an_alert(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert promql_parser.parse_duration(rule["for"]).total_seconds() >= 60
    assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    assert set(rule["annotations"]) == {"summary", "description"}
    assert len(rule["annotations"]["summary"]) < 100 < len(rule["annotations"]["description"])


@pytest.mark.parametrize("alert", ["PlacementAcCheckNotActive", "PlacementAcClusterDisconnected"])
@pytest.mark.parametrize(
    ("down", "up", "fires"),
    [(600, 0, True), (600, 60, True), (240, 60, True), (240, 30, True), (60, 240, False), (0, 600, False)],
)
def test_an_alert_fires_for_a_state_that_comes_and_goes(alert: str, down: int, up: int, fires: bool) -> None:
    """In a day, evaluated each 30 s."""
    [rule] = [rule for rule in rules() if rule["alert"] == alert]
    compared = promql_parser.parse(rule["expr"])
    average, [over] = compared.lhs.func.name, compared.lhs.args
    assert (average, str(compared.op)) == ("avg_over_time", "<")
    assert "reason" not in labels_of(over.expr)  # with another reason, `for` would begin anew
    samples, step = int(over.range.total_seconds()) // 30, int(over.step.total_seconds())
    hold = promql_parser.parse_duration(rule["for"]).total_seconds()
    values = [float(now % (down + up) >= down) for now in range(0, 86400, step)]
    since, fired = None, False
    for now in range(0, 86400, step):
        seen = values[max(0, now // step - samples + 1) : now // step + 1]
        is_low = sum(seen) / len(seen) < compared.rhs.val
        since = (now if since is None else since) if is_low else None
        fired |= since is not None and now - since >= hold
    assert fired is fires


def test_the_alert_of_a_quarantine_holds_for_one_of_some_namespaces_alone() -> None:
    """Whatever shows the metric says what its help says."""
    phrase = "gets no new jobs, or none of some namespaces"
    assert phrase in QUARANTINED.help
    [alert] = [rule for rule in rules() if rule["alert"] == "PlacementAcClusterQuarantined"]
    assert phrase in alert["annotations"]["summary"]
    [panel] = [panel for panel in panels() if QUARANTINED.name in str(panel.get("targets"))]
    assert phrase in panel["description"]


def test_the_docs_have_every_alert() -> None:
    documented = [row[:3] for row in table(MONITORING, "Alerts")]
    assert documented == [(rule["alert"], rule["labels"]["severity"], rule["for"]) for rule in rules()]


@pytest.mark.parametrize(
    ("alert", "phrase", "expression"),
    [
        ("PlacementAcNotReconciling", "no reconcile for half an hour", "[30m]"),
        ("PlacementAcDrainStuck", "draining for a day", "> 86400"),
        ("PlacementAcJobsHeld", "held a job for ten minutes", "> 600"),
        ("PlacementAcCredentialsNotRenewed", "expire within the hour", "< 3600"),
        ("PlacementAcCredentialsExpireSoon", "expire within a week", "< 604800"),
        ("PlacementAcReconcileHangs", "one reconcile takes minutes", "> 120"),
        (
            "PlacementAcSlow",
            "one change in a hundred is written more than 10 s after",
            "histogram_quantile(0.99,",
        ),
        ("PlacementAcSlow", "one change in a hundred is written more than 10 s after", "> 10"),
    ],
)
def test_the_times_in_the_docs_are_those_of_the_alerts(alert: str, phrase: str, expression: str) -> None:
    [meaning] = [row[3] for row in table(MONITORING, "Alerts") if row[0] == alert]
    [rule] = [rule for rule in rules() if rule["alert"] == alert]
    assert (phrase in meaning, expression in rule["expr"]) == (True, True)


def test_the_docs_have_every_panel() -> None:
    rows: list[tuple[str, list[str]]] = []
    for panel in dashboard()["panels"]:
        if panel["type"] == "row":
            rows.append((panel["title"], []))
        else:
            rows[-1][1].append(panel["title"])
    assert table(MONITORING, "The dashboard") == [(row, "; ".join(titles)) for row, titles in rows]


def test_every_metric_is_on_the_dashboard() -> None:
    text = " ".join(expression.text for expression in expressions())
    assert [measure.name for measure in DEFINITIONS if measure.name not in text] == []


# -- Grafana


def test_every_variable_is_declared_or_grafanas_own() -> None:
    declared = {variable["name"] for variable in dashboard()["templating"]["list"]}
    assert declared == {"datasource", "check"}
    for panel in panels():
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            used = set(re.findall(r"\$\w+", target["expr"]))
            assert used <= set(VARIABLES)
            assert "$" not in without_variables(target["expr"])
            assert target["datasource"] == panel["datasource"]


def test_the_variable_check_uses_an_existing_label() -> None:
    [query] = [v["query"]["query"] for v in dashboard()["templating"]["list"] if v["name"] == "check"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()  # type: ignore[union-attr]  # it fails then
    assert label in exported()[name]


def test_panels_lie_side_by_side_and_have_ids_of_their_own() -> None:
    found = dashboard()["panels"]
    assert len({panel["id"] for panel in found}) == len(found)
    places = [panel["gridPos"] for panel in found]
    for before, after in pairwise(places):
        below = after["y"] == before["y"] + before["h"] and after["x"] == 0
        beside = after["y"] == before["y"] and after["x"] == before["x"] + before["w"]
        assert below or beside
        assert after["x"] + after["w"] <= 24
    assert dashboard()["schemaVersion"] >= 36  # Grafana 10


def test_every_panel_says_what_it_shows() -> None:
    assert [panel["title"] for panel in panels() if not panel["description"]] == []


# -- kustomize


def test_the_component_has_what_is_there() -> None:
    loaded = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
    assert (loaded["kind"], loaded["apiVersion"]) == ("Component", "kustomize.config.k8s.io/v1alpha1")
    [generated] = loaded["configMapGenerator"]
    assert generated["options"]["labels"]["grafana_dashboard"] == "1"
    named = {*loaded["resources"], *(file.partition("=")[2] for file in generated["files"])}
    assert named | {"kustomization.yaml"} == {path.name for path in FOLDER.iterdir()}
