"""The rights of MultiKueue's account on a worker, and the page about them."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac.core.inputs.rights import (
    ASSUMED,
    EXTERNAL_SINCE,
    FRAMEWORKS,
    GATES,
    WORKLOADS,
    ExternalFramework,
    JobKind,
    KueueRelease,
    PolicyRule,
    Right,
    VersionRange,
    default_frameworks,
    job_kinds,
    parse_external,
    parse_release,
    policy_rules,
    required_rights,
)

PAGE = Path(__file__).parents[4] / "docs/credentials.md"
PIPELINE_RUN = ExternalFramework(
    "PipelineRun.v1.tekton.dev", "tekton.dev", "v1", "PipelineRun", "pipelineruns"
)
SENT = ("create", "delete", "get", "watch")
WORKLOAD_RULES = (
    WORKLOADS[0].rule,
    PolicyRule(("kueue.x-k8s.io",), ("workloads/status",), ("patch", "update")),
)
"""As the release is not known."""
TRAINING = {f"kubeflow.org/{kind}job" for kind in ("paddle", "pytorch", "tf", "xgboost", "jax")}


def at(text: str) -> KueueRelease:
    found = parse_release(text)
    assert found
    return found


def verbs(framework: str, version: str) -> str:
    """The verbs that are granted for a kind, Workloads aside."""
    return " ".join(
        verb
        for rule in policy_rules([framework], kueue=at(version))
        for verb in rule.verbs
        if rule.groups != ("kueue.x-k8s.io",)
    )


def test_the_rules_of_a_few_kinds() -> None:
    assert [
        rule.as_dict() for rule in policy_rules(["kubeflow.org/tfjob", "batch/job", "kubeflow.org/mpijob"])
    ] == [
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
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["patch", "update"]},
    ]


def test_without_any_kind_there_are_still_the_workloads() -> None:
    assert policy_rules([]) == WORKLOAD_RULES


@pytest.mark.parametrize("name", ["deployment", "sparkoperator.k8s.io/sparkapplication"])
def test_a_kind_that_multikueue_does_not_send_needs_nothing(name: str) -> None:
    assert policy_rules([name]) == WORKLOAD_RULES
    assert job_kinds([name]) == ()


def test_the_order_is_always_the_same_and_nothing_is_there_twice() -> None:
    named = ["ray.io/rayjob", "pod", "ray.io/raycluster"]
    ways = {policy_rules(order, [PIPELINE_RUN]) for order in itertools.permutations(named)}
    assert ways == {policy_rules([*named, *named], [PIPELINE_RUN, PIPELINE_RUN])}


def test_nothing_is_granted_by_a_wildcard_and_nothing_that_grants_more() -> None:
    for rule in policy_rules(FRAMEWORKS, [PIPELINE_RUN], dict.fromkeys(GATES, True)):
        assert not any("*" in name for names in rule.as_dict().values() for name in names)
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & {*rule.verbs}
        assert not {"secrets", "serviceaccounts", "roles", "clusterroles"} & {*rule.resources}


def test_an_external_kind_that_is_known_already_keeps_what_it_may() -> None:
    job = parse_external("Job.v1.batch")
    assert isinstance(job, ExternalFramework)
    assert policy_rules(["batch/job"], [job]) == policy_rules(["batch/job"])


def test_a_gate_adds_to_the_rules() -> None:
    assert policy_rules(
        [],
        gates=dict.fromkeys(["MultiKueueOrchestratedPreemption", "MultiKueueManagerQuotaAutomation"], True),
    ) == (
        PolicyRule(("kueue.x-k8s.io",), ("clusterqueues", "localqueues"), ("list", "watch")),
        WORKLOAD_RULES[0],
        PolicyRule(("kueue.x-k8s.io",), ("workloads/status",), ("patch", "update")),
    )


@pytest.mark.parametrize(
    ("kind", "release", "more"),
    [
        ("ray.io/rayjob", "0.19.2", set()),
        ("ray.io/rayjob", "0.20.0", {("rayclusters", "get"), ("rayjobs", "patch")}),
        ("ray.io/raycluster", "0.20.0", set()),
        ("ray.io/rayservice", "0.20.2", {("rayclusters", "get")}),
        ("ray.io/rayservice", "0.20.3", {("rayclusters", "get"), ("rayservices", "patch")}),
    ],
)
def test_autoscaled_ray_jobs(kind: str, release: str, more: set[tuple[str, str]]) -> None:
    """Kueue reads the size of the RayCluster on the worker, and points the copy to the next Workload."""
    gates = {"MultiKueueRemoteSpecSync": False}
    before, after = (
        {*required_rights([kind], gates=gates | {"MultiKueueRayInTreeAutoscaling": on}, kueue=at(release))}
        for on in (False, True)
    )
    assert {(right.resource, right.verb) for right in after - before} == more


@pytest.mark.parametrize(("release", "verbs"), [("0.19.2", ("patch",)), ("0.20.0", ("patch", "update"))])
def test_the_gates_of_preemption_are_opened_from_0_20_on(release: str, verbs: tuple[str, ...]) -> None:
    assert policy_rules([], kueue=at(release))[1].verbs == verbs


@pytest.mark.parametrize(
    ("gates", "on"),
    [
        ({}, True),
        ({"MultiKueueOrchestratedPreemption": False}, False),
        ({"AllBeta": False}, False),
        ({"AllBeta": False, "MultiKueueOrchestratedPreemption": True}, True),
    ],
)
def test_a_gate_that_is_set_counts_more_than_its_default(gates: dict[str, bool], on: bool) -> None:
    may_update = "update" in policy_rules([], gates=gates, kueue=at("0.20.0"))[-1].verbs
    assert may_update is on


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="cronjob"):
        policy_rules(["batch/cronjob"])


def test_the_rights_that_a_probe_asks_for_one_by_one() -> None:
    assert required_rights(["statefulset"], [PIPELINE_RUN]) == (
        *(Right("apps", "statefulsets", "", verb) for verb in SENT),
        *(Right("kueue.x-k8s.io", "workloads", "", verb) for verb in WORKLOAD_RULES[0].verbs),
        Right("kueue.x-k8s.io", "workloads", "status", "patch"),
        Right("kueue.x-k8s.io", "workloads", "status", "update"),
        *(Right("tekton.dev", "pipelineruns", "", verb) for verb in SENT),
    )


def test_the_job_kinds_that_a_worker_has_to_serve() -> None:
    assert job_kinds(["pod", "kubeflow.org/mpijob"], [PIPELINE_RUN]) == (
        JobKind("pod", "", "pods", "v1"),
        JobKind("kubeflow.org/mpijob", "kubeflow.org", "mpijobs", "v2beta1"),
        JobKind("PipelineRun.v1.tekton.dev", "tekton.dev", "pipelineruns", "v1"),
    )


# -- which release it is


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.19.1", (0, 19, 1)),
        ("v0.20.0-rc.1", (0, 20, 0)),
        ("v0.16.3+patched", (0, 16, 3)),
        ("0.19", None),
        ("v20260801-v0.19.0-12-gabcdef", None),
        ("0.19.1\n", None),
    ],
)
def test_a_release(text: str, found: tuple[int, ...] | None) -> None:
    assert parse_release(text) == found


@pytest.mark.parametrize(
    ("span", "inside", "outside"),
    [
        pytest.param(
            VersionRange("0.14"), ["0.14.0", "0.14.7", "0.20.0", "1.0.0"], ["0.13.10", "0.9.0"], id="a line"
        ),
        pytest.param(
            VersionRange("0.14.8, 0.15.3"),
            ["0.14.8", "0.14.10", "0.15.3", "0.16.0"],
            ["0.13.9", "0.14.7", "0.15.0", "0.15.2"],
            id="two lines",
        ),
        pytest.param(
            VersionRange("0.11.4", until="0.17.4"),
            ["0.11.4", "0.12.0", "0.17.3"],
            ["0.11.3", "0.17.4", "0.18.0"],
            id="an end",
        ),
        pytest.param(
            VersionRange("0.8", until="0.17.4, 0.18.2"),
            ["0.18.1"],
            ["0.17.4", "0.18.2", "0.19.0"],
            id="two ends",
        ),
        pytest.param(VersionRange(""), [], ["0.8.0", "0.20.0"], id="never"),
    ],
)
def test_releases(span: VersionRange, inside: list[str], outside: list[str]) -> None:
    assert [text for text in (*inside, *outside) if span.has(at(text))] == inside
    assert span.has(None) is bool(inside)


@pytest.mark.parametrize(
    ("framework", "version", "granted"),
    [
        pytest.param("batch/job", "0.17.8", "create delete get watch", id="elastic jobs are off"),
        pytest.param("batch/job", "0.18.0", "create delete get patch watch", id="elastic jobs are on"),
        pytest.param("ray.io/raycluster", "0.18.6", "create delete get watch", id="not elastic yet"),
        pytest.param("ray.io/raycluster", "0.19.0", "create delete get patch watch", id="elastic clusters"),
        pytest.param("ray.io/rayservice", "0.18.4", "create delete get watch", id="no sync"),
        pytest.param("ray.io/rayservice", "0.18.5", "create delete get patch watch", id="sync"),
        pytest.param(
            "ray.io/rayservice", "0.19.0", "create delete get watch", id="no sync in the newer line"
        ),
        pytest.param("ray.io/rayservice", "0.19.1", "create delete get patch watch", id="sync there too"),
        pytest.param("ray.io/rayservice", "0.16.9", "", id="unknown"),
        pytest.param("pod", "0.17.3", "create delete get list watch", id="groups are listed"),
        pytest.param("pod", "0.17.4", "create delete get watch", id="and are not"),
        pytest.param("leaderworkerset.x-k8s.io/leaderworkerset", "0.16.0", "", id="enabled, and not sent"),
        pytest.param("batch/job", "0.99.0", "create delete get patch watch", id="newer than all known"),
    ],
)
def test_a_release_is_granted_what_it_needs(framework: str, version: str, granted: str) -> None:
    assert verbs(framework, version) == granted
    assert bool(job_kinds([framework], kueue=at(version))) is bool(granted)


@pytest.mark.parametrize(
    ("version", "granted"), [("0.14.7", False), ("0.14.8", True), ("0.15.2", False), ("0.15.3", True)]
)
def test_evicting_a_copy(version: str, granted: bool) -> None:
    wanted = Right("kueue.x-k8s.io", "workloads", "status", "patch")
    assert (wanted in required_rights([], kueue=at(version))) is granted


def test_external_kinds_begin_with_0_14() -> None:
    assert policy_rules([], [PIPELINE_RUN], kueue=at("0.13.5")) == policy_rules([], kueue=at("0.13.5"))
    assert job_kinds([], [PIPELINE_RUN], at("0.13.5")) == ()
    assert len(job_kinds([], [PIPELINE_RUN], at("0.14.0"))) == 1


def test_a_gate_that_is_on_before_its_time() -> None:
    elastic = policy_rules(["batch/job"], gates={"ElasticJobsViaWorkloadSlices": True}, kueue=at("0.17.0"))
    assert PolicyRule(("batch",), ("jobs",), ("create", "delete", "get", "patch", "watch")) in elastic


def test_a_gate_that_a_release_does_not_have() -> None:
    quota = {"MultiKueueManagerQuotaAutomation": True}
    assert policy_rules([], gates=quota, kueue=at("0.17.0")) == policy_rules([], kueue=at("0.17.0"))


@pytest.mark.parametrize("version", ["0.13.0", "0.16.4", "0.18.6", "0.19.2", "0.20.0"])
def test_an_unknown_release_is_granted_what_any_needs(version: str) -> None:
    assert {*required_rights(FRAMEWORKS, [PIPELINE_RUN], kueue=at(version))} < {
        *required_rights(FRAMEWORKS, [PIPELINE_RUN])
    }


@pytest.mark.parametrize(
    ("older", "newer", "more", "less"),
    [
        ("0.13.0", "0.14.0", {"trainer.kubeflow.org/trainjob"}, set()),
        (
            "0.15.8",
            "0.16.0",
            {"pod", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset", "deployment"},
            set(),
        ),
        ("0.16.9", "0.17.0", {"ray.io/rayservice"}, set()),
        ("0.18.6", "0.19.0", set(), TRAINING),
    ],
)
def test_the_default_frameworks_of_two_releases_differ_by_these(
    older: str, newer: str, more: set[str], less: set[str]
) -> None:
    before, after = {*default_frameworks(at(older))}, {*default_frameworks(at(newer))}
    assert (after - before, before - after) == (more, less)


def test_an_unknown_release_has_the_frameworks_of_the_assumed_one() -> None:
    assert default_frameworks(None) == default_frameworks(ASSUMED)
    assert len(job_kinds(default_frameworks(None))) == 11


@pytest.mark.parametrize(
    ("text", "plural", "group"),
    [
        ("PipelineRun.v1.tekton.dev", "pipelineruns", "tekton.dev"),
        ("Proxy.v2beta10.example.com", "proxies", "example.com"),
        ("Process.v1.example", "processes", "example"),
        ("MyEndpoints.v1.example.com", "myendpoints", "example.com"),
    ],
)
def test_an_external_kind(text: str, plural: str, group: str) -> None:
    found = parse_external(text)
    assert isinstance(found, ExternalFramework)
    assert (found.name, found.plural, found.group) == (text, plural, group)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PipelineRun.tekton.dev",
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
    assert parse_external(text) == f"{text!r} is no Kind.version.group, like PipelineRun.v1.tekton.dev"


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


def columns(rule: PolicyRule) -> tuple[str, str]:
    """A rule as the page has it: resources as kubectl takes them, and verbs."""
    (group,) = rule.groups
    split = (resource.partition("/") for resource in rule.resources)
    names = (f"{plural}.{group}{slash}{sub}" for plural, slash, sub in split)
    return ", ".join(f"`{name.removesuffix('.')}`" for name in names), ", ".join(rule.verbs)


def test_the_page_has_each_right_and_no_other() -> None:
    expected = dict(in_the_table())
    on_page = rows("Rights on a worker")
    assert {name: row for name, row in on_page.items() if name in expected} == expected
    assert on_page.keys() - expected.keys() == {"Job kind"}


def in_the_table() -> Iterator[tuple[str, list[str]]]:
    """Yield first cell and the others: resources, verbs, since, enabled since, source."""
    for name, duty in zip(("any: Workloads", "any: their status"), WORKLOADS, strict=True):
        yield name, [*columns(duty.rule), f"{duty.since}", "always", f"`{duty.source}`"]
    for name, one in FRAMEWORKS.items():
        base = columns(one.rule(SENT)) if one.plural else ("none", "")
        yield f"`{name}`", [*base, f"{one.since}", f"{one.shipped}", f"`{one.source}`"]
        for more in one.extra_verbs:
            on = str(GATES[more.gate].default_on) if more.gate else "always"
            what = f"gate `{more.gate}`" if more.gate else "groups"
            yield (
                f"`{name}`, {what}",
                [*columns(one.rule(more.verbs)), f"{more.since}", on, f"`{one.source}`"],
            )
    source = "`pkg/controller/admissionchecks/multikueue/externalframeworks`"
    external_kind = f"an external one, `{PIPELINE_RUN.name}`"
    yield external_kind, [*columns(PIPELINE_RUN.rule), f"{EXTERNAL_SINCE}", "never", source]
    for name, gate in GATES.items():
        for duty in gate.requirements:
            yield (
                f"gate `{name}`",
                [*columns(duty.rule), f"{duty.since}", f"{gate.default_on}", f"`{duty.source}`"],
            )
