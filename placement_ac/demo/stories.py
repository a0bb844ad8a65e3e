"""
The three stories as steps: what is done, and what must come of it.

A step acts through the hub's API, as an admin, OCM or an addon would.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from placement_ac.demo.viewer import CLUSTER_QUEUE, Viewer
from placement_ac.kube import Client
from placement_ac.names import (
    ACTIVE,
    ADMISSION_CHECK,
    GENERATED,
    MULTIKUEUE_CLUSTER,
    OCM_CLUSTER,
    PLACEMENT_SCORE,
    Kind,
)
from placement_ac.sim.manifests import apply, load, samples

MANAGED_CLUSTER: Final = Kind(OCM_CLUSTER, "ManagedCluster", "managedclusters", False, ("v1",))
LABEL: Final = "accelerator"
T4: Final = "nvidia-tesla-t4"
SCORE: Final = "gpuClusterAvailable"
SCORES: Final = "resource-usage-score"

Act = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Step:
    """`done` is told as the commands that do the same; `clusters` is what the config must list then."""

    story: int
    title: str
    done: tuple[str, ...]
    act: Act
    placement: str
    clusters: tuple[str, ...]

    @property
    def wanted(self) -> list[str]:
        """The MultiKueueClusters that the config must list, in order."""
        return [f"{self.placement}-{cluster}" for cluster in self.clusters]


def came_out_right(step: Step, seen: Viewer) -> bool:
    """Whether the config, its MultiKueueClusters, the check and the ClusterQueue are what they must be."""
    condition = seen.condition(ADMISSION_CHECK, step.placement)
    mine = [
        obj["metadata"]["name"]
        for obj in seen.all(MULTIKUEUE_CLUSTER)
        if obj["metadata"]["name"].startswith(f"{step.placement}-")
    ]
    return (
        seen.listed(step.placement) == step.wanted
        and mine == sorted(step.wanted)
        and (condition.get("status"), condition.get("reason"), condition.get("message"))
        == ("True", ACTIVE, GENERATED)
        and all(seen.condition(MULTIKUEUE_CLUSTER, name).get("status") == "True" for name in step.wanted)
        and seen.condition(CLUSTER_QUEUE, queue_of(step)).get("status") == "True"
    )


def queue_of(step: Step) -> str:
    return step.placement.replace("placement-", "cluster-queue-")


def _apply(*names: str) -> Act:
    async def act(client: Client) -> None:
        for name in names:
            await apply(client, load(samples() / name))

    return act


def _label(value: str | None, *clusters: str) -> Act:
    async def act(client: Client) -> None:
        for cluster in clusters:
            patch = {"metadata": {"labels": {LABEL: value}}}
            await client.merge(MANAGED_CLUSTER.at("v1"), cluster, patch)

    return act


def _score(**values: int) -> Act:
    async def act(client: Client) -> None:
        for cluster, value in values.items():
            resource = PLACEMENT_SCORE.at("v1alpha1")
            status = {"scores": [{"name": SCORE, "value": value}]}
            await client.merge(resource, SCORES, {"status": status}, namespace=cluster, subresource="status")

    return act


def _all(*acts: Act) -> Act:
    async def act(client: Client) -> None:
        for one in acts:
            await one(client)

    return act


def _apply_told(*names: str) -> tuple[str, ...]:
    return tuple(f"kubectl apply -f samples/{name}" for name in names)


DEMO1: Final = "placement-demo1"
DEMO2: Final = "placement-demo2"

STEPS: Final = (
    Step(
        1,
        "All clusters of the set, nothing written by hand",
        _apply_told("multikueue-setup-demo1.yaml"),
        _apply("multikueue-setup-demo1.yaml"),
        DEMO1,
        ("cluster1", "cluster2", "cluster3"),
    ),
    Step(
        2,
        "The clusters with a T4, by label",
        (
            f"kubectl label managedcluster cluster2 cluster3 {LABEL}={T4}",
            *_apply_told("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
        ),
        _all(
            _label(T4, "cluster2", "cluster3"),
            _apply("placement-demo2-1.yaml", "multikueue-setup-demo2.yaml"),
        ),
        DEMO2,
        ("cluster2", "cluster3"),
    ),
    Step(
        2,
        "A T4 is put into cluster1: it comes in",
        (f"kubectl label managedcluster cluster1 {LABEL}={T4}",),
        _label(T4, "cluster1"),
        DEMO2,
        ("cluster1", "cluster2", "cluster3"),
    ),
    Step(
        2,
        "It is taken out again: cluster1 goes",
        (f"kubectl label managedcluster cluster1 {LABEL}-",),
        _label(None, "cluster1"),
        DEMO2,
        ("cluster2", "cluster3"),
    ),
    Step(
        3,
        "Only the cluster with most free GPUs: cluster3",
        (
            f"addon reports {SCORES}/{SCORE}: cluster2 = 30, cluster3 = 70",
            *_apply_told("placement-demo2-2.yaml"),
        ),
        _all(_score(cluster2=30, cluster3=70), _apply("placement-demo2-2.yaml")),
        DEMO2,
        ("cluster3",),
    ),
    Step(
        3,
        "Its GPUs fill up: cluster2 takes over",
        (f"addon reports {SCORES}/{SCORE}: cluster2 = 80, cluster3 = 10",),
        _score(cluster2=80, cluster3=10),
        DEMO2,
        ("cluster2",),
    ),
    Step(
        3,
        "They are free again: back to cluster3",
        (f"addon reports {SCORES}/{SCORE}: cluster2 = 20, cluster3 = 90",),
        _score(cluster2=20, cluster3=90),
        DEMO2,
        ("cluster3",),
    ),
)

FLEET: Final = _apply("fleet")
"""What is on the hub before any story: three managed clusters in a set, profiles, scores, Secrets."""

PREPARATIONS: Final = {3: STEPS[1]}
"""The step that a story builds on when it is shown alone."""
