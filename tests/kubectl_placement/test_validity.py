"""Manifests that an API server would refuse, by the schemas of the kinds and in its words."""

from typing import Any

import pytest

from kubectl_placement.hub.dump import InvalidManifest
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.plan.validity import Validity, schema_of, validity
from kubectl_placement.plan.what_if import what_if
from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, PLACEMENT, Resource
from tests.support.builders import Raw, placement
from tests.support.crds import strict_crds
from tests.support.whatif import manifest, view_of

CRDS = dump_of(strict_crds())
PLACEMENTS, CHECKS = PLACEMENT.at("v1beta1"), ADMISSION_CHECK.at("v1beta2")


def refusals(kind: Resource, before: Raw | None, after: Raw) -> tuple[str, ...]:
    verdict = validity(before, after, schema_of(kind, CRDS))
    assert not verdict.unknown
    return verdict.refusals


def selecting(**labels: Any) -> Raw:
    return {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}]}


def grouped(size: Any) -> Raw:
    return {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}}


def weighing(weight: int) -> Raw:
    configuration = {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": weight}
    return {"prioritizerPolicy": {"mode": "Exact", "configurations": [configuration]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(None, "spec: Required value", id="required"),
        pytest.param(
            selecting(gpu=True),
            "spec.predicates[0].requiredClusterSelector.labelSelector.matchLabels.gpu: "
            "Invalid value: true: must be of type string",
            id="type",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "NoExecute"}]},
            'spec.tolerations[0].effect: Unsupported value: "NoExecute": '
            'supported values: "NoSelect", "PreferNoSelect", "NoSelectIfNew"',
            id="enum",
        ),
        pytest.param(
            weighing(20),
            "spec.prioritizerPolicy.configurations[0].weight: should be less than or equal to 10",
            id="maximum",
        ),
        pytest.param(
            weighing(-11),
            "spec.prioritizerPolicy.configurations[0].weight: should be greater than or equal to -10",
            id="minimum",
        ),
        pytest.param(
            grouped("120%"),
            'spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: Invalid value: "120%": '
            "should match '^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$'",
            id="pattern",
        ),
    ],
)
def test_a_placement_that_is_refused(spec: Any, expected: str) -> None:
    assert refusals(PLACEMENTS, None, placement() | {"spec": spec}) == (expected,)


def check(**spec: Any) -> Raw:
    return {
        "apiVersion": CHECKS.api_version,
        "kind": "AdmissionCheck",
        "metadata": {"name": "c"},
        "spec": spec,
    }


def test_a_field_that_does_not_change_is_refused_no_more() -> None:
    bad = placement() | {"spec": weighing(20)}
    assert refusals(PLACEMENTS, bad, bad | {"spec": weighing(20) | {"numberOfClusters": 1}}) == ()


def test_a_rule_about_a_change() -> None:
    (found,) = refusals(CHECKS, check(controllerName="a/b"), check(controllerName="a/c"))
    assert found == "spec.controllerName: Invalid value: field is immutable"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(
            {"name": "Gpu_1"}, 'metadata.name: Invalid value: "Gpu_1": a lowercase RFC 1123', id="name"
        ),
        pytest.param({"name": "a" * 300}, "must be no more than 253 characters", id="length"),
        pytest.param(
            {"name": "a", "labels": {"x": "-"}}, 'metadata.labels: Invalid value: "-": a valid', id="label"
        ),
    ],
)
def test_a_new_object_has_a_name_that_is_accepted(metadata: Raw, expected: str) -> None:
    (found,) = refusals(PLACEMENTS, None, placement() | {"metadata": metadata})
    assert expected in found


def with_rule(rule: str) -> Raw:
    return {"properties": {"spec": {"x-kubernetes-validations": [{"rule": rule}]}}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            with_rule("isIP(self.a)"), "spec: Invalid value: rule isIP(self.a) failed", id="function"
        ),
        pytest.param(with_rule("self.?a.hasValue()"), "spec: Invalid value: rule self.?a", id="syntax"),
        pytest.param({"properties": ["spec"]}, "its CustomResourceDefinition cannot be used", id="no schema"),
        pytest.param(
            {"properties": {"spec": {"type": "thing"}}},
            "its CustomResourceDefinition cannot be used",
            id="no type",
        ),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_unknown_and_refuses_nothing(schema: Raw, expected: str) -> None:
    verdict = validity(None, placement() | {"spec": {"a": "1"}}, schema)
    assert verdict.refusals == ()
    assert expected in verdict.unknown[0]


def test_without_a_schema_nothing_is_refused() -> None:
    assert validity(None, placement() | {"spec": None}, {}) == Validity()


def test_every_object_that_is_refused_is_named() -> None:
    several = [manifest(numberOfClusters="3"), manifest() | {"metadata": {"name": "q"}, "spec": None}]
    with pytest.raises(InvalidManifest) as error:
        what_if(view_of(*strict_crds()), several)
    number = 'spec.numberOfClusters: Invalid value: "3": must be of type integer'
    assert str(error.value).splitlines() == [
        f"Placement kueue-system/p is invalid: {number}",
        "Placement kueue-system/q is invalid: spec: Required value",
    ]


def test_an_unknown_validity_is_a_warning() -> None:
    config = {
        "apiVersion": MULTIKUEUE_CONFIG.at("v1beta2").api_version,
        "kind": "MultiKueueConfig",
        "metadata": {"name": "mine"},
        "spec": {"clusters": ["a"]},
    }
    crds = [crd for crd in strict_crds() if crd["spec"]["names"]["kind"] == MULTIKUEUE_CONFIG.kind]
    view = view_of(*(_with_rule(crd, "self.?a.hasValue()") for crd in crds))
    (warning, *_) = (one for one in what_if(view, [config]).warnings if "self.?a" in one)
    assert warning.startswith("whether the API server takes MultiKueueConfig mine is unknown: spec: ")


def _with_rule(crd: Raw, rule: str) -> Raw:
    versions = [
        version | {"schema": {"openAPIV3Schema": with_rule(rule)}} for version in crd["spec"]["versions"]
    ]
    return {**crd, "spec": crd["spec"] | {"versions": versions}}
