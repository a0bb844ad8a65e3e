"""A Workload's wishes about its cluster, for our dispatcher."""

from typing import Any

import pytest

from placement_ac.core.api.job_spec import NO_JOB, JobSpec, job_spec
from placement_ac.core.api.label_selector import Requirement
from tests.support.jobs_to_dispatch import DOMAIN, raw_job

GROUP = f"{DOMAIN}/group"


def test_the_workloads_own_annotations_come_before_those_of_its_podsets() -> None:
    templates = tuple({"metadata": {"annotations": {GROUP: name}, "labels": {"l": name}}} for name in "ab")
    assert job_spec(raw_job(pods=templates)).annotation(GROUP) == "a"
    spec = job_spec(raw_job(annotations={GROUP: " own ", "other": "x"}, labels={"l": "own"}, pods=templates))
    assert spec == JobSpec("user-queue", ((GROUP, " own "),), (("l", "own"),))
    assert spec.annotation(GROUP) == "own"


def test_equal_specs_are_one_object() -> None:
    """There may be 100,000 Workloads, whose own labels differ."""
    one, other = (
        job_spec(raw_job(name, labels={"kueue.x-k8s.io/job-uid": name, "batch.kubernetes.io/job-name": name}))
        for name in ("a", "b")
    )
    assert one is other


def test_the_node_requirements_of_each_podset() -> None:
    terms = [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}, {"matchFields": [{"key": "x"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": required}}
    a, z = Requirement("a", "In", ("b",)), Requirement("z", "Exists")
    assert job_spec(raw_job(pods=({"spec": spec}, {"spec": {}}))).nodes == (((a, z), (a,)),)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"queueName": 5, "podSets": "x"},
        {"podSets": [1, None, {"template": []}, {"template": {"spec": {"affinity": [], "nodeSelector": 3}}}]},
        {"podSets": [{"template": {"metadata": {"annotations": {GROUP: 5}, "labels": ["a"]}}}]},
    ],
)
def test_whatever_has_another_shape_counts_as_absent(spec: Any) -> None:
    assert job_spec({"metadata": {}, "spec": spec}) == NO_JOB
