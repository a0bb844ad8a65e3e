"""A real hub with OCM, Kueue and placement-ac, and three of its clusters (`make test-real`)."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from placement_ac.core.api.constants import FIELD_MANAGER, LEASE
from placement_ac.core.api.fields import get_int, get_str, get_time
from placement_ac.kube.login import Login
from tests.real.clusters import QUEUES, Cluster, Fleet
from tests.support import quick

SECONDS = 240.0
"""For a step: an image may have to be pulled, and Kueue tries again after up to 40 s."""


@pytest.fixture(scope="session")
def hub_login(pytestconfig: pytest.Config) -> Login:
    hub = pytestconfig.getoption("hub_kubeconfig")
    if not hub:
        pytest.skip("needs a real hub: --hub-kubeconfig FILE")
    return Login(Path(hub))


@pytest.fixture(scope="session")
def fleet(pytestconfig: pytest.Config) -> Fleet:
    hub, workers = pytestconfig.getoption("hub_kubeconfig"), pytestconfig.getoption("worker_kubeconfigs")
    if not (hub and workers):
        pytest.skip(
            "needs a real hub: --hub-kubeconfig FILE --worker-kubeconfigs NAME=FILE,NAME=FILE,NAME=FILE"
        )
    return Fleet.of(Cluster(Path(hub)), workers, SECONDS, bool(pytestconfig.getoption("dispatcher")))


@pytest.fixture(scope="session")
def _controller(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The controller that is installed, or one that is started for these tests."""
    if _leads(fleet):
        if fleet.dispatcher:
            pytest.skip(
                "stop the controller: with the dispatcher, these tests start one without the stable list"
            )
        yield
        return
    # The stable list would keep clusters that stand by: these tests look at the list.
    options = ["--report-scores", "true"]
    if fleet.dispatcher:
        options += ["--dispatcher", "true", "--unlist-after", "0", "--avoid-after-failure", "10m"]
    command = [
        sys.executable,
        "-m",
        quick.__name__,
        "run",
        "--kubeconfig",
        str(fleet.hub.kubeconfig),
        *options,
    ]
    with (tmp_path_factory.mktemp("controller") / "log").open("wb") as log:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            running.terminate()
            running.wait(30)


def _leads(fleet: Fleet) -> bool:
    lease = fleet.hub.get(LEASE, FIELD_MANAGER, QUEUES)
    renewed, lasts = get_time(lease, "spec", "renewTime"), get_int(lease, "spec", "leaseDurationSeconds") or 0
    held = get_str(lease, "spec", "holderIdentity") and renewed
    return bool(held and renewed and (datetime.now(UTC) - renewed).total_seconds() < lasts)


@pytest.fixture
def prepared(fleet: Fleet, _controller: None) -> Iterator[Fleet]:
    """The fleet with the queues, checks and labels of these tests; cleared before and after."""
    fleet.clear()
    fleet.prepare()
    yield fleet
    fleet.clear()
