"""What every test may use: a hub, an admin on it, and the controller."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac import logs
from placement_ac.hub import Hub
from tests.hub.driver import Controllers, Driver
from tests.shared import published_crds

sys.setrecursionlimit(2500)  # celpy does so when it is first used, and hypothesis warns of the change


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logs.configure("text", "error")


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub that serves the published CRDs, and so validates against them whatever is written."""
    with Hub(crds=published_crds()) as hub:
        yield hub


@pytest.fixture
def admin(hub: Hub) -> Iterator[Driver]:
    with Driver(hub) as driver:
        driver.namespace("kueue-system")
        yield driver


@pytest.fixture
def controllers(hub: Hub, tmp_path: Path) -> Iterator[Controllers]:
    """Starts controllers on the hub: `with controllers(): …`, or `controllers.start()` for the whole test."""
    path = tmp_path / "kubeconfig"
    hub.write_kubeconfig(path)
    with Controllers(path) as controllers:
        yield controllers
