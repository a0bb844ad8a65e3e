"""Facts of queues, read from Kueue's objects."""

import math
from typing import Any

import pytest

from placement_ac.core.api.quantities import LARGEST
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts, worker_facts


def local(name: str, cluster_queue: str = "cq") -> Any:
    return {"metadata": {"namespace": "team", "name": name}, "spec": {"clusterQueue": cluster_queue}}


def flavor(name: str, **gpu: Any) -> Any:
    return {"name": name, "resources": [{"name": "gpu"} | gpu]}


def cluster_queue(*flavors: Any, reserved: Any = (), **spec: Any) -> Any:
    status = {"flavorsReservation": list(reserved), "pendingWorkloads": 3, "reservingWorkloads": 2}
    groups = [{"coveredResources": ["gpu"], "flavors": list(flavors)}]
    whole = {"namespaceSelector": {}, "resourceGroups": groups} | spec
    return {"metadata": {"name": "cq"}, "spec": whole, "status": status}


@pytest.mark.parametrize(
    ("raw", "quota"),
    [
        pytest.param(cluster_queue(flavor("a", nominalQuota="8")), FlavorQuota("a", 8000), id="alone"),
        pytest.param(
            cluster_queue(flavor("a", nominalQuota=8), reserved=[flavor("a", total="6")]),
            FlavorQuota("a", 8000, 6000),
            id="reserved",
        ),
        pytest.param(
            cluster_queue(flavor("a", nominalQuota=8, borrowingLimit=4)),
            FlavorQuota("a", 8000),
            id="nothing to borrow from",
        ),
        pytest.param(
            cluster_queue(flavor("a", nominalQuota=8, borrowingLimit=4), cohortName="all"),
            FlavorQuota("a", 8000, 0, 4000),
            id="a limit (v1beta2)",
        ),
        pytest.param(
            cluster_queue(flavor("a", nominalQuota=8), cohort="all"),
            FlavorQuota("a", 8000, 0, None),
            id="no limit (v1beta1)",
        ),
    ],
)
def test_a_queue(raw: Any, quota: FlavorQuota) -> None:
    found = worker_facts([local("one"), local("two")], [raw]).queues
    cohort = "all" if quota.borrowable != 0 else ""
    assert found["team", "one"] == QueueFacts("cq", {"gpu": (quota,)}, pending=3, reserving=2, cohort=cohort)
    assert found["team", "one"] is found["team", "two"]


@pytest.mark.parametrize(
    ("effective", "quotas"),
    [
        pytest.param(
            [{"flavors": [flavor("b", nominalQuota=2)]}], {"gpu": (FlavorQuota("b", 2000),)}, id="others"
        ),
        pytest.param([], {}, id="none"),
    ],
)
def test_effective_quotas_replace_those_of_the_spec(effective: Any, quotas: Any) -> None:
    raw = cluster_queue(flavor("a", nominalQuota=8))
    raw["status"]["effectiveQuotas"] = {"resourceGroups": effective}
    assert worker_facts([local("one")], [raw]).queues["team", "one"].quotas == quotas


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
@pytest.mark.parametrize(
    ("part", "active"),
    [
        ({"status": {"conditions": [{"type": "Active", "status": "True"}]}}, True),
        ({"status": {"conditions": [{"type": "Active", "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Active", "status": "Unknown"}]}}, True),
        ({"spec": {"clusterQueue": "cq", "stopPolicy": "None"}}, True),
        ({"spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}}, False),
        ({"spec": {"clusterQueue": "cq", "stopPolicy": "HoldAndDrain"}}, False),
    ],
)
def test_a_queue_that_is_on_hold(kind: str, part: Any, active: bool) -> None:
    queues = {"ClusterQueue": {"metadata": {"name": "cq"}}, "LocalQueue": local("one")}
    queues[kind] |= part
    queues["ClusterQueue"]["spec"] = {"namespaceSelector": {}} | queues["ClusterQueue"].get("spec", {})
    found = worker_facts([queues["LocalQueue"], local("two")], [queues["ClusterQueue"]]).queues
    other = active or kind == "LocalQueue"
    assert [found["team", name].active for name in ("one", "two")] == [active, other]


@pytest.mark.parametrize(
    ("selector", "selects_none"),
    [
        pytest.param({}, False, id="all namespaces"),
        pytest.param({"matchLabels": {"team": "a"}}, False, id="some"),
        pytest.param(None, True, id="none"),
    ],
)
def test_a_queue_that_selects_no_namespace_gives_no_quota(selector: Any, selects_none: bool) -> None:
    found = worker_facts([local("one")], [cluster_queue(namespaceSelector=selector)]).queues["team", "one"]
    assert (found.selects_no_namespace, found.active) == (selects_none, not selects_none)


def test_a_local_queue_without_its_cluster_queue() -> None:
    assert worker_facts([local("one", "gone")], []).queues == {
        ("team", "one"): QueueFacts("gone", active=False, exists=False)
    }


@pytest.mark.parametrize("raw", [{}, {"spec": None, "status": {}}, {"spec": {"resourceGroups": None}}])
def test_absent_fields_of_a_clusterqueue_are_empty(raw: Any) -> None:
    found = worker_facts([local("one"), {}], [{"metadata": {"name": "cq"}} | raw])
    missing = QueueFacts("", active=False, exists=False)
    queue = QueueFacts("cq", active=False, selects_no_namespace=True)
    assert found == WorkerFacts({("team", "one"): queue, ("", ""): missing})


NOMINAL = "spec.resourceGroups.0.flavors.0.resources.0.nominalQuota"
NO_QUANTITY = "it must be a quantity of 0 or more"
COUNTERS = ("pendingWorkloads", "reservingWorkloads")
ODD_COUNTS = (-1, -(10**400), 2**31, 10**400, 0.5, math.nan, math.inf, True, "1", [], {}, None)
ODD_AMOUNTS = (-1, -(10**400), -0.5, math.nan, math.inf, -math.inf, True, "", "-1", "x", "9" * 5000, [], {})


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        *(
            (cluster_queue() | {"status": {name: odd}}, f"status.{name}")
            for odd in ODD_COUNTS
            for name in COUNTERS
        ),
        *((cluster_queue(flavor("a", nominalQuota=odd)), NOMINAL) for odd in ODD_AMOUNTS),
        (
            cluster_queue(flavor("a", nominalQuota="1", borrowingLimit="-1")),
            "spec.resourceGroups.0.flavors.0.resources.0.borrowingLimit",
        ),
        (cluster_queue(reserved=[flavor("a", total="-1")]), "status.flavorsReservation.0.resources.0.total"),
        (cluster_queue(5), "spec.resourceGroups.0.flavors.0"),
        ({"spec": [3]}, "spec"),
        ({"status": {"conditions": 3}}, "status.conditions"),
        ({"spec": {"stopPolicy": 3}}, "spec.stopPolicy"),
    ],
)
def test_if_a_field_is_not_as_kueue_writes_it_nothing_is_known(raw: Any, field: str) -> None:
    found = worker_facts([local("one")], [cluster_queue(), raw | {"metadata": {"name": "odd"}}])
    assert (found.queues, found.known) == ({}, None)
    assert found.problem.startswith(f"correct ClusterQueue odd there: {field}: ")
    assert len(found.problem) < 200


def test_the_problem_says_what_the_field_must_be() -> None:
    odd = cluster_queue(flavor("a", nominalQuota="-8"))
    assert worker_facts([], [odd]).problem == f"correct ClusterQueue cq there: {NOMINAL}: {NO_QUANTITY}"
    assert worker_facts([local("one") | {"spec": {"clusterQueue": 5}}], []).problem == (
        "correct LocalQueue one there: spec.clusterQueue: Input should be a valid string"
    )


def test_a_quota_without_bounds_counts_as_the_largest() -> None:
    found = worker_facts([local("one")], [cluster_queue(flavor("a", nominalQuota="1e99"))])
    assert found.queues["team", "one"].quotas == {"gpu": (FlavorQuota("a", LARGEST),)}


@pytest.mark.parametrize(
    ("facts", "is_fresh", "is_known"),
    [
        pytest.param(WorkerFacts(age=60.0), True, True, id="fresh"),
        pytest.param(WorkerFacts(age=60.1), False, False, id="too old"),
        pytest.param(WorkerFacts(problem="forbidden"), True, False, id="a problem"),
    ],
)
def test_which_facts_count(facts: WorkerFacts, is_fresh: bool, is_known: bool) -> None:
    assert (facts.is_fresh, facts.known is not None) == (is_fresh, is_known)
