"""Libraries that speak to an API server, and kubectl: each plays the life of some objects on the hub."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import Lab
from tests.clients.installed import PROGRAMS, output, start


@pytest.mark.parametrize("name", ["kopf", "kr8s", "kubernetes", "kubernetes_asyncio", "lightkube", "pykube"])
def test_a_library(lab: Lab, tmp_path: Path, name: str) -> None:
    """The program asserts all, in a namespace without queues."""
    lab.hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "libraries"}})
    program = str(PROGRAMS / f"use_{name}.py")
    output(start("libraries", lab.kubeconfig, tmp_path, "python", program))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_kubectl_creates_a_job_and_waits_for_its_end(lab: Lab) -> None:
    def kubectl(*words: str) -> str:
        command = ["kubectl", "--kubeconfig", str(lab.kubeconfig), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout

    kubectl("create", "job", "by-kubectl", "--image=registry.example/train", "--", "sleep", "1s")
    assert "met" in kubectl("wait", "--for=condition=complete", "job/by-kubectl", "--timeout=100s")
    path = r"jsonpath={.metadata.labels.kueue\.x-k8s\.io/queue-name}"
    assert kubectl("get", "job", "by-kubectl", "-o", path) == "default"
