"""
The stage of the scenarios of Kueue: a hub and three workers, what an admin does there, and what is seen.

`Stage.until` waits longer than Kueue takes, as a machine may be busy; where Kueue gathers events first,
`Stage.after_batch` checks that it does.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from kubernetes.dynamic.exceptions import DynamicApiError

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    KUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CONTROLLER,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
)
from tests.real.clusters import JOBS, QUEUES, Cluster

NAME: Final = "placement-ac-real-kueue"
"""Of all objects of the scenarios but the Jobs (real-…)."""
OTHER: Final = f"{NAME}-other"
"""A second LocalQueue, MultiKueueConfig or WorkloadPriorityClass."""
BATCH: Final = 1.0
"""How many seconds Kueue gathers events of workers and configurations."""
SECONDS: Final = 20.0
"""The most that a step may take, on a machine that is busy."""
VERSION: Final = f"{KUEUE}/v1beta2"
QUEUE: Final = f"{KUEUE}/queue-name"
PRIORITY: Final = f"{KUEUE}/priority-class"
_ONE_CPU: Final = {"requests": {"cpu": "1"}}
Obj = dict[str, Any]
ADMITTED: Final = 'T:Admitted "The workload is admitted"'


@dataclass(slots=True)
class Stage:
    """A hub with Kueue and three workers, which are connected; `speed`: of Kueue's times there."""

    hub: Cluster
    workers: Mapping[str, Cluster]
    """By the names of their MultiKueueClusters."""
    speed: float = 1.0
    jobs: list[str] = field(default_factory=list)

    # -- what an admin does

    def set_up(self) -> None:
        """Make the queues on all clusters, with 2 CPUs on each worker, and the check on the hub."""
        self.hub.apply(*_configs(self.workers), check(NAME), *queues("30", with_check=True))
        for worker in self.workers.values():
            worker.apply(*queues("2"))
        self.until(lambda: self.active(ADMISSION_CHECK), "True Active | The admission check is active")
        for cluster in (self.hub, *self.workers.values()):
            self.until(
                lambda cluster=cluster: active(cluster.get(CLUSTER_QUEUE, NAME)),
                "True Ready | Can admit new workloads",
            )

    def clear(self) -> None:
        """Remove what a scenario has made."""
        for cluster in (self.hub, *self.workers.values()):
            names = [job["metadata"]["name"] for job in cluster.list(JOB, JOBS)]
            cluster.delete(JOB, *(name for name in names if name.startswith("real-")), namespace=JOBS)
        for cluster in (self.hub, *self.workers.values()):
            self.until(lambda cluster=cluster: workloads(cluster), [])
            cluster.delete(LOCAL_QUEUE, NAME, OTHER, namespace=JOBS)
            cluster.delete(CLUSTER_QUEUE, NAME)
            self.until(lambda cluster=cluster: cluster.get(CLUSTER_QUEUE, NAME), {})
            cluster.delete(RESOURCE_FLAVOR, NAME)
            self.until(lambda cluster=cluster: cluster.get(RESOURCE_FLAVOR, NAME), {})
        self.hub.delete(ADMISSION_CHECK, NAME)
        self.hub.delete(MULTIKUEUE_CONFIG, NAME, OTHER)
        self.hub.delete(MULTIKUEUE_CLUSTER, NAME)
        self.hub.delete(SECRET, NAME, namespace=QUEUES)
        self.until(lambda: self.hub.get(ADMISSION_CHECK, NAME), {})

    def stop(self, cluster: Cluster, policy: str, kind: Any = CLUSTER_QUEUE) -> None:
        """Set `stopPolicy` of the ClusterQueue or the LocalQueue."""
        cluster.patch(kind, NAME, {"spec": {"stopPolicy": policy}}, JOBS if kind == LOCAL_QUEUE else None)

    def hold(self, *but: str) -> None:
        """Let only these workers give quota."""
        for name, worker in self.workers.items():
            self.stop(worker, "None" if name in but else "Hold")

    def submit(
        self, name: str, *, queue: str = NAME, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> None:
        container = {"name": "waits", "image": "registry.k8s.io/pause:3.10", "resources": _ONE_CPU}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        self.hub.apply(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": JOBS,
                    "labels": ({QUEUE: queue} if queue else {}) | dict(labels or {}),
                },
                "spec": {"suspend": True, "backoffLimit": 0, "template": template, **spec},
            }
        )

    def change(self, name: str, **labels: str | None) -> str:
        """Change labels of a Job on the hub (`queue`, `priority`); return the refusal, "" if none."""
        keys = {"queue": QUEUE, "priority": PRIORITY}
        changed = {keys[label]: value for label, value in labels.items()}
        return refusal(lambda: self.hub.patch(JOB, name, {"metadata": {"labels": changed}}, JOBS))

    def end(self, name: str) -> None:
        """Let a Job succeed where it runs, as a Job controller does."""
        [where] = self.runs(name)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [
            {"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        started = self.workers[where].get(JOB, name, JOBS).get("status", {}).get("startTime")
        ended = {
            "startTime": started or at,
            "completionTime": at,
            "succeeded": 1,
            "active": 0,
            "ready": 0,
            "conditions": conditions,
        }
        self.workers[where].patch(JOB, name, {"status": ended}, JOBS)

    # -- what is there

    def job(self, name: str) -> Obj:
        return self.hub.get(JOB, name, JOBS)

    def workload(self, name: str, on: str = "") -> Obj:
        """Return the Workload of a Job on the hub, or its copy on a worker; {} if there is none."""
        items = workloads(self.workers[on] if on else self.hub)
        return next((item for item in items if item["metadata"]["name"].startswith(f"job-{name}-")), {})

    def says(self, name: str, kind: str, on: str = "") -> str:
        """Return a condition of a Workload as `T:Reason "message"`, "" if it has none."""
        return says(self.workload(name, on), kind)

    def check(self, name: str) -> str:
        """Return the state of the check of a Workload, with its message."""
        entries = self.workload(name).get("status", {}).get("admissionChecks") or ()
        return next((f'{entry["state"]} "{entry.get("message", "")}"' for entry in entries), "")

    def active(self, kind: Any, name: str = NAME, namespace: str | None = None) -> str:
        return active(self.hub.get(kind, name, namespace))

    def copies(self, name: str) -> list[str]:
        return [worker for worker in self.workers if self.workload(name, worker)]

    def runs(self, name: str) -> dict[str, str]:
        """Return worker → uid of the Jobs that are neither suspended nor finished there."""
        found = ((worker, cluster.get(JOB, name, JOBS)) for worker, cluster in self.workers.items())
        return {
            worker: job["metadata"]["uid"]
            for worker, job in found
            if job and not job["spec"].get("suspend") and not says(job, "Complete").startswith("T")
        }

    # -- waiting

    def until(self, read: Callable[[], Any], wanted: Any = None, within: float = SECONDS) -> Any:
        """Wait until `read` gives `wanted` (by default: anything true), and return it."""
        end = time.monotonic() + within
        while not ((found := read()) if wanted is None else (found := read()) == wanted):
            assert time.monotonic() < end, f"{found!r} is not {wanted!r}: {self.state()}"
            time.sleep(0.05)
        return found

    def state(self) -> str:
        """Return what a failed step shows."""
        items = {"hub": workloads(self.hub)} | {w: workloads(c) for w, c in self.workers.items()}
        return json.dumps({on: [it.get("status") for it in found] for on, found in items.items()}, indent=1)

    def evicted(self, name: str, why: str) -> None:
        """Wait until a Job was evicted for this reason; it may have quota again by then."""
        self.until(lambda: why in self.says(name, "Evicted"))

    def placed(self, name: str) -> str:
        """Wait until a Job runs on one worker and the hub has recorded it; return the worker."""

        def place() -> str:
            where = str(self.workload(name).get("status", {}).get("clusterName") or "")
            there = list(self.runs(name)) == self.copies(name) == [where]
            runs = there and not self.job(name)["spec"]["suspend"]
            return where if runs and self.says(name, "Admitted") == ADMITTED else ""

        return str(self.until(place))

    def waits(self, name: str, why: str) -> None:
        """Wait until a Job has no quota on the hub for this reason, and no copy."""
        self.until(lambda: self.says(name, "QuotaReserved"), f"F:{why}")
        self.until(lambda: self.copies(name), [])

    @contextmanager
    def after_batch(self) -> Iterator[None]:
        """Check that the steps take as long as Kueue gathers events, at least (a time of whole seconds)."""
        begun = time.monotonic()
        yield
        assert (time.monotonic() - begun) * self.speed > BATCH * 0.9

    def stays(self, read: Callable[[], Any], wanted: Any) -> None:
        """Check that nothing changes in three batches of events."""
        end = time.monotonic() + 3 * BATCH / self.speed
        while time.monotonic() < end:
            assert read() == wanted
            time.sleep(0.1)


def says(item: Obj, kind: str) -> str:
    conditions = item.get("status", {}).get("conditions") or ()
    found = (
        f'{it["status"][0]}:{it.get("reason", "")} "{it.get("message", "")}"'
        for it in conditions
        if it["type"] == kind
    )
    return next(found, "")


def active(item: Obj) -> str:
    conditions = item.get("status", {}).get("conditions") or ()
    found = (
        f"{it['status']} {it['reason']} | {it['message']}" for it in conditions if it["type"] == "Active"
    )
    return next(found, "")


def refusal(write: Callable[[], object]) -> str:
    """Return the HTTP status and the message of a refused write, "" if it is accepted."""
    try:
        write()
    except DynamicApiError as error:
        return f"{error.status} {json.loads(error.body)['message']}"
    return ""


def workloads(cluster: Cluster) -> list[Obj]:
    items = cluster.list(WORKLOAD, JOBS)
    return [item for item in items if item["spec"].get("queueName") in (NAME, OTHER)]


def _configs(clusters: Mapping[str, Cluster]) -> list[Obj]:
    """The config of the check with all clusters, and another one with all but the first."""
    kind = {"apiVersion": VERSION, "kind": "MultiKueueConfig"}
    lists = {NAME: [*clusters], OTHER: [*clusters][1:]}
    return [{**kind, "metadata": {"name": name}, "spec": {"clusters": it}} for name, it in lists.items()]


def check(config: str) -> Obj:
    parameters = {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": config}
    return {
        "apiVersion": VERSION,
        "kind": "AdmissionCheck",
        "metadata": {"name": NAME},
        "spec": {"controllerName": MULTIKUEUE_CONTROLLER, "parameters": parameters},
    }


def queues(cpus: str, *, with_check: bool = False) -> list[Obj]:
    flavor = {"name": NAME, "resources": [{"name": "cpu", "nominalQuota": cpus}]}
    spec: Obj = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    }
    if with_check:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": NAME}]}
    queue = {"apiVersion": VERSION, "kind": "ClusterQueue", "metadata": {"name": NAME}, "spec": spec}
    flavors = {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": NAME}, "spec": {}}
    return [flavors, queue, local_queue(NAME)]


def local_queue(name: str) -> Obj:
    return {
        "apiVersion": VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": JOBS},
        "spec": {"clusterQueue": NAME},
    }


# -- the table
