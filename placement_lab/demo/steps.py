"""
The steps of a story: an action, and the state that must follow.

A step acts through the hub's API, as an admin, OCM or an addon would. For anything else (a job that
finishes on its worker, a controller that is replaced) it uses its environment.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kubernetes.dynamic import DynamicClient

from placement_ac.core.api.constants import (
    ACTIVE,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    GENERATED,
    KUBECONFIG_KEY,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NO_CLUSTER_FITS,
    PLACEMENT_SCORE,
    SECRET,
    SOME_CLUSTERS_UNUSABLE,
)
from placement_ac.core.credentials.named_secret import secret_names
from placement_ac.kube.client import MERGE, Object
from placement_lab.demo.viewer import Viewer
from placement_lab.standins.fleet import JobCounts
from placement_lab.standins.manifests import apply, load, resource_of, samples

LABEL: Final = "accelerator"
SCORE: Final = "gpuClusterAvailable"
SCORES: Final = "resource-usage-score"
JOB_NAME: Final = "train"
"""The name of Story 3's job; the sample uses `generateName`."""
_CREDENTIAL_KINDS: Final = (SECRET.kind, CLUSTER_PROFILE.kind)


class StepEnvironment(Protocol):
    """The actions that a step cannot do through the hub's API."""

    @property
    def kubeconfigs(self) -> Mapping[str, bytes]:
        """Each worker's kubeconfig by cluster name; empty if the story has no job."""
        ...

    @property
    def managed_clusters(self) -> Sequence[Object]:
        """ManagedClusters with the workers' addresses; empty unless credentials are provisioned."""
        ...

    def renew_token(self, cluster: str) -> None:
        """Make OCM report a new token for a cluster."""
        ...

    def end_job(self, name: str) -> None:
        """Complete a job wherever it runs."""
        ...

    def replace_controller(self) -> None:
        """Replace the controller by the unsafe loop."""
        ...


StepAction = Callable[[DynamicClient, StepEnvironment], None]
"""It blocks, with Kubernetes' own client: nobody else speaks to the hub as admins and owners of jobs do."""


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """The expected state of the job."""

    runs_on: tuple[str, ...] | None
    """The clusters where it runs, according to the workers; None: any."""
    recorded: str = ""
    """The cluster where it runs or ran, according to the hub."""
    finished: bool = False
    name: str = JOB_NAME
    counts: JobCounts | None = None
    """Its runs so far, according to the workers; None: any."""
    fits_nowhere: bool = False
    """Whether it waits because no cluster fits it."""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One step of a story: `action` and the state expected after it.

    `commands`: the same action as shell commands or comments, for display. `clusters`: the expected list of
    the MultiKueueConfig, None if it does not matter. `draining`: the last of them, if it drains.
    `credentials_for`: exactly these clusters have provisioned credentials, None if it does not matter.
    `scores`: cluster → its `gpuFree`, as the controller reports it; None if it does not matter.
    `renewed`: the cluster whose token must be new. `removed`: nothing of the check may be left. `left_out`:
    selected clusters that are not ready.
    """

    story: int
    title: str
    commands: tuple[str, ...]
    action: StepAction
    placement: str
    clusters: tuple[str, ...] | None
    draining: str = ""
    job: ExpectedJob | None = None
    credentials_for: tuple[str, ...] | None = None
    renewed: str = ""
    removed: bool = False
    left_out: tuple[str, ...] = ()
    scores: Mapping[str, int] | None = None

    @property
    def expected_clusters(self) -> list[str]:
        """The expected MultiKueueClusters of the config, in order."""
        return [f"{self.placement}-{cluster}" for cluster in self.clusters or ()]

    def list_is_expected(self, viewer: Viewer) -> bool:
        """Return whether the config lists the expected clusters."""
        return self.clusters is None or viewer.listed(self.placement) == self.expected_clusters


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """The expected counts of each job at the end of the demo, and the conclusion to display."""

    counts: JobCounts
    conclusion: str
    jobs: tuple[str, ...] = (JOB_NAME,)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps to run, an optional step before them that is not displayed, and the jobs' expected result."""

    steps: tuple[StoryStep, ...]
    preparation: StoryStep | None = None
    expected: ExpectedResult | None = None


# -- the expected state


def step_succeeded(step: StoryStep, viewer: Viewer) -> bool:
    """Return whether the list, the conditions, the job, credentials and scores are as the step expects."""
    return (
        (step.clusters is None or _list_is_right(step, viewer))
        and _job_is_right(step, viewer)
        and _credentials_are_right(step, viewer)
        and _scores_are_right(step, viewer)
    )


def _scores_are_right(step: StoryStep, viewer: Viewer) -> bool:
    """Return whether the scores are as expected, and OCM has chosen the one best cluster by all of them."""
    if step.scores is None:
        return True
    return (
        viewer.scores() == step.scores and [*viewer.decided(step.placement)] == [*(step.clusters or ())][:1]
    )


def _list_is_right(step: StoryStep, viewer: Viewer) -> bool:
    """Return whether the config, its MultiKueueClusters, the check and the ClusterQueue are as expected."""
    mine = [
        obj["metadata"]["name"]
        for obj in viewer.all(MULTIKUEUE_CLUSTER)
        if obj["metadata"]["name"].startswith(f"{step.placement}-")
    ]
    if step.removed:
        return not mine and not any(
            viewer.get(kind, step.placement) for kind in (MULTIKUEUE_CONFIG, ADMISSION_CHECK)
        )
    return (
        step.list_is_expected(viewer)
        and mine == sorted(step.expected_clusters)
        and _condition_is_right(step, viewer)
        and all(
            viewer.condition(MULTIKUEUE_CLUSTER, name).get("status") == "True"
            for name in step.expected_clusters
        )
        and viewer.condition(CLUSTER_QUEUE, queue_of(step)).get("status") == "True"
    )


def _condition_is_right(step: StoryStep, viewer: Viewer) -> bool:
    condition = viewer.condition(ADMISSION_CHECK, step.placement)
    if step.left_out:
        names = (name in condition.get("message", "") for name in step.left_out)
        return condition.get("reason") == SOME_CLUSTERS_UNUSABLE and all(names)
    if (condition.get("status"), condition.get("reason")) != ("True", ACTIVE):
        return False
    message, draining = condition.get("message", ""), f"{GENERATED}; draining: {step.draining} ("
    return bool(message.startswith(draining) if step.draining else message == GENERATED)


def _job_is_right(step: StoryStep, viewer: Viewer) -> bool:
    expected = step.job
    if expected is None:
        return True
    found = viewer.job(expected.name)
    if expected.runs_on is None:
        return expected.counts in (None, found.counts)
    recorded = f"{step.placement}-{expected.recorded}" if expected.recorded else ""
    return (
        (found.runs_on, found.recorded, found.finished) == (expected.runs_on, recorded, expected.finished)
        and expected.counts in (None, found.counts)
        and expected.fits_nowhere == found.message_of(step.placement).startswith(f"{NO_CLUSTER_FITS}: ")
    )


def _credentials_are_right(step: StoryStep, viewer: Viewer) -> bool:
    if step.credentials_for is None or viewer.credentials is None:
        return True
    credentials = viewer.credentials.current()
    return credentials.is_exactly_for(step.credentials_for) and (
        not step.renewed or step.renewed in credentials.renewed
    )


def queue_of(step: StoryStep) -> str:
    return step.placement.replace("placement-", "cluster-queue-")


# -- the actions


def apply_samples(*names: str) -> StepAction:
    def act(client: DynamicClient, _: StepEnvironment) -> None:
        for name in names:
            apply(client, load(samples() / name))

    return act


def delete_sample(name: str) -> StepAction:
    """Delete the objects of a manifest."""

    def act(client: DynamicClient, _: StepEnvironment) -> None:
        for item in load(samples() / name):
            metadata, served = item["metadata"], resource_of(client, item["apiVersion"], item["kind"])
            served.delete(metadata["name"], metadata.get("namespace"), propagation_policy="Background")

    return act


def renew_token(cluster: str) -> StepAction:
    def act(_: DynamicClient, environment: StepEnvironment) -> None:
        environment.renew_token(cluster)

    return act


def create_job(sample: str, name: str) -> StepAction:
    """Create the sample's job with a fixed name."""

    def act(client: DynamicClient, _: StepEnvironment) -> None:
        (job,) = load(samples() / sample)
        metadata = {key: value for key, value in job["metadata"].items() if key != "generateName"}
        apply(client, [job | {"metadata": metadata | {"name": name}}])

    return act


def set_label(value: str | None, *clusters: str, label: str = LABEL) -> StepAction:
    def act(client: DynamicClient, _: StepEnvironment) -> None:
        served = resource_of(client, MANAGED_CLUSTER.at("v1").api_version, MANAGED_CLUSTER.kind)
        for cluster in clusters:
            served.patch({"metadata": {"labels": {label: value}}}, cluster, content_type=MERGE)

    return act


def set_scores(**values: int) -> StepAction:
    def act(client: DynamicClient, _: StepEnvironment) -> None:
        served = resource_of(client, PLACEMENT_SCORE.at("v1alpha1").api_version, PLACEMENT_SCORE.kind)
        for cluster, value in values.items():
            status = {"scores": [{"name": SCORE, "value": value}]}
            served.status.patch({"status": status}, SCORES, cluster, content_type=MERGE)

    return act


def sequence(*acts: StepAction) -> StepAction:
    def act(client: DynamicClient, environment: StepEnvironment) -> None:
        for act in acts:
            act(client, environment)

    return act


def no_action(_: DynamicClient, __: StepEnvironment) -> None:
    """Do nothing: the controller or Kueue acts on its own."""


def apply_commands(*names: str) -> tuple[str, ...]:
    return tuple(f"kubectl apply -f samples/{name}" for name in names)


def scores_comment(**values: int) -> str:
    return f"addon reports {SCORES}/{SCORE}: " + ", ".join(f"{name} = {n}" for name, n in values.items())


def create_fleet(client: DynamicClient, environment: StepEnvironment) -> None:
    """Create the objects that every story needs: clusters in a set, profiles, scores, Secrets.

    If there are workers, the Secrets hold their kubeconfigs. If credentials are provisioned, there are no
    profiles and Secrets, and the ManagedClusters have the workers' addresses.
    """
    items = load(samples() / "fleet")
    if environment.managed_clusters:
        specs = {
            managed_cluster["metadata"]["name"]: managed_cluster["spec"]
            for managed_cluster in environment.managed_clusters
        }
        bare = (item for item in items if item["kind"] not in _CREDENTIAL_KINDS)
        apply(client, [_with_address(item, specs) for item in bare])
        return
    kubeconfigs = {
        name: kubeconfig
        for cluster, kubeconfig in environment.kubeconfigs.items()
        for name in secret_names(cluster)
    }
    apply(client, [_with_kubeconfig(item, kubeconfigs) for item in items])


def _with_address(item: Object, specs: Mapping[str, Object]) -> Object:
    if item["kind"] != MANAGED_CLUSTER.kind:
        return item
    return item | {"spec": item["spec"] | specs[item["metadata"]["name"]]}


def _with_kubeconfig(item: Object, kubeconfigs: Mapping[str, bytes]) -> Object:
    name = item["metadata"]["name"]
    if item["kind"] != SECRET.kind or name not in kubeconfigs:
        return item
    bare = {key: value for key, value in item.items() if key != "stringData"}
    return bare | {"data": {KUBECONFIG_KEY: base64.b64encode(kubeconfigs[name]).decode()}}
