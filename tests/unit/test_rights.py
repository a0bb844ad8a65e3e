"""What MultiKueue's account may do on a worker, and what is told of it."""

import itertools
import re
from pathlib import Path

import pytest

from placement_ac.rights import (
    DEFAULT_FRAMEWORKS,
    FRAMEWORKS,
    GATES,
    WORKLOAD_RULES,
    External,
    Kind,
    Right,
    Rule,
    external,
    kinds,
    needed,
    rules,
)

PAGE = Path(__file__).parents[2] / "docs/credentials.md"
PIPELINE_RUN = External("PipelineRun.v1.tekton.dev", "tekton.dev", "v1", "PipelineRun", "pipelineruns")
SENT = ("create", "delete", "get", "watch")


def test_the_rules_of_a_few_kinds() -> None:
    assert [rule.as_dict() for rule in rules(["kubeflow.org/tfjob", "batch/job", "kubeflow.org/mpijob"])] == [
        {
            "apiGroups": ["batch"],
            "resources": ["jobs"],
            "verbs": ["create", "delete", "get", "patch", "watch"],
        },
        {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs", "tfjobs"], "verbs": [*SENT]},
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["workloads"],
            "verbs": ["create", "delete", "get", "list", "update", "watch"],
        },
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["patch"]},
    ]


def test_without_any_kind_there_are_still_the_workloads() -> None:
    assert rules([]) == WORKLOAD_RULES


@pytest.mark.parametrize("name", ["deployment", "sparkoperator.k8s.io/sparkapplication"])
def test_a_kind_that_multikueue_does_not_send_needs_nothing(name: str) -> None:
    assert rules([name]) == WORKLOAD_RULES
    assert kinds([name]) == ()


def test_the_order_is_always_the_same_and_nothing_is_there_twice() -> None:
    named = ["ray.io/rayjob", "pod", "ray.io/raycluster"]
    ways = {rules(order, [PIPELINE_RUN]) for order in itertools.permutations(named)}
    assert ways == {rules([*named, *named], [PIPELINE_RUN, PIPELINE_RUN])}


def test_nothing_is_granted_by_a_wildcard_and_nothing_that_grants_more() -> None:
    for rule in rules(FRAMEWORKS, [PIPELINE_RUN], GATES):
        assert not any("*" in name for names in rule.as_dict().values() for name in names)
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & {*rule.verbs}
        assert not {"secrets", "serviceaccounts", "roles", "clusterroles"} & {*rule.resources}


def test_an_external_kind_that_is_known_already_keeps_what_it_may() -> None:
    job = external("Job.v1.batch")
    assert isinstance(job, External)
    assert rules(["batch/job"], [job]) == rules(["batch/job"])


def test_a_gate_adds_to_the_rules() -> None:
    assert rules([], gates=["MultiKueueOrchestratedPreemption", "MultiKueueManagerQuotaAutomation"]) == (
        Rule(("kueue.x-k8s.io",), ("clusterqueues", "localqueues"), ("list", "watch")),
        WORKLOAD_RULES[0],
        Rule(("kueue.x-k8s.io",), ("workloads/status",), ("patch", "update")),
    )


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="cronjob"):
        rules(["batch/cronjob"])


def test_what_is_asked_one_by_one() -> None:
    assert needed(["statefulset"], [PIPELINE_RUN]) == (
        *(Right("apps", "statefulsets", "", verb) for verb in SENT),
        *(Right("kueue.x-k8s.io", "workloads", "", verb) for verb in WORKLOAD_RULES[0].verbs),
        Right("kueue.x-k8s.io", "workloads", "status", "patch"),
        *(Right("tekton.dev", "pipelineruns", "", verb) for verb in SENT),
    )


def test_what_a_worker_has_to_serve() -> None:
    assert kinds(["pod", "kubeflow.org/mpijob"], [PIPELINE_RUN]) == (
        Kind("pod", "", "pods", "v1"),
        Kind("kubeflow.org/mpijob", "kubeflow.org", "mpijobs", "v2beta1"),
        Kind("PipelineRun.v1.tekton.dev", "tekton.dev", "pipelineruns", "v1"),
    )


def test_the_default_is_of_kinds_that_are_sent() -> None:
    assert len(kinds(DEFAULT_FRAMEWORKS)) == len(DEFAULT_FRAMEWORKS) == 11


@pytest.mark.parametrize(
    ("text", "plural", "group"),
    [
        ("PipelineRun.v1.tekton.dev", "pipelineruns", "tekton.dev"),
        ("Workflow.v1alpha1.argoproj.io", "workflows", "argoproj.io"),
        ("Proxy.v2beta10.example.com", "proxies", "example.com"),
        ("Process.v1.example", "processes", "example"),
        ("MyEndpoints.v1.example.com", "myendpoints", "example.com"),
    ],
)
def test_an_external_kind(text: str, plural: str, group: str) -> None:
    found = external(text)
    assert isinstance(found, External)
    assert (found.name, found.plural, found.group) == (text, plural, group)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PipelineRun",
        "PipelineRun.tekton.dev",
        "PipelineRun.v1",
        "PipelineRun.v1.",
        "pipelinerun.v1.tekton.dev",
        "*.v1.tekton.dev",
        "PipelineRun.v1.*",
        "PipelineRun.v1.tekton.dev\n",
        "PipelineRun.v1.tekton..dev",
        f"PipelineRun.v1.{'a' * 254}",
    ],
)
def test_a_name_that_is_no_external_kind(text: str) -> None:
    assert external(text) == f"{text!r} is no Kind.version.group, like PipelineRun.v1.tekton.dev"


# -- the page


def rows(heading: str) -> dict[str, list[str]]:
    """First cell → the others, of the tables under a heading of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line[:1] == "|"
    ]
    return {row[0]: row[1:] for row in cells if not re.fullmatch(r"-+", row[0])}


def told(rule: Rule) -> tuple[str, str]:
    """A rule as the page has it: resources as kubectl takes them, and verbs."""
    (group,) = rule.groups
    split = (resource.partition("/") for resource in rule.resources)
    names = (f"{plural}.{group}{slash}{sub}" for plural, slash, sub in split)
    return ", ".join(f"`{name.removesuffix('.')}`" for name in names), ", ".join(rule.verbs)


def test_the_page_has_each_kind_with_its_rights_and_no_other() -> None:
    on_page = rows("Rights on a worker")
    expected = {
        f"`{name}`": [*(told(one.rules[0]) if one.rules else ("none", "")), one.since, f"`{one.source}`"]
        for name, one in FRAMEWORKS.items()
    }
    gates = {
        f"gate `{name}`": [*told(gate.rules[0]), gate.since, f"`{gate.source}`"]
        for name, gate in GATES.items()
    }
    workloads = {told(rule)[0]: told(rule)[1] for rule in WORKLOAD_RULES}
    assert {name: row for name, row in on_page.items() if name in expected} == expected
    assert {name: row for name, row in on_page.items() if name in gates} == gates
    assert {row[0]: row[1] for name, row in on_page.items() if name.startswith("any")} == workloads
    assert len(on_page) == len(expected) + len(gates) + len(workloads) + 2  # a heading, an external kind
