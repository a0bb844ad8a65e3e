"""Manifests are applied on paper as `kubectl apply` does it, and what an API server refuses is refused."""

import pytest

from kubectl_placement.hub.dump import InvalidManifest
from kubectl_placement.plan.plan_report import PlanReport
from kubectl_placement.plan.what_if import what_if
from placement_ac.core.api import constants
from tests.support.builders import Raw
from tests.support.whatif import bound, manifest, named, stored, view_of


def applied(there: Raw, wanted: Raw) -> PlanReport:
    return what_if(view_of(there), [wanted])


@pytest.mark.parametrize(
    ("before", "after", "verb"),
    [
        pytest.param({"numberOfClusters": 1}, {}, "none", id="what it says nothing of stays"),
        pytest.param({"numberOfClusters": 1}, {"numberOfClusters": 2}, "change", id="another value"),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Equal"}]},
            {"tolerations": [{"key": "a"}]},
            "none",
            id="a default within a list",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]}, {"tolerations": []}, "change", id="a list that is shorter"
        ),
        pytest.param({"clusterSets": ["a"]}, {"clusterSets": None}, "change", id="null takes it away"),
    ],
)
def test_the_verb_of_an_applied_manifest(before: Raw, after: Raw, verb: str) -> None:
    there = stored(manifest(**before) | {"metadata": named("p")})
    assert applied(there, manifest(**after)).objects[0].verb == verb


def test_fields_that_are_no_longer_applied_are_removed() -> None:
    last = '{"spec": {"numberOfClusters": 1, "clusterSets": ["a"]}, "metadata": {"labels": {"x": "y"}}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    metadata = named("p") | {"annotations": annotations, "labels": {"x": "y", "z": "by somebody"}}
    there = stored(manifest(numberOfClusters=1, clusterSets=["a"], predicates=[]) | {"metadata": metadata})
    answer = applied(there, manifest(clusterSets=["a"]))
    after = answer.after.dump.find(constants.PLACEMENT, "p", "kueue-system") or {}
    assert after["spec"] == {"clusterSets": ["a"], "predicates": []}
    assert (after["metadata"]["labels"], after["metadata"]["generation"]) == ({"z": "by somebody"}, 2)


def test_null_is_an_empty_label_of_a_new_object_and_removes_one_of_an_old() -> None:
    wanted = manifest() | {"metadata": named("p") | {"labels": {"x": None}}}
    there = stored(manifest() | {"metadata": named("p") | {"labels": {"x": "y"}}})
    answers = what_if(view_of(), [wanted]), applied(there, wanted)
    found = [answer.after.dump.find(constants.PLACEMENT, "p", "kueue-system") or {} for answer in answers]
    assert [one["metadata"].get("labels") for one in found] == [{"x": ""}, {}]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        pytest.param(
            manifest(numberOfClusters="two"),
            "Placement kueue-system/p: write one from 0 on, without quotes: "
            "spec.numberOfClusters is not a whole number",
            id="number",
        ),
        pytest.param(
            manifest(clusterSets="all"),
            "Placement kueue-system/p: write one after '-' on each line: "
            "spec.clusterSets is not a list of names",
            id="list",
        ),
        pytest.param(
            manifest(predicates=["x"]),
            "Placement kueue-system/p: begin each with '-': spec.predicates is not a list of objects",
            id="objects",
        ),
        pytest.param(
            manifest() | {"apiVersion": "cluster.open-cluster-management.io/v1alpha1"},
            "Placement kueue-system/p: write apiVersion cluster.open-cluster-management.io/v1beta1: "
            "cluster.open-cluster-management.io/v1alpha1 is unknown",
            id="version",
        ),
        pytest.param(
            bound("all")[1] | {"spec": {"clusterSet": "other"}},
            "ManagedClusterSetBinding kueue-system/all: write spec.clusterSet all: "
            "OCM requires the binding's own name",
            id="binding",
        ),
    ],
)
def test_a_manifest_that_an_api_server_would_refuse_is_an_error(bad: Raw, expected: str) -> None:
    with pytest.raises(InvalidManifest) as error:
        what_if(view_of(), [bad])
    assert str(error.value) == expected
