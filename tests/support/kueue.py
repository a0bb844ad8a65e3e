"""An installed Kueue: its Deployment, account and configuration."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.support.installation import kubectl

Object = dict[str, Any]

NAMESPACE = "kueue-system"
MANAGER = "kueue-controller-manager"
"""Its Deployment, and its ServiceAccount."""
CONFIG = "kueue-manager-config"
KEY = "controller_manager_config.yaml"
IMAGE = "registry.k8s.io/kueue/kueue:v0.20.6"
MANIFESTS = "https://github.com/kubernetes-sigs/kueue/releases/download/v0.20.6/manifests.yaml"
SHIPPED = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations:
  frameworks:
  - batch/job
  - jobset.x-k8s.io/jobset
"""


def installed(image: str = IMAGE, config: str = SHIPPED) -> list[Object]:
    """Return the objects of Kueue's release without CRDs and roles; the Deployment is ready."""
    metadata = {"namespace": NAMESPACE}
    args = [f"--config=/{KEY}", "--zap-log-level=2"]
    manager = {
        "name": "manager",
        "image": image,
        "args": args,
        "volumeMounts": [{"name": "manager-config", "mountPath": f"/{KEY}", "subPath": KEY}],
    }
    pod = {
        "serviceAccountName": MANAGER,
        "containers": [manager],
        "volumes": [{"name": "manager-config", "configMap": {"name": CONFIG}}],
    }
    labels = {"control-plane": "controller-manager"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    status = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata | {"name": MANAGER}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata | {"name": CONFIG},
            "data": {KEY: config},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata | {"name": MANAGER},
            "spec": spec,
            "status": status,
        },
    ]


def kustomized(sample: Path, folder: Path) -> list[Object]:
    """Return a sample rendered by kustomize, with `installed` in place of Kueue's release."""
    copy = folder / sample.name
    shutil.copytree(sample, copy)
    (copy / "manifests.yaml").write_text(yaml.safe_dump_all(installed()))
    text = (copy / "kustomization.yaml").read_text()
    assert MANIFESTS in text
    (copy / "kustomization.yaml").write_text(text.replace(MANIFESTS, "manifests.yaml"))
    return list(yaml.safe_load_all(kubectl("kustomize", str(copy))))
