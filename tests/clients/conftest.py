"""`placement-ac hub --workers 3`, the controller on it, and queues that also have a quota of local disks."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import JOB, KUEUE, MULTIKUEUE_CLUSTER, WORKLOAD
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.demo.environment import ControllerThread
from placement_lab.standins.kueue_jobs import completed
from placement_lab.standins.manifests import load, samples
from placement_lab.standins.multikueue.objects import is_condition_true
from placement_lab.standins.worker_quota import queue_manifests
from tests.support.admin import Admin
from tests.support.driver import eventually

QUEUE = "user-queue-demo1"
JOBS = JOB.at("v1")
CLUSTERS = MULTIKUEUE_CLUSTER.at("v1beta2")
QUOTA = {"cpu": "9", "memory": "36Gi", "nvidia.com/gpu": "3", "ephemeral-storage": "100Gi"}
"""Of the hub and of each worker; metaflow and snakemake ask for local disks."""
NAMES = ("cluster1", "cluster2", "cluster3")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.clients)


@dataclass(frozen=True)
class Lab:
    """The hub with its admin, and the admins of its workers by name."""

    kubeconfig: Path
    hub: Admin
    workers: dict[str, Admin]

    def ran_on(self, job: Object) -> str:
        """Return the name of the cluster that Kueue names in the status of a Job's Workload."""
        uid = job["metadata"]["uid"]
        workloads = self.hub.list(WORKLOAD.at("v1beta2"))
        [of_job] = [one for one in workloads if one["metadata"]["ownerReferences"][0]["uid"] == uid]
        return str(of_job["status"]["clusterName"]).removeprefix("placement-demo1-")

    def complete(self, prefix: str) -> bool:
        """End a running Job on its worker that does not sleep; return whether there was one."""
        for worker in self.workers.values():
            for job in worker.list(JOBS):
                name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
                if name.startswith(prefix) and job["status"].get("startTime"):
                    status = {"status": completed(job, time.time())}
                    worker.merge(JOBS, name, status, namespace=namespace, subresource="status")
                    return True
        return False


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("hub")
    kubeconfig = folder / "hub.kubeconfig"
    with ExitStack() as stack:
        command = [sys.executable, "-m", "placement_ac", "hub", "--workers", "3"]
        run = stack.enter_context(subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True))
        stack.callback(run.terminate)
        assert run.stdout is not None
        assert run.stdout.readline().startswith("The hub listens on ")
        stack.enter_context(ControllerThread(Settings(kubeconfig=kubeconfig)))
        admins = {name: stack.enter_context(Admin(Login(kubeconfig, name))) for name in NAMES}
        lab = Lab(kubeconfig, stack.enter_context(Admin(Login(kubeconfig))), admins)
        lab.hub.apply(*_set_up())
        for worker in admins.values():
            worker.apply(*queue_manifests({"default-flavor": QUOTA}, (QUEUE, "default")))
        eventually(lambda: [is_condition_true(one, "Active") for one in lab.hub.list(CLUSTERS)], [True] * 3)
        yield lab


def _set_up() -> Iterator[Object]:
    """Yield the sample with this quota, and the LocalQueue of Jobs without a label, as of snakemake."""
    for item in load(samples() / "multikueue-setup-demo1.yaml"):
        if item["kind"] == "ClusterQueue":
            [group] = item["spec"]["resourceGroups"]
            group["coveredResources"] = list(QUOTA)
            amounts = [{"name": name, "nominalQuota": amount} for name, amount in QUOTA.items()]
            group["flavors"][0]["resources"] = amounts
            yield {
                "apiVersion": f"{KUEUE}/v1beta2",
                "kind": "LocalQueue",
                "metadata": {"name": "default", "namespace": "default"},
                "spec": {"clusterQueue": item["metadata"]["name"]},
            }
        yield item
