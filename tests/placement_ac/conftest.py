"""The controller's client of a hub, and a credential plugin, as fixtures."""

from pathlib import Path

import pytest

from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.async_tests import Enter
from tests.support.envtest import write_plain_kubeconfig
from tests.support.exec_plugins import Plugin, executable


@pytest.fixture
def client(hub: Hub, tmp_path: Path, enter: Enter[Client]) -> Client:
    write_plain_kubeconfig(hub, tmp_path / "kubeconfig")
    return enter(Client(Login(tmp_path / "kubeconfig")))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Writes a credential plugin with this script; returns its path."""
    return lambda script: executable(tmp_path / "plugin", script)
