"""The controller's client of a hub, as a fixture."""

from pathlib import Path

import pytest

from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.async_tests import Enter


@pytest.fixture
def client(hub: Hub, tmp_path: Path, enter: Enter[Client]) -> Client:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return enter(Client(Login(tmp_path / "kubeconfig")))
