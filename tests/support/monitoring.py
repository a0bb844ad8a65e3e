"""The content of config/monitoring: the alerts, the dashboard, and the PromQL of both."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser
import yaml
from promql_parser import MatchOp, VectorSelector

Object = dict[str, Any]

FOLDER = Path(__file__).resolve().parents[2] / "config" / "monitoring"
VARIABLES = {"$__rate_interval": "5m", "$check": ".*"}
"""The values of Grafana's variables when all checks are selected."""


class Expression(NamedTuple):
    where: str
    text: str
    """PromQL, without variables."""
    templates: tuple[str, ...]
    """Texts that use labels of the result."""


def rules() -> list[Object]:
    loaded = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    return [rule for group in loaded["spec"]["groups"] for rule in group["rules"]]


def dashboard() -> Object:
    return dict(json.loads((FOLDER / "dashboard.json").read_text("utf-8")))


def panels() -> list[Object]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def without_variables(text: str) -> str:
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def expressions() -> list[Expression]:
    of_rules = [
        Expression(rule["alert"], rule["expr"], tuple(rule["annotations"].values())) for rule in rules()
    ]
    of_panels = [
        Expression(panel["title"], without_variables(target["expr"]), (target["legendFormat"],))
        for panel in panels()
        for target in panel["targets"]
    ]
    return of_rules + of_panels


def nodes(text: str) -> Iterator[Any]:
    """Yield every node of an expression. Raises ValueError for invalid PromQL."""
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(text), found.append)
    yield from found


def selectors(text: str) -> list[VectorSelector]:
    return [node for node in nodes(text) if isinstance(node, VectorSelector)]


def matches(selector: VectorSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches a series with these labels; a missing label counts as ""."""
    for matcher in selector.matchers.matchers:
        value = labels.get(matcher.name, "")
        regular = matcher.op in (MatchOp.Re, MatchOp.NotRe)
        same = bool(re.fullmatch(matcher.value, value)) if regular else matcher.value == value
        if same is not (matcher.op in (MatchOp.Equal, MatchOp.Re)):
            return False
    return True
