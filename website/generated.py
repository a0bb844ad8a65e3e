"""
The pages of the reference that are generated from the code: every reason, metric, event, setting and command.

Names, defaults and short descriptions come from the code, fixes and longer descriptions from
`docs/reference.md`, whose tables are compared with the code by tests. If an item is missing there, generating
the page fails.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import annotated_types
import click
import yaml

from kubectl_placement.doctor.finding import DoctorRule
from kubectl_placement.doctor.hub_rules import RULES as HUB_RULES
from kubectl_placement.doctor.worker_rules import RULES as WORKER_RULES
from placement_ac.cli.main import COMMANDS, main
from placement_ac.config.layout import PATHS, as_file
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import PATTERN_HELP, Settings, default_of, is_duration, is_list
from placement_ac.core.api.constants import EVENTS, REASONS
from placement_ac.observability.metric_definitions import DEFINITIONS, MetricDefinition
from website.examples import example
from website.markdown import Row, tables

ROOT: Final = Path(__file__).resolve().parents[1]
REFERENCE: Final = ROOT / "docs" / "reference.md"
ALERTS: Final = ROOT / "config" / "monitoring" / "alerts.yaml"

SETTINGS_IN_USE: Final = {
    "config": "/etc/placement-ac/config.yaml",
    "kubeconfig": "hub.kubeconfig",
    "context": "hub",
    "placement_namespace": "team-a,team-b",
    "kueue_namespace": "kueue",
    "cluster_names": "{cluster}",
    "credentials": "secret,access-provider",
    "removal_policy": "Immediate",
    "drain_deadline": "2h",
    "waiting_grace": "30s",
    "settle": "1m",
    "mass_loss_grace": "10m",
    "retry_waiting_after": "30m",
    "dispatcher": "true",
    "unlist_after": "30m",
    "step_size": "5",
    "dispatch_profile": "Placement=1,Spread=2",
    "node_labels": "topology.kubernetes.io/region=claim:region",
    "avoid_after_failure": "10m",
    "look_for": "jobs,integrations",
    "job_taints": "example.com/*",
    "cost_labels": "cost.example.com/hour",
    "access_providers": "/etc/placement-ac/access-providers.yaml",
    "credentials_provision": "managed-serviceaccount",
    "credentials_account": "multikueue",
    "credentials_form": "cluster-profile",
    "credentials_validity": "12h",
    "credentials_probe": "true",
    "cluster_proxy": "https://cluster-proxy.example:9092",
    "cluster_proxy_ca": "/etc/placement-ac/proxy-ca.crt",
    "worker_setup": "manifestwork",
    "worker_setup_template": "queues",
    "quota_reserve": "5%",
    "report_scores": "true",
    "score_gpus": "nvidia.com/gpu,nvidia.com/mig-1g.5gb",
    "score_nodes": "true",
    "kueue_version": "0.20.0",
    "kueue_feature_gates": "MultiKueueManagerQuotaAutomation=true",
    "frameworks": "batch/job,jobset.x-k8s.io/jobset",
    "external_frameworks": "PipelineRun.v1.tekton.dev",
    "metrics_bind_address": ":8080",
    "health_probe_bind_address": ":8081",
    "leader_elect": "false",
    "leader_elect_lease_duration": "30s",
    "leader_elect_resource_name": "placement-ac-test",
    "leader_elect_resource_namespace": "placement-ac-system",
    "log_format": "json",
    "log_level": "debug",
}
"""An example value of each setting, as written for the flag."""


def reasons() -> str:
    """Return the page of the reasons of the condition `Active`."""
    _, fixes, *_ = _tables("The condition `Active` and its reasons")
    return _page(
        "Every reason",
        "The reasons of the condition `Active` that this release sets on an AdmissionCheck. "
        "[The reference](../reference.md#the-condition-active-and-its-reasons) has them side by side. "
        "The examples show the condition of the check of [Story 2](../stories.md) in each situation.",
        "placement-ac status placement-demo2\n"
        "kubectl get admissioncheck placement-demo2 -o jsonpath='{.status.conditions}'",
        (_reason(name, cause, fixes[name]) for name, cause in REASONS.items()),
    )


def _reason(name: str, cause: str, fix: Row) -> str:
    situation, verdict = example(name)
    return _item(
        name,
        ("Condition", f"`Active` is **{verdict.status}**"),
        ("Cause", cause),
        ("Objects", f"MultiKueueConfig and MultiKueueClusters: {fix[1]}"),
        ("Fix", fix[2]),
        ("Example", f"{situation}:<br>`{verdict.message}`"),
    )


def events() -> str:
    """Return the page of the Kubernetes events."""
    rows, *_ = _tables("Events")
    return _page(
        "Every event",
        "The Kubernetes events that this release posts. "
        "[The reference](../reference.md#events) describes where they are and how they are counted.",
        "kubectl events -n default --for admissioncheck/placement-demo2",
        (_event(name, rows[name]) for name in EVENTS),
    )


def _event(name: str, row: Row) -> str:
    type_, _ = EVENTS[name]
    return _item(
        name,
        ("Type", type_),
        ("On", row[2]),
        ("When", row[3]),
        ("See them", f"`kubectl get events -A --field-selector reason={name}`"),
    )


def metrics() -> str:
    """Return the page of the metrics, each with a query."""
    rules = yaml.safe_load(ALERTS.read_text("utf-8"))["spec"]["groups"]
    alerts = [(rule["alert"], rule["expr"]) for group in rules for rule in group["rules"]]
    return _page(
        "Every metric",
        "The metrics that this release serves on `/metrics`. [Monitoring](../monitoring.md) has the "
        "values of the labels, the dashboard and the alerts.",
        "kubectl port-forward -n placement-ac-system deployment/placement-ac 8080 &\n"
        "curl -s http://127.0.0.1:8080/metrics | grep placement_ac_",
        (
            _metric(definition, [name for name, asked in alerts if definition.name in asked])
            for definition in DEFINITIONS
        ),
    )


def _metric(measure: MetricDefinition, alerts: list[str]) -> str:
    return _item(
        measure.name,
        ("Type", measure.type),
        ("Labels", ", ".join(f"`{label}`" for label in measure.labels) or "none"),
        ("Meaning", measure.help),
        ("Buckets", ", ".join(f"{bound:g}" for bound in measure.buckets)),
        ("A query", f"`{query(measure)}`"),
        ("Alerts", ", ".join(f"[`{name}`](../monitoring.md#alerts)" for name in alerts)),
    )


def query(measure: MetricDefinition) -> str:
    """Return a Prometheus query for a metric: over all replicas, the last five minutes."""
    by = ", ".join(measure.labels)
    if measure.type == "counter":
        return f"sum by ({by}) (rate({measure.name}[5m]))"
    if measure.type == "histogram":
        return f"histogram_quantile(0.99, sum by (le, {by}) (rate({measure.name}_bucket[5m])))"
    return f"max by ({by}) ({measure.name})"


def settings() -> str:
    """Return the page of the settings."""
    rows, *_ = _tables("Settings")
    return _page(
        "Every setting",
        "The settings of `placement-ac run` in this release. "
        "[The reference](../reference.md#settings) describes the precedence of flag, variable and file.",
        "placement-ac run --print-settings",
        (_setting(name, rows["--" + _dashed(name)]) for name in Settings.model_fields),
    )


def _setting(name: str, row: Row) -> str:
    value = SETTINGS_IN_USE[name]
    plain = yaml.safe_load(value) if _is_plain(name) else value
    line = yaml.safe_dump(as_file({name: plain}), default_flow_style=None).strip() if name in PATHS else ""
    return _item(
        "--" + _dashed(name),
        ("Variable", f"`{PREFIX}{name.upper()}`"),
        ("Default", f"`{default_of(name)}`" if default_of(name) else "none"),
        ("Values", values(name)),
        ("Meaning", row[4]),
        ("In the settings file", f"`{line}`" if line else ""),
    )


def values(name: str) -> str:
    """Return the possible values of a setting, in words."""
    field = Settings.model_fields[name]
    literals = _literals(field.annotation)
    if literals:
        kind = " or ".join(f"`{literal}`" for literal in literals)
        return f"some of {kind.replace(' or ', ', ')}, separated by commas" if is_list(name) else kind
    kind = "a duration, like `90s` or `1h30m`" if is_duration(name) else _KINDS.get(_type(name), "text")
    if is_list(name):
        kind = "any number of them, separated by commas"
    bounds = [bound for kept in field.metadata if (bound := _bound(kept, is_duration(name)))]
    shape = [PATTERN_HELP[_dashed(name)]] if _dashed(name) in PATTERN_HELP else []
    return "; ".join([kind, *bounds, *shape])


_KINDS: Final = {"bool": "`true` or `false`", "int": "a whole number", "float": "a number", "Path": "a file"}


def _bound(kept: object, seconds: bool) -> str:
    unit = " seconds" if seconds else ""
    match kept:
        case annotated_types.Ge(ge=0):
            return ""
        case annotated_types.Ge(ge=least):
            return f"at least {least}{unit}"
        case annotated_types.Gt(gt=least):
            return f"more than {least}{unit}"
        case annotated_types.Le(le=most):
            return f"at most {most}{unit}"
        case _:
            return ""


def _type(name: str) -> str:
    kinds = (
        Settings.model_fields[name].annotation,
        *getattr(Settings.model_fields[name].annotation, "__args__", ()),
    )
    return next((kind.__name__ for kind in kinds if getattr(kind, "__name__", "") in _KINDS), "")


def _literals(annotation: Any) -> tuple[str, ...]:
    kinds = getattr(annotation, "__args__", ())
    if kinds and all(isinstance(value, str) for value in kinds):
        return tuple(kinds)
    return next((found for kind in kinds if (found := _literals(kind))), ())


def _is_plain(name: str) -> bool:
    return _type(name) in ("bool", "int", "float") and not is_duration(name)


def commands() -> str:
    """Return the page of the commands: each with its `--help`."""
    rows, *_ = _tables("Commands and exit codes")
    by_name = {name.removeprefix("placement-ac ").split()[0]: row for name, row in rows.items()}
    return _page(
        "Every command",
        "The commands of this release, and what their `--help` says. "
        "[The reference](../reference.md#options-of-the-commands) has them in two tables.",
        "placement-ac --help",
        (_command(name, by_name[name]) for name in COMMANDS),
    )


def _command(name: str, row: Row) -> str:
    command = main.get_command(click.Context(main), name)
    assert command  # noqa: S101  # it stands in COMMANDS
    asked = click.Context(command, info_name=f"placement-ac {name}", terminal_width=88)
    asked.help_option_names = ["-h", "--help"]
    text = f"{COMMANDS[name]}\n\n```text\n{command.get_help(asked)}\n```\n"
    return f"## `placement-ac {name}`\n\n{text}\nExit codes: {row[2]}.\n"


def _tables(heading: str) -> list[dict[str, Row]]:
    return tables(REFERENCE.read_text("utf-8"), heading)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _page(title: str, introduction: str, example: str, items: Iterator[str]) -> str:
    return f"# {title}\n\n{introduction}\n\n```bash\n{example}\n```\n\n" + "\n".join(items)


def _item(name: str, *rows: tuple[str, str]) -> str:
    table = "".join(f"| **{key}** | {_LINK.sub(_from_here, value)} |\n" for key, value in rows if value)
    return f"## `{name}`\n\n|  |  |\n|---|---|\n{table}"


_LINK: Final = re.compile(r"(?<=\]\()(?:(?!\.\./|https://)[\w/.-]+\.md)?(?:#[\w-]+)?(?=\))")


def _from_here(link: re.Match[str]) -> str:
    """Rewrite a link of the reference, or to a document beside it, for a page in `reference/`."""
    return f"../{'reference.md' if link[0].startswith('#') else ''}{link[0]}" if link[0] else ""


_ALL_CHECKS: Final[tuple[DoctorRule[Any], ...]] = (*HUB_RULES, *WORKER_RULES)
CHECKS: Final = tuple({rule.check: rule for rule in _ALL_CHECKS}.values())
"""The checks of `doctor`, on the hub and on a worker."""


def checks() -> str:
    """Return the page of the checks of `doctor`, on the hub and on the workers."""
    return _page(
        "Every check of the doctor",
        "The checks of `placement-ac doctor`, and with `--workers` those of each worker (`worker-…`). "
        "[Inspecting a hub](../inspect.md#doctor) explains the output.",
        "placement-ac doctor --list",
        (
            _item(rule.check, ("Requirement", rule.looks_at), ("Fix", f"`{rule.fix}`".replace("|", "\\|")))
            for rule in CHECKS
        ),
    )


PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/reasons.md": reasons,
    "reference/events.md": events,
    "reference/metrics.md": metrics,
    "reference/settings.md": settings,
    "reference/commands.md": commands,
    "reference/checks.md": checks,
}
"""The generated pages by their path in the site."""
