"""
What a step of a story is: what is done, and what must come of it.

A step acts through the hub's API, as an admin, OCM or an addon would. What happens elsewhere (a job that
ends on its worker, a controller that is replaced) is done backstage.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from placement_ac.core.api.constants import (
    ACTIVE,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    GENERATED,
    KUBECONFIG_KEY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    OCM_CLUSTER,
    PLACEMENT,
    PLACEMENT_SCORE,
    SECRET,
    Kind,
)
from placement_ac.core.credentials.discovery import secret_names
from placement_ac.kube.client import Client, Object
from placement_ac.lab.demo.viewer import CLUSTER_QUEUE, Viewer
from placement_ac.lab.standins.fleet import JobCounts
from placement_ac.lab.standins.kueue import LOCAL_QUEUE, RESOURCE_FLAVOR
from placement_ac.lab.standins.manifests import apply, load, samples

MANAGED_CLUSTER: Final = Kind(OCM_CLUSTER, "ManagedCluster", "managedclusters", False, ("v1",))
LABEL: Final = "accelerator"
SCORE: Final = "gpuClusterAvailable"
SCORES: Final = "resource-usage-score"
JOB_NAME: Final = "train"
"""The job of Story 3; the sample leaves the name to the hub."""
_WAYS_IN: Final = (SECRET.kind, CLUSTER_PROFILE.kind)
_OF_STORY_1: Final = (PLACEMENT, ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR)
"""The kinds in its manifest."""


class Backstage(Protocol):
    """What a step cannot do through the hub's API."""

    @property
    def kubeconfigs(self) -> Mapping[str, bytes]:
        """The way into each worker by the cluster's name; empty where no job is shown."""
        ...

    @property
    def managed_clusters(self) -> Sequence[Object]:
        """ManagedClusters with the workers' addresses; empty where no credentials are made."""
        ...

    async def renew(self, cluster: str) -> None:
        """Have OCM report a new token of the account on a cluster."""
        ...

    async def end_job(self, name: str) -> None:
        """Let a job come to its end wherever it runs."""
        ...

    async def be_careless(self) -> None:
        """Put a careless list in the controller's place."""
        ...


Act = Callable[[Client, Backstage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class JobIs:
    """What must have become of the job."""

    runs_on: tuple[str, ...] | None
    """The clusters where it runs, by what the workers hold; None: wherever."""
    recorded: str = ""
    """The cluster where it runs or has run, by what the hub knows."""
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """`done` is told as the commands that do the same; `clusters` is what the config must list then.

    `clusters` is None where it does not matter yet. `draining`: the last of them, which is to leave.
    `made`: the clusters for which credentials must be made, and for no other; None where that does not
    matter. `renewed`: the one whose token must be new. `gone`: nothing must be left of the check.
    """

    story: int
    title: str
    done: tuple[str, ...]
    act: Act
    placement: str
    clusters: tuple[str, ...] | None
    draining: str = ""
    job: JobIs | None = None
    made: tuple[str, ...] | None = None
    renewed: str = ""
    gone: bool = False

    @property
    def wanted(self) -> list[str]:
        """The MultiKueueClusters that the config must list, in order."""
        return [f"{self.placement}-{cluster}" for cluster in self.clusters or ()]

    def lists(self, seen: Viewer) -> bool:
        """Whether the config lists what it must."""
        return self.clusters is None or seen.listed(self.placement) == self.wanted


@dataclass(frozen=True, slots=True)
class Ending:
    """What the workers must have counted of the job when all is over, and what that shows."""

    wanted: JobCounts
    moral: str


@dataclass(frozen=True, slots=True)
class Programme:
    """What is played: perhaps a step before the curtain rises, the steps, and how a job must have ended."""

    steps: tuple[Step, ...]
    preparation: Step | None = None
    ending: Ending | None = None


# -- what must come of a step


def came_out_right(step: Step, seen: Viewer) -> bool:
    """Whether the list, what hangs on it, the job and what was made are what they must be."""
    return (
        (step.clusters is None or _list_is_right(step, seen))
        and _job_is_right(step, seen)
        and _made_is_right(step, seen)
    )


def _list_is_right(step: Step, seen: Viewer) -> bool:
    """Whether the config, its MultiKueueClusters, the check and the ClusterQueue are what they must be."""
    mine = [
        obj["metadata"]["name"]
        for obj in seen.all(MULTIKUEUE_CLUSTER)
        if obj["metadata"]["name"].startswith(f"{step.placement}-")
    ]
    if step.gone:
        return not mine and not any(
            seen.get(kind, step.placement) for kind in (MULTIKUEUE_CONFIG, ADMISSION_CHECK)
        )
    return (
        step.lists(seen)
        and mine == sorted(step.wanted)
        and _condition_is_right(step, seen)
        and all(seen.condition(MULTIKUEUE_CLUSTER, name).get("status") == "True" for name in step.wanted)
        and seen.condition(CLUSTER_QUEUE, queue_of(step)).get("status") == "True"
    )


def _condition_is_right(step: Step, seen: Viewer) -> bool:
    condition = seen.condition(ADMISSION_CHECK, step.placement)
    if (condition.get("status"), condition.get("reason")) != ("True", ACTIVE):
        return False
    told, draining = condition.get("message", ""), f"{GENERATED}; draining: {step.draining} ("
    return bool(told.startswith(draining) if step.draining else told == GENERATED)


def _job_is_right(step: Step, seen: Viewer) -> bool:
    wanted = step.job
    if wanted is None or wanted.runs_on is None:
        return True
    found = seen.job(JOB_NAME)
    recorded = f"{step.placement}-{wanted.recorded}" if wanted.recorded else ""
    return (found.runs_on, found.recorded, found.finished) == (wanted.runs_on, recorded, wanted.finished)


def _made_is_right(step: Step, seen: Viewer) -> bool:
    if step.made is None or seen.making is None:
        return True
    made = seen.making.seen()
    return made.is_for(step.made) and (not step.renewed or step.renewed in made.renewed)


def queue_of(step: Step) -> str:
    return step.placement.replace("placement-", "cluster-queue-")


# -- what is done


def applied(*names: str) -> Act:
    async def act(client: Client, _: Backstage) -> None:
        for name in names:
            await apply(client, load(samples() / name))

    return act


def deleted(name: str) -> Act:
    """Delete what Story 1's manifest has put there."""
    kinds = {kind.kind: kind for kind in _OF_STORY_1}

    async def act(client: Client, _: Backstage) -> None:
        for item in load(samples() / name):
            metadata, version = item["metadata"], item["apiVersion"].rpartition("/")[2]
            resource = kinds[item["kind"]].at(version)
            await client.delete(resource, metadata["name"], metadata.get("namespace"))

    return act


def renew(cluster: str) -> Act:
    async def act(_: Client, backstage: Backstage) -> None:
        await backstage.renew(cluster)

    return act


def label(value: str | None, *clusters: str) -> Act:
    async def act(client: Client, _: Backstage) -> None:
        for cluster in clusters:
            patch = {"metadata": {"labels": {LABEL: value}}}
            await client.merge(MANAGED_CLUSTER.at("v1"), cluster, patch)

    return act


def score(**values: int) -> Act:
    async def act(client: Client, _: Backstage) -> None:
        for cluster, value in values.items():
            resource = PLACEMENT_SCORE.at("v1alpha1")
            status = {"scores": [{"name": SCORE, "value": value}]}
            await client.merge(resource, SCORES, {"status": status}, namespace=cluster, subresource="status")

    return act


def in_turn(*acts: Act) -> Act:
    async def act(client: Client, backstage: Backstage) -> None:
        for one in acts:
            await one(client, backstage)

    return act


async def nothing(_: Client, __: Backstage) -> None:
    """What happens now happens by itself."""


def apply_told(*names: str) -> tuple[str, ...]:
    return tuple(f"kubectl apply -f samples/{name}" for name in names)


def score_told(**values: int) -> str:
    return f"addon reports {SCORES}/{SCORE}: " + ", ".join(f"{name} = {n}" for name, n in values.items())


async def fleet(client: Client, backstage: Backstage) -> None:
    """Put on the hub what is there before any story: clusters in a set, profiles, scores, Secrets.

    Where there are workers, the Secrets lead to them. Where credentials are made, there are neither profiles
    nor Secrets, and the ManagedClusters have the workers' addresses.
    """
    items = load(samples() / "fleet")
    if backstage.managed_clusters:
        specs = {one["metadata"]["name"]: one["spec"] for one in backstage.managed_clusters}
        bare = (item for item in items if item["kind"] not in _WAYS_IN)
        await apply(client, [_with_address(item, specs) for item in bare])
        return
    ways_in = {
        name: kubeconfig
        for cluster, kubeconfig in backstage.kubeconfigs.items()
        for name in secret_names(cluster)
    }
    await apply(client, [_with_way_in(item, ways_in) for item in items])


def _with_address(item: Object, specs: Mapping[str, Object]) -> Object:
    if item["kind"] != MANAGED_CLUSTER.kind:
        return item
    return item | {"spec": item["spec"] | specs[item["metadata"]["name"]]}


def _with_way_in(item: Object, ways_in: Mapping[str, bytes]) -> Object:
    name = item["metadata"]["name"]
    if item["kind"] != SECRET.kind or name not in ways_in:
        return item
    bare = {key: value for key, value in item.items() if key != "stringData"}
    return bare | {"data": {KUBECONFIG_KEY: base64.b64encode(ways_in[name]).decode()}}
