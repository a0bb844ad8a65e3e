"""Templates of queues on workers: what is put in, and what is wrong with one."""

import pytest

from placement_ac.core.api.decode import managed_cluster
from placement_ac.core.api.objects import ManagedCluster
from placement_ac.core.worker_setup.template import TemplateProblem, rendered

CLUSTER = managed_cluster(
    {
        "metadata": {"name": "c1", "labels": {"region": "eu"}},
        "status": {
            "allocatable": {"cpu": "7500m", "memory": "10Gi", "nvidia.com/gpu": "5"},
            "clusterClaims": [{"name": "zone", "value": "b"}],
        },
    },
    with_labels=True,
    with_allocatable=True,
)
FLAVOR = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: f}}
spec: {{nodeLabels: {{x: {}}}}}
"""


LAUGHS = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


def value_of(text: str, cluster: ManagedCluster = CLUSTER) -> object:
    [flavor] = rendered(FLAVOR.format(text), cluster)
    return flavor["spec"]["nodeLabels"]["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ('"{allocatable.cpu * 0.5}"', "3750m"),
        ('"{allocatable.nvidia.com/gpu * 0.5}"', "2"),
        ('"{allocatable.memory}"', "10Gi"),
        ('"{allocatable.amd.com/gpu}"', "0"),
        ('"in-{label.region}-{claim.zone}"', "in-eu-b"),
        ('"{ label.region }"', "eu"),
    ],
)
def test_a_placeholder_is_replaced(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"{label.team}"', "line 4: give c1 the label team: it has none"),
        ('"{claim.team}"', "line 4: give c1 the claim team: it has none"),
        ('"{allocatable.cpu / 2}"', "line 4: write {allocatable.RESOURCE}"),
        ('"{label.region * 2}"', "line 4: write {allocatable.RESOURCE}"),
        ('"{status.x}"', "line 4: write {allocatable.RESOURCE}"),
        ("{allocatable.cpu}", 'line 4: write "{allocatable.cpu}" in quotes'),
    ],
)
def test_a_wrong_placeholder_is_named_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(TemplateProblem) as raised:
        value_of(text)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "it is not YAML: line 2: "),
        (
            "--- text",
            "line 1: write a manifest of kueue.x-k8s.io: ClusterQueue, ResourceFlavor, Cohort, Topology",
        ),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}", "line 1: write a manifest of kueue.x-k8s.io: "),
        ("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort", "line 1: name the Cohort in metadata.name"),
        (
            "\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: c}\nspec: []",
            "line 2: spec is not",
        ),
        ("a: &a [1]\nb: !!python/object:x {}", "it is not YAML: line 2: "),
        ("a: &a [*a]", "write the values themselves: it has far more aliases than text"),
        (LAUGHS, "write the values themselves: it has far more aliases than text"),
        ("a: " + "[" * 5000, "it is nested too deeply"),
    ],
)
def test_another_text_is_no_template(text: str, problem: str) -> None:
    with pytest.raises(TemplateProblem) as raised:
        rendered(text, CLUSTER)
    assert str(raised.value).startswith(problem)


def test_a_value_never_changes_the_structure() -> None:
    cluster = managed_cluster(
        {"metadata": {"name": "c1", "labels": {"region": "eu}, evil: {a: b"}}}, with_labels=True
    )
    assert value_of('"{label.region}"', cluster) == "eu}, evil: {a: b"


def test_an_empty_document_is_left_out_and_an_alias_is_replaced_once() -> None:
    text = "---\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\n"
    text += 'spec: {nodeLabels: {x: &x "{label.region}", z: *x}}\n'
    [flavor] = rendered(text, CLUSTER)
    assert flavor["spec"] == {"nodeLabels": {"x": "eu", "z": "eu"}}
