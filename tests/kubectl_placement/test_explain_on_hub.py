"""`placement-ac explain` on a hub where OCM's and Kueue's stand-ins and the controller are at work."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.steps import apply_samples, sequence, set_label, set_scores
from placement_lab.demo.steps import create_fleet as put_fleet
from placement_lab.standins.manifests import connect
from tests.support.commands import on_hub
from tests.support.driver import Driver, eventually

P = "placement-demo2"
GPU = "nvidia-tesla-t4"


@pytest.fixture
def stage() -> Iterator[DemoEnvironment]:
    """Story 3's fleet and Placement: the one cluster with the most free GPUs, which is cluster3."""
    with DemoEnvironment() as stage:
        act = sequence(
            put_fleet,
            set_label(GPU, "cluster2", "cluster3"),
            set_scores(cluster2=30, cluster3=70),
            apply_samples("multikueue-setup-demo2.yaml", "placement-demo2-2.yaml"),
        )
        act(connect(stage.kubeconfig), stage)
        yield stage


def explained(kubeconfig: Path, *words: str) -> dict[str, Any]:
    run = on_hub(kubeconfig)("explain", *words, "-o", "json")
    assert run.exit_code == 0, run.output
    (found,) = json.loads(run.output)["checks"]
    return dict(found)


def sentences(found: dict[str, Any], *steps: str) -> list[tuple[str, str]]:
    return [(link["step"], link["sentence"]) for link in found["links"] if link["step"] in steps]


def test_a_cluster_that_is_in_and_two_that_are_not(stage: DemoEnvironment) -> None:
    with Driver(stage.hub) as admin:
        eventually(lambda: admin.listed(P), [f"{P}-cluster3"])
        eventually(lambda: admin.reason(P), "Active")
        eventually(lambda: connected(admin, f"{P}-cluster3"))
    check = explained(stage.kubeconfig, "check", P)
    assert [
        (cluster["cluster"], cluster["state"], cluster["step"], cluster["why"])
        for cluster in check["clusters"]
    ] == [
        ("cluster3", "listed", "List", "it is number 1 of 1 on the list"),
        ("cluster1", "dropped", "Predicate", f"label accelerator is missing, and the predicate wants {GPU}"),
        (
            "cluster2",
            "dropped",
            "NumberOfClusters",
            (
                "total score 30, rank 2 of 2; numberOfClusters is 1; cluster3, the last one selected, has "
                "score 70"
            ),
        ),
    ]
    found = explained(stage.kubeconfig, "cluster", "cluster3", "--check", P)
    decided = f"PlacementDecision kueue-system/{P}-decision-1"
    assert sentences(found, "ClusterSet", "Score", "Decision", "Credential", "Connected", "Condition") == [
        (
            "ClusterSet",
            (
                "it is in ManagedClusterSet spoke, which is bound in namespace kueue-system, and "
                "spec.clusterSets names it"
            ),
        ),
        (
            "Score",
            (
                "AddOn/resource-usage-score/gpuClusterAvailable: 1 times 70 is 70 (from AddOnPlacementScore "
                "cluster3/resource-usage-score)"
            ),
        ),
        ("Decision", f"OCM has selected it: it is in {decided}"),
        ("Credential", "its credentials are Secret kueue-system/multikueue-cluster3, found by its name"),
        ("Connected", "Kueue is connected to it"),
        ("Condition", "True: Active: MultiKueueConfig and MultiKueueCluster generated"),
    ]
    out = explained(stage.kubeconfig, "cluster", "cluster2", "--check", P)
    assert sentences(out, "Decision", "List") == [("Decision", "OCM has not selected it")]


def connected(admin: Driver, name: str) -> bool:
    found = admin.get(admin.kueue("multikueueclusters", name)) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(condition["type"] == "Active" and condition["status"] == "True" for condition in conditions)
