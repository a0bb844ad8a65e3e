"""The quota of a worker without a template: what the cluster can allocate, shared by the hub's queues."""

from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.api.decode import managed_cluster
from placement_ac.core.inputs.worker_setup import HubClusterQueue, WorkerSetupInputs, WorkerSetupPolicy
from placement_ac.core.worker_setup.manifests import wanted_setup
from placement_ac.core.worker_setup.template import TemplateProblem

GPU = "nvidia.com/gpu"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cluster(labels: dict[str, str] | None = None, **allocatable: str) -> Any:
    raw = {"metadata": {"name": "c1", "labels": labels or {}}, "status": {"allocatable": allocatable}}
    return managed_cluster(raw, with_labels=True, with_allocatable=True)


def queue(
    name: str, nominal: dict[str, str], flavors: tuple[str, ...] = ("f",), **spec: Any
) -> HubClusterQueue:
    quotas = [{"name": resource, "nominalQuota": amount} for resource, amount in nominal.items()]
    group = {
        "coveredResources": list(nominal),
        "flavors": [{"name": one, "resources": quotas} for one in flavors],
    }
    return HubClusterQueue(name, {"resourceGroups": [group], **spec}, (("team", name),))


def made(*queues: HubClusterQueue, **inputs: Any) -> dict[str, Any]:
    """Return the specs of the ClusterQueues that a worker gets, by name."""
    given: dict[str, Any] = {"flavors": {"f": {}}, "policy": WorkerSetupPolicy(enabled=True)} | inputs
    wanted = wanted_setup(WorkerSetupInputs("c1", NOW, queues=queues, **given))
    return {one["metadata"]["name"]: one["spec"] for one in wanted if one["kind"] == "ClusterQueue"}


def quotas(*queues: HubClusterQueue, **inputs: Any) -> dict[str, dict[str, str]]:
    return {
        name: {
            quota["name"]: quota["nominalQuota"]
            for group in spec["resourceGroups"]
            for flavor in group["flavors"]
            for quota in flavor["resources"]
        }
        for name, spec in made(*queues, **inputs).items()
    }


def test_the_reserve_is_of_what_a_node_needs_itself() -> None:
    there = cluster(cpu="10", memory="10Gi", pods="110", **{GPU: "8"})
    wanted = queue("q", {"cpu": "1", "memory": "1Gi", "pods": "1", GPU: "1"})
    assert quotas(wanted, managed_cluster=there) == {
        "q": {"cpu": "9", "memory": "9Gi", "pods": "110", GPU: "8"}
    }


@pytest.mark.parametrize(
    ("on_hub", "on_worker"),
    [
        (("30", "10"), ("6", "2")),
        (("0", "0"), ("4", "4")),
        (("2", "1"), ("5", "2")),
        (("7", "0"), ("8", "0")),
    ],
)
def test_queues_share_a_resource_as_on_the_hub(on_hub: tuple[str, str], on_worker: tuple[str, str]) -> None:
    queues = [queue(name, {GPU: amount}) for name, amount in zip("ab", on_hub, strict=True)]
    found = quotas(*queues, managed_cluster=cluster(**{GPU: "8"}))
    assert (found["a"][GPU], found["b"][GPU]) == on_worker


def test_bytes_are_whole_mebibytes() -> None:
    there = cluster(memory="264241152Ki")
    assert quotas(queue("q", {"memory": "1Gi"}), managed_cluster=there) == {"q": {"memory": "232243Mi"}}


def test_a_resource_that_the_cluster_does_not_report_is_0() -> None:
    assert quotas(queue("q", {GPU: "4"}), managed_cluster=cluster(cpu="4")) == {"q": {GPU: "0"}}


def test_what_is_not_of_a_worker_stays_on_the_hub() -> None:
    spec = {"cohortName": "c", "preemption": {"withinClusterQueue": "Never"}, "stopPolicy": "Hold"}
    wanted = queue("q", {GPU: "4"}, admissionChecksStrategy={"admissionChecks": [{"name": "p"}]}, **spec)
    made_spec = made(wanted, managed_cluster=cluster(**{GPU: "1"}))["q"]
    assert made_spec.keys() == {"cohortName", "preemption", "namespaceSelector", "resourceGroups"}
    assert made_spec["namespaceSelector"] == {}


FLAVORS = {"t4": {"nodeLabels": {"gpu": "t4"}}, "a100": {"nodeLabels": {"gpu": "a100"}}}


def test_the_flavor_is_the_one_that_the_clusters_labels_allow() -> None:
    spec = made(
        queue("q", {GPU: "4"}, ("t4", "a100")),
        managed_cluster=cluster({"gpu": "a100"}, **{GPU: "2"}),
        flavors=FLAVORS,
    )["q"]
    assert [flavor["name"] for flavor in spec["resourceGroups"][0]["flavors"]] == ["a100"]


@pytest.mark.parametrize(
    ("labels", "flavors", "problem"),
    [
        (
            {},
            FLAVORS,
            "name a template, or label c1 as the nodes of one flavor of ClusterQueue q are: t4, a100 fit its",
        ),
        (
            {"gpu": "h100"},
            FLAVORS,
            "name a template, or label c1 as the nodes of one flavor of ClusterQueue q are: none",
        ),
        ({"gpu": "t4"}, {"t4": FLAVORS["t4"]}, "create ResourceFlavor a100: ClusterQueue q names it"),
        (
            {"gpu": "t4"},
            FLAVORS | {"t4": {"topologyName": "racks"}},
            "name a template with Topology racks: ResourceFlavor t4 names it",
        ),
    ],
)
def test_what_cannot_be_told_needs_a_template(labels: dict[str, str], flavors: Any, problem: str) -> None:
    with pytest.raises(TemplateProblem) as raised:
        made(
            queue("q", {GPU: "4"}, ("t4", "a100")),
            managed_cluster=cluster(labels, **{GPU: "2"}),
            flavors=flavors,
        )
    assert str(raised.value).startswith(problem)
