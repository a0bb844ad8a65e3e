"""Libraries that speak to an API server, and kubectl: each plays the life of some objects on the hub."""

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
