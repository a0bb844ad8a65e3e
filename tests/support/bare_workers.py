"""A stage whose workers have Kueue and no queue, with OCM's work agents, and what one sees there."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from placement_ac.kube.login import Login
from placement_lab.standins.runner import StandIns
from placement_lab.standins.work_agent import WorkAgents
from tests.support.driver import CORE, Controllers, Driver, Object
from tests.support.jobs import MANAGED, Stage, open_stage, soon

WORK = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/placement-ac-queues"
FLAVOR = "default-flavor"
GPU = "nvidia.com/gpu"
ALLOCATABLE = {"cpu": "100", GPU: "8"}
POLL_SECONDS = 0.1
_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"


class BareStage:
    """A stage with a queue `team` on the hub, whose ClusterQueue covers CPU and GPUs."""

    def __init__(self, stage: Stage, agents: WorkAgents) -> None:
        self.stage = stage
        self.admin = stage.admin
        self.agents = agents
        self._workers = {name: Driver(hub) for name, hub in stage.fleet.hubs.items()}

    # -- the hub

    def flavor(self, name: str = FLAVOR, **spec: Any) -> None:
        self._hub("ResourceFlavor", "resourceflavors", name, spec)

    def queue(self, name: str, namespace: str, checks: tuple[str, ...] = ("p", "mk"), **nominal: str) -> None:
        """Create a ClusterQueue with one flavor and a LocalQueue of its name."""
        quotas = [
            {"name": one, "nominalQuota": amount}
            for one, amount in ({"cpu": "1k", GPU: "1k"} | nominal).items()
        ]
        group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": FLAVOR, "resources": quotas}]}
        strategy = {"admissionChecks": [{"name": check} for check in checks]}
        spec = {"namespaceSelector": {}, "admissionChecksStrategy": strategy, "resourceGroups": [group]}
        self._hub("ClusterQueue", "clusterqueues", name, spec)
        self.local_queue(name, namespace, name)

    def local_queue(self, name: str, namespace: str, cluster_queue: str) -> None:
        self.admin.namespace(namespace)
        path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues"
        self.admin.ask("POST", path, _local_queue(name, cluster_queue))

    def delete_local_queue(self, name: str, namespace: str) -> None:
        self.admin.ask("DELETE", f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/{name}")

    def _hub(self, kind: str, plural: str, name: str, spec: Object) -> None:
        version = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
        self.admin.ask("POST", self.admin.kueue(plural), version | {"spec": spec})

    def template(self, text: str, name: str = "queues") -> None:
        path = f"{CORE}/namespaces/kueue-system/configmaps"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"queues.yaml": text},
        }
        if self.admin.get(f"{path}/{name}") is None:
            self.admin.ask("POST", path, body)
        else:
            self.admin.ask("PATCH", f"{path}/{name}", {"data": body["data"]}, "merge")

    def allocatable(self, cluster: str, **amounts: str) -> None:
        """Report what the cluster's nodes can allocate."""
        self.admin.ask("PATCH", f"{MANAGED}/{cluster}/status", {"status": {"allocatable": amounts}}, "merge")

    def work(self, cluster: str) -> Object | None:
        """Return the cluster's ManifestWork."""
        return self.admin.get(WORK.format(cluster))

    def work_writes(self, cluster: str) -> int:
        """How often the controller has written it."""
        return len(self.stage.writes(WORK.format(cluster)))

    # -- the workers

    def there(self, cluster: str, plural: str, name: str, namespace: str = "") -> Object | None:
        """Return an object of Kueue's on a worker; the namespace itself with `plural` ""."""
        worker = self._workers[cluster]
        if not plural:
            return worker.get(f"{CORE}/namespaces/{name}")
        where = f"namespaces/{namespace}/" if namespace else ""
        return worker.get(f"/apis/kueue.x-k8s.io/v1beta2/{where}{plural}/{name}")

    def by_hand(self, cluster: str, name: str, namespace: str, cluster_queue: str) -> None:
        """Create a LocalQueue and its namespace on a worker, as its admin."""
        worker = self._workers[cluster]
        worker.namespace(namespace)
        path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues"
        worker.ask("POST", path, _local_queue(name, cluster_queue))

    def own_job(
        self, cluster: str, name: str, namespace: str, queue: str, requests: Mapping[str, str] | None = None
    ) -> None:
        """Let somebody queue a Workload on a worker itself; wait until OCM reports it."""
        resources = {"resources": {"requests": dict(requests)}} if requests else {}
        pods = {"spec": {"containers": [{"name": "c", "image": "i"} | resources], "restartPolicy": "Never"}}
        pod_sets = [{"name": "main", "count": 1, "template": pods}]
        body = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": name},
            "spec": {"queueName": queue, "podSets": pod_sets},
        }
        self._workers[cluster].ask("POST", _WORKLOADS.format(namespace), body)
        soon(lambda: self.reported(cluster, "LocalQueue", queue).get("reserving", 0) > 0)

    def end_own_job(self, cluster: str, name: str, namespace: str) -> None:
        self._workers[cluster].ask("DELETE", f"{_WORKLOADS.format(namespace)}/{name}")

    def without_kueue(self, cluster: str) -> None:
        """Let a worker serve no kind of Kueue."""
        hub = self.stage.fleet.hubs[cluster]
        hub.faults.add("GET", "^/apis/kueue.x-k8s.io", status=404, times=1_000_000)

    def install_kueue(self, cluster: str, release: str) -> None:
        """Create the Deployment of Kueue's manager on a worker."""
        worker = self._workers[cluster]
        worker.namespace("kueue-system")
        labels = {"control-plane": "controller-manager"}
        manager = {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:v{release}"}
        pods = {"metadata": {"labels": labels}, "spec": {"containers": [manager]}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager"},
            "spec": {"selector": {"matchLabels": labels}, "template": pods},
        }
        worker.ask("POST", "/apis/apps/v1/namespaces/kueue-system/deployments", body)

    def reported(self, cluster: str, kind: str, name: str) -> Mapping[str, Any]:
        """Return the feedback of OCM on an object in the cluster's ManifestWork."""
        reports = ((self.work(cluster) or {}).get("status") or {})["resourceStatus"]["manifests"]
        for report in reports:
            if (report["resourceMeta"]["kind"], report["resourceMeta"]["name"]) == (kind, name):
                values = (report.get("statusFeedback") or {}).get("values") or ()
                return {
                    v["name"]: v["fieldValue"].get("integer", v["fieldValue"].get("string")) for v in values
                }
        return {}

    def quota(self, cluster: str, name: str) -> Mapping[str, str]:
        """Return resource → nominal quota of a ClusterQueue on a worker; {} if it does not exist."""
        spec = (self.there(cluster, "clusterqueues", name) or {}).get("spec") or {}
        return {
            quota["name"]: quota["nominalQuota"]
            for group in spec.get("resourceGroups") or ()
            for flavor in group["flavors"]
            for quota in flavor["resources"]
        }


def _local_queue(name: str, cluster_queue: str) -> Object:
    version = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name}}
    return version | {"spec": {"clusterQueue": cluster_queue}}


@contextmanager
def bare_stage(
    admin: Driver, controllers: Controllers, *clusters: str, start: bool = True, **settings: Any
) -> Iterator[BareStage]:
    """Open a stage with these clusters; with `start`, also start a controller that sets up workers."""
    with ExitStack() as opened:
        stage = opened.enter_context(open_stage(admin, controllers, clusters, bare=True))
        agents: list[WorkAgents] = []

        def make(login: Login) -> WorkAgents:
            agents.append(stage.fleet.work_agents(login, poll=POLL_SECONDS))
            return agents[0]

        opened.enter_context(StandIns(lambda: Login(stage.kueue_kubeconfig), [partial(make)]))
        bare = BareStage(stage, agents[0])
        for cluster in clusters:
            admin.namespace(cluster)
            bare.allocatable(cluster, **ALLOCATABLE)
        bare.flavor()
        bare.queue("team", "team-a")
        stage.select(*clusters)
        if start:
            controllers.start(worker_setup="manifestwork", **settings)
        yield bare
