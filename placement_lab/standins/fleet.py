"""
Worker clusters for Kueue: embedded hubs, each with a stand-in for its Kueue, and a counter of job runs.

The stand-ins use the workers' HTTP APIs, as on real workers: after `kill`, a worker's own stand-in cannot
reach its API server either. The counter sees each change as the worker stores it: one that watched over HTTP
saw what happened on a worker that had been away up to half a second late, and took a job that had been moved
for one that ran twice.
"""

import base64
import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, TypedDict

from placement_ac.core.api.constants import JOB, KUBECONFIG_KEY, KUEUE, MANAGED_CLUSTER, MULTIKUEUE_CLUSTER
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_KEY, KUEUE_CONFIG_MAP
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.informer import StandIn
from placement_lab.standins.manifests import apply, connect
from placement_lab.standins.multikueue import runs
from placement_lab.standins.multikueue.objects import job_is_finished
from placement_lab.standins.ocm_addons import OcmAddons
from placement_lab.standins.runner import StandInThread
from placement_lab.standins.work_agent import WorkAgents
from placement_lab.standins.worker import SLOTS, KueueWorker
from placement_lab.standins.worker_quota import Quota, QuotaWorker, flavor_manifests, queue_manifests

NAMESPACE: Final = "kueue-system"
_CONDITION_FIELDS: Final = ("type", "reason", "message")
_CONDITION_TRUE: Final = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
_CLUSTER_CONDITIONS: Final = (
    ("HubAcceptedManagedCluster", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
    ("ManagedClusterJoined", "ManagedClusterJoined", "Managed cluster joined"),
    ("ManagedClusterConditionAvailable", "ManagedClusterAvailable", "Managed cluster is available"),
)
"""The conditions that OCM sets on an available ManagedCluster."""


class JobCounts(TypedDict):
    """The runs of one Job on all workers."""

    maxCopies: int
    """The highest number of copies that ran at the same time, including those on lost workers."""
    starts: int
    """How often it was started on any worker."""
    finished: bool


class JobCounter:
    """Counts the runs of Jobs by name. Written and read by any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[str, set[tuple[str, str]]] = {}
        self._counts: dict[str, JobCounts] = {}
        self._first_starts: dict[str, float] = {}

    def counts_of(self, job: str) -> JobCounts:
        """Return the counts of a Job by name."""
        return self._counts.get(job, JobCounts(maxCopies=0, starts=0, finished=False)).copy()

    def first_start_of(self, job: str) -> float | None:
        """Return when a Job was first started on any worker (POSIX seconds), None if it was not."""
        return self._first_starts.get(job)

    def running(self, job: str) -> list[str]:
        """Return the workers that run a Job now."""
        return sorted(worker for worker, _ in tuple(self._running.get(job, ())))

    def record(self, worker: str, name: str, job: Object | None) -> None:
        """Record the current state of a Job on a worker; None if it was deleted."""
        with self._lock:
            self._record(worker, name, job)

    def _record(self, worker: str, name: str, job: Object | None) -> None:
        counts = self._counts.setdefault(name, JobCounts(maxCopies=0, starts=0, finished=False))
        running = self._running.setdefault(name, set())
        now = {(worker, job["metadata"]["uid"])} if job and runs(job) else set()
        before = {run for run in running if run[0] == worker}
        running -= before - now
        running |= now
        if now:
            self._first_starts.setdefault(name, time.time())
        counts["starts"] += len(now - before)
        counts["maxCopies"] = max(counts["maxCopies"], len(running))
        counts["finished"] = counts["finished"] or bool(job and job_is_finished(job))


class WorkerFleet:
    """Runs workers, as a context manager.

    `slots`: the number of Workloads that can have quota on a worker at the same time. `held`: workers whose
    ClusterQueue is stopped at the start. `quotas`: worker → quota by flavor, of workers that have a
    ClusterQueue, and LocalQueues of the names `queues` in `default`. `bare`: the others have no
    queue, and give no quota before they get some. `pods`, `sleeps`: see `KueueWorker`. `kubelets`: running
    Jobs have Pods that write lines, one each `line_seconds`: see `Kubelet`.
    `shortest_token_seconds`: see `Hub`.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        slots: int = SLOTS,
        held: Iterable[str] = (),
        quotas: Mapping[str, Quota] = MappingProxyType({}),
        queues: Iterable[str] = (),
        bare: bool = False,
        pods: bool = True,
        sleeps: bool = False,
        kubelets: bool = False,
        line_seconds: float | None = 1.0,
        shortest_token_seconds: int = 600,
    ) -> None:
        self._kubelets, self._line_seconds = kubelets, line_seconds
        self.names = tuple(names)
        self.counter = JobCounter()
        self.hubs = {name: Hub(shortest_token_seconds=shortest_token_seconds) for name in self.names}
        self._held = frozenset(held)
        self._options: dict[str, Any] = {"slots": slots, "pods": pods, "sleeps": sleeps}
        self._quotas, self._queues, self._bare = quotas, tuple(queues), bare
        self._workers: dict[str, KueueWorker] = {}
        self._stand_ins = StandInThread(self._open)

    def __enter__(self) -> Self:
        for name, hub in self.hubs.items():
            hub.start()
            hub.observe(JOB.plural, partial(self.counter.record, name))
        for name, quota in self._quotas.items():
            apply(
                connect(self.hubs[name].kubeconfig()),
                (*flavor_manifests(quota), *queue_manifests(quota, self._queues)),
            )
        self._stand_ins.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stand_ins.stop()
        finally:
            for hub in self.hubs.values():
                hub.stop()

    def _open(self) -> list[StandIn]:
        """Return the stand-ins of all workers; called in their event loop."""
        logins = {name: self.login(name) for name in self.names}
        self._workers = {
            name: self._kind_of(name)(logins[name], held=name in self._held, **self._options)
            for name in self.names
        }
        return [*self._workers.values(), *(self._open_kubelets(logins) if self._kubelets else ())]

    def _open_kubelets(self, logins: Mapping[str, Login]) -> Iterable[StandIn]:
        from placement_lab.standins.kubelet import Kubelet  # noqa: PLC0415  # imported only if used

        return [Kubelet(logins[name], hub, every=self._line_seconds) for name, hub in self.hubs.items()]

    def _kind_of(self, name: str) -> type[KueueWorker]:
        return QuotaWorker if self._bare or name in self._quotas else KueueWorker

    # -- credentials and manifests

    def login(self, name: str) -> Login:
        """Return an admin's login for a worker."""
        return login_to(self.hubs[name])

    def kubeconfig(self, name: str) -> bytes:
        """Return a worker's kubeconfig in a form that Kueue accepts: all data inline, and an IP address."""
        return json.dumps(self.hubs[name].kubeconfig()).encode()

    def secrets(self, namespace: str = NAMESPACE) -> list[Object]:
        """Return the Secrets `multikueue-<worker>`, with the workers' kubeconfigs."""
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"multikueue-{name}", "namespace": namespace},
                "data": {KUBECONFIG_KEY: base64.b64encode(self.kubeconfig(name)).decode()},
            }
            for name in self.names
        ]

    def multikueue_clusters(self) -> list[Object]:
        """Return a MultiKueueCluster per worker with the worker's name, which refers to its Secret."""
        return [
            {
                "apiVersion": f"{KUEUE}/v1beta2",
                "kind": MULTIKUEUE_CLUSTER.kind,
                "metadata": {"name": name},
                "spec": {
                    "clusterSource": {
                        "kubeConfig": {"locationType": "Secret", "location": f"multikueue-{name}"}
                    }
                },
            }
            for name in self.names
        ]

    def ocm_addons(self, hub: Login, **options: Any) -> OcmAddons:
        """Return the stand-in for OCM's add-ons on that hub, with the workers as managed clusters.

        `options` are passed to `OcmAddons`. Run it with `runner.StandIns`.
        """
        return OcmAddons(hub, {name: partial(self.login, name) for name in self.names}, **options)

    def work_agents(self, hub: Login, **options: Any) -> WorkAgents:
        """Return the stand-in for OCM's work agents for that hub; `options`: see `WorkAgents`."""
        return WorkAgents(hub, {name: partial(self.login, name) for name in self.names}, **options)

    def managed_clusters(self) -> list[Object]:
        """Return a ManagedCluster per worker, accepted, joined and available, with its address and its CA."""
        return [self._managed_cluster(name) for name in self.names]

    def _managed_cluster(self, name: str) -> Object:
        [entry] = self.hubs[name].kubeconfig()["clusters"]
        config = {
            "url": entry["cluster"]["server"],
            "caBundle": entry["cluster"]["certificate-authority-data"],
        }
        return {
            "apiVersion": MANAGED_CLUSTER.at("v1").api_version,
            "kind": MANAGED_CLUSTER.kind,
            "metadata": {"name": name},
            "spec": {"hubAcceptsClient": True, "managedClusterClientConfigs": [config]},
            "status": {
                "conditions": [
                    _CONDITION_TRUE | dict(zip(_CONDITION_FIELDS, values, strict=True))
                    for values in _CLUSTER_CONDITIONS
                ]
            },
        }

    def apply_secrets(self, hub: Hub, namespace: str = NAMESPACE) -> None:
        """Apply the Secrets and their Namespace to the hub. Raises DynamicApiError."""
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        apply(connect(hub.kubeconfig()), [home, *self.secrets(namespace)])

    # -- simulated events

    def hold(self, *names: str) -> None:
        """Stop the ClusterQueues of these workers: Workloads keep their quota, but none gets new quota."""
        for name in names:
            self._workers[name].hold()

    def release(self, *names: str) -> None:
        for name in names:
            self._workers[name].release()

    def resize(self, name: str, slots: int) -> None:
        self._workers[name].resize(slots)

    def break_down(self, name: str, fails_after: float | None) -> None:
        """Let each Job fail on a worker, so many seconds after its start; None: its Pods never start."""
        self._workers[name].break_down(fails_after)

    def recover(self, name: str) -> None:
        self._workers[name].recover()

    def enable_integrations(self, name: str, *frameworks: str) -> None:
        """Let a worker's Kueue start jobs of these frameworks alone, as its configuration then says."""
        apply(connect(self.hubs[name].kubeconfig()), _kueue_configuration(frameworks))
        self._workers[name].enable_integrations(*frameworks)

    def evict(self, job: str, reason: str, namespace: str = "default") -> list[str]:
        """Let the workers' Kueue evict the copies of the Job for this reason, and return their workers."""
        return [name for name in self.names if self._workers[name].evict(job, reason, namespace)]

    def finish(self, job: str, namespace: str = "default") -> list[str]:
        """Complete the Job on all workers that run it, and return them. Raises ApiError for a lost one."""
        return [name for name in self.names if self._workers[name].finish(job, namespace)]

    def end_copy(self, job: str, reason: str, namespace: str = "default") -> list[str]:
        """End the copies of the Job with this reason, as `OutOfSync`, and return their workers."""
        return [name for name in self.names if self._workers[name].end_copy(job, reason, namespace)]

    def kill(self, name: str) -> None:
        """Make a worker's API server unreachable; its jobs keep running."""
        self.hubs[name].go_down()

    def revive(self, name: str) -> None:
        """Make the API server reachable again, with all its data."""
        self.hubs[name].come_back()


def _kueue_configuration(frameworks: Iterable[str]) -> list[Object]:
    """Return Kueue's ConfigMap with these integrations, in its Namespace."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": [*frameworks]},
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": KUEUE_CONFIG_MAP, "namespace": NAMESPACE},
            "data": {KUEUE_CONFIG_KEY: json.dumps(configuration)},
        },
    ]


def login_to(hub: Hub) -> Login:
    """Return an admin's login for an embedded hub."""
    with tempfile.TemporaryDirectory(prefix="placement-ac-worker-") as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(json.dumps(hub.kubeconfig()), "utf-8")
        return Login(path)
