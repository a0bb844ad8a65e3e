"""The quota of the hub as the sum of that on the listed clusters, which a CapacityProvider publishes."""

from dataclasses import replace
from typing import Any

import pytest

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
            {"f": {GPU: "8Ei"}},
            "the sum of a and b",
            id="more than fits",
        ),
    ],
)
def test_the_sum_of_the_clusters_that_get_jobs(given: dict[str, Any], amounts: Any, message: str) -> None:
    given = {"ages": {}} | given
    answer = planned(given.pop("selected", "ab"), *given.pop("objects", ()), **given)
    assert published(answer) == ("True", "Synchronized", message, amounts)
