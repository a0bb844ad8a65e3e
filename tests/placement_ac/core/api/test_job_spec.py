"""A Workload's wishes about its cluster, for our dispatcher."""

import weakref
from itertools import chain
from math import sqrt
from typing import Any

import pytest

from placement_ac.core.api.job_spec import NO_JOB, JobSpec, job_spec
from placement_ac.core.api.label_selector import Requirement
from tests.support.growth import TIMES, growth_of
from tests.support.jobs_to_dispatch import DOMAIN, GPU, job, raw_job

GROUP = f"{DOMAIN}/group"


def pods(containers: Any, *, count: int = 1, minCount: int | None = None, **spec: Any) -> Any:  # noqa: N803
    """A podSet with these containers; `spec`: of its Pods."""
    template = {"spec": {"containers": containers} | spec}
    return {"count": count, "minCount": minCount, "template": template}


def test_the_workloads_own_annotations_come_before_those_of_its_podsets() -> None:
    templates = tuple({"metadata": {"annotations": {GROUP: name}, "labels": {"l": name}}} for name in "ab")
    assert job_spec(raw_job(pods=templates)).annotation(GROUP) == "a"
    spec = job_spec(raw_job(annotations={GROUP: " own ", "other": "x"}, labels={"l": "own"}, pods=templates))
    assert spec == JobSpec("user-queue", ((GROUP, " own "),), ("l",))
    assert spec.annotation(GROUP) == "own"


def test_equal_specs_are_one_object() -> None:
    """There may be 100,000 Workloads, whose own labels differ, and whose Pods' labels name a run."""
    one, other, third = (
        job(
            name,
            labels={"kueue.x-k8s.io/job-uid": name, "batch.kubernetes.io/job-name": name},
            pods=({"metadata": {"labels": {"dag_id": f"train-{len(name)}", "run_id": run}}},),
        )
        for name, run in (("a", "1"), ("b", "2"), ("c", "1"))
    )
    assert one.job is other.job is third.job
    assert (one.label_values, other.label_values) == (("train-1", "1"), ("train-1", "2"))
    assert one.label_values[0] is other.label_values[0]
    assert one.label_values is third.label_values


def test_the_labels_of_a_job_that_has_finished_are_not_kept() -> None:
    """Only jobs that run or wait somewhere are compared."""
    assert job(labels={"app": "x"}, finished=True).label_values == ()


def test_a_spec_goes_with_the_last_workload_that_has_it() -> None:
    """Workloads of 600 KB, made and deleted one after the other, left 150 MB behind."""
    one = job_spec(raw_job(labels={"only": "here"}))
    other = job_spec(raw_job("b", labels={"only": "here"}))
    gone = weakref.ref(one)
    del one
    assert gone() is other
    del other
    assert gone() is None


def test_the_node_requirements_of_each_podset() -> None:
    terms = [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}, {"matchFields": [{"key": "x"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": required}}
    a, z = Requirement("a", "In", ("b",)), Requirement("z", "Exists")
    assert job_spec(raw_job(pods=({"spec": spec}, {"spec": {}}))).nodes == (((a, z), (a,)),)


def container(**resources: Any) -> Any:
    return {"name": "c", "resources": resources}


def gpus(number: Any) -> Any:
    return {"nvidia.com/gpu": number}


ONE_GPU = [container(requests={"cpu": "500m"}, limits=gpus("1"))]
SIDECAR = container(requests={"cpu": 1}) | {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("podset", "requests"),
    [
        pytest.param(pods(ONE_GPU), {"cpu": 500, **gpus(1000)}, id="a limit, where nothing is requested"),
        pytest.param(pods(ONE_GPU, count=16), {"cpu": 8000, **gpus(16000)}, id="all Pods"),
        pytest.param(pods(ONE_GPU, count=16, minCount=4), {"cpu": 2000, **gpus(4000)}, id="the fewest Pods"),
        pytest.param(pods(ONE_GPU * 2), {"cpu": 1000, **gpus(2000)}, id="the sum of containers"),
        pytest.param(
            pods(ONE_GPU, initContainers=[container(requests={"cpu": 2}), container(requests={"cpu": 1})]),
            {"cpu": 2000, **gpus(1000)},
            id="the largest init container",
        ),
        pytest.param(
            pods(ONE_GPU, initContainers=[SIDECAR, container(requests={"cpu": 2})]),
            {"cpu": 3000, **gpus(1000)},
            id="an init container beside a sidecar",
        ),
        pytest.param(
            pods(ONE_GPU, initContainers=[SIDECAR]), {"cpu": 1500, **gpus(1000)}, id="a sidecar goes on"
        ),
        pytest.param(
            pods(ONE_GPU, overhead={"cpu": "250m"}), {"cpu": 750, **gpus(1000)}, id="with the overhead"
        ),
        pytest.param(
            pods(ONE_GPU, resources={"requests": {"cpu": 4}}), {"cpu": 4000, **gpus(1000)}, id="of the Pod"
        ),
        pytest.param(pods([container(requests={"cpu": "x"})]), {}, id="no quantity"),
        pytest.param(pods(ONE_GPU, count=0), {}, id="no Pod"),
        pytest.param({"template": {"spec": {"containers": 5, "overhead": []}}}, {}, id="another shape"),
    ],
)
def test_the_requests_of_a_podset(podset: Any, requests: Any) -> None:
    """The Pods count as well: see below."""
    found = job_spec({"spec": {"podSets": [podset]}}).requests
    assert [{name: amount for name, amount in one if name != "pods"} for one in found] == [requests] * bool(
        requests
    )


@pytest.mark.parametrize(
    ("podset", "number"),
    [
        pytest.param(pods(ONE_GPU), 1, id="one"),
        pytest.param(pods(ONE_GPU, count=16), 16, id="all Pods"),
        pytest.param(pods(ONE_GPU, count=16, minCount=4), 4, id="the fewest"),
        pytest.param(pods(ONE_GPU, count=0), None, id="no Pod"),
        pytest.param(pods([], count=16), None, id="they ask for nothing"),
    ],
)
def test_the_pods_of_a_podset_that_asks_for_something_are_counted(podset: Any, number: int | None) -> None:
    [found] = job_spec({"spec": {"podSets": [podset]}}).requests or [()]
    assert dict(found).get("pods") == (number and number * 1000)


def test_pods_that_ask_for_nothing_count_where_kueue_counts_them_on_the_hub() -> None:
    admission = {"podSetAssignments": [{"name": "main", "resourceUsage": {"pods": "16"}}]}
    raw = {"spec": {"podSets": [pods([], count=16)]}, "status": {"admission": admission}}
    assert job_spec(raw).requests == ((("pods", 16000),),)


CLAIM = {"name": "gpu", "resourceClaimTemplateName": "two"}
CLAIMS = {"name": "main"} | pods(ONE_GPU, resourceClaims=[CLAIM])
MAPPED = {"devices": "2"} | gpus("1")


@pytest.mark.parametrize(
    ("status", "claimed", "uncounted"),
    [
        pytest.param({}, 0, True, id="no quota yet"),
        pytest.param(
            {"admission": {"podSetAssignments": [{"name": "main", "resourceUsage": gpus("1")}]}},
            0,
            True,
            id="not mapped",
        ),
        pytest.param(
            {"admission": {"podSetAssignments": [{"name": "main", "resourceUsage": MAPPED}]}},
            2000,
            False,
            id="mapped",
        ),
        pytest.param(
            {"resourceRequests": [{"name": "main", "resources": MAPPED}]},
            2000,
            False,
            id="mapped, without quota",
        ),
        pytest.param(
            {"admission": {"podSetAssignments": [{"name": "other", "resourceUsage": {"devices": "2"}}]}},
            0,
            True,
            id="of another podSet",
        ),
    ],
)
def test_resource_claims_count_as_kueue_has_counted_them(status: Any, claimed: int, uncounted: bool) -> None:
    spec = job_spec({"spec": {"podSets": [CLAIMS]}, "status": status})
    found = dict(chain.from_iterable(spec.requests))
    assert (found.get("devices", 0), spec.has_uncounted_claims) == (claimed, uncounted)


def test_resources_that_kueue_does_not_count_on_the_hub_are_left_out() -> None:
    spec = {"podSets": [pods(ONE_GPU)]}
    usage = {"podSetAssignments": [{"name": "main"}, {"name": "other", "resourceUsage": gpus("1")}]}
    assert job_spec({"spec": spec, "status": {"admission": usage}}).requests == (
        ((GPU, 1000), ("pods", 1000)),
    )


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


def labels(number: int) -> Any:
    return {f"l{n}": "" for n in range(number)}


def affinity(terms: int, values: int = 1) -> Any:
    """A Pod template whose required node affinity has so many terms, of one key with so many values."""
    expression = {"key": "z", "operator": "In", "values": [str(n) for n in range(values)]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}] * terms}
    return {
        "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    }


def resources(number: int, name: str = "r") -> Any:
    return {"spec": {"containers": [container(requests={f"{name}{n}": 1 for n in range(number)})]}}


NODES = "use fewer keys and values in the requirements of a podSet on nodes: at most 256 are read, it has"
LONG = "shorten the names of labels, nodes or resources: at most 317 characters are read, one has"


@pytest.mark.parametrize(
    ("most", "more", "problem"),
    [
        pytest.param(
            {"annotations": {GROUP: "x" * 8192}},
            {"annotations": {GROUP: "x" * 8193}},
            f"shorten the annotation {GROUP}: at most 8,192 characters are read, it has 8,193",
            id="an annotation",
        ),
        pytest.param(
            {"pods": ({},) * 64},
            {"pods": ({},) * 65},
            "use fewer podSets: at most 64 are read, it has 65",
            id="podSets",
        ),
        pytest.param(
            {"labels": labels(256)},
            {"labels": labels(257)},
            "use fewer labels: at most 256 are read, it has 257",
            id="labels",
        ),
        pytest.param(
            {"labels": {"l": "x" * 317}}, {"labels": {"l": "x" * 318}}, f"{LONG} 318", id="a long label"
        ),
        pytest.param(
            {"pods": (affinity(128),)}, {"pods": (affinity(129),)}, f"{NODES} 258", id="node affinity"
        ),
        pytest.param(
            {"pods": (affinity(1, 255),)}, {"pods": (affinity(1, 256),)}, f"{NODES} 257", id="values"
        ),
        pytest.param(
            {"pods": ({"spec": {"nodeSelector": labels(128)}},)},
            {"pods": ({"spec": {"nodeSelector": labels(129)}},)},
            f"{NODES} 258",
            id="a nodeSelector",
        ),
        pytest.param(
            {"pods": ({"spec": affinity(2)["spec"] | {"nodeSelector": labels(60)}},)},
            {"pods": ({"spec": affinity(3)["spec"] | {"nodeSelector": labels(60)}},)},
            f"{NODES} 366",
            id="a nodeSelector counts in each term",
        ),
        pytest.param(
            {"pods": (resources(256),)},
            {"pods": (resources(257),)},
            "use fewer resources in a podSet: at most 256 are read, it has 257",
            id="resources",
        ),
        pytest.param(
            {"pods": (resources(1, "x" * 316),)},
            {"pods": (resources(1, "x" * 317),)},
            f"{LONG} 318",
            id="a long resource",
        ),
        pytest.param(
            {"labels": {f"l{n:03}": "x" * 60 for n in range(184)}},
            {"labels": {f"l{n:03}": "x" * 60 for n in range(185)}},
            "shorten its labels, annotations, node requirements and tolerations: at most 32,768 bytes are"
            " kept, they take 32,930",
            id="all together",
        ),
    ],
)
def test_parts_of_a_job_over_a_limit_are_not_kept(most: Any, more: Any, problem: str) -> None:
    assert job_spec(raw_job(**most)).problem == ""
    assert job_spec(raw_job(**more)) == JobSpec("user-queue", problem=problem)


def test_a_label_is_found_by_its_key() -> None:
    """The Workload's own comes before those of its podSets."""
    templates = ({"metadata": {"labels": {"a": "2", "aa": "3"}}}, {"metadata": {"labels": {"aa": "4"}}})
    one = job(labels={"a": "1", "ab": "2", "c": ""}, pods=templates)
    found = [one.label_value(key) for key in ("a", "aa", "ab", "c", "b", "d", "")]
    assert found == ["1", "3", "2", "", None, None, None]


def test_a_label_is_looked_up_among_many() -> None:
    """Anti-affinity asks each Workload of a queue for each job; copying the labels made that 8 s."""

    def look_up(labels: int) -> None:
        one = job(labels={f"key{number:04}": "value" for number in range(labels)})
        for _ in range(5_000):
            one.label_value("key0008")

    assert growth_of(look_up, 16) < sqrt(TIMES)


@pytest.mark.parametrize(
    ("limit", "deadlines", "seconds"),
    [
        pytest.param(None, (None,), None, id="it does not say"),
        pytest.param(600, (None,), 600, id="Kueue's limit"),
        pytest.param(
            600, (3600,), 600, id="Kueue's limit before the Pods' deadline: Kueue ends the whole job"
        ),
        pytest.param(None, (60, None, 3600), 3600, id="the longest deadline of its Pods"),
        pytest.param("600", ("60",), None, id="no numbers"),
    ],
)
def test_how_long_a_job_may_run(limit: Any, deadlines: Any, seconds: int | None) -> None:
    raw = raw_job(pods=tuple({"spec": {"activeDeadlineSeconds": one} if one else {}} for one in deadlines))
    raw["spec"]["maximumExecutionTimeSeconds"] = limit
    assert job_spec(raw).seconds == seconds
