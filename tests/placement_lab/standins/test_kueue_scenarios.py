"""The stand-in for Kueue does what real Kueue did, in the table that `make test-real` plays there, too."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from placement_lab.hub import Hub
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.kueue_webhooks import JOB_WEBHOOK
from placement_lab.standins.manifests import apply, connect
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.workload_environment import SPEED
from tests.real.clusters import Cluster
from tests.support.admin import login_to
from tests.support.kueue_objects import namespace
from tests.support.kueue_scenarios import each_scenario
from tests.support.kueue_stage import Stage

WORKERS = ("worker1", "worker2", "worker3")


@pytest.fixture(scope="module")
def kueue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("kubeconfigs")
    with ExitStack() as opened:
        hub = opened.enter_context(Hub())
        hub.add_webhook(JOB_WEBHOOK)
        fleet = opened.enter_context(WorkerFleet(WORKERS, bare=True))
        objects = [namespace("kueue-system"), *fleet.secrets(), *fleet.multikueue_clusters()]
        apply(connect(hub.kubeconfig()), objects)
        opened.enter_context(
            StandIns(lambda: login_to(hub), [lambda login: Kueue(login, speed=SPEED, throttled=True)])
        )
        for name, server in {"hub": hub, **fleet.hubs}.items():
            server.write_kubeconfig(folder / name)
        yield Stage(Cluster(folder / "hub"), {name: Cluster(folder / name) for name in WORKERS}, SPEED)


@pytest.fixture
def stage(kueue: Stage) -> Iterator[Stage]:
    kueue.set_up()
    yield kueue
    kueue.clear()


@each_scenario
def test_kueue(stage: Stage, play: Callable[[Stage], None]) -> None:
    play(stage)
