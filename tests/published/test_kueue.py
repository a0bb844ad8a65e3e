"""
The stand-in for Kueue writes on the embedded hub the conditions that real Kueue wrote.

Each test names the block of the recording that it replays, and compares the recorded lines
(`KIND or NAME: Active STATUS REASON | MESSAGE`) with the objects on the hub.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac.core.api.constants import CLUSTER_PROFILE, MULTIKUEUE_CONFIG
from placement_ac.kube.client import Object
from placement_lab.hub import Hub
from tests.placement_lab.standins.kueue_environment import (
    OFFERED,
    PROVIDER,
    KueueEnvironment,
    Staged,
    V,
    by_profile,
    check,
    cluster,
    config,
    kubeconfig,
    kueue_stages,
    profile,
    queue,
    secret,
)
from tests.published.shared import SHARED


def recorded(title: str) -> dict[str, str]:
    """The conditions in one block of broken-configuration.txt, by the text before the colon."""
    text = (SHARED / "kueue" / "broken-configuration.txt").read_text()
    block = text.split(f"--- {title}\n", 1)[1].split("\n---", 1)[0]
    lines = (re.fullmatch(r" +([\w-]+): +Active (.*)", line) for line in block.splitlines())
    return {found[1]: found[2] for found in lines if found}


def recorded_profile(step: str) -> tuple[str, str]:
    """The conditions of MultiKueueCluster and check in a step of cluster-profile.txt."""
    text = (SHARED / "kueue" / "cluster-profile.txt").read_text()
    block = text.split(f"##### {step} ", 1)[1].split("#####", 1)[0]
    [cluster] = re.findall(r"ex-cp \[\('Active', '(\w+)', '(\w+)', '(.*)'\)\]", block)
    [check] = re.findall(r"AdmissionCheck multikueue: (.*)", block)
    return f"{cluster[0]} {cluster[1]} | {cluster[2]}", check


def expect(stage: KueueEnvironment, title: str, *clusters: str) -> None:
    """Wait until check, queues and `clusters` have the conditions of that block."""
    block = recorded(title)
    kinds = {"AdmissionCheck": "acd", "ClusterQueue": "cqd", "LocalQueue": "lqd"}

    def conditions() -> dict[str, str | None]:
        found = {kind: stage.says(kind, name) for kind, name in kinds.items()}
        return found | {name: stage.says("MultiKueueCluster", name) for name in clusters}

    stage.until(conditions, {name: block[name] for name in (*kinds, *clusters)})


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Staged]:
    with kueue_stages(Hub, tmp_path) as start:
        yield start


BROKEN_CONFIGURATIONS = [
    pytest.param("MultiKueueConfig mkd missing", [], id="no config"),
    pytest.param(
        "config names only a missing MultiKueueCluster", [config("dx-missing")], id="a missing cluster"
    ),
    pytest.param(
        "worker1 + a missing MultiKueueCluster",
        [secret("worker1", kubeconfig()), cluster("worker1"), config("worker1", "dx-missing")],
        id="worker1 and a missing cluster",
    ),
    pytest.param(
        "cluster whose secret does not exist",
        [cluster("dx-nosecret", "nosuch-secret"), config("dx-nosecret")],
        id="no Secret",
    ),
    *(
        pytest.param(
            title, [item, cluster(item["metadata"]["name"]), config(item["metadata"]["name"])], id=name
        )
        for name, title, item in (
            ("no key", "secret without key 'kubeconfig'", secret("dx-nokey", "x", key="other")),
            ("garbage", "kubeconfig is garbage", secret("dx-garbage", "garbage")),
            (
                "insecure",
                "kubeconfig with insecure-skip-tls-verify",
                secret("dx-insecure", kubeconfig(cluster={"insecure-skip-tls-verify": True})),
            ),
            (
                "token file",
                "kubeconfig with tokenFile",
                secret("dx-tokfile", kubeconfig(user={"tokenFile": "/t"})),
            ),
        )
    ),
]


@pytest.mark.parametrize(("title", "objects"), BROKEN_CONFIGURATIONS)
def test_broken_configuration(staged: Staged, title: str, objects: list[Object]) -> None:
    stage = staged()
    stage.apply(*objects)
    clusters = [item["metadata"]["name"] for item in objects if item["kind"] == "MultiKueueCluster"]
    expect(stage, title, *(name for name in clusters if name.startswith("dx-")))


def test_broken_configuration_after_repair(staged: Staged) -> None:
    stage = staged()
    stage.apply(secret("dx-badtoken", "garbage"), cluster("dx-badtoken"), config("dx-badtoken"))
    inactive = "False NoUsableClusters | Inactive clusters: [dx-badtoken]"
    stage.until(lambda: stage.says("AdmissionCheck", "acd"), inactive)
    stage.apply(secret("dx-badtoken", kubeconfig()))
    expect(stage, "after repair", "dx-badtoken")


def test_broken_configuration_two_multikueue_checks(staged: Staged) -> None:
    stage = staged()
    stage.apply(secret("dx-badtoken", kubeconfig()), cluster("dx-badtoken"), config("dx-badtoken"))
    stage.apply(check("multikueue"), queue("acd", "multikueue"))
    expect(stage, "two multikueue checks", "dx-badtoken")


def test_broken_configuration_config_deleted_while_active(staged: Staged) -> None:
    stage = staged()
    stage.apply(secret("dx-badtoken", kubeconfig()), cluster("dx-badtoken"), config("dx-badtoken"))
    expect(stage, "after repair")
    stage.delete(MULTIKUEUE_CONFIG.at(V), "mkd")
    expect(stage, "MultiKueueConfig deleted under a live check", "dx-badtoken")


STEPS = {
    "e1": ({}, None),
    "e3": ({"cluster_profiles": True}, None),
    "e4": ({"cluster_profiles": True}, profile()),
    "e4b": ({"cluster_profiles": True, "access_providers": [PROVIDER]}, profile()),
    "e5": (
        {"cluster_profiles": True, "access_providers": [PROVIDER]},
        profile(accessProviders=[OFFERED]),
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_cluster_profile(staged: Staged, step: str) -> None:
    options, found = STEPS[step]
    stage = staged(**options)
    stage.apply(secret("worker1", kubeconfig()), cluster("worker1"), by_profile(), config("worker1", "ex-cp"))
    stage.apply(*([found] if found else []))

    def profile_says() -> tuple[str | None, str | None]:
        return stage.says("MultiKueueCluster", "ex-cp"), stage.says("AdmissionCheck", "acd")

    stage.until(profile_says, recorded_profile(step))


def test_cluster_profile_e6_deleted_while_connected(staged: Staged) -> None:
    stage = staged(cluster_profiles=True, access_providers=[PROVIDER])
    stage.apply(by_profile(), profile(accessProviders=[OFFERED]))
    stage.until(lambda: stage.says("MultiKueueCluster", "ex-cp"), recorded_profile("e5")[0])
    stage.delete(CLUSTER_PROFILE.at("v1alpha1"), "worker1", "kueue-system")
    stage.until(lambda: stage.says("MultiKueueCluster", "ex-cp"), recorded_profile("e6")[0])
