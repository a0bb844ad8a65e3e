"""A new job's podSets as Kueue makes them, and the quota that the hub reserves."""

from dataclasses import replace
from typing import Any

import pytest

from kubectl_placement.jobs.podsets import MIN_PARALLELISM, admission, job_podset, not_covered
from placement_ac.core.api.constants import CLUSTER_QUEUE
from placement_ac.core.api.decode import workload_with_job
from tests.support.builders import Raw, an, workload
from tests.support.whatif import view_of


@pytest.mark.parametrize(
    ("spec", "least", "expected"),
    [
        pytest.param({}, None, {"count": 1}, id="one Pod by default"),
        pytest.param({"parallelism": 8}, None, {"count": 8}, id="parallelism"),
        pytest.param({"parallelism": 16, "completions": 4}, None, {"count": 4}, id="fewer completions"),
        pytest.param({"parallelism": 4, "completions": 16}, None, {"count": 4}, id="more completions"),
        pytest.param({"completions": 4}, None, {"count": 1}, id="completions alone"),
        pytest.param({"parallelism": 0}, None, {"count": 0}, id="none"),
        pytest.param({"parallelism": 8}, "2", {"count": 8, "minCount": 2}, id="with fewer Pods"),
        pytest.param({"parallelism": 8}, "two", {"count": 8}, id="no number"),
    ],
)
def test_the_podset_of_a_job(spec: Raw, least: str | None, expected: Raw) -> None:
    annotations = {} if least is None else {MIN_PARALLELISM: least}
    job = {"metadata": {"annotations": annotations}, "spec": spec}
    assert job_podset(job) == {"name": "main", "template": {}} | expected


def podset(count: int, **requests: Any) -> Raw:
    container = {"name": "c", "resources": {"requests": requests}}
    return {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}


QUEUE = an(CLUSTER_QUEUE, "cq", spec={"resourceGroups": [{"coveredResources": ["cpu", "pods"]}]})
SPEC = {"podSets": [podset(4, **{"cpu": "500m", "ephemeral-storage": "1Gi"})]}


def test_the_hub_reserves_what_its_queue_covers() -> None:
    found = admission(view_of(QUEUE), "cq", SPEC)
    assert found == {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "count": 4, "resourceUsage": {"cpu": "2", "pods": "4"}}],
    }


def test_a_resource_that_the_hub_leaves_out_does_not_count() -> None:
    raw = workload() | {"spec": SPEC}
    raw["status"]["admission"] = admission(view_of(QUEUE), "cq", SPEC)
    ((*requests,),) = workload_with_job(raw).job.requests
    assert "ephemeral-storage" not in dict(requests)
    assert dict(requests)["cpu"] == 2000


def test_a_resource_that_the_hub_leaves_out_is_named() -> None:
    (note,) = not_covered(view_of(QUEUE), "cq", SPEC)
    assert note.startswith("ClusterQueue cq does not cover ephemeral-storage: the job gets quota only if")
    assert list(not_covered(view_of(), "cq", SPEC)) == []


@pytest.mark.parametrize(
    ("resources", "says"),
    [
        pytest.param(None, "only if Kueue's configuration excludes it", id="not read"),
        pytest.param({}, "does not exclude it: the job never gets quota", id="not excluded"),
        pytest.param({"excludeResourcePrefixes": ["ephemeral"]}, "", id="excluded by prefix"),
        pytest.param({"excludeResourcePrefixes": ["storage"]}, "never gets quota", id="another prefix"),
        pytest.param({"quotaCheckStrategy": "IgnoreUndeclared"}, "", id="undeclared ones are ignored"),
        pytest.param({"quotaCheckStrategy": "BlockUndeclared"}, "never gets quota", id="they are not"),
    ],
)
def test_what_kueue_excludes_is_not_asked_for(resources: Raw | None, says: str) -> None:
    view = replace(view_of(QUEUE), kueue_resources=resources)
    notes = list(not_covered(view, "cq", SPEC))
    assert [says in note for note in notes] == ([True] if says else [])


def test_pods_that_the_hub_does_not_count_are_no_resource_that_it_leaves_out() -> None:
    queue = an(CLUSTER_QUEUE, "cq", spec={"resourceGroups": [{"coveredResources": ["cpu"]}]})
    assert list(not_covered(view_of(queue), "cq", {"podSets": [podset(4, cpu="500m")]})) == []
