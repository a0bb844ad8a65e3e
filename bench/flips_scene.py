"""
The scene of `bench.flips` and `bench.makespan`: a hub with OCM and Kueue, workers, and the controller.

The controller has a process of its own. One Placement takes the best clusters by an AddOn score;
`Scene.prefer` makes another cluster the best.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import IO, Any, Final

from placement_ac.core.api.constants import (
    FIELD_MANAGER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PLACEMENT_DECISION,
    WORKLOAD,
)
from placement_ac.kube.login import Login
from placement_lab.hub import Hub, RecordedRequest
from placement_lab.standins.fleet import JobCounter, WorkerFleet
from placement_lab.standins.kueue_jobs import JOB
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import KueueSettings, hub_job
from placement_lab.standins.runner import StandIns
from placement_lab.standins.worker_quota import Quota
from tests.support.admin import Admin, login_to
from tests.support.kueue_objects import admission_check, kueue_object, namespace, queues

Object = dict[str, Any]

Quotas = Mapping[str, Quota]
"""Worker → the quota of its ClusterQueue; otherwise a worker has slots."""

WORKERS: Final = ("worker1", "worker2", "worker3")
PLACEMENT: Final = "flips"
NS: Final = "kueue-system"
QUEUE: Final = "flips"
CREATED: Final = 201
LOWEST_SCORE: Final = -100
MOST_FLIPS: Final = 190
"""Each flip gives the new best cluster one more than the last; OCM's scores end at 100."""
SLOTS: Final = 8
"""Quota on each worker for the jobs that come and go; the hub has twice as much."""
UNLIMITED: Final = 10_000
"""Slots of workers with a quota, and of the hub then: jobs wait on the workers alone."""
JOBS: Final = JOB.at("v1")
CONFIGS: Final = MULTIKUEUE_CONFIG.at("v1beta2")
WORKLOADS: Final = WORKLOAD.at("v1beta2")
DECISIONS: Final = PLACEMENT_DECISION.at("v1beta1")
_OCM: Final = "cluster.open-cluster-management.io"


class Scene:
    """Changes and reads the hub and its workers; the methods block."""

    def __init__(self, admin: Admin, hub: Hub, fleet: WorkerFleet) -> None:
        self.admin = admin
        self.hub = hub
        self.fleet = fleet
        self._score = LOWEST_SCORE
        self.kueue: Kueue

    def prefer(self, cluster: str) -> None:
        """Make a cluster the best one."""
        self._score += 1
        self.admin.apply(score(cluster, self._score))

    def select(self, count: int) -> None:
        """Let the Placement take that many clusters."""
        self.admin.apply(_placement(count))

    def submit(self, name: str, requests: Mapping[str, str] | None = None) -> None:
        """Create a job; `requests`: what its Pod asks for."""
        self.admin.create(JOBS, hub_job(name, "default", QUEUE, requests))

    def finish(self, name: str) -> None:
        """Complete the job wherever it runs."""
        self.fleet.finish(name)

    def only(self, *workers: str) -> None:
        """Let only these workers reserve quota."""
        self.fleet.hold(*WORKERS)
        self.fleet.release(*workers)

    @property
    def counter(self) -> JobCounter:
        """The cluster of each job, from the workers' own Jobs."""
        return self.fleet.counter

    def placed(self) -> int:
        """Return how many Workloads of the hub are recorded as placed on a worker."""
        workloads = self.admin.list(WORKLOADS)
        return sum(bool((item.get("status") or {}).get("clusterName")) for item in workloads)

    def selected(self) -> list[str]:
        """Return the clusters that OCM has decided for."""
        decisions = self.admin.list(DECISIONS)
        return [
            one["clusterName"] for item in decisions for one in item.get("status", {}).get("decisions", ())
        ]

    def listed(self) -> list[str]:
        """Return the clusters in the MultiKueueConfig, without the prefix of the Placement's name."""
        found = self.admin.get(CONFIGS, PLACEMENT)
        return [name.removeprefix(f"{PLACEMENT}-") for name in found["spec"]["clusters"]] if found else []

    def list_changes(self) -> int:
        """Return the generation of the MultiKueueConfig, which counts the changes of its list."""
        found = self.admin.get(CONFIGS, PLACEMENT)
        return int(found["metadata"]["generation"]) if found else 0

    def list_writes(self) -> int:
        """Return how often the MultiKueueConfig was written, also its metadata alone, from the journal."""
        return _writes(self.hub, f"/{MULTIKUEUE_CONFIG.plural}/{PLACEMENT}")

    def workload_writes(self) -> int:
        """Return how often the controller wrote a Workload's status, from the hub's journal."""
        ours = [one for one in list(self.hub.journal) if one.user_agent == FIELD_MANAGER]
        return sum(one.method == "PATCH" and "/workloads/" in one.path and one.status == 200 for one in ours)

    def copies_read(self) -> int:
        """Return how many copies Kueue has read from the workers, from their journals."""
        return sum(one.method == "GET" and "/workloads/" in one.path for one in self._requests_to_workers())

    def copies_made(self) -> int:
        """Return how many copies Kueue has created on the workers, from their journals."""
        return sum(
            one.method == "POST" and one.path.endswith("/workloads") and one.status == CREATED
            for one in self._requests_to_workers()
        )

    def _requests_to_workers(self) -> Iterator[RecordedRequest]:
        for hub in self.fleet.hubs.values():
            yield from list(hub.journal)


def _writes(hub: Hub, path: str) -> int:
    return sum(
        one.path.endswith(path) and one.method in ("PATCH", "PUT", "POST") and 200 <= one.status < 300
        for one in list(hub.journal)
    )


@contextmanager
def scene(
    kueue: KueueSettings,
    flags: Sequence[str],
    running: int = 0,
    log: IO[bytes] | None = None,
    quotas: Quotas = MappingProxyType({}),
) -> Iterator[Scene]:
    """Set up the scene with a controller: all clusters are selected, and the list is not throttled.

    `flags`: of `placement-ac run`; `running`: the number of Workloads that run all the time.
    """
    with stage(kueue, running, quotas) as there, TemporaryDirectory() as folder:
        there.hub.write_kubeconfig(Path(folder) / "kubeconfig")
        with _controller(Path(folder) / "kubeconfig", flags, log):
            yield there


@contextmanager
def stage(kueue: KueueSettings, running: int = 0, quotas: Quotas = MappingProxyType({})) -> Iterator[Scene]:
    """Set up the scene without a controller."""
    each = UNLIMITED if quotas else SLOTS + -(-running // len(WORKERS))
    in_all = UNLIMITED if quotas else 2 * SLOTS + running
    with ExitStack() as opened:
        fleet = opened.enter_context(
            WorkerFleet(quotas or WORKERS, slots=each, quotas=quotas, queues=[QUEUE])
        )
        hub = opened.enter_context(Hub())
        admin = opened.enter_context(Admin(login_to(hub)))
        there = Scene(admin, hub, fleet)

        def make(login: Login) -> Kueue:
            there.kueue = Kueue(login, settings=kueue, slots=in_all)
            return there.kueue

        admin.apply(namespace(NS), *fleet.secrets(NS), *_objects(fleet))
        opened.enter_context(StandIns(lambda: login_to(hub), ("ocm", make)))
        yield there


@contextmanager
def _controller(kubeconfig: Path, flags: Sequence[str], log: IO[bytes] | None) -> Iterator[None]:
    options = ["--kubeconfig", str(kubeconfig), "--log-level", "warning", *flags]
    command = [sys.executable, "-m", "placement_ac", "run", *options]
    with subprocess.Popen(command, stderr=log) as process:  # noqa: S603  # our own
        try:
            yield
        finally:
            process.terminate()


def _objects(fleet: WorkerFleet) -> list[Object]:
    ours = kueue_object("AdmissionCheck", "placement", {"controllerName": OUR_CONTROLLER, "parameters": _BY})
    theirs = admission_check("multikueue", PLACEMENT)
    spaces = [namespace(name) for name in fleet.names]
    scores = [score(name, LOWEST_SCORE) for name in fleet.names]
    of_ocm = [*_SETS, *fleet.managed_clusters(), *scores, _placement(len(fleet.names))]
    return [*spaces, *of_ocm, ours, theirs, *queues(QUEUE, "multikueue", "placement")]


_BY: Final = {"apiGroup": _OCM, "kind": "Placement", "name": PLACEMENT}
_SETS: Final[list[Object]] = [
    {
        "apiVersion": f"{_OCM}/v1beta2",
        "kind": "ManagedClusterSet",
        "metadata": {"name": "global"},
        "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
    },
    {
        "apiVersion": f"{_OCM}/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "global", "namespace": NS},
        "spec": {"clusterSet": "global"},
    },
]


def score(cluster: str, value: int) -> Object:
    return {
        "apiVersion": f"{_OCM}/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"name": "usage", "namespace": cluster},
        "status": {"scores": [{"name": "free", "value": value}]},
    }


def _placement(count: int) -> Object:
    add_on = {"resourceName": "usage", "scoreName": "free"}
    by_score = {"scoreCoordinate": {"type": "AddOn", "addOn": add_on}, "weight": 1}
    return {
        "apiVersion": f"{_OCM}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": PLACEMENT, "namespace": NS},
        "spec": {
            "clusterSets": ["global"],
            "numberOfClusters": count,
            "prioritizerPolicy": {"mode": "Exact", "configurations": [by_score]},
        },
    }
