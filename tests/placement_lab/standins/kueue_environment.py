"""Objects of a hub with Kueue, whose conditions are read in one line: `STATUS REASON | MESSAGE`."""

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.kueue import CLUSTER_QUEUE, LOCAL_QUEUE, MultiKueue
from placement_lab.standins.runner import StandIns
from tests.support.admin import Admin
from tests.support.kubeconfigs import one_context
from tests.support.kueue_objects import (
    admission_check,
    cluster_queue,
    kueue_object,
    local_queue,
    multikueue_config,
    namespace,
)
from tests.support.real_hub import HubMaker

V = "v1beta2"
PROVIDER = "kubeconfig-provider"
OFFERED = {"name": PROVIDER, "cluster": {"server": "https://worker1.example:6443"}}


# Builders; their default names are those of the recordings in tests/published.


def check(name: str = "acd") -> Object:
    return admission_check(name, "mkd")


def queue(*checks: str, flavor: str = "default") -> Object:
    quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "9"}]}
    return cluster_queue("cqd", *checks, resourceGroups=[{"coveredResources": ["cpu"], "flavors": [quota]}])


def config(*clusters: str) -> Object:
    return multikueue_config("mkd", *clusters)


def cluster(name: str, secret: str | None = None) -> Object:
    reference = {"locationType": "Secret", "location": secret or name}
    return kueue_object("MultiKueueCluster", name, {"clusterSource": {"kubeConfig": reference}})


def by_profile(name: str = "ex-cp", profile: str = "worker1") -> Object:
    return kueue_object(
        "MultiKueueCluster", name, {"clusterSource": {"clusterProfileRef": {"name": profile}}}
    )


def kubeconfig(*, user: Any = None, cluster: Any = None) -> str:
    server = {"server": "https://127.0.0.1:6443"}
    return yaml.safe_dump(one_context(server | (cluster or {}), {"token": "t"} | (user or {})))


def secret(name: str, content: str, key: str = "kubeconfig", namespace: str = "kueue-system") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(content.encode()).decode()},
    }


def profile(**status: Any) -> Object:
    return {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"name": "worker1", "namespace": "kueue-system"},
        "spec": {"clusterManager": {"name": "open-cluster-management"}},
        "status": status,
    }


class KueueEnvironment(Admin):
    """A hub with the stand-in."""

    def says(self, kind: str, name: str) -> str | None:
        resource, where = {
            "AdmissionCheck": (ADMISSION_CHECK, None),
            "ClusterQueue": (CLUSTER_QUEUE, None),
            "LocalQueue": (LOCAL_QUEUE, "default"),
            "MultiKueueCluster": (MULTIKUEUE_CLUSTER, None),
        }[kind]
        item = self.get(resource.at(V), name, where) or {}
        for condition in (item.get("status") or {}).get("conditions") or ():
            assert condition["type"] == "Active"
            return f"{condition['status']} {condition['reason']} | {condition['message']}"
        return None


Staged = Callable[..., KueueEnvironment]


@contextmanager
def kueue_stages(a_hub: HubMaker, folder: Path) -> Iterator[Staged]:
    """Start a hub and the stand-in with the given options, and create a check and its queues."""
    with ExitStack() as opened:

        def start(**options: Any) -> KueueEnvironment:
            hub = opened.enter_context(a_hub())
            hub.write_kubeconfig(folder / "kubeconfig")
            opened.enter_context(
                StandIns(folder / "kubeconfig", [lambda login: MultiKueue(login, **options)])
            )
            stage = opened.enter_context(KueueEnvironment(Login(folder / "kubeconfig")))
            stage.apply(
                namespace("kueue-system"), namespace("default"), kueue_object("ResourceFlavor", "default")
            )
            stage.apply(check(), queue("acd"), local_queue("lqd", "cqd"))
            return stage

        yield start
