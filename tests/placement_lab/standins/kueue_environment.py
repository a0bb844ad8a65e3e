"""Objects of the recordings in shared/kueue, and a hub whose conditions are read in their form."""

import base64
import re
from collections.abc import Callable
from typing import Any

import yaml

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER
from placement_ac.kube.client import Object
from placement_lab.standins.kueue import CLUSTER_QUEUE, LOCAL_QUEUE
from tests.support.admin import Admin
from tests.support.kubeconfigs import one_context
from tests.support.kueue_objects import admission_check, cluster_queue, kueue_object, multikueue_config
from tests.support.shared import shared_dir

V = "v1beta2"
PROVIDER = "kubeconfig-provider"
OFFERED = {"name": PROVIDER, "cluster": {"server": "https://worker1.example:6443"}}
BROKEN = "broken-configuration.txt"
PROFILE = "cluster-profile.txt"


def recorded(file: str, title: str) -> dict[str, str]:
    """The conditions in one block of a recording, by the text before the colon."""
    text = (shared_dir() / "kueue" / file).read_text()
    block = text.split(f"--- {title}\n", 1)[1].split("\n---", 1)[0]
    lines = (re.fullmatch(r" +([\w-]+): +Active (.*)", line) for line in block.splitlines())
    return {found[1]: found[2] for found in lines if found}


def recorded_profile(step: str) -> tuple[str, str]:
    """The conditions of MultiKueueCluster and check in a step of cluster-profile.txt."""
    block = (shared_dir() / "kueue" / PROFILE).read_text().split(f"##### {step} ", 1)[1].split("#####", 1)[0]
    [cluster] = re.findall(r"ex-cp \[\('Active', '(\w+)', '(\w+)', '(.*)'\)\]", block)
    [check] = re.findall(r"AdmissionCheck multikueue: (.*)", block)
    return f"{cluster[0]} {cluster[1]} | {cluster[2]}", check


# Builders; their default names are those of the recording.


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
    """A hub with the stand-in, whose conditions are read in the recordings' form."""

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

    def all_say(self, *clusters: str) -> dict[str, str | None]:
        """The current conditions of the objects in a block of broken-configuration.txt."""
        words = {
            "AdmissionCheck": self.says("AdmissionCheck", "acd"),
            "ClusterQueue": self.says("ClusterQueue", "cqd"),
            "LocalQueue": self.says("LocalQueue", "lqd"),
        }
        return words | {name: self.says("MultiKueueCluster", name) for name in clusters}

    def expect(self, title: str, *clusters: str) -> None:
        """Wait until check, queues and `clusters` have the conditions of that block."""
        block = recorded(BROKEN, title)
        wanted = ("AdmissionCheck", "ClusterQueue", "LocalQueue", *clusters)
        self.until(lambda: self.all_say(*clusters), {name: block[name] for name in wanted})


Staged = Callable[..., KueueEnvironment]
