"""The status of a CapacityProvider: when it is written, and when what was published stays."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.api.constants import OCM_CLUSTER
from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW, check, placement, undecided, unreadable, world
from tests.support.capacity import (
    EIGHT,
    FOUR,
    GPU,
    PARAMETERS,
    gpus,
    hub_queue,
    planned,
    provider,
    published,
    unknown,
)
from tests.support.decided import decided

BOTH = {"a": EIGHT, "b": FOUR}
BEFORE = {"f": {GPU: "12"}}
NOT_ANSWERED = "b (quota unknown: it has not answered yet)"


@pytest.mark.parametrize(
    ("before", "unknown_for", "is_written"),
    [
        pytest.param(None, 1.0, False, id="first, just listed"),
        pytest.param(None, 2.0, True, id="first, after a moment"),
        pytest.param(BEFORE, 59.0, False, id="published before"),
        pytest.param(BEFORE, 60.0, True, id="published before, after a minute"),
    ],
)
def test_a_restart_does_not_lower_the_sum(before: Any, unknown_for: float, is_written: bool) -> None:
    ages = unknown("b", age=unknown_for)
    answer = planned(facts={"a": EIGHT}, of=provider(before), ages=ages)
    if is_written:
        message = f"the sum of a; left out: {NOT_ANSWERED}"
        assert published(answer) == ("True", "Synchronized", message, {"f": {GPU: "8"}})
    else:
        assert answer.capacities == ()
        assert answer.requeue_after == 1.0
    assert ages.keys() <= answer.lasting


def test_without_any_known_quota_the_capacity_stays() -> None:
    refused = WorkerFacts(problem="grant list clusterqueues there")
    answer = planned(facts={"a": refused}, of=provider(BEFORE), ages=unknown("a", "b", age=60.0))
    message = (
        "grant list clusterqueues there; no quota is known: a (quota unknown: grant list clusterqueues"
        f" there), {NOT_ANSWERED}"
    )
    assert published(answer) == ("False", "SourceUnavailable", message, BEFORE)


NEGATIVE = gpus("-4")
WRONG = (
    "correct ClusterQueue q there: spec.resourceGroups.0.flavors.0.resources.0.nominalQuota: it must be a"
    " quantity of 0 or more"
)


def test_a_wrong_quantity_of_a_worker_is_left_out_after_a_minute_as_a_silent_one_is() -> None:
    """It froze the sum of all clusters, as long as the worker's admin liked."""
    facts = {"a": EIGHT, "b": NEGATIVE}
    for age in (0.0, 59.0):
        assert planned(facts=facts, of=provider(BEFORE), ages=unknown("b", age=age)).capacities == ()
    answer = planned(facts=facts, of=provider(BEFORE), ages=unknown("b", age=60.0))
    message = f"the sum of a; left out: b (quota unknown: {WRONG})"
    assert published(answer) == ("True", "Synchronized", message, {"f": {GPU: "8"}})


def test_the_capacity_stays_if_no_other_quota_is_known() -> None:
    answer = planned(facts={"b": NEGATIVE}, of=provider(BEFORE), ages=unknown("a", "b", age=60.0))
    assert published(answer) == ("False", "InvalidCapacity", f"b: {WRONG}", BEFORE)


NO_PLACEMENT = "correct spec.parameters.name, or create Placement kueue-system/p: it does not exist"
NO_CHECK = (
    "create an AdmissionCheck with controllerName open-cluster-management.io/placement and the same"
    " parameters: without it no cluster is listed for Placement kueue-system/p"
)
NO_QUEUE = (
    "let a ClusterQueue with a LocalQueue list AdmissionCheck check: only the quota of such queues on the"
    " workers counts, and there is none"
)
UNREADABLE = "the decision of Placement kueue-system/p cannot be read: "


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"scene": [check()]}, NO_PLACEMENT, id="no Placement"),
        pytest.param({"scene": []}, NO_PLACEMENT, id="nothing"),
        pytest.param({"scene": [placement()]}, NO_CHECK, id="no check of ours"),
        pytest.param({"scene": [check(), placement(), unreadable()]}, UNREADABLE, id="unreadable decision"),
        pytest.param({"queues": []}, NO_QUEUE, id="no queue"),
        pytest.param({"queues": hub_queue(by="another")}, NO_QUEUE, id="no queue with our check"),
        pytest.param({"queues": hub_queue()[:1]}, NO_QUEUE, id="no LocalQueue"),
    ],
)
def test_the_correction_leads_the_message(given: dict[str, Any], message: str) -> None:
    status, reason, text, amounts = published(planned(facts=BOTH, of=provider(BEFORE), **given))
    assert (status, reason, amounts) == ("False", "Misconfigured", BEFORE)
    assert text.startswith(message)


FIX = (
    f"set spec.parameters to apiGroup: {OCM_CLUSTER}, kind: Placement and the name of a Placement: they name "
)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (None, f"{FIX}nothing"),
        (PARAMETERS | {"kind": "Pod"}, f"{FIX}Pod.{OCM_CLUSTER} 'p'"),
        (PARAMETERS | {"apiGroup": "x"}, f"{FIX}Placement.x 'p'"),
        (5, "correct the spec: it cannot be read: spec.parameters: "),
    ],
)
def test_parameters_that_name_no_placement(parameters: Any, message: str) -> None:
    cache = world(decided("ab"), provider(BEFORE, parameters=parameters), capacity=True)
    [key] = [key for key in cache.keys() if key.kind == "provider"]  # noqa: SIM118  it is a method
    status, reason, text, amounts = published(plan(cache.snapshot(key, NOW, {})))
    assert (status, reason, amounts) == ("False", "Misconfigured", BEFORE)
    assert text.startswith(message)


@pytest.mark.parametrize("decision", [[undecided()], []], ids=["empty", "none"])
def test_before_a_decision_no_capacity_changes(decision: Any) -> None:
    scene = [check(), placement(), *decision]
    assert planned(scene=scene, of=provider(BEFORE)).capacities == ()
    status, reason, message, amounts = published(planned(scene=scene))
    assert (status, reason, amounts) == ("False", "SourceUnavailable", None)
    assert message.startswith("OCM has not decided yet for Placement kueue-system/p")


def test_one_of_another_controller_is_left_alone() -> None:
    assert planned(facts=BOTH, of=provider({}, controllerName="another")).capacities == ()


def test_only_a_difference_is_written() -> None:
    [wanted] = planned(facts=BOTH).capacities
    written = provider() | {"status": wanted.status}
    assert planned(facts=BOTH, of=written).capacities == ()
    assert published(planned(facts=BOTH | {"b": EIGHT}, of=written))[3] == {"f": {GPU: "16"}}


def test_of_many_clusters_some_are_counted() -> None:
    clusters = [f"c{number:02}" for number in range(15)]
    answer = planned(scene=decided(clusters), facts=dict.fromkeys(clusters, FOUR))
    assert published(answer)[2].endswith("c09 and 5 more")


# -- which workers are asked


@pytest.mark.parametrize(
    ("facts", "asked", "again"),
    [
        pytest.param({}, ("p-a", "p-b"), 2.0, id="never"),
        pytest.param(
            {"a": replace(EIGHT, age=10.0), "b": replace(FOUR, age=70.0)}, ("p-b",), 50.0, id="a minute ago"
        ),
        pytest.param({"a": EIGHT, "b": replace(FOUR, problem="x", age=15.0)}, ("p-b",), 60.0, id="in vain"),
    ],
)
def test_workers_are_asked_once_a_minute(facts: Any, asked: tuple[str, ...], again: float) -> None:
    answer = planned(facts=facts)
    assert (answer.ask_for_facts, answer.requeue_after) == (asked, again)


def test_without_a_capacity_provider_of_ours_no_worker_is_asked() -> None:
    answer = planned(of=provider(controllerName="another"))
    assert (answer.ask_for_facts, answer.requeue_after) == ((), None)
