"""Fixtures for the tests of commands on a hub."""

from pathlib import Path

import pytest

from placement_lab.hub import Hub
from tests.support.commands import Run, on_hub
from tests.support.driver import Driver
from tests.support.envtest import write_plain_kubeconfig


@pytest.fixture
def kubeconfig(hub: Hub, admin: Driver, tmp_path: Path) -> Path:
    """The admin's kubeconfig of the hub."""
    write_plain_kubeconfig(hub, tmp_path / "admin")
    return tmp_path / "admin"


@pytest.fixture
def run(kubeconfig: Path) -> Run:
    """Runs commands on the hub, as its admin."""
    return on_hub(kubeconfig)
