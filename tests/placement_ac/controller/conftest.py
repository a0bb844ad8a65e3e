"""Fixtures of the tests that reconcile one key at a time."""

from asyncio import Runner
from pathlib import Path

import pytest

from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.async_tests import Enter
from tests.support.driver import Driver
from tests.support.reconciling import Rig


@pytest.fixture
def client(hub: Hub, tmp_path: Path, enter: Enter[Client]) -> Client:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return enter(Client(Login(tmp_path / "kubeconfig")))


@pytest.fixture
def rig(client: Client, runner: Runner) -> Rig:
    """A reconciler whose cache has listed nothing yet."""
    return Rig(client, runner.run(client.discover(WATCHED_KINDS)))


@pytest.fixture
def p(admin: Driver) -> Driver:
    """A check with all that it needs, on clusters a and b."""
    admin.check("p")
    admin.select("p", "a", "b")
    return admin
