"""Kueue on a real hub does what the stand-in does in the same table (`tests/support/kueue_scenarios.py`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CLUSTER
from tests.real.clusters import Cluster
from tests.support.kueue_scenarios import each_scenario
from tests.support.kueue_stage import Stage, active

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="session")
def kueue(pytestconfig: pytest.Config) -> Stage:
    """The hub, and the three workers; a worker's MultiKueueCluster has its name, or ends with it."""
    hub, workers = pytestconfig.getoption("hub_kubeconfig"), pytestconfig.getoption("worker_kubeconfigs")
    if not (hub and workers):
        pytest.skip("needs a real hub: --hub-kubeconfig FILE --worker-kubeconfigs NAME=FILE,NAME=FILE,…")
    if pytestconfig.getoption("dispatcher"):
        pytest.skip("needs Kueue's own dispatcher, AllAtOnce")
    there = Cluster(Path(hub))
    pairs = [pair.partition("=")[::2] for pair in workers.split(",")][:3]
    connected = [
        str(item["metadata"]["name"])
        for item in there.list(MULTIKUEUE_CLUSTER)
        if active(item).startswith("True")
    ]
    found: dict[str, Cluster] = {}
    for name, file in pairs:
        names = [one for one in connected if one == name or one.endswith(f"-{name}")]
        if not names:
            pytest.skip(f"needs a MultiKueueCluster {name}, or …-{name}, that is Active")
        found[names[0]] = Cluster(Path(file))
    return Stage(there, found)


@pytest.fixture
def stage(kueue: Stage) -> Iterator[Stage]:
    kueue.clear()  # what a run that was interrupted has left
    kueue.set_up()
    yield kueue
    kueue.clear()


@each_scenario
def test_kueue(stage: Stage, play: Callable[[Stage], None]) -> None:
    play(stage)
