"""The quota of the hub as the sum of that on the listed clusters, which a CapacityProvider publishes."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_QUOTA_MAX
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.state import Since, SinceKind
from tests.support.builders import AT_ONCE, managed_clusters, running, workload
from tests.support.capacity import (
    EIGHT,
    FOUR,
    GPU,
    cluster_queue,
    gpus,
    hub_queue,
    local_queue,
    planned,
    provider,
    published,
    unknown,
    worker,
)
from tests.support.decided import decided

FLAPPING: dict[str, Any] = {
    "policy": replace(AT_ONCE, settle=30.0),
    "ages": {Since(SinceKind.SELECTION, "p-a,p-b"): 5.0},
}
STANDS_BY = replace(AT_ONCE, dispatcher=True, unlist_after=3600.0)
ALL = {"a": EIGHT, "b": FOUR, "c": EIGHT}


@pytest.mark.parametrize(
    ("given", "amounts", "message"),
    [
        pytest.param({"facts": ALL}, {"f": {GPU: "12"}}, "the sum of a and b", id="selected"),
        pytest.param(
            {"selected": "b", "listed": "ab", "objects": [running("job", "p-a")], "facts": ALL},
            {"f": {GPU: "4"}},
            "the sum of b; left out: a (drains)",
            id="drains",
        ),
        pytest.param(
            {"selected": "b", "listed": "ab", "objects": [workload()], "facts": ALL} | FLAPPING,
            {"f": {GPU: "12"}},
            "the sum of a and b",
            id="decisions flap",
        ),
        pytest.param(
            {"selected": "b", "listed": "ab", "policy": STANDS_BY, "facts": ALL},
            {"f": {GPU: "4"}},
            "the sum of b; left out: a (stands by)",
            id="stands by",
        ),
        pytest.param(
            {
                "selected": "abc",
                "listed": "abc",
                "facts": ALL,
                "placed": {"fleet": managed_clusters("a", "b", "c", unreachable=["c"])},
            },
            {"f": {GPU: "20"}},
            "the sum of a, b and c",
            id="unreachable, and known from before",
        ),
        pytest.param(
            {"facts": {"a": EIGHT, "b": replace(FOUR, problem="it does not answer", age=900.0)}},
            {"f": {GPU: "12"}},
            "the sum of a and b",
            id="does not answer any more",
        ),
        pytest.param(
            {
                "facts": {"a": EIGHT},
                "ages": unknown("b", age=60.0),
                "placed": {"fleet": managed_clusters("a", "b", unreachable=["b"])},
            },
            {"f": {GPU: "8"}},
            "the sum of a; left out: b (quota unknown: OCM cannot reach it)",
            id="unreachable, and never known",
        ),
        pytest.param(
            {
                "facts": {"a": EIGHT, "b": WorkerFacts(problem="grant list clusterqueues")},
                "ages": unknown("b", age=60.0),
            },
            {"f": {GPU: "8"}},
            "the sum of a; left out: b (quota unknown: grant list clusterqueues)",
            id="no right",
        ),
        pytest.param(
            {"facts": {"a": EIGHT, "b": gpus(4, "theirs")}, "ages": unknown("b", age=60.0)},
            {"f": {GPU: "8"}},
            "the sum of a; left out: b (quota unknown: create LocalQueues there: it has none of the hub's"
            " with a ClusterQueue)",
            id="no queue of the hub's",
        ),
        pytest.param(
            {
                "facts": {"a": EIGHT, "b": worker(("q", {"g": {GPU: "4", "cpu": "2500m"}}))},
                "of": provider(None, "f", "g", "h"),
            },
            {"f": {GPU: "8"}, "g": {GPU: "4", "cpu": "2500m"}},
            "the sum of a and b; no queue has ResourceFlavor h",
            id="flavors differ",
        ),
        pytest.param(
            {
                "facts": {"a": EIGHT, "b": FOUR},
                "of": provider(None, "g"),
                "queues": hub_queue(flavors={"f": {GPU: "1"}, "g": {"cpu": "1"}}),
            },
            {"g": {"cpu": "0"}},
            "the sum of a and b",
            id="no worker has the flavor",
        ),
        pytest.param(
            {
                "facts": {
                    "a": worker(
                        ("q", {"f": {GPU: "8"}}),
                        ("r", {"f": {GPU: "2"}}),
                        ("x", {"f": {GPU: "100"}}),
                        local=("q2",),
                    ),
                    "b": FOUR,
                },
                "queues": [
                    *hub_queue(),
                    local_queue("q2", "q"),
                    *hub_queue("r", by="mk"),
                    *hub_queue("x", by="another"),
                ],
            },
            {"f": {GPU: "14"}},
            "the sum of a and b",
            id="several ClusterQueues, each once, and none that another check uses",
        ),
        pytest.param(
            {
                "facts": {
                    "a": worker(
                        ("q", {"f": {GPU: "8"}}),
                        effectiveQuotas=cluster_queue("q", {"f": {GPU: "3"}})["spec"],
                    ),
                    "b": FOUR,
                }
            },
            {"f": {GPU: "7"}},
            "the sum of a and b",
            id="effective quotas of a worker",
        ),
        pytest.param(
            {"selected": "", "listed": "", "facts": {}},
            {"f": {GPU: "0"}},
            "no cluster is listed",
            id="no cluster",
        ),
        pytest.param(
            {"facts": {"a": gpus("9Ei"), "b": gpus("9Ei")}},
            {"f": {GPU: "9223372036854775807"}},
            "the sum of a and b",
            id="more than fits",
        ),
    ],
)
def test_the_sum_of_the_clusters_that_get_jobs(given: dict[str, Any], amounts: Any, message: str) -> None:
    given = {"ages": {}} | given
    answer = planned(given.pop("selected", "ab"), *given.pop("objects", ()), **given)
    assert published(answer) == ("True", "Synchronized", message, amounts)


HUGE = gpus(10**15)


def with_nodes(gpus: str | None) -> list[Any]:
    """The ManagedClusters a and b; the nodes of a can allocate so many GPUs, None: it does not say."""
    a, b = managed_clusters("a", "b")
    a["status"] = {"allocatable": {"cpu": "64"} | ({GPU: gpus} if gpus is not None else {})}
    return [a, b]


def capped(text: str, gpus: str | None = "8") -> list[Any]:
    """The same hub with an annotation of the MultiKueueCluster of a."""
    scene = decided("ab", fleet=with_nodes(gpus))
    for raw in scene:
        if raw["kind"] == "MultiKueueCluster" and raw["metadata"]["name"] == "p-a":
            raw["metadata"].setdefault("annotations", {})[ANNOTATION_QUOTA_MAX] = text
    return scene


BOUNDED = "; no more counts than its nodes can allocate or an admin allows: a ({})"


@pytest.mark.parametrize(
    ("given", "total", "remark"),
    [
        pytest.param({"placed": {"fleet": with_nodes("8")}}, "12", f"{GPU} 8 of {10**15}", id="nodes"),
        pytest.param({"scene": capped(f"{GPU}=6")}, "10", f"{GPU} 6 of {10**15}", id="an admin"),
        pytest.param({"scene": capped(f"{GPU}=64, cpu=1k")}, "68", f"{GPU} 64 of {10**15}", id="instead"),
        pytest.param({"scene": capped(f"{GPU}=64", None)}, "68", f"{GPU} 64 of {10**15}", id="alone"),
        pytest.param(
            {"scene": capped("gpus")},
            "12",
            f"{GPU} 8 of {10**15}; correct the annotation {ANNOTATION_QUOTA_MAX} of"
            " MultiKueueCluster p-a: 'gpus' is not RESOURCE=QUANTITY, comma-separated",
            id="wrong",
        ),
    ],
)
def test_a_worker_counts_with_no_more_than_its_nodes_can_allocate(
    given: dict[str, Any], total: str, remark: str
) -> None:
    """Its admin made the quota of the hub 10^15 GPUs, with condition True."""
    answer = planned(facts={"a": HUGE, "b": FOUR}, **given)
    message = f"the sum of a and b{BOUNDED.format(remark)}"
    assert published(answer) == ("True", "Synchronized", message, {"f": {GPU: total}})


def test_the_flavors_of_a_worker_share_what_its_nodes_can_allocate() -> None:
    facts = worker(("q", {"f": {GPU: "6"}, "g": {GPU: "6"}}))
    answer = planned(
        "a",
        facts={"a": facts},
        of=provider(None, "f", "g"),
        queues=hub_queue(flavors={"f": {GPU: "1"}, "g": {GPU: "1"}}),
        placed={"fleet": with_nodes("8")[:1]},
    )
    assert published(answer)[3] == {"f": {GPU: "6"}, "g": {GPU: "2"}}


def test_a_quota_within_that_counts_as_it_is() -> None:
    answer = planned(facts={"a": EIGHT, "b": FOUR}, placed={"fleet": with_nodes("8")})
    assert published(answer)[2:] == ("the sum of a and b", {"f": {GPU: "12"}})
