"""A hub with workers that run Pods, and jobs that are placed on them by hand; the caller's kubeconfig."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from placement_ac.core.api.constants import JOB, LABEL_CLUSTER, LABEL_ORIGIN, PREBUILT_WORKLOAD
from placement_lab.hub import Hub
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kubelet import POD
from tests.support import commands
from tests.support.admin import Admin, login_to
from tests.support.hub_client import Client
from tests.support.rights import CLUSTER_BINDINGS, CLUSTER_ROLES, RBAC, bound_to, rule

Object = dict[str, Any]
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
PODS = POD.at("v1")
CONTAINERS = [{"name": "c", "image": "i"}]


def job_of(name: str, namespace: str, count: int, containers: Sequence[Object] = ()) -> Object:
    """A Job that runs on a worker as the copy of a Workload."""
    template = {"spec": {"containers": [*(containers or CONTAINERS)], "restartPolicy": "Never"}}
    marks = {"labels": {LABEL_ORIGIN: "multikueue"}, "annotations": {PREBUILT_WORKLOAD: f"job-{name}"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace} | marks,
        "spec": {"suspend": True, "parallelism": count, "template": template},
    }


def copy_of(name: str, namespace: str) -> Object:
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": CONTAINERS}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"job-{name}", "namespace": namespace, "labels": {LABEL_ORIGIN: "multikueue"}},
        "spec": {"queueName": "q", "podSets": [pod_set]},
    }


class JobStage:
    """Puts jobs on workers. `folder`: for the kubeconfig, whose contexts have the workers' names."""

    def __init__(self, hub: Hub, fleet: WorkerFleet, admin: Admin, folder: Path) -> None:
        self.hub, self.fleet, self.admin = hub, fleet, admin
        self.kubeconfig = folder / "kubeconfig"
        self.workers = {name: login_to(worker) for name, worker in fleet.hubs.items()}
        for name in fleet.names:
            cluster = {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "MultiKueueCluster",
                "metadata": {"name": f"p-{name}", "labels": {LABEL_CLUSTER: name}},
                "spec": {
                    "clusterSource": {
                        "kubeConfig": {"location": f"multikueue-{name}", "locationType": "Secret"}
                    }
                },
            }
            admin.apply(cluster)
        admin.apply(*fleet.managed_clusters())
        fleet.apply_secrets(hub)
        self.write_kubeconfig(*fleet.names)

    def write_kubeconfig(self, *workers: str, **changes: Any) -> None:
        """Write the kubeconfig with contexts for these workers; `changes`: of their clusters."""
        config = self.hub.kubeconfig()
        for name in workers:
            theirs = self.fleet.hubs[name].kubeconfig()
            cluster = theirs["clusters"][0]["cluster"] | changes
            config["clusters"].append({"name": name, "cluster": cluster})
            config["users"].append(theirs["users"][0] | {"name": name})
            config["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        self.kubeconfig.write_text(json.dumps(config))

    def run(self, *words: str, **options: Any) -> Any:
        """Run a command as the caller, whose access file does not exist."""
        env = {"XDG_CONFIG_HOME": str(self.kubeconfig.parent), "COLUMNS": "300"}
        name, *others = words
        return commands.run(name, "--kubeconfig", str(self.kubeconfig), *others, env=env, **options)

    def job(
        self,
        name: str = "train",
        worker: str = "a",
        count: int = 1,
        namespace: str = "default",
        containers: Sequence[Object] = (),
    ) -> list[str]:
        """Put a job on a worker, and the Workload on the hub; return its Pods when they run."""
        self.workload(name, namespace)
        with Admin(self.workers[worker]) as there:
            if namespace != "default":
                there.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            there.apply(copy_of(name, namespace), job_of(name, namespace, count, containers))
            there.until(lambda: self.phases(there, name), ["Running"] * count)
        self.place(name, f"p-{worker}", namespace)
        return self.pods(name, worker)

    def workload(self, name: str = "train", namespace: str = "default") -> None:
        """Create a Job and its Workload on the hub, if there are none."""
        if namespace != "default":
            self.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        job, copy = job_of(name, namespace, 1), copy_of(name, namespace)
        job["metadata"]["labels"] = {}
        self.admin.apply(job)
        found = self.admin.get(JOB.at("v1"), name, namespace)
        assert found is not None
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": found["metadata"]["uid"]}
        copy["metadata"] |= {"ownerReferences": [owner], "labels": {}}
        self.admin.apply(copy)

    def place(
        self, name: str, cluster: str | None, namespace: str = "default", finished: bool = False
    ) -> None:
        """Write on the hub where a job is, as Kueue does."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {
            "type": "Finished",
            "status": "True",
            "reason": "x",
            "message": "",
            "lastTransitionTime": when,
        }
        status = {"clusterName": cluster, "conditions": [condition] if finished else []}
        path = f"{WORKLOADS.format(namespace)}/job-{name}/status"
        self.admin.request("PUT", path, self._with_status(path, status))

    def _with_status(self, path: str, status: Object) -> Object:
        found = self.admin.request("GET", path.removesuffix("/status"), None)
        merged = {**(found.get("status") or {}), **status}
        return found | {"status": {key: value for key, value in merged.items() if value is not None}}

    def remove(self, name: str, worker: str, namespace: str = "default") -> None:
        """Remove a job's copy and its Job from a worker, as Kueue does when it has left."""
        with Admin(self.workers[worker]) as there:
            there.request("DELETE", f"{WORKLOADS.format(namespace)}/job-{name}", None)
            there.request(
                "DELETE",
                f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
                {"propagationPolicy": "Background"},
            )

    def pods(self, name: str, worker: str = "a") -> list[str]:
        with Admin(self.workers[worker]) as there:
            return [pod["metadata"]["name"] for pod in self._pods(there, name)]

    def _pods(self, there: Admin, name: str) -> list[Object]:
        found = [pod for pod in there.list(PODS) if pod["metadata"]["labels"].get("job-name") == name]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def phases(self, there: Admin, name: str) -> list[str]:
        return [pod["status"].get("phase") for pod in self._pods(there, name)]

    def write(self, pod: str, *lines: str, worker: str = "a", container: str = "c") -> None:
        """Append lines to the log of a Pod in `default`."""
        self.fleet.hubs[worker].write_log("default", pod, container, *lines)


def let_jane(hub: Hub, *rules: Object, namespace: str = "") -> None:
    """Grant the user jane these rules, cluster-wide or in a namespace."""
    name = f"jane-{rules[0]['resources'][0]}".replace("*", "all")
    admin = Client(hub)
    admin.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
    bindings = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else CLUSTER_BINDINGS
    binding = bound_to("ClusterRole", name, kind="User", name="jane")
    admin.create(bindings, binding | {"metadata": {"name": name}})


def as_jane_there(stage: JobStage, resources: str) -> None:
    """Log in to worker a as a user who may get and list these core resources alone."""
    there = stage.fleet.hubs["a"]
    let_jane(there, rule("get list", "", resources))
    config = json.loads(stage.kubeconfig.read_text())
    config["users"][1]["user"] = {"token": there.add_user("jane", groups=[])}
    stage.kubeconfig.write_text(json.dumps(config))


@contextmanager
def job_stage(folder: Path, workers: Sequence[str] = ("a", "b")) -> Iterator[JobStage]:
    """Open a hub and workers."""
    with ExitStack() as opened:
        hub = opened.enter_context(Hub())
        fleet = opened.enter_context(WorkerFleet(workers, kubelets=True, line_seconds=None))
        admin = opened.enter_context(Admin(login_to(hub)))
        yield JobStage(hub, fleet, admin, folder)
