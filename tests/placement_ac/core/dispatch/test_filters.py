"""Each filter: which clusters it refuses for which job, and why."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.dispatch.filters import FILTERS
from tests.support.jobs_to_dispatch import DOMAIN, GPU, QUEUE, cluster, gpu_pods, job, queues

NAMES = "kueue.x-k8s.io/multikueue-cluster-names"
SELECTOR = f"{DOMAIN}/cluster-selector"
ANTI = f"{DOMAIN}/anti-affinity"
H100 = {"gpu": "h100", "claim:region": "eu"}


@pytest.mark.parametrize(
    ("listed", "fits"),
    [
        pytest.param(None, True, id="no annotation"),
        pytest.param("", True, id="an empty one"),
        pytest.param("x, p-a ,y", True, id="blanks"),
        pytest.param("a", True, id="a cluster"),
        pytest.param("p-b,b", False, id="others"),
        pytest.param("p", False, id="a part of a name"),
    ],
)
def test_cluster_names(listed: str | None, fits: bool) -> None:
    one = job(annotations={} if listed is None else {NAMES: listed})
    assert FILTERS["ClusterNames"](one, cluster("a")) == (None if fits else f"didn't match {NAMES}")


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        pytest.param("", None, id="none"),
        pytest.param("gpu==h100,claim:region in (eu, us)", None, id="a label and a claim"),
        pytest.param("region", "didn't match region", id="a claim is no label"),
        pytest.param("gpu!=h100", "didn't match gpu!=h100", id="not equal"),
        pytest.param("spot!=yes", None, id="a missing label differs"),
        pytest.param("gpu=h100,!claim:region", "didn't match !claim:region", id="the second"),
        pytest.param(
            "gpu h100",
            f"couldn't be judged: correct the annotation {SELECTOR}: 'gpu h100' is not a label selector",
            id="no selector",
        ),
    ],
)
def test_cluster_affinity(selector: str, reason: str | None) -> None:
    one = job(annotations={SELECTOR: selector})
    assert FILTERS["ClusterAffinity"](one, cluster("a", labels=H100)) == reason


def pod(selector: Any = None, *terms: list[tuple[str, str, list[str]]]) -> Any:
    """A Pod template with a nodeSelector, and a term of required node affinity for each of `terms`."""
    expressions = [
        {"matchExpressions": [{"key": key, "operator": how, "values": values} for key, how, values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expressions}}
    affinity = {"affinity": {"nodeAffinity": required}} if terms else {}
    return {"spec": {"nodeSelector": selector or {}} | affinity}


ZONE, PRODUCT = "topology.kubernetes.io/zone", "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([pod({ZONE: "z1"})], None, id="met"),
        pytest.param([pod({ZONE: "z2"})], f"had no node with {ZONE}=z2", id="not met"),
        pytest.param([pod({PRODUCT: "h100"})], f"had no node with {PRODUCT}=h100", id="it is not said"),
        pytest.param([pod({"disk": "ssd"})], None, id="not mapped"),
        pytest.param([pod({}, [(ZONE, "In", ["z2"])], [(ZONE, "In", ["z1"])])], None, id="an alternative"),
        pytest.param(
            [pod({ZONE: "z1"}, [(ZONE, "NotIn", ["z1"])])],
            f"had no node with {ZONE}!=z1",
            id="both must be met",
        ),
        pytest.param([pod(), pod({ZONE: "z2"})], f"had no node with {ZONE}=z2", id="the second podSet"),
        pytest.param([pod({}, [(ZONE, "Exists", []), (PRODUCT, "DoesNotExist", [])])], None, id="existence"),
        pytest.param([pod({}, [("gen", "Gt", ["3"]), ("gen", "Lt", ["5"])])], None, id="order"),
        pytest.param([pod({}, [("gen", "Gt", ["4"])])], "had no node with gen>4", id="not greater"),
        pytest.param([pod({}, [("gen", "Gt", ["x"])])], "had no node with gen>x", id="no number"),
    ],
)
def test_node_labels(pods: Any, reason: str | None) -> None:
    candidate = cluster("a", node_labels={ZONE: "z1", PRODUCT: None, "gen": "4"})
    assert FILTERS["NodeLabels"](job(pods=tuple(pods)), candidate) == reason


def test_without_mapped_labels_no_node_is_judged() -> None:
    assert FILTERS["NodeLabels"](job(pods=(pod({ZONE: "z2"}),)), cluster("a")) is None


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        pytest.param(job("other", labels={"app": "x"}), "had a Workload with app=x", id="a match"),
        pytest.param(job("other", labels={"app": "y"}), None, id="another label"),
        pytest.param(job("other", labels={"app": "x"}, queue="theirs"), None, id="another queue"),
        pytest.param(job("job", labels={"app": "x"}), None, id="itself"),
    ],
)
def test_anti_affinity(other: Any, reason: str | None) -> None:
    one = job("job", annotations={ANTI: "app=x"}, labels={"app": "x"})
    refuses = FILTERS["AntiAffinity"]
    assert refuses(one, cluster("a", running=[other])) == reason
    assert refuses(one, cluster("a", waiting=[other])) == reason
    assert refuses(job("job"), cluster("a", running=[other])) is None


def test_an_anti_affinity_that_cannot_be_read_refuses_all() -> None:
    reason = FILTERS["AntiAffinity"](job(annotations={ANTI: "a b"}), cluster("a"))
    assert reason == f"couldn't be judged: correct the annotation {ANTI}: 'a b' is not a label selector"


def too_little(asked: str, most: str, resource: str = GPU, by: str = "") -> str:
    return f"had too little quota: {asked} {resource} asked{by}, {most} at most"


@pytest.mark.parametrize(
    ("pods", "candidate", "reason"),
    [
        pytest.param(gpu_pods(8), queues((GPU, "a", 8)), None, id="all of it"),
        pytest.param(gpu_pods(8), queues((GPU, "a", 8, 8)), None, id="it is used: that may change"),
        pytest.param(gpu_pods(16), queues((GPU, "a", 8)), too_little("16", "8"), id="too little"),
        pytest.param(gpu_pods(8), queues((GPU, "a", 4), (GPU, "b", 8)), None, id="the largest flavor"),
        pytest.param(
            gpu_pods(8), queues((GPU, "a", 4), (GPU, "b", 4)), too_little("8", "4"), id="one flavor at a time"
        ),
        pytest.param(gpu_pods(4, 4), queues((GPU, "a", 8)), None, id="all podSets together"),
        pytest.param(gpu_pods(4, 4), queues((GPU, "a", 4), (GPU, "b", 4)), None, id="each in its own flavor"),
        pytest.param(
            gpu_pods(4, 4),
            queues((GPU, "a", 4)),
            too_little("8", "4", by=" by 2 podSets"),
            id="too little for all podSets together",
        ),
        pytest.param(
            gpu_pods(4, 4), queues((GPU, "a", 4), (GPU, "b", 0, 0, None)), None, id="a cohort has more"
        ),
        pytest.param(gpu_pods(4, 5), queues((GPU, "a", 4)), too_little("5", "4"), id="the second podSet"),
        pytest.param(gpu_pods(8), queues((GPU, "a", 4, 0, 4)), None, id="with what it may borrow"),
        pytest.param(
            gpu_pods(8), queues((GPU, "a", 4, 0, 2)), too_little("8", "6"), id="it may borrow too little"
        ),
        pytest.param(gpu_pods(8), queues((GPU, "a", 4, 0, None)), None, id="a cohort without a limit"),
        pytest.param(gpu_pods(1), queues(("cpu", "a", 4)), None, id="Kueue may ignore what is not named"),
        pytest.param(
            gpu_pods(1), queues((GPU, "a", 0)), too_little("1", "0"), id="it is named: there is none"
        ),
        pytest.param(gpu_pods(1, 1), queues((GPU, "a", 4), ("pods", "a", 2)), None, id="enough Pods"),
        pytest.param(
            gpu_pods(1),
            queues((GPU, "a", 4), ("pods", "a", 0)),
            too_little("1", "0", "pods"),
            id="too few Pods",
        ),
        pytest.param(
            gpu_pods(1),
            queues(exists=False, active=False),
            f"had no ClusterQueue cluster-queue for LocalQueue {QUEUE[0]}/{QUEUE[1]}",
            id="no ClusterQueue",
        ),
        pytest.param(gpu_pods(1), queues((GPU, "a", 4), active=False), None, id="on hold: that may change"),
        pytest.param(
            gpu_pods(1, memory="48Gi"),
            queues((GPU, "a", 4), ("memory", "a", "32Gi")),
            too_little("48Gi", "32Gi", "memory"),
            id="memory",
        ),
        pytest.param(
            gpu_pods(1, cpu="1500m"),
            queues((GPU, "a", 4), ("cpu", "a", 1)),
            too_little("1500m", "1", "cpu"),
            id="a part of a CPU",
        ),
        pytest.param((), queues((GPU, "a", 4)), None, id="no requests"),
        pytest.param(gpu_pods(8), None, None, id="nothing is known"),
        pytest.param(gpu_pods(8), {}, f"had no LocalQueue {QUEUE[0]}/{QUEUE[1]}", id="no LocalQueue"),
    ],
)
def test_capacity(pods: Any, candidate: Any, reason: str | None) -> None:
    assert FILTERS["Capacity"](job(pods=pods), cluster("a", queue_facts=candidate)) == reason


def test_a_job_over_a_limit_fits_nowhere_and_the_reason_names_the_limit() -> None:
    text = ",".join(f"l{n}=x" for n in range(129))
    names = ",".join(f"c{n}" for n in range(257))
    most = "at most 256 are read, it has"
    reasons = {
        "Limits": (SELECTOR, "x" * 8193, f"shorten the annotation {SELECTOR}: at most 8,192 characters"),
        "ClusterAffinity": (
            SELECTOR,
            text,
            f"correct the annotation {SELECTOR}: use fewer keys and values: {most} 258",
        ),
        "AntiAffinity": (ANTI, text, f"correct the annotation {ANTI}: use fewer keys and values: {most} 258"),
        "ClusterNames": (NAMES, names, f"use fewer names in the annotation {NAMES}: {most} 257"),
    }
    for name, (annotation, value, reason) in reasons.items():
        found = FILTERS[name](job(annotations={annotation: value}), cluster("a"))
        assert (found or "").startswith(f"couldn't be judged: {reason}")


@pytest.mark.parametrize(
    ("left", "seconds", "reason"),
    [
        pytest.param(None, 9999, None, id="none is announced"),
        pytest.param(60.0, 60, None, id="as long as is left"),
        pytest.param(
            60.0, 61, "had too little time left before its maintenance for a job of 61 s", id="longer"
        ),
        pytest.param(60.0, None, None, id="it does not say how long"),
        pytest.param(0.0, 1, "was in maintenance", id="it has begun"),
        pytest.param(0.0, None, "was in maintenance", id="it has begun, and the job does not say"),
    ],
)
def test_maintenance(left: float | None, seconds: int | None, reason: str | None) -> None:
    one = replace(job(), job=replace(job().job, seconds=seconds))
    assert FILTERS["Maintenance"](one, cluster("a", maintenance_in=left)) == reason
