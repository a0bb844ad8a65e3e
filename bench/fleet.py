"""
An embedded hub in its own process with a whole fleet from the start: clusters, their credentials,
Placements, checks, and the objects and conditions of Kueue and the controller.

`python -m bench.fleet KUBECONFIG CLUSTERS CHECKS WORKLOADS` serves until its standard input ends. All objects
are written to the store directly: over HTTP it would take minutes.
"""

import base64
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson
import trustme

from bench.hub import WHEN, condition, serve, workload
from placement_ac.core.api.constants import (
    KUEUE,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_PLACEMENT,
    MANAGED_BY,
    OCM_CLUSTER,
)
from placement_ac.core.kubeconfig.write import write_kubeconfig

Object = dict[str, Any]

NS: Final = "kueue-system"
EACH: Final = 10
"""Clusters that a Placement selects."""
_uids = count(1)


def _object(
    kind: str, name: str, namespace: str = "", group: str = f"{KUEUE}/v1beta2", **rest: Any
) -> Object:
    metadata = {
        "name": name,
        "uid": str(uuid.UUID(int=next(_uids))),
        "creationTimestamp": WHEN,
        "generation": 1,
    }
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= rest.pop("metadata", {})
    return {"apiVersion": group, "kind": kind, "metadata": metadata} | rest


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _token(cluster: str) -> str:
    """A token as an API server issues it to a ServiceAccount, except for the signature."""
    now = datetime.now(UTC)
    claims = {
        "aud": ["https://kubernetes.default.svc"],
        "exp": int((now + timedelta(days=1)).timestamp()),
        "iat": int(now.timestamp()),
        "iss": "https://kubernetes.default.svc",
        "sub": f"system:serviceaccount:open-cluster-management-agent-addon:{cluster}",
    }
    parts = (orjson.dumps({"alg": "RS256", "kid": "k" * 43}), orjson.dumps(claims), b"s" * 256)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def clusters(names: list[str]) -> Iterator[Object]:
    """Yield a ManagedCluster and a Secret for each cluster; every cluster has its own CA."""
    for name in names:
        authority = trustme.CA().cert_pem.bytes()
        server = f"https://api.{name}.example.com:6443"
        config = {"url": server, "caBundle": _text(authority)}
        resources = {"cpu": "512", "memory": "4Ti", "nvidia.com/gpu": "64", "pods": "5000"}
        status = {
            "allocatable": resources,
            "capacity": resources,
            "clusterClaims": [
                {"name": f"claim-{n}.open-cluster-management.io", "value": f"value-{n}"} for n in range(12)
            ],
            "conditions": [
                condition(kind, kind, f"The condition {kind} of the managed cluster")
                for kind in (
                    "HubAcceptedManagedCluster",
                    "ManagedClusterJoined",
                    "ManagedClusterConditionAvailable",
                )
            ],
            "version": {"kubernetes": "v1.34.1"},
        }
        labels = {f"{OCM_CLUSTER}/clusterset": "global", "vendor": "OpenShift", "cloud": "Amazon"}
        spec = {"hubAcceptsClient": True, "leaseDurationSeconds": 60, "managedClusterClientConfigs": [config]}
        yield _object(
            "ManagedCluster",
            name,
            group=f"{OCM_CLUSTER}/v1",
            metadata={"labels": labels},
            spec=spec,
            status=status,
        )
        kubeconfig = write_kubeconfig(server, authority, _token(name), name)
        assert isinstance(kubeconfig, bytes), kubeconfig  # noqa: S101  # its parts are valid
        data = {"kubeconfig": _text(kubeconfig)}
        yield _object("Secret", f"multikueue-{name}", NS, "v1", data=data, type="Opaque")


def _by_us(labels: Object, check: Object, fields: Object) -> Object:
    """The metadata of an object that the controller has applied."""
    owner = {"apiVersion": check["apiVersion"], "kind": "AdmissionCheck", "name": check["metadata"]["name"]}
    owner |= {"uid": check["metadata"]["uid"]}
    owned = f'k:{{"uid":"{owner["uid"]}"}}'
    applied: Object = {"f:labels": {f"f:{label}": {} for label in labels}, "f:ownerReferences": {owned: {}}}
    entry = {"manager": "placement-ac", "operation": "Apply", "apiVersion": check["apiVersion"], "time": WHEN}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": applied, "f:spec": fields}}
    return {"labels": labels, "ownerReferences": [owner], "managedFields": [entry]}


def checks(number: int, names: list[str]) -> Iterator[Object]:
    """Yield one check of ours with its objects; its Placement selects `EACH` of the clusters."""
    name = f"placement-{number:03}"
    chosen = [names[(number * 5 + n) % len(names)] for n in range(EACH)]
    parameters = {"apiGroup": OCM_CLUSTER, "kind": "Placement", "name": name}
    spec = {"controllerName": "open-cluster-management.io/placement", "parameters": parameters}
    active = {
        "conditions": [condition("Active", "Active", "MultiKueueConfig and MultiKueueCluster generated")]
    }
    check = _object("AdmissionCheck", name, spec=spec, status=active)
    yield check
    theirs = {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": name}
    spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": theirs}
    yield _object("AdmissionCheck", f"multikueue-{number:03}", spec=spec, status=active)
    labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_PLACEMENT: name}
    listed = [f"{name}-{cluster}" for cluster in chosen]
    metadata = _by_us(labels, check, {"f:clusters": {}})
    yield _object("MultiKueueConfig", name, metadata=metadata, spec={"clusters": listed})
    for cluster, listed_as in zip(chosen, listed, strict=True):
        metadata = _by_us(labels | {LABEL_CLUSTER: cluster}, check, {"f:clusterSource": {"f:kubeConfig": {}}})
        source = {"kubeConfig": {"location": f"multikueue-{cluster}", "locationType": "Secret"}}
        connected = {"conditions": [condition("Active", "Active", "Connected")]}
        spec = {"clusterSource": source}
        yield _object("MultiKueueCluster", listed_as, metadata=metadata, spec=spec, status=connected)
    yield from _placement(name, chosen)
    yield from _queues(number, [name, f"multikueue-{number:03}"])


def _placement(name: str, chosen: list[str]) -> Iterator[Object]:
    group = f"{OCM_CLUSTER}/v1beta1"
    status = {
        "numberOfSelectedClusters": EACH,
        "decisionGroups": [{"clusterCount": EACH, "decisions": [f"{name}-decision-1"]}],
        "conditions": [
            condition("PlacementSatisfied", "AllDecisionsScheduled", "All cluster decisions scheduled")
        ],
    }
    spec = {"numberOfClusters": EACH, "clusterSets": ["global"]}
    placement = _object("Placement", name, NS, group, spec=spec, status=status)
    yield placement
    owner = {"apiVersion": group, "kind": "Placement", "name": name, "uid": placement["metadata"]["uid"]}
    labels = {LABEL_PLACEMENT: name, f"{OCM_CLUSTER}/decision-group-index": "0"}
    decisions = [{"clusterName": one, "reason": "", "score": 100 - n} for n, one in enumerate(chosen)]
    yield _object(
        "PlacementDecision",
        f"{name}-decision-1",
        NS,
        group,
        metadata={"labels": labels, "ownerReferences": [owner | {"controller": True}]},
        status={"decisions": decisions},
    )


def _queues(number: int, listed: list[str]) -> Iterator[Object]:
    queue = f"queue-{number:03}"
    spec = {"admissionChecksStrategy": {"admissionChecks": [{"name": one} for one in listed]}}
    status = {"conditions": [condition("Active", "Ready", "Can admit new workloads")], "pendingWorkloads": 1}
    yield _object("ClusterQueue", queue, spec=spec, status=status)
    yield _object("LocalQueue", "user-queue", f"team-{number}", spec={"clusterQueue": queue})


def jobs(count_: int, checks_: int) -> Iterator[Object]:
    """Yield unfinished Workloads, spread over the checks."""
    for number in range(count_):
        obj = workload(number, ours=True)
        of = number % checks_
        answers = [
            {"name": f"{kind}-{of:03}", "state": "Ready", "message": ""}
            for kind in ("placement", "multikueue")
        ]
        yield obj | {"status": obj["status"] | {"admissionChecks": answers}}


def fleet(clusters_: int, checks_: int, workloads: int) -> Iterator[Object]:
    """Yield all objects of the hub. The clusters are in one set, bound in Kueue's namespace."""
    names = [f"cluster-{n:04}" for n in range(clusters_)]
    yield _object("Namespace", NS, group="v1", spec={}, status={"phase": "Active"})
    group = f"{OCM_CLUSTER}/v1beta2"
    yield _object("ManagedClusterSet", "global", group=group, spec={})
    yield _object("ManagedClusterSetBinding", "global", NS, group, spec={"clusterSet": "global"})
    yield from clusters(names)
    for number in range(checks_):
        yield from checks(number, names)
    yield from jobs(workloads, checks_)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), fleet(*map(int, sys.argv[2:5])))
