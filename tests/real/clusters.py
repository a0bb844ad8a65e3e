"""A real hub and its workers, and the objects of these tests on them."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kubernetes.client import CoreV1Api
from kubernetes.dynamic.exceptions import NotFoundError
from kubernetes.dynamic.resource import Resource
from kubernetes.stream import stream
from kubernetes.utils.quantity import parse_quantity

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_MAINTENANCE,
    ANNOTATION_SETTINGS,
    CLUSTER_QUEUE,
    EVENT,
    JOB,
    LEASE,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    RESOURCE_FLAVOR,
    SET_BINDING,
    WORKLOAD,
    Kind,
)
from placement_ac.kube.client import MERGE
from placement_ac.workers.queries import ACCESS_REVIEW
from placement_lab.standins.kubelet import POD
from placement_lab.standins.manifests import apply, connect, resource_of

NAME: Final = "placement-ac-real"
"""Of every object of these tests but the Jobs (real-…), and the set `global` if it is not bound."""
MULTIKUEUE: Final = f"{NAME}-multikueue"
SECOND: Final = f"{NAME}-second"
"""The other queue of the cohort."""
LATE: Final = f"{NAME}-late"
"""A LocalQueue that is made after its first jobs."""
LOCAL_QUEUES: Final = (NAME, SECOND, LATE)
CLUSTER_QUEUES: Final = (NAME, SECOND)
QUEUES: Final = "kueue-system"
JOBS: Final = "default"
CHOSEN: Final = f"{NAME}.example.com/chosen"
GPU: Final = f"{NAME}.example.com/accelerator"
T4: Final = "nvidia-tesla-t4"
SCORE: Final = "gpuClusterAvailable"
THE_END: Final = "/tmp/end"  # in the Pod of a Job
IMAGE: Final = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
POD_SECONDS: Final = 5.0
"""After that without a Pod, the worker has no Job controller, and the tests write the Job's status."""
T = TypeVar("T")
Obj = dict[str, Any]


class Timeout(AssertionError):
    """A wait has ended in vain."""


class Cluster:
    """One API server, through Kubernetes' own client."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.client = connect(kubeconfig)

    def of(self, kind: Kind) -> Resource:
        """Return the resource of a kind, in the newest version that we know."""
        return resource_of(self.client, kind.at(kind.versions[0]).api_version, kind.kind)

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        """Return an object, {} if there is none."""
        try:
            return dict(self.of(kind).get(name, namespace).to_dict())
        except NotFoundError:
            return {}

    def list(self, kind: Kind, namespace: str | None = None, **selectors: str) -> list[Obj]:
        """Return objects; `selectors`: label_selector, field_selector."""
        return list(self.of(kind).get(namespace=namespace, **selectors).to_dict()["items"])

    def apply(self, *objects: Obj) -> None:
        apply(self.client, objects)

    def patch(self, kind: Kind, name: str, change: Obj, namespace: str | None = None) -> None:
        """Send a merge patch; one with a status goes to the status."""
        served = self.of(kind).status if "status" in change else self.of(kind)
        served.patch(change, name, namespace, content_type=MERGE)

    def delete(self, kind: Kind, *names: str, namespace: str | None = None) -> None:
        """Delete objects, those that exist, with what they own: a Job alone would leave its Workload."""
        for name in names:
            with contextlib.suppress(NotFoundError):
                self.of(kind).delete(name, namespace, propagation_policy="Background")

    def write_file(self, pod: str, namespace: str, path: str, word: str) -> None:
        """Write a file in a Pod."""
        command = ["sh", "-c", f"echo {word} > {path}"]
        execute = CoreV1Api(self.client.client).connect_get_namespaced_pod_exec
        stream(execute, pod, namespace, command=command, stdout=True, stderr=True)

    def may(self, verb: str, attributes: Mapping[str, str]) -> bool:
        """Ask the API server what this kubeconfig's user may do, in all namespaces."""
        review = {"spec": {"resourceAttributes": {"verb": verb, **attributes}}}
        return bool(self.of(ACCESS_REVIEW.of).create(review).status.allowed)


def until(wanted: Callable[[], T], seconds: float, about: Callable[[], object] | None = None) -> T:
    """Wait for a result that is true, and return it. Raises Timeout with what `about` says."""
    end = time.monotonic() + seconds
    while not (result := wanted()):
        if time.monotonic() > end:
            raise Timeout(json.dumps(about() if about else result, indent=1, default=str))
        time.sleep(0.5)
    return result


@dataclass(slots=True)
class Fleet:
    """The hub and three of its clusters, by name."""

    hub: Cluster
    workers: Mapping[str, Cluster]
    seconds: float
    """The most that a step may take."""
    dispatcher: bool = False
    """Whether Kueue on the hub leaves nominations to placement-ac."""

    @classmethod
    def of(cls, hub: Cluster, workers: str, seconds: float, dispatcher: bool) -> Self:
        """Return the fleet; `workers` as NAME=FILE,NAME=FILE,NAME=FILE."""
        pairs = [pair.partition("=")[::2] for pair in workers.split(",")]
        assert len(pairs) >= 3, "name three clusters of the hub, NAME=FILE each"
        return cls(hub, {name: Cluster(Path(file)) for name, file in pairs[:3]}, seconds, dispatcher)

    # -- what is on the hub

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.workers)

    def listed(self) -> list[str]:
        config = self.hub.get(MULTIKUEUE_CONFIG, NAME)
        return [str(name) for name in config.get("spec", {}).get("clusters", ())]

    def condition(self, kind: Kind, name: str = NAME) -> Obj:
        """Return the condition `Active` of an object, {} if it has none."""
        conditions = self.hub.get(kind, name).get("status", {}).get("conditions", ())
        return next((dict(found) for found in conditions if found["type"] == "Active"), {})

    def state(self) -> Obj:
        """Return the state that a failed step shows."""
        decisions = self.hub.list(PLACEMENT_DECISION, QUEUES, label_selector=f"{_OCM}/placement={NAME}")
        return {
            "listed": self.listed(),
            "decided": [item.get("status") for item in decisions],
            "check": self.condition(ADMISSION_CHECK),
            "workloads": [item.get("status") for item in self.workloads()],
        }

    def workloads(self) -> list[Obj]:
        items = self.hub.list(WORKLOAD, JOBS)
        return [item for item in items if item["spec"].get("queueName") in LOCAL_QUEUES]

    def workload_of(self, job: str) -> Obj:
        owned = (w for w in self.workloads() if job in (o["name"] for o in _owners(w)))
        return next(owned, {})

    def wait_for_list(self, *clusters: str, draining: str = "") -> None:
        """Wait for exactly these clusters, then the one that drains; connected, and with an Active queue."""
        wanted, last = (
            sorted(f"{NAME}-{cluster}" for cluster in clusters),
            [f"{NAME}-{draining}"] * bool(draining),
        )

        def is_listed() -> bool:
            listed = self.listed()
            is_last = self.dispatcher or listed[len(wanted) :] == last  # with it, no order is written
            return sorted(listed) == sorted(wanted + last) and is_last

        until(is_listed, self.seconds, self.state)
        for what in (*((MULTIKUEUE_CLUSTER, name) for name in wanted + last), (CLUSTER_QUEUE, NAME)):
            until(lambda what=what: self.condition(*what).get("status") == "True", self.seconds, self.state)

    def runs_with(self, option: str) -> bool:
        """Whether the controller that leads was started with an option."""
        annotations = self.hub.get(LEASE, "placement-ac", QUEUES)["metadata"]["annotations"]
        return option in json.loads(annotations[ANNOTATION_SETTINGS])

    def reported(self, score: str) -> dict[str, int]:
        """Return cluster → that score, as the controller reports it."""
        found = {name: self.hub.get(PLACEMENT_SCORE, "placement-ac", name) for name in self.names}
        return {
            name: int(entry["value"])
            for name, obj in found.items()
            for entry in obj.get("status", {}).get("scores", ())
            if entry["name"] == score
        }

    # -- what an admin does

    def select(self, spec: Obj, labels: Mapping[str, str]) -> None:
        """Apply the Placement: the chosen clusters that have these labels, and what else `spec` says."""
        selector = {"labelSelector": {"matchLabels": {CHOSEN: "yes", **labels}}}
        self.hub.apply(_placement({"predicates": [{"requiredClusterSelector": selector}], **spec}))

    def label(self, cluster: str, **labels: str | None) -> None:
        self.hub.patch(MANAGED_CLUSTER, cluster, {"metadata": {"labels": labels}})

    def taint(self, cluster: str, *, tainted: bool) -> None:
        """Set the taint by which an admin empties a cluster, or remove it; other taints stay."""
        taints = self.hub.get(MANAGED_CLUSTER, cluster).get("spec", {}).get("taints", [])
        others = [taint for taint in taints if taint["key"] != NAME]
        ours = [{"key": NAME, "effect": "NoSelect"}] if tainted else []
        self.hub.patch(MANAGED_CLUSTER, cluster, {"spec": {"taints": [*others, *ours] or None}})

    def score(self, **scores: int) -> None:
        for cluster, value in scores.items():
            status = {"scores": [{"name": SCORE, "value": value}]}
            self.hub.patch(PLACEMENT_SCORE, NAME, {"status": status}, cluster)

    def placement(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `kubectl placement`, with the hub's kubeconfig."""
        command = [sys.executable, "-m", "kubectl_placement", *words, f"--kubeconfig={self.hub.kubeconfig}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def document(self, *words: str) -> Obj:
        """Return the JSON document of a command. Raises AssertionError with what it says."""
        done = self.placement(*words, "--output=json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def drain(self, cluster: str, option: str) -> int:
        """Run `kubectl placement drain`, and return its exit code."""
        return self.placement("drain", cluster, option).returncode

    def free(self, cluster: str) -> dict[str, float]:
        """Return resource → nominal less used, over both ClusterQueues of a worker."""
        found: dict[str, float] = {}
        for name in CLUSTER_QUEUES:
            queue = self.workers[cluster].get(CLUSTER_QUEUE, name)
            [nominal] = queue["spec"]["resourceGroups"][0]["flavors"]
            for resource in nominal["resources"]:
                found[resource["name"]] = found.get(resource["name"], 0) + amount(resource["nominalQuota"])
            for used in queue.get("status", {}).get("flavorsUsage", ()):
                for resource in used["resources"]:
                    found[resource["name"]] -= amount(resource["total"])
        return found

    # -- jobs

    def submit(
        self,
        name: str,
        *,
        cpu: int = 1,
        queue: str = NAME,
        annotations: Mapping[str, str] | None = None,
        managed_by: str = "",
        nodes: Mapping[str, str] | None = None,
    ) -> None:
        """Create a Job, with these annotations of its Pod template, `managedBy` and nodeSelector."""
        made = job(name, cpu, queue, annotations)
        made["spec"] |= {"managedBy": managed_by} if managed_by else {}
        made["spec"]["template"]["spec"] |= {"nodeSelector": dict(nodes)} if nodes else {}
        self.hub.apply(made)

    def runs(self) -> dict[str, dict[str, str]]:
        """Return job → cluster → the uid of its Job there, of all that are not suspended and not deleted."""
        found: dict[str, dict[str, str]] = {}
        for cluster, worker in self.workers.items():
            for job in worker.list(JOB, JOBS, label_selector=_OURS):
                if job["spec"].get("suspend") is False and not _finished(job):
                    found.setdefault(job["metadata"]["name"], {})[cluster] = job["metadata"]["uid"]
        return found

    def wait_for_start(self, job: str) -> tuple[str, str]:
        """Return the cluster where it runs, and the uid of its Job there. It runs on one."""
        [place] = until(lambda: self.runs().get(job), self.seconds, self.state).items()
        return place

    def end(self, job: str, *, fails: bool = False) -> None:
        """Let a job succeed, or fail, and wait until the hub says so."""
        [(cluster, _)] = self.runs()[job].items()
        worker = self.workers[cluster]
        try:
            until(lambda: _pods(worker, job), POD_SECONDS)
        except Timeout:
            worker.patch(JOB, job, {"status": _ended(fails=fails)}, JOBS)
        else:
            [pod] = until(lambda: _pods(worker, job, "Running"), self.seconds, lambda: _pods(worker, job))
            worker.write_file(pod, JOBS, THE_END, "fails" if fails else "")
        until(lambda: _finished(self.workload_of(job)), self.seconds, self.state)

    def events(self, reason: str, job: str = "") -> list[str]:
        """Return the messages of the events of that reason on this fleet's check, or on a job's Workload."""
        name = self.workload_of(job)["metadata"]["name"] if job else NAME
        selector = f"reason={reason},involvedObject.name={name}"
        return [str(event["message"]) for event in self.hub.list(EVENT, field_selector=selector)]

    # -- all of it

    def prepare(self) -> None:
        """Make the queues, the checks and the binding, and label the clusters."""
        if not self.hub.get(SET_BINDING, _SET, QUEUES):
            self.hub.apply(_binding())
        self.hub.apply(*_queues(with_checks=True), *_checks())
        for name, worker in self.workers.items():
            worker.apply(*_queues(with_checks=False))
            self.label(name, **{CHOSEN: "yes", GPU: None})
            self.hub.apply(
                {"apiVersion": f"{_OCM}/v1alpha1", "kind": "AddOnPlacementScore"} | _meta(NAME, name)
            )

    def clear(self) -> None:
        """Remove whatever these tests have made."""
        for cluster in (self.hub, *self.workers.values()):
            names = (job["metadata"]["name"] for job in cluster.list(JOB, JOBS, label_selector=_OURS))
            cluster.delete(JOB, *names, namespace=JOBS)
        until(lambda: not self.workloads(), self.seconds, self.state)
        self.hub.delete(ADMISSION_CHECK, NAME, MULTIKUEUE)
        self.hub.delete(PLACEMENT, NAME, namespace=QUEUES)
        if self.hub.list(SET_BINDING, QUEUES, label_selector=f"{NAME}=made"):
            self.hub.delete(SET_BINDING, _SET, namespace=QUEUES)
        for cluster in (self.hub, *self.workers.values()):
            cluster.delete(LOCAL_QUEUE, *LOCAL_QUEUES, namespace=JOBS)
            cluster.delete(CLUSTER_QUEUE, NAME, SECOND)
            cluster.delete(RESOURCE_FLAVOR, NAME)
        for name in self.names:
            self.hub.delete(PLACEMENT_SCORE, NAME, namespace=name)
            self.label(name, **{CHOSEN: None, GPU: None})
            self.taint(name, tainted=False)
            self.hub.patch(
                MANAGED_CLUSTER, name, {"metadata": {"annotations": {ANNOTATION_MAINTENANCE: None}}}
            )
        until(lambda: not self.listed(), self.seconds, self.state)


_OCM: Final = "cluster.open-cluster-management.io"
_KUEUE: Final = "kueue.x-k8s.io"
_QUEUE: Final = f"{_KUEUE}/queue-name"
_OURS: Final = f"{_QUEUE} in ({','.join(LOCAL_QUEUES)})"
_SET: Final = "global"


def _meta(name: str, namespace: str = "") -> Obj:
    return {"metadata": {"name": name} | ({"namespace": namespace} if namespace else {})}


def _owners(obj: Obj) -> Sequence[Obj]:
    return obj["metadata"].get("ownerReferences") or ()


def amount(quantity: str | int) -> float:
    """Return a quantity as a number of cores or bytes."""
    return float(parse_quantity(quantity))


def _finished(obj: Obj) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(c["type"] in ("Complete", "Failed", "Finished") and c["status"] == "True" for c in conditions)


def _pods(worker: Cluster, job: str, phase: str = "") -> list[str]:
    """Return a Job's Pods; `phase`: only those in it."""
    pods = worker.list(POD, JOBS, label_selector=f"batch.kubernetes.io/job-name={job}")
    return [pod["metadata"]["name"] for pod in pods if phase in ("", pod.get("status", {}).get("phase"))]


def _ended(*, fails: bool) -> Obj:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds, reason = ("SuccessCriteriaMet", "Complete"), "CompletionsReached"
    if fails:
        kinds, reason = ("FailureTarget", "Failed"), "BackoffLimitExceeded"
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": at}
        for kind in kinds
    ]
    counts = {"failed": 1} if fails else {"succeeded": 1, "completionTime": at}
    return {"startTime": at, **counts, "conditions": conditions}


def _placement(spec: Obj) -> Obj:
    return {
        "apiVersion": f"{_OCM}/v1beta1",
        "kind": "Placement",
        **_meta(NAME, QUEUES),
        "spec": {"clusterSets": [_SET], **spec},
    }


def _binding() -> Obj:
    kind = {"apiVersion": f"{_OCM}/v1beta2", "kind": "ManagedClusterSetBinding"}
    meta = {"name": _SET, "namespace": QUEUES, "labels": {NAME: "made"}}
    return {**kind, "metadata": meta, "spec": {"clusterSet": _SET}}


def _checks() -> tuple[Obj, ...]:
    kind = {"apiVersion": f"{_KUEUE}/v1beta2", "kind": "AdmissionCheck"}
    config = {"apiGroup": _KUEUE, "kind": "MultiKueueConfig", "name": NAME}
    placement = {"apiGroup": _OCM, "kind": "Placement", "name": NAME}
    return tuple(
        {**kind, **_meta(name), "spec": {"controllerName": controller, "parameters": parameters}}
        for name, controller, parameters in (
            (MULTIKUEUE, f"{_KUEUE}/multikueue", config),
            (NAME, "open-cluster-management.io/placement", placement),
        )
    )


def quota(cpus: int) -> Obj:
    """Return the resource group of a ClusterQueue."""
    amounts = {"cpu": str(cpus), "memory": f"{max(8, cpus)}Gi"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    return {"coveredResources": [*amounts], "flavors": [{"name": NAME, "resources": resources}]}


def _queues(*, with_checks: bool) -> tuple[Obj, ...]:
    """Two queues; a worker's share 4 CPUs in a cohort, the hub's have room for whatever waits."""
    version = {"apiVersion": f"{_KUEUE}/v1beta2"}
    spec: Obj = {"namespaceSelector": {}, "resourceGroups": [quota(16 if with_checks else 2)]}
    if with_checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": MULTIKUEUE}, {"name": NAME}]}
    else:
        spec |= {"cohortName": NAME, "preemption": {"reclaimWithinCohort": "Any"}}
    queues = (
        ({**version, "kind": "ClusterQueue", **_meta(name), "spec": spec} for name in (NAME, SECOND)),
        (
            {**version, "kind": "LocalQueue", **_meta(name, JOBS), "spec": {"clusterQueue": name}}
            for name in (NAME, SECOND)
        ),
    )
    return {**version, "kind": "ResourceFlavor", **_meta(NAME)}, *queues[0], *queues[1]


def local_queue(name: str) -> Obj:
    """Return a LocalQueue of the first ClusterQueue."""
    kind = {"apiVersion": f"{_KUEUE}/v1beta2", "kind": "LocalQueue"}
    return {**kind, **_meta(name, JOBS), "spec": {"clusterQueue": NAME}}


def job(name: str, cpu: int = 1, queue: str = NAME, annotations: Mapping[str, str] | None = None) -> Obj:
    """Return a Job that runs until `THE_END` is in its Pod; it fails if a word is in there."""
    container = {
        "name": "waits",
        "image": IMAGE,
        "command": ["sh", "-c", f"until [ -e {THE_END} ]; do sleep 1; done; ! grep -q fails {THE_END}"],
        "resources": {"requests": {"cpu": str(cpu), "memory": "64Mi"}},
    }
    meta = {"name": name, "namespace": JOBS, "labels": {_QUEUE: queue}}
    template: Obj = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    if annotations:
        template["metadata"] = {"annotations": dict(annotations)}
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "suspend": True, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
