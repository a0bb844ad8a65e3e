"""
The objects of a correctly set up hub, as `kubectl get -o yaml` returns them, for the tests of `doctor`.

OCM's and our objects come from the samples and config/; Kueue's follow the manifests of its release 0.19
(the parts of Deployment, ConfigMap and ClusterRoleBinding that `doctor` reads).
"""

import base64
import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.builders import condition, decision
from tests.support.crds import strict_crds

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 8, 1, 12, 0, 0, tzinfo=UTC)
NS = "kueue-system"
OURS = "placement-ac-system"
PLACEMENT = "placement-demo1"
CLUSTERS = ("cluster1", "cluster2", "cluster3")
Object = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace, name."""

KUEUE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec:
      initContainers:
      - name: cp-creds
        image: quay.io/open-cluster-management/cp-creds:latest
        command: [cp, /cp-creds, /plugins/cp-creds]
        volumeMounts:
        - {name: plugins, mountPath: /plugins}
      containers:
      - name: manager
        image: registry.k8s.io/kueue/kueue:v0.20.6
        command: [/manager]
        args: [--config=/controller_manager_config.yaml, --zap-log-level=2]
        volumeMounts:
        - {name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs, readOnly: true}
        - name: manager-config
          mountPath: /controller_manager_config.yaml
          subPath: controller_manager_config.yaml
        - {name: plugins, mountPath: /plugins}
      serviceAccountName: kueue-controller-manager
      volumes:
      - {name: cert, secret: {secretName: kueue-webhook-server-cert}}
      - {name: manager-config, configMap: {name: kueue-manager-config}}
      - {name: plugins, emptyDir: {}}
status: {replicas: 1, readyReplicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    health:
      healthProbeBindAddress: :8081
    # The gates that this fleet needs.
    featureGates:
      MultiKueueClusterProfile: true
    integrations:
      frameworks:
      - "batch/job"
      - "jobset.x-k8s.io/jobset"
    multiKueue:
      gcInterval: 1m
      clusterProfile:
        accessProviders:
        - name: open-cluster-management
          execConfig:
            apiVersion: client.authentication.k8s.io/v1
            command: /plugins/cp-creds
            args: [--managed-serviceaccount=placement-ac]
            provideClusterInfo: true
            interactiveMode: Never
      externalFrameworks:
      - name: PipelineRun.v1.tekton.dev
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kueue-external-frameworks}
rules:
- apiGroups: [tekton.dev]
  resources: [pipelineruns, pipelineruns/status]
  verbs: [get, list, watch, patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kueue-external-frameworks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kueue-external-frameworks}
subjects:
- {kind: ServiceAccount, name: kueue-controller-manager, namespace: kueue-system}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: placement-ac, namespace: kueue-system}
spec:
  holderIdentity: placement-ac-0_1
  leaseDurationSeconds: 15
  renewTime: "2026-08-01T11:59:58.000000Z"
"""

PROVIDERS = """\
  clusterProfile:
    accessProviders:
    - name: open-cluster-management
      execConfig:
        apiVersion: client.authentication.k8s.io/v1
        command: /plugins/cp-creds
        args: [--managed-serviceaccount=placement-ac]
        provideClusterInfo: true
        interactiveMode: Never
"""
"""The part of Kueue's configuration that lists the access providers."""


def objects() -> list[Object]:
    """Return all objects, as copies that the caller may change."""
    return copy.deepcopy(list(_objects()))


@cache
def _objects() -> tuple[Object, ...]:
    return (
        *(_crd(crd) for crd in strict_crds()),
        *_samples(),
        *_ours(),
        *_controller(),
        *yaml.safe_load_all(KUEUE),
    )


def _crd(crd: Object) -> Object:
    """A CRD reduced to the fields that `doctor` reads."""
    fields = ("name", "served", "storage")
    versions = [{field: version[field] for field in fields} for version in crd["spec"]["versions"]]
    return {
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": {"name": crd["metadata"]["name"]},
        "status": {"storedVersions": [version["name"] for version in versions if version["storage"]]},
        "spec": {"versions": versions},
    }


def _samples() -> Iterator[Object]:
    files = [*sorted((ROOT / "samples/fleet").glob("*.yaml")), ROOT / "samples/multikueue-setup-demo1.yaml"]
    for file in files:
        for obj in yaml.safe_load_all(file.read_text("utf-8")):
            if obj["kind"] == "ClusterQueue":
                obj["status"] = {"conditions": [condition(reason="Ready", message="Can admit new workloads")]}
            if obj["kind"] == "Placement":
                obj["status"] = {"numberOfSelectedClusters": len(CLUSTERS), "conditions": []}
            if obj["kind"] == "AdmissionCheck":
                obj["metadata"]["generation"] = 1
                obj["status"] = {"conditions": [condition()]}
            yield _as_stored(obj)


def _as_stored(obj: Object) -> Object:
    if "stringData" in obj:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in obj.pop("stringData").items()}
        obj["data"] = data
    return obj


def _ours() -> Iterator[Object]:
    """The objects that OCM and the controller create."""
    decided = decision(of=PLACEMENT)
    yield decided | {
        "metadata": {key: decided["metadata"][key] for key in ("name", "namespace", "labels")},
        "status": {"decisions": [{"clusterName": cluster, "reason": ""} for cluster in CLUSTERS]},
    }
    labels = {"app.kubernetes.io/managed-by": "placement-ac"}
    named = {"cluster.open-cluster-management.io/placement": PLACEMENT}
    yield {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueConfig",
        "metadata": {"name": PLACEMENT, "labels": labels | named},
        "spec": {"clusters": [f"{PLACEMENT}-{cluster}" for cluster in CLUSTERS]},
    }
    sources = {
        "cluster1": {"clusterProfileRef": {"name": "cluster1"}},
        "cluster2": _by_secret("kueue-admin-cluster2-kubeconfig"),
        "cluster3": _by_secret("multikueue-cluster3"),
    }
    for cluster, source in sources.items():
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "MultiKueueCluster",
            "metadata": {
                "name": f"{PLACEMENT}-{cluster}",
                "labels": labels | named | {"open-cluster-management.io/cluster-name": cluster},
            },
            "spec": {"clusterSource": source},
            "status": {"conditions": [condition(message="Connected")]},
        }


def _by_secret(name: str) -> Object:
    return {"kubeConfig": {"location": name, "locationType": "Secret"}}


def _controller() -> Iterator[Object]:
    for file in ("manager/deployment.yaml", "rbac/clusterrole.yaml"):
        for obj in yaml.safe_load_all((ROOT / "config" / file).read_text("utf-8")):
            if obj["kind"] == "Deployment":
                obj["status"] = {"replicas": 2, "readyReplicas": 2}
            yield obj
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "placement-ac", "namespace": OURS},
        "data": {"config.yaml": (ROOT / "config/manager/config.yaml").read_text("utf-8")},
    }


def key_of(obj: Object) -> Key:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
