"""Queues that our ManifestWork has put onto a worker count without a question, if they are as we set them."""

from collections.abc import Mapping
from typing import Any

import pytest

from placement_ac.core.api.constants import MANIFEST_WORK, SETUP_NAME
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy
from tests.support.builders import Raw, an, labels_of
from tests.support.capacity import (
    EIGHT,
    GPU,
    cluster_queue,
    gpus,
    hub_queue,
    local_queue,
    planned,
    published,
    worker,
)

APPLIED = {"type": "Applied", "status": "True"}
CONFLICT = {"type": "Applied", "status": "False", "message": "conflict with another manager"}
SET_UP = {"setup": WorkerSetupPolicy(enabled=True)}


def work(cluster: str, amount: str, *local: str, **states: Any) -> Raw:
    """Our ManifestWork with ClusterQueue q, with LocalQueues q and `local`; `states`: of kinds or names."""
    queues = [local_queue(name, "q") for name in ("q", *local)]
    manifests = [cluster_queue("q", {"f": {GPU: amount}}), *queues]
    reports = [
        {
            "resourceMeta": {"kind": one["kind"]} | one["metadata"],
            "conditions": [_state(one, states), {"type": "Available", "status": "True"}],
        }
        for one in manifests
    ]
    return an(
        MANIFEST_WORK,
        SETUP_NAME,
        cluster,
        spec={"workload": {"manifests": manifests}},
        status={"resourceStatus": {"manifests": reports}},
        labels=labels_of(None, cluster),
    )


def _state(manifest: Raw, states: Mapping[str, Raw]) -> Raw:
    return states.get(manifest["metadata"]["name"]) or states.get(manifest["kind"], APPLIED)


@pytest.mark.parametrize(
    ("states", "facts", "amount", "asked"),
    [
        pytest.param({}, {}, "13", (), id="as we set them"),
        pytest.param({}, {"b": gpus(99)}, "13", (), id="the worker has said otherwise"),
        pytest.param({"ClusterQueue": CONFLICT}, {"b": EIGHT}, "16", (), id="another's ClusterQueue"),
        pytest.param({"LocalQueue": CONFLICT}, {"b": EIGHT}, "16", (), id="another's LocalQueue"),
        pytest.param({"LocalQueue": CONFLICT}, {}, None, ("p-b",), id="another's, and not known yet"),
    ],
)
def test_what_we_set_counts_without_a_question(
    states: Any, facts: Any, amount: str | None, asked: Any
) -> None:
    answer = planned("ab", work("a", "8"), work("b", "5", **states), facts=facts, **SET_UP)
    assert answer.ask_for_facts == asked
    found = published(answer)[3] if answer.capacities else None
    assert found == ({"f": {GPU: amount}} if amount else None)


def test_a_local_queue_that_has_just_come_to_the_hub_asks_no_worker() -> None:
    queues = [*hub_queue(), local_queue("more", "q")]
    answer = planned("ab", work("a", "8"), work("b", "5"), queues=queues, **SET_UP)
    assert (answer.ask_for_facts, published(answer)[3]) == ((), {"f": {GPU: "13"}})


def test_of_a_local_queue_by_hand_the_worker_is_asked() -> None:
    queues = [*hub_queue(), local_queue("more", "q")]
    there = [work("a", "8", "more"), work("b", "5", "more", more=CONFLICT)]
    by_hand = worker(("theirs", {"f": {GPU: "3"}}), local=("more",))
    answer = planned("ab", *there, queues=queues, **SET_UP)
    assert (answer.ask_for_facts, answer.capacities) == (("p-b",), ())
    answer = planned("ab", *there, queues=queues, facts={"b": by_hand}, **SET_UP)
    assert (answer.ask_for_facts, published(answer)[3]) == ((), {"f": {GPU: "16"}})


def test_queues_of_other_placements_do_not_count() -> None:
    facts = {"a": gpus(1, "r"), "b": gpus(2, "r")}
    answer = planned("ab", work("a", "8"), work("b", "5"), queues=hub_queue("r"), facts=facts, **SET_UP)
    assert published(answer)[3] == {"f": {GPU: "3"}}


def test_a_wrong_quantity_in_our_manifest_work_is_named() -> None:
    answer = planned("ab", work("a", "8"), work("b", "many"), **SET_UP)
    status, reason, message, _ = published(answer)
    assert (status, reason) == ("False", "InvalidCapacity")
    assert message.startswith("b: correct ClusterQueue q there: spec.resourceGroups.0")
    assert message.endswith("(in ManifestWork b/placement-ac-queues)")
