"""Facts of queues, read from Kueue's objects."""

from typing import Any

import pytest

from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts, WorkerFacts, queue_facts


def local(name: str, cluster_queue: str = "cq") -> Any:
    return {"metadata": {"namespace": "team", "name": name}, "spec": {"clusterQueue": cluster_queue}}


def flavor(name: str, **gpu: Any) -> Any:
    return {"name": name, "resources": [{"name": "gpu"} | gpu]}


def cluster_queue(*flavors: Any, reserved: Any = (), **spec: Any) -> Any:
    status = {"flavorsReservation": list(reserved), "pendingWorkloads": 3, "reservingWorkloads": 2}
    groups = [{"coveredResources": ["gpu"], "flavors": list(flavors)}]
    return {"metadata": {"name": "cq"}, "spec": {"resourceGroups": groups} | spec, "status": status}


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
    found = queue_facts([local("one"), local("two")], [raw])
    assert found["team", "one"] == QueueFacts("cq", {"gpu": (quota,)}, pending=3, reserving=2)
    assert found["team", "one"] is found["team", "two"]


@pytest.mark.parametrize(("status", "active"), [("True", True), ("False", False), ("Unknown", True)])
def test_a_queue_that_is_stopped(status: str, active: bool) -> None:
    raw = {"metadata": {"name": "cq"}, "status": {"conditions": [{"type": "Active", "status": status}]}}
    assert queue_facts([local("one")], [raw])["team", "one"].active is active


def test_a_local_queue_without_its_cluster_queue() -> None:
    assert queue_facts([local("one", "gone")], []) == {("team", "one"): QueueFacts("gone")}


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"spec": {"resourceGroups": [{"flavors": 5}, {"flavors": [{"resources": [3]}]}, None]}},
        {"spec": [], "status": {"flavorsReservation": {}, "pendingWorkloads": "x"}},
    ],
)
def test_whatever_has_another_shape_counts_as_absent(raw: Any) -> None:
    found = queue_facts([local("one"), {}], [{"metadata": {"name": "cq"}} | raw])
    assert found == {("team", "one"): QueueFacts("cq"), ("", ""): QueueFacts("")}


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
