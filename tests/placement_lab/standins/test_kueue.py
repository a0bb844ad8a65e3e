"""The conditions of the stand-in for Kueue; `tests/published/test_kueue.py` compares them with recordings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    FINALIZER_IN_USE,
    MULTIKUEUE_CLUSTER,
    Kind,
)
from placement_ac.kube.client import Object
from placement_lab.standins.kueue import CLUSTER_QUEUE, RESOURCE_FLAVOR, MultiKueue
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.kueue_environment import (
    Staged,
    V,
    check,
    cluster,
    config,
    kubeconfig,
    kueue_stages,
    queue,
    secret,
)
from tests.support.kueue_objects import (
    kueue_object,
)
from tests.support.real_hub import HubMaker


@pytest.fixture
def staged(a_hub: HubMaker, tmp_path: Path) -> Iterator[Staged]:
    with kueue_stages(a_hub, tmp_path) as start:
        yield start


def test_a_flavor_created_later_is_noticed(staged: Staged) -> None:
    stage = staged()
    stage.apply(queue(flavor="late"))
    missing = "False FlavorNotFound | Can't admit new workloads: references missing ResourceFlavor(s): late."
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), missing)
    stage.apply(kueue_object("ResourceFlavor", "late"))
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), "True Ready | Can admit new workloads")


def test_a_queue_follows_a_check_of_another_controller(staged: Staged) -> None:
    stage = staged()
    item = kueue_object("AdmissionCheck", "ours", {"controllerName": "open-cluster-management.io/placement"})
    stage.apply(item, queue("ours"))
    inactive = "references inactive AdmissionCheck(s): ours."
    expected = f"False AdmissionCheckInactive | Can't admit new workloads: {inactive}"
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), expected)
    assert stage.says("AdmissionCheck", "ours") is None
    condition = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    stage.apply(item | {"status": {"conditions": [condition]}})
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), "True Ready | Can admit new workloads")


# Its writes.


def test_a_foreign_finalizer_stays(staged: Staged) -> None:
    stage = staged()
    item = check("other")
    item["metadata"]["finalizers"] = ["example.com/mine"]
    stage.apply(item)

    def finalizers() -> Any:
        found = stage.get(ADMISSION_CHECK.at(V), "other")
        return found and found["metadata"].get("finalizers")

    stage.until(finalizers, ["example.com/mine", FINALIZER_IN_USE])
    stage.delete(ADMISSION_CHECK.at(V), "other")
    stage.until(finalizers, ["example.com/mine"])


def test_the_status_is_written_by_server_side_apply_as_kueue(staged: Staged) -> None:
    stage = staged()
    inactive = "references inactive AdmissionCheck(s): acd."
    expected = f"False AdmissionCheckInactive | Can't admit new workloads: {inactive}"
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), expected)
    item = stage.get(CLUSTER_QUEUE.at(V), "cqd") or {}
    owners = [
        (managed_field["manager"], managed_field["operation"])
        for managed_field in item["metadata"]["managedFields"]
        if "subresource" in managed_field
    ]
    assert owners == [("kueue", "Apply")]
    assert item["status"]["conditions"][0]["observedGeneration"] == item["metadata"]["generation"]


def test_nothing_is_written_when_nothing_has_changed(staged: Staged, tmp_path: Path) -> None:
    stage = staged()
    stage.apply(secret("w", kubeconfig()), cluster("w"), config("w"))
    stage.until(lambda: stage.says("ClusterQueue", "cqd"), "True Ready | Can admit new workloads")
    stage.pause(0.2)

    def versions() -> list[str]:
        kinds = ((ADMISSION_CHECK, "acd"), (CLUSTER_QUEUE, "cqd"), (MULTIKUEUE_CLUSTER, "w"))
        found = [stage.get(kind.at(V), name) or {} for kind, name in kinds]
        return [item["metadata"]["resourceVersion"] for item in found]

    before = versions()
    with StandIns(tmp_path / "kubeconfig", [MultiKueue]):
        stage.pause(0.3)
    assert versions() == before


def test_the_transition_time_changes_only_with_the_status(staged: Staged) -> None:
    stage = staged()
    stage.apply(cluster("w", "nosuch"))
    stage.until(lambda: (stage.says("MultiKueueCluster", "w") or "")[:5], "False")

    def condition() -> Object:
        found = stage.get(MULTIKUEUE_CLUSTER.at(V), "w") or {}
        return dict(found["status"]["conditions"][0])

    old = condition() | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    stage.merge(MULTIKUEUE_CLUSTER.at(V), "w", {"status": {"conditions": [old]}}, subresource="status")
    stage.apply(secret("nosuch", "garbage"))
    stage.until(lambda: condition()["reason"], "InsecureKubeConfig")
    assert condition()["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    stage.apply(secret("nosuch", kubeconfig()))
    stage.until(lambda: condition()["reason"], "Active")
    assert condition()["lastTransitionTime"] > "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("kind", "name"), [(ADMISSION_CHECK, "acd"), (RESOURCE_FLAVOR, "default")], ids=["check", "flavor"]
)
def test_checks_and_flavors_in_use_keep_their_finalizer(staged: Staged, kind: Kind, name: str) -> None:
    stage = staged()

    def held() -> Any:
        item = stage.get(kind.at(V), name)
        return item and (item["metadata"].get("finalizers"), "deletionTimestamp" in item["metadata"])

    stage.until(held, ([FINALIZER_IN_USE], False))
    stage.delete(kind.at(V), name)
    stage.pause(0.2)
    assert held() == ([FINALIZER_IN_USE], True)
    stage.delete(CLUSTER_QUEUE.at(V), "cqd")
    stage.until(held, None)
