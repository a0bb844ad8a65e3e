"""Fixtures of the tests that reconcile one key at a time."""

from asyncio import Runner

import pytest

from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client
from tests.support.driver import Driver
from tests.support.reconciling import Rig


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
