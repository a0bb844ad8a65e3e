"""Broken setups that only a large or slow fleet notices: too many connections, and a short grace."""

import copy
from typing import Any, Final

from tests.kubectl_placement.doctor.broken_setups import (
    DEPLOYED,
    FAIL,
    WARN,
    Break,
    How,
    Objects,
    both,
    image,
    put,
    worker,
)
from tests.support.builders import workload
from tests.support.healthy import NS

SECRETS: Final = [("Secret", NS, name) for name in ("kueue-admin-cluster2-kubeconfig", "multikueue-cluster3")]


def shared_worker(placement: str, cluster: str) -> How:
    """Return what adds the MultiKueueCluster of another Placement with the same credentials."""

    def change(objects: Objects) -> None:
        other = copy.deepcopy(objects[worker(cluster)])
        other["metadata"]["name"] = f"{placement}-{cluster}"
        other["metadata"]["labels"]["cluster.open-cluster-management.io/placement"] = placement
        objects["MultiKueueCluster", "", f"{placement}-{cluster}"] = other

    return change


def same_kubeconfig(objects: Objects) -> None:
    """Give cluster3 the kubeconfig of cluster2."""
    one, other = SECRETS
    objects[other]["data"] = copy.deepcopy(objects[one]["data"])


CONFIG: Final = ("MultiKueueConfig", "", "placement-demo1")
SAME_WORKER: Final = "of Placement placement-demo1 are the same worker"
REMOVE: Final = (
    "remove ManagedCluster cluster3, or do not select it: it leads to the same worker as cluster2, which"
    " stays (both ManagedClusters have the same claim id.k8s.io)"
)


def claim(cluster: str, value: str) -> How:
    """Return what gives a ManagedCluster that claim."""
    claims = [{"name": "id.k8s.io", "value": value}]
    return put(("ManagedCluster", "", cluster), "status", "clusterClaims", claims)


def short_lived_jobs(number: int, ttl: int = 0, **state: Any) -> How:
    """Return what adds Jobs of our checks that are removed so many seconds after their end."""
    checks = {"placement-demo1": "Ready", "multikueue-demo1": "Ready"}

    def change(objects: Objects) -> None:
        for at in range(number):
            metadata = {"name": f"train-{at}", "namespace": "default", "uid": f"uid-{at}"}
            owner = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            job = workload(f"job-train-{at}", **checks, **state)
            job["metadata"]["ownerReferences"] = [owner]
            objects["Workload", "default", f"job-train-{at}"] = job
            spec = {"ttlSecondsAfterFinished": ttl}
            objects["Job", "default", f"train-{at}"] = {"kind": "Job", "metadata": metadata, "spec": spec}

    return change


TTL_GATE: Final = "MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster"
TTL_SINCE: Final = "(from 0.18.7, 0.19.3 on)"
SCALE: Final = (
    Break(
        "Jobs may be removed before the hub has seen their end",
        both(image("0.19.2"), short_lived_jobs(5)),  # which lacks the gate
        "finished-jobs",
        WARN,
        "set ttlSecondsAfterFinished of 5 Jobs (default/train-0, default/train-1, default/train-2 and 2 more)"
        f" to 900 or more, or turn on Kueue's gate {TTL_GATE} {TTL_SINCE}: a worker may remove a finished Job"
        " before the hub's Kueue has seen its end, and Kueue then runs it again",
        "\n".join(
            f'kubectl patch job -n default train-{at} -p \'{{"spec":{{"ttlSecondsAfterFinished":900}}}}\''
            for at in range(3)
        ),
    ),
    Break(
        "a Job that may be removed early is on a worker already",
        both(short_lived_jobs(1, cluster="placement-demo1-cluster2"), image("0.19.2")),
        "finished-jobs",
        WARN,
        "set ttlSecondsAfterFinished of 1 Job (default/train-0) to 900 or more, or turn on Kueue's gate"
        f" {TTL_GATE} {TTL_SINCE}: a worker may remove a finished Job before the hub's Kueue has seen its end"
        ", and Kueue then runs it again; a copy that is on a worker already keeps its time, so patch it"
        " there, too",
        "\n".join(
            f'{kubectl} patch job -n default train-0 -p \'{{"spec":{{"ttlSecondsAfterFinished":900}}}}\''
            for kubectl in ("kubectl", "kubectl --context cluster2")
        ),
    ),
    Break(
        "several MultiKueueClusters have the same credentials",
        both(shared_worker("placement-b", "cluster1"), shared_worker("placement-b", "cluster2")),
        "duplicate-clusters",
        WARN,
        "set cluster-names to {cluster}: Kueue keeps 5 connections for 3 workers, "
        "one for each Placement and cluster",
        f"kubectl set env {DEPLOYED} PLACEMENT_AC_CLUSTER_NAMES='{{cluster}}'",
    ),
    Break(
        "two clusters have the same kubeconfig",
        same_kubeconfig,
        "duplicate-clusters",
        WARN,
        "if clusters cluster2, cluster3 of Placement placement-demo1 are one cluster, keep one of the names: "
        "their kubeconfigs have the same server, TLS name, proxy and CA, and Kueue deletes jobs by a second "
        "name of the same worker",
        "kubectl get managedclusters cluster2 cluster3 --show-labels",
    ),
    Break(
        "two clusters have the same claim, and both are listed",
        both(same_kubeconfig, claim("cluster2", "x"), claim("cluster3", "x")),
        "duplicate-clusters",
        FAIL,
        f"clusters cluster3 and cluster2 {SAME_WORKER}; both are listed, and Kueue deletes jobs there: "
        f"{REMOVE}",
        "kubectl get managedclusters cluster3 cluster2 --show-labels",
    ),
    Break(
        "two clusters have the same claim, and one is left out",
        both(
            claim("cluster2", "x"),
            claim("cluster3", "x"),
            put(CONFIG, "spec", "clusters", ["placement-demo1-cluster1", "placement-demo1-cluster2"]),
        ),
        "duplicate-clusters",
        WARN,
        f"clusters cluster3 and cluster2 {SAME_WORKER}; it is left out: {REMOVE}",
        "kubectl get managedclusters cluster3 cluster2 --show-labels",
    ),
)
